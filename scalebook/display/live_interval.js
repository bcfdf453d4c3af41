// How far an answer may be from its value, as scalebook.language.interval says it: the same causes, the same draws.

const DRAWS = 400;

// The normal deviate of a probability: Wichura's AS 241, as Python's statistics has it.
function deviate(p) {
  const q = p - 0.5, ratio = (r, over, under) => over.reduce((sum, c) => sum * r + c, 0) / under.reduce((sum, c) => sum * r + c, 0);
  if (Math.abs(q) <= 0.425) {
    return q * ratio(0.180625 - q * q,
      [2.50908092873012267e3, 3.34305755835881281e4, 6.72657709270087008e4, 4.59219539315498715e4, 1.37316937655094611e4, 1.97159095030655144e3, 1.3314166789178437745e2, 3.387132872796366608],
      [5.22649527885285452e3, 2.87290857357219426e4, 3.93078958000927106e4, 2.12137943015865959e4, 5.39419602142475110e3, 6.87187007492057908e2, 4.2313330701600911252e1, 1]);
  }
  const r = Math.sqrt(-Math.log(q <= 0 ? p : 1 - p));  // at most 5, with as few draws
  return Math.sign(q) * ratio(r - 1.6,
    [7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258, 3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734],
    [1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940, 2.05319162663775882187, 1]);
}

const DEVIATES = Array.from({ length: DRAWS }, (_, i) => deviate((i + 0.5) / DRAWS) / -deviate(0.1));

function crc32(text) {
  let crc = -1;
  for (const byte of unescape(encodeURIComponent(text))) {
    crc ^= byte.charCodeAt(0);
    for (let k = 0; k < 8; k++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

// The draws of a cause, wherever it is met: the deviates in an order that its name gives (mulberry32).
const drawn = new Map();
export function steps(cause) {
  if (!drawn.has(cause)) {
    const seed = crc32(cause), keys = DEVIATES.map((_, i) => {
      const x = (seed + Math.imul(i + 1, 0x6d2b79f5)) | 0;
      let t = Math.imul(x ^ (x >>> 15), x | 1);
      t ^= (t + Math.imul(t ^ (t >>> 7), t | 61)) | 0;
      return (t ^ (t >>> 14)) >>> 0;
    });
    const order = keys.map((_, i) => i).sort((a, b) => keys[a] - keys[b] || a - b);
    drawn.set(cause, order.map((i) => DEVIATES[i]));
  }
  return drawn.get(cause);
}

// The two ends that `level` of all cases lie between.  causes: [{ name, ends: [[letter, low, high]] }], ends over the
// value; evaluate: from the factor of each of these letters to the result.
export function spreadOf(causes, evaluate, level = 0.8) {
  const all = causes.map((x) => steps(x.name)), factors = {}, found = new Float64Array(DRAWS);
  for (const { ends } of causes) for (const [letter] of ends) factors[letter] = 1;
  const value = evaluate(factors);
  for (let i = 0; i < DRAWS; i++) {
    causes.forEach(({ ends }, k) => {
      const step = all[k][i];
      for (const [letter, low, high] of ends) factors[letter] = step < 0 ? low ** -step : high ** step;
    });
    found[i] = evaluate(factors);
  }
  found.sort();
  if (found.some(Number.isNaN)) return undefined;
  const at = (share) => { const place = share * (DRAWS - 1), i = Math.floor(place); return found[i] + (place - i) * (found[Math.min(i + 1, DRAWS - 1)] - found[i]); };
  return [Math.min(value, at((1 - level) / 2)), Math.max(value, at((1 + level) / 2))]; // the value lies between them
}

// An expression without the condition under which it holds.
const bare = (js) => js.replace(/\s+/g, " ").replace(/^\(\((?:(?!\?).)*\) \? \( (.*) \) : \( NaN \)\)$/, "$1");

// What a letter follows from, in order, as a function of what is known and of factors on what some of it gives.
function followed(spec, letter, letters) {
  const said = (spec.over ?? []).filter((x) => x in letters), key = [letter, ...said].join(" ");
  spec.followed ??= {};
  if (!spec.followed[key]) {
    const by = new Map(spec.formulas.filter((f) => !said.includes(f.letter)).map((f) => [f.letter, f])), needed = new Set();
    const walk = (name) => { if (!needed.has(name)) { needed.add(name); by.get(name)?.inputs.forEach(walk); } };
    walk(letter);
    const formulas = [...by.values()].filter((f) => needed.has(f.letter)), inputs = [...needed].filter((x) => !by.has(x));
    const line = ({ letter: x, js }) => `const ${x} = ${spec.spread?.[x] ? `Math.min(most.${x} ?? Infinity, (factor.${x} ?? 1)*(${bare(js)}))` : bare(js)};`;
    const run = new Function("letters", "factor", "most", `const {${inputs}} = letters; ${formulas.map(line).join(" ")} return ${letter};`);
    spec.followed[key] = { formulas, inputs, run };
  }
  return spec.followed[key];
}

// By letter, what is known of how far each may be off where the controls stand so.
function known_ends(spec, state) {
  const found = {}, take = (letters, key, ends = {}, usual = new Set()) => {
    for (const x of Object.keys(letters)) {
      delete found[x];
      if (ends[x]) found[x] = { low: ends[x][0] / letters[x], high: ends[x][1] / letters[x], group: `${key} ${ends[x][2]}`, origin: ends[x][3] };
      else if (usual.has(x) && spec.spread?.[x]) { const [low, high, origin] = spec.spread[x]; found[x] = { low, high, group: x, origin }; }
    }
  };
  for (const control of spec.controls) {
    const option = chosen(control, state);
    take(option.letters, option.key, option.ends, option.usual);
  }
  const device = spec.controls.map((x) => chosen(x, state)).find((x) => x.peaks), at = device?.peaks.find(([name]) => name === state.precision)?.[1];
  if (at) take(Object.fromEntries(spec.by_precision.filter((x) => x in at).map((x) => [x, at[x]])), device.key, device.ends_at?.[state.precision]);
  return found;
}

// How far a letter may be off: its ends, or undefined where it rests on nothing that is uncertain.
export function likely(spec, state, letter, letters = known(spec, state).letters, level = 0.8) {
  const { formulas, inputs, run } = followed(spec, letter, letters), own = known_ends(spec, state), groups = new Map(), moved = new Set(), most = {};
  const add = (name, { low, high, group, origin }) => groups.set(group, [...(groups.get(group) ?? []), { name, low, high, origin }]);
  for (const x of inputs) if (own[x]) { add(x, own[x]); moved.add(x); }
  // Steps that visit experts lack more than dense ones.
  const visits = (f) => f.inputs.includes("experts_time") && followed(spec, "experts_time", letters).run(letters, {}, {}) > 0;
  const endsOf = (f) => { const [low, high, , ...apart] = spec.spread?.[f.letter] ?? []; return low === undefined ? undefined : apart.length && visits(f) ? apart : [low, high]; };
  for (const f of formulas) {
    const spread = endsOf(f), below = f.inputs.some((x) => moved.has(x));
    if (spread) { add(f.letter, { low: spread[0], high: spread[1], group: f.letter, origin: f.name }); if (!below && f.sign === "share") most[f.letter] = 1; }
    if (spread || below) moved.add(f.letter);
  }
  if (!groups.size) return undefined;
  const causes = [...groups.values()].map((several) => ({ name: `${several.map((x) => x.name).sort()[0]} ${several[0].origin}`, ends: several.map((x) => [x.name, x.low, x.high]) }));
  const shares = new Set(spec.shares ?? []), uncertain = inputs.filter((x) => own[x]), drawnLetters = { ...letters };
  return spreadOf(causes, (factor) => {
    for (const x of uncertain) { const value = letters[x] * factor[x]; drawnLetters[x] = shares.has(x) ? Math.min(1, value) : value; }
    return run(drawnLetters, factor, most);
  }, level);
}
