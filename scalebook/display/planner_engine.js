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
  const pairs = (of) => of.flatMap((x, i) => (i % 2 ? [] : [[x, of[i + 1]]]));

  // A function of known letters that prices several sheets together: what is the same in two of them is computed once,
  // what rests on no letter of `levels` once for all, and what rests on the first levels only when these change.
  // `at[i](...letters of level i)`; after the last of these `out` has, sheet by sheet, whether all domains hold (1 or 0)
  // and the outputs.
  const compiled = new Map();
  function compile(list, known, levels, outputs, domains = true) {
    const key = [list.map((x) => x.key).join("|"), [...known].sort().join(), levels.join("/"), outputs.join(), domains].join(";");
    if (compiled.has(key)) return compiled.get(key);
    const values = [], places = new Map(), given = new Set(), moved = new Map(levels.flatMap((names, i) => names.map((x) => [x, i + 1])));
    const enter = (key, make) => {
      if (!places.has(key)) { places.set(key, values.length); values.push({ uses: 0, ...make() }); }
      return places.get(key);
    };
    function numbering(own) {
      const found = new Map(), letters = new Map(), leaf = (text, level) => enter(text, () => ({ text, level }));
      const letter = (x) => {
        if (!letters.has(x)) {
          if (known.has(x)) given.add(x);
          letters.set(x, moved.has(x) ? leaf(`$${x}`, moved.get(x)) : known.has(x) ? leaf(`$${x}`, 0) : own.by.has(x) ? number(own.by.get(x).root) : leaf("NaN", 0));
        }
        return letters.get(x);
      };
      const number = (place) => {
        if (!found.has(place)) {
          const node = nodes[place], [kind, ...of] = Array.isArray(node) ? node : [];
          found.set(place, typeof node === "string" ? letter(node) : !kind ? leaf(node < 0 ? `(${node})` : `${node}`, 0)
            : kind === "/" ? leaf(`(${of[0]}/${of[1]})`, 0) : operation(kind, of.map(number)));
        }
        return found.get(place);
      };
      return { letter, number };
    }
    const minus = enter("(-1)", () => ({ text: "(-1)", level: 0 }));
    const operation = (kind, of) => enter(`${kind}${of}`, () => {
      of.forEach((x) => (values[x].uses += kind === "%" || (kind === "^" && values[of[1]].text === "2") ? 2 : 1));
      return { kind, of, level: Math.max(...of.map((x) => values[x].level)) };
    });
    const numbered = list.map(numbering), use = (x) => { values[x].uses += 2; return x; };
    const roots = list.map((own, i) => {
      const { letter, number } = numbered[i], out = outputs.map((x) => use(letter(x)));
      const tests = domains ? needed(own, new Set([...known, ...moved.keys()]), outputs).flatMap((f) => f.domain.map((x) => use(number(x.place)))) : [];
      return { tests, out };
    });
    // Each value once, before what is made of it; what is used once stands where it is used.
    const code = [[], ...levels.map(() => [])], names = [], declared = [];
    const said = (x, level) => {
      const value = values[x];
      if (value.text !== undefined) return value.text;
      if (names[x]) return names[x];
      const text = written(value, level);
      if (value.uses < 2 && value.level === level) return text;
      names[x] = `n${x}`;
      declared.push(names[x]);
      code[value.level].push(`${names[x]} = ${value.level === level ? text : written(value, value.level)};`);
      return names[x];
    };
    const written = ({ kind, of, level: own }, level) => {
      const at = (x) => said(x, Math.min(own, level));
      if (kind in CALLS) return `${CALLS[kind]}(${of.map(at).join(", ")})`;
      if (kind === "%") return `(${at(of[0])} - ${at(of[1])}*Math.floor(${at(of[0])}/${at(of[1])}))`;
      if (kind === "!") return `(!${at(of[0])})`;
      if (kind === "?") return `(${pairs(of).map(([value, holds]) => `${at(holds)} ? ${at(value)} : `).join("")}NaN)`;
      if (kind === "^") {
        const e = values[of[1]].text;
        return of[1] === minus ? `(1/${at(of[0])})` : e === "2" ? `(${at(of[0])}*${at(of[0])})` : e === "(1/2)" ? `Math.sqrt(${at(of[0])})` : `Math.pow(${at(of[0])}, ${at(of[1])})`;
      }
      if (kind !== "*") return `(${of.map(at).join(INFIX[kind])})`;
      const under = of.filter((x) => values[x].kind === "^" && values[x].of[1] === minus), over = of.filter((x) => !under.includes(x));
      return `(${over.map(at).join("*") || "1"}${under.map((x) => (names[x] ? `*${names[x]}` : `/${at(values[x].of[0])}`)).join("")})`;
    };
    const last = levels.length, stride = outputs.length + 1, write = roots.map(({ tests, out }, i) => {
      const marks = tests.map((x) => said(x, values[x].level)), texts = out.map((x) => said(x, values[x].level));
      return [`out[${i * stride}] = ${marks.length ? `(${marks.join(" && ")}) ? 1 : 0` : 1};`, ...texts.map((x, k) => `out[${i * stride + k + 1}] = ${x};`)].join(" ");
    }).join("\n");
    const lines = [`let ${["_", ...declared, ...[...moved.keys()].map((x) => `$${x}`)].join(", ")};`];
    given.forEach((x) => moved.has(x) || lines.push(`const $${x} = known.${x};`));
    lines.push(code[0].join("\n"), `const out = new Float64Array(${stride * list.length}), at = [];`);
    levels.forEach((own, i) => lines.push(`at.push((${own.map((x) => `a${x}`).join(", ")}) => { ${own.map((x) => `$${x} = a${x};`).join(" ")}\n`
      + `${code[i + 1].join("\n")}\n${i + 1 === last ? write : ""} });`));
    if (!last) lines.push(write);
    lines.push("return { at, out };");
    const made = new Function("known", lines.join("\n"));
    compiled.set(key, made);
    return made;
  }

  const SIGNS = { positive: (x) => x > 0, nonnegative: (x) => x >= 0, share: (x) => x >= 0 && x <= 1, real: () => true };
  const good = (letter, x) => Number.isFinite(x) && SIGNS[notation[letter]?.[3] ?? "positive"](x);

  // Every letter of a sheet; what has no value here is not among them, and `missing` says why.
  function evaluate(sheet, known) {
    const outputs = sheet.order.map((f) => f.letter).filter((x) => !(x in known));
    const { out } = compile([sheet], new Set(Object.keys(known)), [], outputs, false)(known);
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
