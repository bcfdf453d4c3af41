// What a calculator computes: the sheet's own JavaScript, for a state of its controls.  Nothing here draws.
// `show` and `showTex` write numbers exactly as scalebook.language.units does; a test compares them.

const UP = ["", "k", "M", "G", "T", "P", "E"], DOWN = ["", "m", "µ", "n", "p"];
const COUNTS = ["million", "billion", "trillion", "quadrillion"];
const COUNTED = new Set([
  "", "%", "token", "token/s", "request/s", "bit", "$", "$/h", "FLOP/B", "h", "MWh", "$/MWh", "t", "t/MWh",
]);
const LONG = [[86400, "days"], [3600, "h"], [60, "min"]];
const RAISED = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹", DIGITS = "-0123456789";

const round = (x) => Number(Number(x.toPrecision(12)).toPrecision(4)); // of twelve: the last bits of sums do not decide
function plain(x) {
  const [whole, rest] = String(x).split(".");
  const grouped = Math.abs(x) >= 1000 ? whole.replace(/\B(?=(\d{3})+$)/g, ",") : whole;
  return rest === undefined ? grouped : `${grouped}.${rest}`;
}

export function show(value, unit) {
  if (unit === "year") {
    const months = Math.round(value * 12);
    return `${Math.floor(months / 12)}-${String((months % 12) + 1).padStart(2, "0")}`;
  }
  if (unit === "%") value *= 100;
  if (unit === "" && value === Math.trunc(value) && Math.abs(value) < 1e6) return plain(value);
  const exact = value;
  let parted = value = round(value);
  const size = Math.abs(value), above = (low, high) => {
    let n = 0;
    for (let k = low; k < high; k++) n += size >= Math.pow(1000, k);
    return n;
  };
  let scale = 1, tail = unit ? ` ${unit}` : "", limit = 1e6;
  if (COUNTED.has(unit) && size >= 1e6 && size < 1e18) {
    const step = above(3, 6);
    scale = Math.pow(1000, step + 2);
    tail = ` ${COUNTS[step]}${tail}`;
  } else if (unit === "s" && size >= 120) {
    const [long, name] = LONG.find(([x]) => size >= 2 * x);
    parted = exact; // 60 and 86,400 are no powers of ten
    scale = long;
    tail = ` ${name}`;
  } else if (!COUNTED.has(unit) && value) {
    const low = unit === "s" || unit === "J" ? -4 : 0, high = unit === "s" ? 0 : 6;
    const step = above(low + 1, high + 1) + low;
    scale = Math.pow(1000, step);
    tail = ` ${step >= 0 ? UP[step] : DOWN[-step]}${unit}`;
    limit = 1e4;
  }
  let scaled = round(parted / scale);
  if (scaled && !(Math.abs(scaled) >= 1e-3 && Math.abs(scaled) < limit)) {
    const [mantissa, power] = value.toExponential(3).split("e").map(Number);
    scaled = mantissa;
    tail = `×10${[...String(power)].map((c) => RAISED[DIGITS.indexOf(c)]).join("")}${unit ? ` ${unit}` : ""}`;
  }
  return plain(scaled) + tail;
}

export function showTex(value, unit) {
  const text = show(value, unit), cut = text.indexOf(" ");
  let number = cut < 0 ? text : text.slice(0, cut), rest = cut < 0 ? "" : text.slice(cut + 1);
  if (number.includes("×10")) {
    const [mantissa, power] = number.split("×10");
    number = `${mantissa}\\times 10^{${[...power].map((c) => DIGITS[RAISED.indexOf(c)]).join("")}}`;
  }
  rest = rest.replaceAll("$", "\\$").replaceAll("%", "\\%").replaceAll(" ", "\\ ").replaceAll("µ", "\\mu ");
  return number.replaceAll(",", "{,}") + (rest ? `\\,\\mathrm{${rest}}` : "");
}

// Every digit of a number that somebody chose: 131,072 tokens, and not 131,100.
export function exact(value, unit) {
  const text = show(value, unit);
  if (unit === "year" || close(parse(text, unit).value, value)) return text;
  const size = Math.abs(value), tail = unit === "%" ? " %" : unit ? ` ${unit}` : "", long = (x) => Number((value / x).toPrecision(12));
  if (unit === "s" && size >= 120) for (const [x, name] of LONG) if (size >= x && long(x) === Number(long(x).toFixed(3))) return `${plain(long(x))} ${name}`;
  if (unit === "%") return `${plain(Number((100 * value).toPrecision(12)))} %`;
  if (COUNTED.has(unit)) return plain(value) + tail;
  const at = Math.min(Math.max(Math.floor(Math.log10(size) / 3 + 1e-12), unit === "s" || unit === "J" ? -4 : 0), unit === "s" ? 0 : 6);
  return `${plain(Number((value / Math.pow(1000, at)).toPrecision(12)))} ${at < 0 ? DOWN[-at] : UP[at]}${unit}`;
}

const close = (a, b) => Math.abs(a - b) <= 1e-12 * Math.abs(b);
const TIMES = { k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18, m: 1e-3, u: 1e-6, µ: 1e-6, μ: 1e-6, n: 1e-9, p: 1e-12,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, "": 1 };
const WORDS = { thousand: 1e3, k: 1e3, million: 1e6, m: 1e6, billion: 1e9, b: 1e9, bn: 1e9, trillion: 1e12, t: 1e12, quadrillion: 1e15 };
const SPANS = { s: 1, min: 60, minutes: 60, minute: 60, h: 3600, hour: 3600, hours: 3600, d: 86400, day: 86400, days: 86400,
  month: 30 * 86400, months: 30 * 86400, year: 365 * 86400, years: 365 * 86400 };
const LIKE = { B: "80 GB", "B/s": "3.5 TB/s", "FLOP/s": "989 TFLOP/s", s: "30 ms", "%": "90 %", year: "2024-03" };

// What somebody typed, as {value} in the unit's base or {error}: "12,000", "2^17", "1.5 million", "3.5 TB/s", "30 ms".
export function parse(text, unit) {
  const said = text.trim().replaceAll("\u00a0", " ").replaceAll("−", "-");
  const wrong = { error: `“${said.slice(0, 40)}” is not understood here: type ${unit ? `a number with ${unit === "%" ? "%" : `the unit ${unit}`}` : "a number"}, such as ${LIKE[unit] ?? (unit ? `12,000 ${unit}` : "12,000")}` };
  const dated = unit === "year" && said.match(/^(\d{4})-(\d\d?)$/);
  if (dated) return { value: Number(dated[1]) + (Number(dated[2]) - 1) / 12 };
  const found = said.match(/^([-+]?(?:\d{1,3}(?:[, ]\d{3})+|\d+)?(?:\.\d+)?)(?:(?:e([-+]?\d{1,3}))|(?:\s*[×x*]\s*10\s*(?:\^|\*\*)?\s*([-⁻]?[\d⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}))|(?:\s*(?:\^|\*\*)\s*(\d{1,3})))?\s*(.*)$/i);
  if (!found || !/\d/.test(found[1])) return wrong;
  let value = Number(found[1].replace(/[, ]/g, ""));
  if (found[2] || found[3]) value *= Math.pow(10, Number([...(found[2] ?? found[3])].map((c) => DIGITS[RAISED.indexOf(c)] ?? c).join("")));
  if (found[4]) value = Math.pow(value, Number(found[4]));
  let rest = found[5].trim();
  const [first, ...others] = rest.split(/\s+/), counted = COUNTED.has(unit) && unit !== "%";
  if (counted && WORDS[first.toLowerCase()] && first !== unit) [value, rest] = [value * WORDS[first.toLowerCase()], others.join(" ")];
  const bare = unit.split("/")[0];
  if (unit === "%" && rest === "%") value /= 100;
  else if (unit === "%" && rest === "" && Math.abs(value) > 1) value /= 100;
  else if (unit === "s" && SPANS[rest]) value *= SPANS[rest];
  else if (counted && [unit, `${unit}s`, `${bare}s${unit.slice(bare.length)}`].includes(rest)) ;
  else if (rest && rest !== unit) {
    const prefix = rest.endsWith(unit) && unit && !counted && unit !== "%" ? rest.slice(0, -unit.length) : undefined;
    if (!(prefix in TIMES) || (TIMES[prefix] < 1 && !["s", "J", "W"].includes(unit))) return wrong;
    value *= TIMES[prefix];
  }
  return Number.isFinite(value) ? { value } : wrong;
}

// What a spec names put in its place: formulas and rows of tables, which all calculators of a page share.
export function whole(spec, data) {
  const formulas = spec.formulas.map((f) => (typeof f === "string" ? data.formulas[f] : f));
  const controls = spec.controls.map((control) => (control.keys ? { ...control, options: menu(control, data) } : control));
  const names = formulas.map((f) => f.letter);
  const inputs = [...new Set(formulas.flatMap((f) => f.inputs))].filter((x) => !names.includes(x));
  // What a device says itself takes the place of the formula for it.
  const over = spec.over ?? [], body = formulas.map((f) => `const ${f.letter} = ${over.includes(f.letter) ? `letters.${f.letter} ?? (${f.js})` : f.js};`).join(" ");
  const sheet = new Function("letters", `const {${inputs}} = letters; ${body} return {${names}};`);
  const pieces = (spec.bars ?? []).flatMap((bar) => bar.rows.flatMap((row) => row.pieces));
  const piece = Object.fromEntries(pieces.map(({ js }) => [js, new Function("letters", `const {${[...inputs, ...names]}} = letters; return ${js};`)]));
  return { ...spec, controls, formulas, sheet, piece, unknown: Object.fromEntries(inputs.map((x) => [x, NaN])) };
}

function menu(control, data) {
  const rows = control.rows ?? data.tables[control.table], read = Object.entries(control.read ?? {});
  // What a device says of its own kernels, by the kind of cache that the sheet reads.
  const own = (said) => ({ ...said, ...Object.fromEntries(read.flatMap(([x, cell]) => (said && cell in said ? [[x, said[cell]]] : []))) });
  return control.keys.map((key) => {
    const { name, letters: all, peaks, ends, ends_at } = rows[key], letters = own(all), named = (control.letters ?? Object.keys(letters)).filter((x) => x in letters && !read.some(([, cell]) => cell === x));
    return { key, label: name, peaks, ends: own(ends), ends_at, usual: new Set(Object.keys(control.usual).filter((x) => !named.includes(x))), letters: { ...control.usual, ...Object.fromEntries(named.map((x) => [x, letters[x]])) } };
  });
}

// The option of a menu that a state names, or what a slider's number says.
export function chosen(control, state) {
  const value = state[control.name];
  if (control.options) return control.options.find((x) => x.key === value);
  return { letters: { [control.name]: value } };
}

// The precisions that the device has, of those on offer.
export function offered(spec, state) {
  const control = spec.controls.find((x) => x.name === "precision");
  const device = spec.controls.map((x) => chosen(x, state)).find((x) => x.peaks);
  return control.options.filter((x) => device.peaks.some(([name]) => name === x.peak));
}

// What the chosen options say together: letters with values, or a message where they do not fit.
export function known(spec, state) {
  const options = spec.controls.map((control) => chosen(control, state));
  const letters = Object.assign({}, spec.unknown, spec.fixed, ...options.map((option) => option.letters));
  const precision = options.find((option) => option.peak);
  if (!precision) return { letters };
  const device = options.find((option) => option.peaks);
  const [, at] = device.peaks.find(([name]) => name === precision.peak) ?? [];
  if (at) return { letters: { ...letters, ...Object.fromEntries(spec.by_precision.filter((x) => x in at).map((x) => [x, at[x]])) } };
  const has = device.peaks.map(([name]) => name).join(", ");
  return { letters, message: `${device.label} has no peak at ${precision.peak}; it has ${has}` };
}

// What is computed all the same, but should not be read without a word: `{letter}` stands for its value.
function warned(spec, values) {
  const said = spec.warn.filter(([left, right]) => values[left] > values[right]);
  const words = said.map(([, , text]) => text.replace(/\{(\w+)\}/g, (_, name) => show(values[name], spec.units[name])));
  const over = (spec.limits ?? []).filter(([left, right]) => values[left] > values[right]);
  const held = over.map(([left, right]) => `It does not fit: ${show(values[left], spec.units[left])} of ${show(values[right], spec.units[right])}.`);
  return [...words, ...held].join(" ");
}

// A meaning up to its first comma, colon or semicolon.
export const brief = (meaning) => meaning.split(/[,:;]/)[0];

export function good(value, sign) {
  if (!Number.isFinite(value)) return false;
  return sign === "real" || value > 0 || (value === 0 && sign !== "positive") ? sign !== "share" || value <= 1 : false;
}

// The conditions of the first formula without a value, if it has some.
function outside(spec, values, lacking) {
  const { holds = [] } = spec.formulas.find((f) => f.letter === lacking) ?? {}, said = (x) => brief(spec.letters[x][1]);
  const letters = [...new Set(holds.flatMap(([, names]) => names))].sort();
  if (!holds.length || letters.some((x) => Number.isNaN(values[x]))) return "";
  const at = letters.map((x) => `${said(x)} = ${show(values[x], spec.units[x])}`).join("; ");
  return `${said(lacking)}: the formula holds for ${holds.map(([words]) => words).join(" and ")}, not at ${at}`;
}

// Every letter; one without a value of its sign is NaN, and so is what rests on it.
export function compute(spec, letters) {
  const values = { ...letters, ...spec.sheet(letters) };
  for (const { letter, sign, inputs } of spec.formulas) {
    if (!good(values[letter], sign) || (!(letter in letters) && inputs.some((x) => Number.isNaN(values[x])))) values[letter] = NaN;
  }
  return values;
}

export function answers(spec, state) {
  const { letters, message } = known(spec, state);
  const values = compute(spec, letters);
  const texts = spec.outputs.map((x) => (good(values[x.letter], x.sign) ? show(values[x.letter], x.unit) : "none"));
  const first = spec.outputs[0];
  if (texts[0] === "none") {
    const lacking = spec.formulas.find((f) => !good(values[f.letter], f.sign))?.letter;
    return { message: message ?? (outside(spec, values, lacking) || `what is chosen here gives no ${brief(first.meaning)}`), texts, worked: "", values };
  }
  const numbers = spec.template.replace(/⟦(\w+)⟧/g, (_, name) => showTex(values[name], spec.units[name]));
  const steps = [spec.right, numbers, showTex(values[first.letter], first.unit)].join(" \\\\ &= ");
  return { message: message ?? warned(spec, values), texts, worked: `\\(\\begin{aligned}${spec.left} &= ${steps}\\end{aligned}\\)`, values };
}
