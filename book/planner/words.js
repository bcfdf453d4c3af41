// Numbers as people write them, and letters and formulas as TeX, which the page sets when it is first looked at.
// Everything becomes text nodes and attributes that are set: nothing that was pasted or linked is ever markup.

function planWords(engine) {
  const { data, nodes, notation, pairs } = engine;
  const SVG = "http://www.w3.org/2000/svg";
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

  // Numbers: counts exact, all else to four digits (`digits`) with the prefix that fits.
  const PREFIX = ["p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E"], COUNTS = ["million", "billion", "trillion", "quadrillion"];
  const PLAIN = new Set(["", "%", "token", "token/s", "request/s", "bit", "$", "$/h", "FLOP/B", "h", "MWh", "$/MWh", "t", "t/MWh"]);
  const PLURAL = { token: "tokens", "token/s": "tokens/s", "request/s": "requests/s", bit: "bits" };
  const grouped = (x) => { const [whole, rest] = String(x).split("."); return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? `.${rest}` : ""); };
  // `side` rounds an end of a range outwards: -1 down, 1 up.
  function show(value, unit = "", digits = 4, side = 0) {
    if (value === undefined || !Number.isFinite(value)) return "none";
    if (unit === "year") { const months = Math.round(value * 12); return `${Math.floor(months / 12)}-${String((months % 12) + 1).padStart(2, "0")}`; }
    if (unit === "%") value *= 100;
    const named = (n) => (unit ? ` ${n === 1 ? unit : PLURAL[unit] ?? unit}` : "");
    if ((unit === "" || unit === "token") && Number.isInteger(value) && Math.abs(value) < 1e7) return grouped(value) + named(value);
    const round = (x) => {
      const near = Number(x.toPrecision(digits)), isInside = side * (x - near) > 1e-9 * Math.abs(x);
      return isInside ? Number((near + side * 10 ** (Math.floor(Math.log10(Math.abs(x))) + 1 - digits)).toPrecision(digits)) : near;
    };
    const size = Math.abs(round(value));
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
  // A quantity that was typed: "12,000", "3.5 TB/s", "80 GiB", "90 %", a bare number in the unit
  // that the value in its place, `like`, is shown in.
  function read(text, unit, like) {
    const said = String(text).slice(0, 60).replace(/^\s*\$\s*([\d.,]*\d)/, "$1 $$").replace(/FLOPS\s*$/, "FLOP/s"); // "$2/h", "989 TFLOPS"
    const found = /^\s*(-?[\d.,_ ]*\d(?:e[-+]?\d+)?)\s*(\D*)$/i.exec(said);
    if (!found) return NaN;
    const number = Number(found[1].replace(/[,_ ]/g, "")), rest = found[2].trim();
    if (!rest) return unit === "%" && like !== undefined && number > 1 ? number / 100 : like > 0 && !PLAIN.has(unit) ? number * read(`1 ${show(like, unit).split(" ")[1]}`, unit) : number;
    if (unit === "%") return rest === "%" ? number / 100 : NaN;
    const words = { thousand: 1e3, million: 1e6, billion: 1e9, trillion: 1e12, quadrillion: 1e15, quintillion: 1e18 };
    const [first, ...more] = rest.split(" ");
    if (first in words) return number * words[first];
    if (unit === "s") {
      const sizes = { s: 1, ms: 1e-3, us: 1e-6, "µs": 1e-6, ns: 1e-9, min: 60, minute: 60, h: 3600, hour: 3600, day: 86400, week: 7 * 86400, month: 30 * 86400, year: 365 * 86400 };
      return number * (sizes[rest] ?? sizes[rest.replace(/s$/, "")] ?? NaN);
    }
    const singular = Object.entries(PLURAL).find(([, y]) => y === rest)?.[0] ?? rest;
    if (singular === unit) return number;
    const prefix = unit && rest.endsWith(unit) ? rest.slice(0, rest.length - unit.length) : rest;
    const at = ["", "k", "M", "G", "T", "P", "E"].indexOf(prefix), binary = ["Ki", "Mi", "Gi", "Ti"].indexOf(prefix);
    return at >= 0 ? number * 1000 ** at : binary >= 0 ? number * 1024 ** (binary + 1) : NaN;
  }

  // Letters and formulas as TeX.
  const letter = (name) => notation[name]?.[0] ?? `\\mathrm{${name.replaceAll("_", "\\_")}}`;
  const unit = (name) => notation[name]?.[2] ?? "";
  const meaning = (name) => notation[name]?.[1] ?? name.replaceAll("_", " ");
  const brief = (name) => (name === "price_hour" ? "price an hour" : meaning(name).split(/[,:;]/)[0]); // without what is added to it
  const plain = (text) => text.replace(/[%$#&_{}]/g, "\\$&");
  function number(value, of) {
    const [digits, ...rest] = show(value, unit(of)).split(" "), said = digits.replace(/×10\^(-?\d+)/, "\\times 10^{$1}").replaceAll(",", "{,}").replace("%", "\\%").replace("$", "\\$");
    return rest.length ? `${said}\\,\\text{${plain(rest.join(" "))}}` : said;
  }
  // A right-hand side as text, which SymPy reads.
  const NAMED = { ceil: "ceiling", abs: "Abs", max: "Max", min: "Min", "%": "Mod" };
  function text(x) {
    const own = nodes[x];
    if (!Array.isArray(own)) return `${own}`;
    const [kind, ...of] = own, isInfix = (y) => /^\W+$/.test(y) && y !== "%";
    if (kind === "/") return `${of[0]}/${of[1]}`;
    if (kind === "?") return `Piecewise(${pairs(of).map(([y, z]) => `(${text(y)}, ${nodes[z] === true ? "True" : text(z)})`).join(", ")})`;
    if (!isInfix(kind)) return `${NAMED[kind] ?? kind}(${of.map(text).join(", ")})`;
    const closed = (y) => (nodes[y] < 0 || (Array.isArray(nodes[y]) && isInfix(nodes[y][0]) && nodes[y][0] !== "?") ? `(${text(y)})` : text(y));
    if (kind === "+") return of.map(text).join(" + ").replaceAll(" + (-1)*", " - ");
    if (kind !== "*") return of.map(closed).join(kind === "^" ? "**" : ` ${kind} `);
    const under = of.filter((y) => nodes[y][0] === "^" && nodes[nodes[y][2]] === -1), over = of.filter((y) => !under.includes(y));
    return (over.map(closed).join("*") || "1") + under.map((y) => `/${closed(nodes[y][1])}`).join("");
  }
  const SIGNS = { ">=": "\\ge", ">": ">", "<=": "\\le", "<": "<", "==": "=", "!=": "\\ne", "&": "\\text{ and }", "|": "\\text{ or }" };
  const BRACKETS = { ceil: ["\\lceil", "\\rceil"], floor: ["\\lfloor", "\\rfloor"], abs: ["|", "|"] };
  const within = (text, [open, close] = ["(", ")"]) => `\\left${open} ${text} \\right${close}`;
  const grid = (lines, kind) => `\\begin{${kind}}${lines.join(" \\\\ ")}\\end{${kind}}`;
  // A right-hand side as the terms of which it is the sum; `leaf` says what stands for a letter, `times` what between factors.
  function terms(place, leaf, times = "\\,") {
    const is = (x, ...kinds) => Array.isArray(nodes[x]) && kinds.includes(nodes[x][0]);
    const real = (x) => (typeof nodes[x] === "number" ? nodes[x] : is(x, "/") ? nodes[x][1] / nodes[x][2] : NaN);
    const closed = (x) => (is(x, "+", ...Object.keys(SIGNS)) || real(x) < 0 ? within(at(x)) : at(x));
    const power = (x, e) => (e === 1 ? at(x) : e === 0.5 ? `\\sqrt{${at(x)}}` : `{${Array.isArray(nodes[x]) ? within(at(x)) : at(x)}}^{${(2 * e) % 2 ? `${2 * e}/2` : e}}`);
    // A product as whether it is below zero, and the rest as a fraction.
    function product(x) {
      const over = [], under = [];
      let minus = false;
      for (const y of is(x, "*") ? nodes[x].slice(1) : [x]) {
        const value = real(y), [p, q] = is(y, "/") ? nodes[y].slice(1) : [value, 1];
        if (is(y, "^") && real(nodes[y][2]) < 0) under.push([nodes[y][1], -real(nodes[y][2])]);
        else if (Number.isNaN(value)) over.push([y, 1]);
        else {
          minus = minus !== value < 0;
          if (Math.abs(p) !== 1) over.unshift(number(Math.abs(p)));
          if (q !== 1) under.unshift(`${q}`);
        }
      }
      const join = (list) => list.map((y) => (typeof y === "string" ? y : y[1] === 1 && list.length > 1 ? closed(y[0]) : power(...y))).join(times) || "1";
      if (under.length) return [minus, `\\frac{${join(over)}}{${join(under)}}`];
      return [minus, minus && over.length === 1 && typeof over[0] !== "string" ? closed(over[0][0]) : join(over)];
    }
    function at(x) {
      const own = nodes[x];
      if (typeof own === "string") return leaf(own);
      if (!Array.isArray(own)) return number(own);
      const [kind, ...of] = own;
      if (kind === "+" || kind === "*" || kind === "/" || real(of[1]) < 0) return sum(x).join(" ");
      if (kind === "^") return Number.isNaN(real(of[1])) ? `{${closed(of[0])}}^{${at(of[1])}}` : power(of[0], real(of[1]));
      if (kind in BRACKETS) return within(at(of[0]), BRACKETS[kind]);
      if (kind === "?") return grid(pairs(of).map(([value, holds]) => `${at(value)} & ${nodes[holds] === true ? "\\text{else}" : `\\text{if } ${at(holds)}`}`), "cases");
      if (kind === "%") return `${closed(of[0])} \\bmod ${closed(of[1])}`;
      if (kind in SIGNS) return of.map(at).join(` ${SIGNS[kind]} `);
      return `\\${kind === "log" ? "ln" : kind} ${within(of.map(at).join(",\\ "))}`;
    }
    function sum(x) { // a positive term first
      const all = (is(x, "+") ? nodes[x].slice(1) : [x]).map(product), first = Math.max(0, all.findIndex(([minus]) => !minus));
      return [...all.splice(first, 1), ...all].map(([minus, said], i) => `${minus ? "-" : i ? "+" : ""} ${said}`);
    }
    return is(place, "+", "*", "/", "^") ? sum(place) : [at(place)];
  }
  // An equation: each of its sides a list of terms, of which a line takes as many as are some sixty signs wide, or as there is
  // room for.
  function equation(left, ...sides) {
    const wide = (x) => x.replace(/\\[a-z]+|[{}_^\s]/gi, "").length, most = Math.min(60, globalThis.innerWidth / 16), lines = [];
    for (const side of sides) {
      let line = `${lines.length ? "" : left} &= `, room = 0;
      for (const term of side) {
        if (room && room + wide(term) > most) { lines.push(line); [line, room] = ["&\\quad {}", 0]; }
        line += `${term} `;
        room += wide(term);
      }
      lines.push(line);
    }
    return `\\[${grid(lines, "aligned")}\\]`;
  }
  const size = new Map();
  function sizeOf(place) {
    if (!size.has(place)) size.set(place, 1 + (Array.isArray(nodes[place]) && nodes[place][0] !== "/" ? nodes[place].slice(1).reduce((x, y) => x + sizeOf(y), 0) : 0));
    return size.get(place);
  }
  // The source of a cell or a formula: cited, and where it has an address, a link.
  function cited(text) {
    const [key] = text.split(" "), known = data.sources[key];
    if (!known) return h("span", {}, text || "given here");
    const said = `${known[0]}${text.length > key.length ? `, ${text.slice(key.length + 1)}` : ""}`;
    return known[1] ? h("a", { href: known[1], rel: "noopener" }, said) : h("span", {}, said);
  }

  return { h, s, show, read, text, letter, unit, meaning, brief, terms, equation, sizeOf, number, cited, grouped };
}
