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
  // A quantity that was typed, as scalebook.language.units reads it: "12,000", "3.5 TB/s", "80 GiB", "90 %", "15T", "$40k".
  const TIMES = { thousand: 1e3, k: 1e3, million: 1e6, m: 1e6, billion: 1e9, b: 1e9, bn: 1e9, trillion: 1e12, t: 1e12, quadrillion: 1e15, quintillion: 1e18 };
  const SPANS = { min: 60, minute: 60, h: 3600, hour: 3600, day: 86400, week: 7 * 86400, month: 30 * 86400, year: 365 * 86400 };
  const SPELLED = [[/FLOPS$/, "FLOP/s"], [/reqs?\b/, "request"], [/ ?(\/| per ) ?(hour|hr)$/, "/h"], [/ ?(\/| per ) ?(second|sec)$/, "/s"], [/(token|request|bit)s\b(?=$|\/)/, "$1"], [/^\$ ?([\d.,]+ ?[a-z]*)/i, "$1 $"]];
  const split = (text) => { const found = /^(-?[\d.,_ ]*\d(?:e[-+]?\d+)?)\s*(\D*)$/i.exec(SPELLED.reduce((x, [other, ours]) => x.replace(other, ours), String(text).slice(0, 60).trim())); return found ? [Number(found[1].replace(/[,_ ](?=\d{3}(?!\d))/g, "")), found[2].trim()] : [NaN, ""]; };
  // What a number alone may mean in the place of a value that is shown, `like`: first what is meant where nothing else may be.
  function meant(number, unit, like) {
    const word = show(like, unit).split(" ")[1], isPlain = PLAIN.has(unit) && unit !== "%";
    if (!(like > 0) || !number || !word) return [number];
    if (unit === "%") return number > 1 ? [number / 100] : [number, number / 100];
    if (isPlain) return COUNTS.includes(word) && number < 1000 ? [number, number * TIMES[word]] : [number];
    return [number * read(`1 ${word}`, unit), number];
  }
  // A number alone is in the unit of the value in its place; where another meaning is as near to that value it is none.
  function read(text, unit, like) {
    const [number, rest] = split(text), [first, ...more] = rest.split(" ");
    if (!rest) { const [own, other = own] = meant(number, unit, like), far = (x) => Math.abs(Math.log(x / like)); return other !== own && far(other) < far(own) + Math.log(10) ? NaN : own; }
    if (unit === "%") return rest === "%" ? number / 100 : NaN;
    if (unit === "s" || unit === "h") {
      const span = SPANS[rest] ?? SPANS[rest.replace(/s$/, "")] ?? (unit === "s" ? { s: 1, ms: 1e-3, us: 1e-6, "µs": 1e-6, ns: 1e-9 }[rest] : NaN);
      return (number * span) / (unit === "h" ? 3600 : 1);
    }
    if ((unit === "B" || unit === "B/s") && rest.includes("bit")) return read(`${number / 8} ${rest.replace("bit", "B")}`, unit);
    const times = first !== unit && PLAIN.has(unit) && TIMES[first.toLowerCase()], own = times ? more.join(" ") : rest, size = number * (times || 1);
    if (own === unit || (times && !own) || own === { "$/h": "$", "token/s": "/s", "request/s": "/s" }[unit]) return size;
    if (times) return NaN;
    const prefix = unit && own.endsWith(unit) ? own.slice(0, own.length - unit.length) : own;
    const at = ["", "k", "M", "G", "T", "P", "E"].indexOf(prefix), binary = ["Ki", "Mi", "Gi", "Ti"].indexOf(prefix);
    return at >= 0 ? number * 1000 ** at : binary >= 0 ? number * 1024 ** (binary + 1) : NaN;
  }
  // What was typed into a field.  Where that says no value, `say` tells why, the field is as it was, and nothing is returned.
  function typed(input, called, unit, like, { say, suits, shown = "", wanted = `a quantity${shown && ` such as ${shown}`}`, text = input.value, x = read(text, unit, like) }) {
    const [number, rest] = split(text), both = Number.isNaN(x) && !rest ? meant(number, unit, like) : [];
    if (suits(x)) return x;
    const why = `${called}: ${both.length > 1 ? `“${text}” may be ${both.map((y) => show(y, unit)).join(" or ")}; type the unit too` : `type ${wanted}, not “${text.slice(0, 40)}”`}.`;
    say(why);
    input.parentNode.querySelector(".pl-wrong")?.remove();
    if (!input.closest(".pl-ask")) input.after(h("small", { class: "pl-wrong" }, ` ${why}`)); // elsewhere what is said stands far above
    input.value = shown;
    return undefined;
  }

  // The end of a sentence on an unknown word: the three names that are most similar to it, as Python's `nearest` finds them.
  function nearest(word, names) {
    // The length of the longest text that is left of both words if letters are taken out of them.
    const common = (a, b) => [...a].reduce((row, x) => [...b].reduce((next, y, j) => [...next, x === y ? row[j] + 1 : Math.max(row[j + 1], next[j])], [0]), Array(b.length + 1).fill(0)).at(-1);
    const asked = word.slice(0, 80).toLowerCase(), similarity = Object.fromEntries(names.map((x) => [x, common(asked, x.toLowerCase()) / (asked.length + x.length)]));
    const [first, second, third] = [...names].sort((x, y) => similarity[y] - similarity[x] || (x < y ? 1 : -1)).map((x) => `'${x}'`);
    return `did you mean ${first}, ${second} or ${third}?`;
  }

  // Letters and formulas as TeX.
  const letter = (name) => notation[name]?.[0] ?? `\\mathrm{${name.replaceAll("_", "\\_")}}`;
  const unit = (name) => notation[name]?.[2] ?? "";
  const meaning = (name) => notation[name]?.[1] ?? name.replaceAll("_", " ");
  const brief = (name) => (name === "price_hour" ? "price an hour" : meaning(name).split(/[,:;]| \([^)]*[,:;]/)[0]); // without what is added to it
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

  return { h, s, show, read, typed, text, letter, unit, meaning, brief, terms, equation, sizeOf, number, cited, grouped, nearest };
}
