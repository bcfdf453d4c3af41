// A calculator without a kernel: the sheet's own JavaScript, joined to the controls, the answers and the curve.
// `show` and `showTex` write numbers exactly as scalebook.language.units does; a test compares them.

const UP = ["", "k", "M", "G", "T", "P", "E"], DOWN = ["", "m", "µ", "n", "p"];
const COUNTS = ["million", "billion", "trillion", "quadrillion"];
const COUNTED = new Set([
  "", "%", "token", "token/s", "request/s", "bit", "$", "$/h", "FLOP/B", "h", "MWh", "$/MWh", "t", "t/MWh",
]);
const LONG = [[86400, "days"], [3600, "h"], [60, "min"]];
const RAISED = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹", DIGITS = "-0123456789";

const round = (x) => Number(x.toPrecision(4));
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
  value = round(value);
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
    scale = long;
    tail = ` ${name}`;
  } else if (!COUNTED.has(unit) && value) {
    const low = unit === "s" || unit === "J" ? -4 : 0, high = unit === "s" ? 0 : 6;
    const step = above(low + 1, high + 1) + low;
    scale = Math.pow(1000, step);
    tail = ` ${step >= 0 ? UP[step] : DOWN[-step]}${unit}`;
    limit = 1e4;
  }
  let scaled = round(value / scale);
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

// What a spec names put in its place: formulas and rows of tables, which all calculators of a page share.
export function whole(spec, data) {
  const formulas = spec.formulas.map((f) => (typeof f === "string" ? data.formulas[f] : f));
  const controls = spec.controls.map((control) => (control.keys ? { ...control, options: menu(control, data) } : control));
  const names = formulas.map((f) => f.letter);
  const inputs = [...new Set(formulas.flatMap((f) => f.inputs))].filter((x) => !names.includes(x));
  const body = formulas.map((f) => `const ${f.letter} = ${f.js};`).join(" ");
  const sheet = new Function("letters", `const {${inputs}} = letters; ${body} return {${names}};`);
  return { ...spec, controls, formulas, sheet, unknown: Object.fromEntries(inputs.map((x) => [x, NaN])) };
}

function menu(control, data) {
  const rows = control.rows ?? data.tables[control.table];
  return control.keys.map((key) => {
    const { name, letters, peaks } = rows[key], named = (control.letters ?? Object.keys(letters)).filter((x) => x in letters);
    return { key, label: name, peaks, letters: { ...control.usual, ...Object.fromEntries(named.map((x) => [x, letters[x]])) } };
  });
}

// What the chosen options say together: letters with values, or a message where they do not fit.
export function known(spec, choice) {
  const options = spec.controls.map((control, i) => control.options[choice[i]]);
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
  return said.map(([, , text]) => text.replace(/\{(\w+)\}/g, (_, name) => show(values[name], spec.units[name]))).join(" ");
}

export function good(value, sign) {
  if (!Number.isFinite(value)) return false;
  return sign === "real" || value > 0 || (value === 0 && sign !== "positive") ? sign !== "share" || value <= 1 : false;
}

// The conditions of the first formula without a value, if it has some.
function outside(spec, values, lacking) {
  const { name, holds = [] } = spec.formulas.find((f) => f.letter === lacking) ?? {};
  const letters = [...new Set(holds.flatMap(([, names]) => names))].sort();
  if (!holds.length || letters.some((x) => Number.isNaN(values[x]))) return "";
  const at = letters.map((x) => `${x}=${show(values[x], spec.units[x])}`).join(", ");
  return `${name} holds for ${holds.map(([words]) => words).join(" and ")}, not at ${at}`;
}

// Every letter; one without a value of its sign is NaN, and so is what rests on it.
export function compute(spec, letters) {
  const values = { ...letters, ...spec.sheet(letters) };
  for (const { letter, sign, inputs } of spec.formulas) {
    if (!good(values[letter], sign) || inputs.some((x) => Number.isNaN(values[x]))) values[letter] = NaN;
  }
  return values;
}

export function answers(spec, choice) {
  const { letters, message } = known(spec, choice);
  const values = compute(spec, letters);
  const texts = spec.outputs.map((x) => (good(values[x.letter], x.sign) ? show(values[x.letter], x.unit) : "none"));
  const first = spec.outputs[0];
  if (texts[0] === "none") {
    const lacking = spec.formulas.find((f) => !good(values[f.letter], f.sign))?.letter;
    return { message: message ?? (outside(spec, values, lacking) || `no ${first.meaning} here`), texts, worked: "", values };
  }
  const numbers = spec.template.replace(/⟦(\w+)⟧/g, (_, name) => showTex(values[name], spec.units[name]));
  const steps = [spec.right, numbers, showTex(values[first.letter], first.unit)].join(" \\\\ &= ");
  return { message: message ?? warned(spec, values), texts, worked: `\\(\\begin{aligned}${spec.left} &= ${steps}\\end{aligned}\\)`, values };
}

// The curve: the answer along one slider, its present place marked.
function between(low, high) {
  const log = low > 0 && high / low > 4;
  return Array.from({ length: 97 }, (_, i) => (log ? low * Math.pow(high / low, i / 96) : low + ((high - low) * i) / 96));
}

const SVG = "http://www.w3.org/2000/svg";
function draw(svg, spec, choice) {
  const at = spec.curve.control, control = spec.controls[at];
  const width = Math.max(svg.clientWidth || 480, 240), height = 230, left = 88, right = 14, top = 12, bottom = 44;
  const options = control.options.map((option) => option.letters[spec.curve.x]), here = options[choice[at]];
  const { letters } = known(spec, choice);
  const row = (x) => {
    const values = { ...letters, [spec.curve.x]: x };
    const found = compute(spec, values);
    return [x, spec.curve.y.map((y) => found[y.letter])];
  };
  const points = (spec.curve.steps ? options : between(Math.min(...options), Math.max(...options))).map(row), now = row(here);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height);
  svg.replaceChildren();
  const add = (tag, attributes, text) => {
    const node = document.createElementNS(SVG, tag);
    for (const [k, v] of Object.entries(attributes)) node.setAttribute(k, v);
    if (text !== undefined) node.textContent = text;
    svg.append(node);
  };
  const ys = points.flatMap(([, y]) => y).filter((y) => Number.isFinite(y) && y > 0);
  if (!ys.length) {
    add("text", { x: left, y: height / 2 }, "nothing to draw for this choice");
    return;
  }
  const xs = points.map(([x]) => x), axis = (values, from, to) => {
    let low = Math.min(...values), high = Math.max(...values);
    const log = low > 0 && high / low > 20;
    if (log) [low, high] = [Math.log10(low), Math.log10(high)];
    else if (from > to) low = 0;
    if (low === high) high = low + 1;
    const place = (v) => from + ((to - from) * ((log ? Math.log10(v) : v) - low)) / (high - low);
    const step = log ? Math.max(1, Math.ceil((high - low) / 5)) : Math.pow(10, Math.floor(Math.log10((high - low) / 2)));
    const ticks = [];
    for (let t = Math.ceil(low / step - 1e-9); t * step <= high + 1e-9; t++) ticks.push(log ? Math.pow(10, t * step) : t * step);
    const every = Math.ceil(ticks.length / 6);
    return { place, ticks: ticks.filter((_, i) => i % every === 0) };
  };
  const X = axis(xs, left, width - right), Y = axis(ys, height - bottom, top);
  for (const t of Y.ticks) {
    add("line", { x1: left, x2: width - right, y1: Y.place(t), y2: Y.place(t), class: "sb-grid" });
    add("text", { x: left - 6, y: Y.place(t) + 4, "text-anchor": "end" }, show(t, spec.curve.y[0].unit));
  }
  // Powers of two of the first option, where there are enough of them; then as many as there is room for.
  const doubled = options.filter((x) => Number.isInteger(Math.log2(x / options[0])));
  const marks = doubled.length > 3 ? doubled : options;
  const said = (x) => show(x, COUNTED.has(spec.curve.unit) && spec.curve.unit !== "%" ? "" : spec.curve.unit);
  const room = 7 * Math.max(...marks.map((x) => said(x).length)) + 14;
  const every = Math.ceil(marks.length / Math.max(2, Math.floor((width - left) / Math.max(room, 60))));
  marks.filter((_, i) => i % every === 0).forEach((x, i) => {
    add("line", { x1: X.place(x), x2: X.place(x), y1: height - bottom, y2: height - bottom + 4, class: "sb-axis" });
    add("text", { x: X.place(x), y: height - bottom + 17, "text-anchor": X.place(x) > width - 60 ? "end" : i ? "middle" : "start" }, said(x));
  });
  add("line", { x1: left, x2: width - right, y1: height - bottom, y2: height - bottom, class: "sb-axis" });
  add("text", { x: width - right, y: height - 8, "text-anchor": "end" }, spec.curve.label);
  spec.curve.y.forEach((y, k) => {
    let path = "", pen = "M";
    for (const [x, values] of points) {
      const v = values[k], ok = Number.isFinite(v) && v > 0;
      if (ok) path += `${pen}${X.place(x).toFixed(1)} ${Y.place(v).toFixed(1)}`;
      if (ok && spec.curve.steps) add("circle", { cx: X.place(x), cy: Y.place(v), r: k ? 2 : 2.5, class: `sb-dot sb-dot-${k}` });
      pen = ok ? "L" : "M";
    }
    if (path) add("path", { d: path, class: `sb-line sb-line-${k}${k === 0 && spec.curve.y.length > 1 ? " sb-under" : ""}` });
    const [x, values] = now;
    if (Number.isFinite(values[k]) && values[k] > 0) {
      add("circle", { cx: X.place(x), cy: Y.place(values[k]), r: k ? 3.5 : 5, class: `sb-dot sb-dot-${k}` });
    }
  });
}

async function models(model, name) {
  const refs = [model.get(name)].flat();
  return Promise.all(refs.map((r) => (typeof r === "string" ? model.widget_manager.get_model(r.replace("IPY_MODEL_", "")) : r)));
}

export default () => {
  let update = [], state;
  const ready = {};
  ready.promise = new Promise((resolve) => (ready.resolve = resolve));
  return {
    async initialize({ model }) {
      const own = model.get("data"), kernel = Boolean(own?.formulas), spec = whole(model.get("spec"), kernel ? own : globalThis.scalebook);
      const controls = await models(model, "controls"), labels = await models(model, "labels");
      const [worked] = await models(model, "worked"), [message] = await models(model, "message");
      const choice = () => controls.map((c) => c.get("index"));
      const set = (widget, value) => widget.get("value") === value || widget.set("value", value);
      let due = false;
      const run = () => {
        due = false;
        const found = answers(spec, choice());
        labels.forEach((label, i) => set(label, found.texts[i]));
        set(worked, found.worked);
        set(message, found.message);
        update.forEach((f) => f());
      };
      // At most one run a frame, however fast the slider moves.
      controls.forEach((c) => c.on("change:index", () => { if (!due) { due = true; requestAnimationFrame(run); } }));
      if (!kernel) run();  // with a kernel Python has answered
      state = { spec, choice };
      ready.resolve();
    },
    async render({ el }) {
      await ready.promise;
      const { spec, choice } = state;
      el.classList.add("sb-live");
      if (!spec.curve) return;
      const figure = document.createElement("figure"), svg = document.createElementNS(SVG, "svg"), caption = document.createElement("figcaption");
      figure.className = "sb-curve";
      svg.setAttribute("role", "img");
      spec.curve.y.forEach((y, k) => {
        const item = document.createElement("span");
        item.className = `sb-key sb-key-${k}`;
        item.textContent = y.meaning;
        caption.append(item);
      });
      figure.append(caption, svg);
      el.append(figure);
      const redraw = () => {
        draw(svg, spec, choice());
        const found = answers(spec, choice());
        svg.setAttribute("aria-label", `${spec.outputs[0].meaning} against ${spec.curve.label}; now ${found.texts[0]}`);
      };
      // ipywidgets leaves slider handles without a name for screen readers.
      const name = () => (el.closest(".sb-calculator") ?? document).querySelectorAll(".noUi-handle").forEach((handle) => {
        const row = handle.closest(".widget-inline-hbox, .jupyter-widget-inline-hbox, .widget-hslider");
        handle.setAttribute("aria-label", row?.querySelector(".widget-label")?.textContent ?? "value");
      });
      const size = new ResizeObserver(() => { redraw(); name(); });
      size.observe(figure);
      update.push(redraw);
      redraw();
      return () => { size.disconnect(); update = update.filter((f) => f !== redraw); };
    },
  };
};
