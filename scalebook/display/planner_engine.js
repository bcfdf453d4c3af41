// The formulas of the planner as functions.  A node of the graph is a letter, a number, ["/", p, q], or an operation and
// the places of what it is of; a sheet is formulas by letter, in an order in which each rests on those before it.

function planEngine(data) {
  const { nodes, letters: notation } = data;
  const formulas = data.formulas.map(([letter, root, name, sources, doc, domain, stated]) =>
    ({ letter, root, name, sources, doc, stated, domain: domain.map(([words, place, letters]) => ({ words, place, letters })) }));

  // What a node rests on.
  const rests = new Map();
  function inputs(place) {
    let found = rests.get(place);
    if (!found) {
      const node = nodes[place];
      found = typeof node === "string" ? [node] : Array.isArray(node) && node[0] !== "/"
        ? [...new Set(node.slice(1).flatMap(inputs))] : [];
      rests.set(place, found);
    }
    return found;
  }
  formulas.forEach((f) => (f.inputs = [...new Set([f.root, ...f.domain.map((x) => x.place)].flatMap(inputs))].filter((x) => x !== f.letter)));

  // Formulas by number as a sheet: the last of a letter counts.
  const sheets = new Map();
  function sheet(numbers) {
    const key = numbers.join();
    if (sheets.has(key)) return sheets.get(key);
    const by = new Map(numbers.map((n) => [formulas[n].letter, formulas[n]])), order = [], state = new Map();
    const visit = (letter) => {
      if (state.get(letter) || !by.has(letter)) return;
      state.set(letter, 1);
      by.get(letter).inputs.forEach(visit);
      order.push(by.get(letter));
    };
    [...by.keys()].forEach(visit);
    const made = { key, by, order };
    sheets.set(key, made);
    return made;
  }

  // The formulas that some letters rest on, of those that are not known.
  function needed(sheet, known, outputs) {
    const wanted = new Set(), todo = [...outputs];
    while (todo.length) {
      const letter = todo.pop();
      if (wanted.has(letter) || known.has(letter) || !sheet.by.has(letter)) continue;
      wanted.add(letter);
      todo.push(...sheet.by.get(letter).inputs);
    }
    return sheet.order.filter((f) => wanted.has(f.letter));
  }

  const INFIX = { "+": " + ", ">=": " >= ", ">": " > ", "<=": " <= ", "<": " < ", "==": " === ", "!=": " !== ", "&": " && ", "|": " || " };
  const CALLS = { max: "Math.max", min: "Math.min", ceil: "Math.ceil", floor: "Math.floor", log: "Math.log", exp: "Math.exp", abs: "Math.abs" };
  function power(base, exponent, said) {
    const e = nodes[exponent];
    if (e === -1) return `1/${base}`;
    if (e === 2) return `${base}*${base}`;
    if (Array.isArray(e) && e[0] === "/" && e[1] === 1 && e[2] === 2) return `Math.sqrt(${base})`;
    return `Math.pow(${base}, ${said(exponent)})`;
  }
  function operation([kind, ...of], said) {
    if (kind === "/") return `(${of[0]}/${of[1]})`;
    if (kind in CALLS) return `${CALLS[kind]}(${of.map(said).join(", ")})`;
    if (kind === "^") return `(${power(said(of[0]), of[1], said)})`;
    if (kind === "%") return `(${said(of[0])} - ${said(of[1])}*Math.floor(${said(of[0])}/${said(of[1])}))`;
    if (kind === "!") return `(!${said(of[0])})`;
    if (kind === "?") return `(${pairs(of).map(([value, holds]) => `${said(holds)} ? ${said(value)} : `).join("")}NaN)`;
    if (kind !== "*") return `(${of.map(said).join(INFIX[kind])})`;
    const under = of.filter((x) => nodes[x][0] === "^" && nodes[nodes[x][2]] === -1), over = of.filter((x) => !under.includes(x));
    return `(${over.map(said).join("*") || "1"}${under.map((x) => `/${said(nodes[x][1])}`).join("")})`;
  }
  const pairs = (of) => of.flatMap((x, i) => (i % 2 ? [] : [[x, of[i + 1]]]));

  // A function of known letters: letters of `levels` may change, those of the first level the least often.  What rests
  // on none of them is computed once, when the known are given; then `at[i](...letters of level i)`, and the last of these
  // writes the outputs, after a mark of whether all domains hold.
  const compiled = new Map();
  function compile(sheet, known, levels, outputs, domains = true) {
    const key = [sheet.key, [...known].sort().join(), levels.join("/"), outputs.join(), domains].join(";");
    if (compiled.has(key)) return compiled.get(key);
    const own = new Set([...known, ...levels.flat()]), list = needed(sheet, own, outputs), level = new Map();
    levels.forEach((names, i) => names.forEach((x) => level.set(x, i + 1)));
    const depth = new Map(), deep = (place) => {
      if (!depth.has(place)) {
        const node = nodes[place];
        depth.set(place, typeof node === "string" ? level.get(node) ?? 0 : Array.isArray(node) && node[0] !== "/"
          ? Math.max(0, ...node.slice(1).map(deep)) : 0);
      }
      return depth.get(place);
    };
    const uses = new Map(), count = (place) => {
      const node = nodes[place], seen = uses.get(place) ?? 0;
      uses.set(place, seen + 1);
      if (!seen && Array.isArray(node) && node[0] !== "/") {
        node.slice(1).forEach(count);
        if (node[0] === "%") node.slice(1).forEach(count);
      }
    };
    const roots = list.flatMap((f) => [f.root, ...(domains ? f.domain.map((x) => x.place) : [])]);
    roots.forEach(count);
    const code = [[], ...levels.map(() => [])], names = new Map(), declared = [];
    const said = (parent) => (place) => {
      const node = nodes[place];
      if (typeof node === "string") return `$${node}`;
      if (typeof node === "number") return node < 0 ? `(${node})` : `${node}`;
      if (typeof node === "boolean") return `${node}`;
      const own = deep(place);
      if (names.has(place)) return names.get(place);
      const text = operation(node, said(own));
      if (node[0] === "/" || (uses.get(place) < 2 && own === parent)) return text;
      const name = `n${place}`;
      names.set(place, name);
      declared.push(name);
      code[own].push(`${name} = ${text};`);
      return name;
    };
    const given = [...own].filter((x) => list.some((f) => f.inputs.includes(x) || f.domain.some((d) => d.letters.includes(x))) || outputs.includes(x));
    const holds = levels.concat([0]).map(() => []);
    for (const f of list) {
      const own = deep(f.root);
      level.set(f.letter, own);
      declared.push(`$${f.letter}`);
      code[own].push(`$${f.letter} = ${said(own)(f.root)};`);
      if (domains) for (const x of f.domain) holds[deep(x.place)].push(said(deep(x.place))(x.place));
    }
    holds.forEach((tests, i) => { if (tests.length) { declared.push(`ok${i}`); code[i].push(`ok${i} = ${tests.join(" && ")};`); } });
    const marks = holds.flatMap((tests, i) => (tests.length ? [`ok${i}`] : [])).join(" && ") || "true";
    const last = levels.length, write = outputs.map((x, i) => `out[${i + 1}] = ${own.has(x) || sheet.by.has(x) ? `$${x}` : "NaN"};`).join(" ");
    const lines = [`let ${["_", ...new Set(declared)].join(", ")};`, ...given.filter((x) => !level.has(x)).map((x) => `const $${x} = known.${x};`)];
    const made = new Set(list.map((f) => f.letter)), lacking = new Set(list.flatMap((f) => f.inputs).filter((x) => !own.has(x) && !made.has(x)));
    lacking.forEach((x) => lines.push(`const $${x} = NaN;`));
    const moved = levels.flat();
    if (moved.length) lines.push(`let ${moved.map((x) => `$${x}`).join(", ")};`);
    lines.push(code[0].join("\n"), `const out = new Float64Array(${outputs.length + 1}), at = [];`);
    levels.forEach((names, i) => lines.push(`at.push((${names.map((x) => `a${x}`).join(", ")}) => { ${names.map((x) => `$${x} = a${x};`).join(" ")}\n`
      + `${code[i + 1].join("\n")}\n${i + 1 === last ? `out[0] = (${marks}) ? 1 : 0; ${write}` : ""} });`));
    if (!last) lines.push(`out[0] = (${marks}) ? 1 : 0; ${write}`);
    lines.push("return { at, out };");
    const written = new Function("known", lines.join("\n"));
    compiled.set(key, written);
    return written;
  }

  const SIGNS = { positive: (x) => x > 0, nonnegative: (x) => x >= 0, share: (x) => x >= 0 && x <= 1, real: () => true };
  const good = (letter, x) => Number.isFinite(x) && SIGNS[notation[letter]?.[3] ?? "positive"](x);

  // Every letter of a sheet; what has no value here is not among them, and `missing` says why.
  function evaluate(sheet, known) {
    const outputs = sheet.order.map((f) => f.letter).filter((x) => !(x in known));
    const { out } = compile(sheet, new Set(Object.keys(known)), [], outputs, false)(known);
    const values = { ...known }, missing = {};
    const found = new Map(outputs.map((x, i) => [x, out[i + 1]]));
    for (const f of sheet.order) {
      if (f.letter in known) continue;
      const lacking = f.inputs.find((x) => !(x in values));
      const outside = lacking ? null : f.domain.find((x) => x.letters.every((y) => y in values) && !truth(x.place, values));
      if (lacking) missing[f.letter] = missing[lacking] ?? { lacks: lacking };
      else if (outside) missing[f.letter] = { formula: f, outside };
      else if (!good(f.letter, found.get(f.letter))) missing[f.letter] = { formula: f };
      else values[f.letter] = found.get(f.letter);
    }
    return { values, missing };
  }

  // The value of a node where a few are asked for.
  function truth(place, values) {
    const node = nodes[place];
    if (typeof node === "string") return values[node];
    if (!Array.isArray(node)) return node;
    const [kind, ...of] = node, a = kind === "/" ? [] : of.map((x) => truth(x, values));
    switch (kind) {
      case "/": return of[0] / of[1];
      case "+": return a.reduce((x, y) => x + y);
      case "*": return a.reduce((x, y) => x * y);
      case "^": return Math.pow(a[0], a[1]);
      case "%": return a[0] - a[1] * Math.floor(a[0] / a[1]);
      case "max": return Math.max(...a);
      case "min": return Math.min(...a);
      case "&": return a.every(Boolean);
      case "|": return a.some(Boolean);
      case "!": return !a[0];
      case ">=": return a[0] >= a[1];
      case ">": return a[0] > a[1];
      case "<=": return a[0] <= a[1];
      case "<": return a[0] < a[1];
      case "==": return a[0] === a[1];
      case "!=": return a[0] !== a[1];
      case "?": return pairs(a).find(([, holds]) => holds)?.[0] ?? NaN;
      default: return Math[kind](a[0]);
    }
  }

  return { data, nodes, formulas, notation, sheet, needed, compile, evaluate, good, truth, pairs };
}
