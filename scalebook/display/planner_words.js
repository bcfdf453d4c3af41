// Numbers as people write them, letters and formulas as MathML, and what a configuration or a device's cells say.
// Everything becomes text nodes and attributes that are set: nothing that was pasted or linked is ever markup.

function planWords(engine) {
  const { data, nodes, notation, pairs } = engine;
  const MATHS = "http://www.w3.org/1998/Math/MathML", SVG = "http://www.w3.org/2000/svg";
  function node(space, tag, attributes = {}, ...children) {
    const made = space ? document.createElementNS(space, tag) : document.createElement(tag);
    for (const [k, v] of Object.entries(attributes)) {
      if (v === undefined || v === null || v === false) continue;
      if (k.startsWith("on")) made.addEventListener(k.slice(2), v);
      else made.setAttribute(k, v === true ? "" : v);
    }
    made.append(...children.flat(Infinity).filter((x) => x !== null && x !== undefined && x !== ""));
    return made;
  }
  const h = (tag, attributes, ...children) => node(null, tag, attributes, ...children);
  const s = (tag, attributes, ...children) => node(SVG, tag, attributes, ...children);
  const m = (tag, ...children) => node(MATHS, tag, {}, ...children);

  // Numbers: counts exact, all else to four digits (`digits`) with the prefix that fits.
  const PREFIX = ["p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E"], COUNTS = ["million", "billion", "trillion", "quadrillion"];
  const PLAIN = new Set(["", "%", "token", "token/s", "request/s", "bit", "$", "$/h", "FLOP/B", "h", "MWh", "$/MWh", "t", "t/MWh"]);
  const PLURAL = { token: "tokens", "token/s": "tokens/s", "request/s": "requests/s", bit: "bits" };
  const grouped = (x) => { const [whole, rest] = String(x).split("."); return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? `.${rest}` : ""); };
  function show(value, unit = "", digits = 4) {
    if (value === undefined || !Number.isFinite(value)) return "none";
    if (unit === "year") { const months = Math.round(value * 12); return `${Math.floor(months / 12)}-${String((months % 12) + 1).padStart(2, "0")}`; }
    if (unit === "%") value *= 100;
    const named = (n) => (unit ? ` ${n === 1 ? unit : PLURAL[unit] ?? unit}` : "");
    if ((unit === "" || unit === "token") && Number.isInteger(value) && Math.abs(value) < 1e7) return grouped(value) + named(value);
    const round = (x) => Number(x.toPrecision(digits)), size = Math.abs(round(value));
    if (PLAIN.has(unit)) {
      const step = size >= 1e6 && size < 1e18 ? Math.floor(Math.log10(size) / 3) - 2 : -1;
      if (step >= 0) return `${round(value / 1000 ** (step + 2))} ${COUNTS[step]}${named(value)}`;
      return size >= 1e18 || (size && size < 1e-3) ? value.toExponential(2).replace(/e\+?(-?\d+)/, "×10^$1") + named(value) : grouped(round(value)) + named(value);
    }
    if (unit === "s" && size >= 120) {
      const [long, name] = [[86400, "days"], [3600, "h"], [60, "min"]].find(([x]) => size >= 2 * x);
      return `${grouped(round(value / long))} ${name}`;
    }
    const low = unit === "s" || unit === "J" ? -4 : 0, high = unit === "s" ? 0 : 6;
    let step = size ? Math.min(high, Math.max(low, Math.floor(Math.log10(size) / 3))) : 0;
    if (size && round(value / 1000 ** step) >= 1000 && step < high) step++;
    return `${grouped(round(value / 1000 ** step))} ${PREFIX[step + 4]}${unit}`;
  }
  // A quantity that was typed: "12,000", "3.5 TB/s", "80 GiB", "90 %", a bare number in the letter's unit as it is shown.
  function read(text, unit, bare = 1) {
    const found = /^\s*(-?[\d.,_ ]*\d(?:e[-+]?\d+)?)\s*(\D*)$/i.exec(String(text).slice(0, 60));
    if (!found) return NaN;
    const number = Number(found[1].replace(/[,_ ]/g, "")), rest = found[2].trim();
    if (!rest) return number * bare;
    if (unit === "%") return rest === "%" ? number / 100 : NaN;
    const words = { thousand: 1e3, million: 1e6, billion: 1e9, trillion: 1e12, quadrillion: 1e15, quintillion: 1e18 };
    const [first, ...more] = rest.split(" ");
    if (first in words) return number * words[first];
    if (unit === "s") {
      const sizes = { s: 1, ms: 1e-3, us: 1e-6, "µs": 1e-6, ns: 1e-9, min: 60, h: 3600, days: 86400, day: 86400 };
      return number * (sizes[rest] ?? NaN);
    }
    const singular = Object.entries(PLURAL).find(([, y]) => y === rest)?.[0] ?? rest;
    if (singular === unit) return number;
    const prefix = unit && rest.endsWith(unit) ? rest.slice(0, rest.length - unit.length) : rest;
    const at = ["", "k", "M", "G", "T", "P", "E"].indexOf(prefix), binary = ["Ki", "Mi", "Gi", "Ti"].indexOf(prefix);
    return at >= 0 ? number * 1000 ** at : binary >= 0 ? number * 1024 ** (binary + 1) : NaN;
  }

  // Letters, from their TeX.
  const GREEK = { alpha: "α", beta: "β", gamma: "γ", delta: "δ", epsilon: "ϵ", eta: "η", theta: "θ", iota: "ι", kappa: "κ", lambda: "λ", nu: "ν", rho: "ρ",
    sigma: "σ", tau: "τ", phi: "ϕ", chi: "χ", omega: "ω", Sigma: "Σ", Delta: "Δ", ell: "ℓ", star: "⋆", times: "×", leftrightarrow: "↔", prime: "′",
    Box: "□", varsigma: "ς", varrho: "ϱ", uparrow: "↑", max: "max", min: "min", exp: "exp" };
  function tex(text) {
    const tokens = text.match(/\\[a-zA-Z]+|\d+|[^\s]/g) ?? [];
    let at = 0;
    const row = (list) => (list.length === 1 ? list[0] : m("mrow", ...list));
    function group() {
      if (tokens[at] !== "{") return atom();
      at++;
      const list = sequence();
      at++;
      return row(list);
    }
    function atom() {
      const token = tokens[at++];
      if (token === "{") { const list = sequence(); at++; return row(list); }
      if (token === "\\mathrm") {
        at++;
        let said = "";
        while (at < tokens.length && tokens[at] !== "}") said += tokens[at++];
        at++;
        return m("mtext", said);
      }
      if (token === "\\bar" || token === "\\hat") return m("mover", group(), m("mo", token === "\\bar" ? "¯" : "^"));
      if (token[0] === "\\") return m("mi", GREEK[token.slice(1)] ?? token.slice(1));
      return /\d/.test(token) ? m("mn", token) : /[a-zA-Z]/.test(token) ? m("mi", token) : m("mo", token);
    }
    function sequence() {
      const list = [];
      while (at < tokens.length && tokens[at] !== "}") {
        let base = atom(), sub = null, sup = null;
        while (tokens[at] === "_" || tokens[at] === "^") { const which = tokens[at++]; if (which === "_") sub = group(); else sup = group(); }
        list.push(sub && sup ? m("msubsup", base, sub, sup) : sub ? m("msub", base, sub) : sup ? m("msup", base, sup) : base);
      }
      return list;
    }
    return row(sequence());
  }
  const letter = (name) => tex(notation[name]?.[0] ?? name);
  const unit = (name) => notation[name]?.[2] ?? "";
  const meaning = (name) => notation[name]?.[1] ?? name;

  // A right-hand side as MathML; `leaf` says what stands for a letter.
  const RANK = { "+": 1, "*": 2, "^": 3, "&": 0, "|": 0, ">=": 0, ">": 0, "<=": 0, "<": 0, "==": 0, "!=": 0, "?": 0 };
  const SIGNS = { ">=": "≥", ">": ">", "<=": "≤", "<": "<", "==": "=", "!=": "≠", "&": "and", "|": "or" };
  function print(place, leaf, above = 0) {
    const own = nodes[place];
    if (typeof own === "string") return leaf(own);
    if (!Array.isArray(own)) return m("mn", show(own));
    const [kind, ...of] = own, at = (x, rank = 0) => print(x, leaf, rank);
    const joined = (list, sign) => list.flatMap((x, i) => (i ? [m("mo", sign), x] : [x]));
    const wrap = (x) => ((RANK[kind] ?? 4) < above ? m("mrow", m("mo", "("), x, m("mo", ")")) : x);
    if (kind === "/") return m("mfrac", m("mn", `${of[0]}`), m("mn", `${of[1]}`));
    if (kind === "+") {
      const list = of.slice(0, 8).flatMap((x, i) => {
        const minus = nodes[x][0] === "*" && of.length && nodes[x].slice(1).find((y) => nodes[y] === -1);
        const rest = minus === undefined || minus === false ? null : nodes[x].slice(1).filter((y) => y !== minus);
        const shown = rest ? (rest.length === 1 ? at(rest[0], 2) : product(rest, at)) : at(x, 1);
        return rest ? [m("mo", "−"), shown] : i ? [m("mo", "+"), shown] : [shown];
      });
      return wrap(m("mrow", ...list, ...(of.length > 8 ? [m("mo", "+"), m("mi", "…")] : [])));
    }
    if (kind === "*") return wrap(product(of, at));
    if (kind === "^") {
      const e = nodes[of[1]];
      if (e === -1) return m("mfrac", m("mn", "1"), at(of[0]));
      if (Array.isArray(e) && e[0] === "/" && e[1] === 1 && e[2] === 2) return m("msqrt", at(of[0]));
      return m("msup", at(of[0], 4), at(of[1]));
    }
    if (kind === "ceil" || kind === "floor") return m("mrow", m("mo", kind === "ceil" ? "⌈" : "⌊"), at(of[0]), m("mo", kind === "ceil" ? "⌉" : "⌋"));
    if (kind === "?") return m("mrow", m("mo", "{"), m("mtable", ...pairs(of).map(([value, holds]) => m("mtr", m("mtd", at(value)), m("mtd", nodes[holds] === true ? m("mtext", "else") : m("mrow", m("mtext", "if "), at(holds)))))));
    if (kind === "%") return m("mrow", at(of[0], 3), m("mo", "mod"), at(of[1], 3));
    if (kind in SIGNS) return wrap(m("mrow", ...joined(of.map((x) => at(x, 1)), SIGNS[kind])));
    return m("mrow", m("mi", kind), m("mo", "("), ...joined(of.map((x) => at(x)), ","), m("mo", ")"));
  }
  function product(of, at) {
    const isUnder = (x) => nodes[x][0] === "^" && nodes[nodes[x][2]] === -1, over = of.filter((x) => !isUnder(x)), under = of.filter(isUnder).map((x) => nodes[x][1]);
    const times = (list) => (list.length ? m("mrow", ...list.flatMap((x, i) => (i ? [m("mo", "·"), at(x, 2)] : [at(x, list.length > 1 ? 2 : 0)]))) : m("mn", "1"));
    return under.length ? m("mfrac", times(over), times(under)) : times(over);
  }
  const size = new Map();
  function sizeOf(place) {
    if (!size.has(place)) size.set(place, 1 + (Array.isArray(nodes[place]) && nodes[place][0] !== "/" ? nodes[place].slice(1).reduce((x, y) => x + sizeOf(y), 0) : 0));
    return size.get(place);
  }
  const maths = (...children) => node(MATHS, "math", { display: "block" }, ...children);
  const inline = (...children) => node(MATHS, "math", {}, ...children);
  function number(value, of) {
    const text = show(value, unit(of)), cut = text.indexOf(" ");
    return cut < 0 ? m("mn", text) : m("mrow", m("mn", text.slice(0, cut)), m("mspace"), m("mtext", `\u00a0${text.slice(cut + 1)}`));
  }
  // The source of a cell or a formula: cited, and where it has an address, a link.
  function cited(text) {
    const [key] = text.split(" "), known = data.sources[key];
    if (!known) return h("span", {}, text || "given here");
    const said = `${known[0]}${text.length > key.length ? `, ${text.slice(key.length + 1)}` : ""}`;
    return known[1] ? h("a", { href: known[1], rel: "noopener" }, said) : h("span", {}, said);
  }

  return { h, s, m, show, read, letter, unit, meaning, print, sizeOf, maths, inline, number, cited, grouped };
}
