// The formulas of the planner as functions.  They come as one text (Graph.written in sheets.py).  Here a node is a
// letter, a number, ["/", p, q], or an operation and the places of what it is of; a sheet is formulas by letter, in an
// order in which each rests on those before it.

function planEngine(data) {
  const { letters: notation } = data, nodes = [], leaves = new Map(), BOOLEANS = { true: true, false: false };
  const leaf = (said) => {
    if (!leaves.has(said)) {
      const [p, q] = said.split("/").map(Number);
      leaves.set(said, nodes.length);
      nodes.push(q ? ["/", p, q] : BOOLEANS[said] ?? (Number.isNaN(p) ? said : p));
    }
    return leaves.get(said);
  };
  // The places of all expressions in order: those of the formulas, then the conditions of their domains.
  let behind = 0;
  const roots = [], { text, words, signs, domains, of: changes, said: saidAll } = data.formulas, saidOf = changes.map((x) => (behind += x));
  {
    const [lead, alone, ...all] = words.split(" "), first = Number(lead), single = Number(alone), many = signs.length, known = [];
    const value = new Uint8Array(128), kinds = all.map((x) => /^\((\D+)(\d+)(=?)$/.exec(x)).map((x) => x && [x[1], Number(x[2]), x[3]]), places = all.map((x, i) => (kinds[i] ? -1 : leaf(x)));
    [...signs].forEach((x, i) => (value[x.charCodeAt(0)] = i));
    let at = 0;
    const sign = () => value[text.charCodeAt(at++)];
    const next = () => {
      let i = sign();
      if (i < first) return known[i * many + sign()];
      i -= first;
      if (i >= single) i = single + (i - single) * many + sign();
      if (!kinds[i]) return places[i];
      const [kind, number, kept] = kinds[i], node = [kind];
      for (let k = 0; k < number; k++) node.push(next());
      if (kind === "^" && node.length < 3) node.push(leaf("-1"));
      const place = nodes.push(node) - 1;
      if (kept) known.push(place);
      return place;
    };
    while (at < text.length) roots.push(next());
  }
  const holding = {};
  let last = saidOf.length;
  for (const [n, own] of Object.entries(domains)) holding[n] = own.map(([said, letters]) => ({ words: said, place: roots[last++], letters }));
  // A formula by its number, made when it is first asked for: a plan needs a tenth of them.
  const formulas = [];
  function formula(n) {
    if (!formulas[n]) {
      const [letter, name, sources, doc, stated] = saidAll[saidOf[n]];
      formulas[n] = { letter, root: roots[n], name, sources, doc, stated, domain: holding[n] ?? [] };
      formulas[n].inputs = inputs(formulas[n], n);
    }
    return formulas[n];
  }

  // Lists of formulas: "0-28 3" is the first 29 and the thirty-second.
  const lists = new Map();
  function listed(text) {
    let last = 0;
    if (!lists.has(text)) lists.set(text, text.split(" ").filter(Boolean).flatMap((run) => { const [a, n = 0] = run.split("-").map(Number), first = last + a; last = first + n; return Array.from({ length: n + 1 }, (_, i) => first + i); }));
    return lists.get(text);
  }
  // Rows come as values of the table's letters, and what says where they are from as places among all notes: "+" is the
  // next of these.  "=" is the source of most of a row's cells; a value "" is that of the row which it is like.
  let note = 0;
  for (const name of data.notes ? ["models", "devices", "engines", "frameworks", "libraries", "tiers", "drafts"] : []) {
    const { letters, rows } = data[name];
    for (const [key, row] of Object.entries(rows)) {
      [row.key, row.origin] = [key, row.name];
      const said = row.sources ? row.sources.split(",") : [];
      [row.letters, row.sources] = [{}, {}];
      const base = rows[row.like];
      row.kin = [key, ...(base?.kin ?? [])];
      row.values.forEach((x, i) => {
        const n = letters[i];
        if (x !== null) row.letters[n] = x === "" ? base.letters[n] : x;
        if (x === "") row.sources[n] = base.sources[n] ?? [base.source];
        if (x === "" && base.ends?.[n]) (row.ends ??= {})[n] = base.ends[n];
      });
      said.forEach((x, i) => {
        const [source, said_] = x ? data.notes[x === "+" ? note++ : x] : [];
        if (x) row.sources[letters[i]] = [source === "=" ? row.source : source, said_];
      });
      delete row.values;
    }
    data[name] = rows;
  }
  delete data.notes;

  // The letters that a formula rests on, as they are met.
  const seen = [];
  function inputs(f, mark) {
    const found = new Set(), todo = [...f.domain.map((x) => x.place).reverse(), f.root];
    while (todo.length) {
      const place = todo.pop(), node = nodes[place];
      if (seen[place] === mark) continue;
      seen[place] = mark;
      if (typeof node === "string") found.add(node);
      else if (Array.isArray(node) && node[0] !== "/") for (let i = node.length - 1; i; i--) todo.push(node[i]);
    }
    found.delete(f.letter);
    return [...found];
  }

  // Formulas that two choices change, each by its own sum over a block's operations: with both, both changes add up.
  const sums = new Map(), lettered = (numbers) => new Map(numbers.map((n) => [formula(n).letter, n]));
  function withBoth(plain, one, other) {
    const [before, first, second] = [plain, one, other].map(lettered);
    return [...first.keys()].filter((x) => second.has(x) && first.get(x) !== before.get(x)).map((x) => {
      const [n, a, b] = [before, first, second].map((of) => of.get(x)), key = `${n} ${a} ${b}`;
      if (!sums.has(key)) {
        const taken = nodes.push(["*", leaf("-1"), roots[n]]) - 1, made = roots.push(nodes.push(["+", roots[a], roots[b], taken]) - 1) - 1;
        saidOf[made] = saidOf[b];
        sums.set(key, made);
      }
      return sums.get(key);
    });
  }
  // Formulas by number as a sheet: the last of a letter counts.
  const sheets = new Map();
  function sheet(numbers) {
    const key = numbers.join();
    if (sheets.has(key)) return sheets.get(key);
    const by = new Map(numbers.map((n) => [formula(n).letter, formula(n)])), order = [], state = new Map();
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
  const CALLS = { max: "Math.max", min: "Math.min", ceil: "Math.ceil", floor: "Math.floor", log: "Math.log", exp: "Math.exp", tanh: "Math.tanh", abs: "Math.abs" };
  const pairs = (of) => of.flatMap((x, i) => (i % 2 ? [] : [[x, of[i + 1]]]));

  // A function of known letters that prices several sheets together: what is the same in two of them is computed once,
  // what rests on no letter of `levels` once for all, and what rests on the first levels only when these change.
  // What is among `factors` is its formula's result times x__factor, a letter of the first level.
  // `at[i](...letters of level i)`; after the last of these `out` has, sheet by sheet, whether all domains hold (1 or 0)
  // and the outputs.
  const compiled = new Map();
  function compile(list, known, levels, outputs, domains = true, factors = new Map()) {
    const key = [list.map((x) => x.key).join("|"), [...known].sort().join(), levels.join("/"), outputs.join(), domains, [...factors.keys()]].join(";");
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
          letters.set(x, moved.has(x) ? leaf(`$${x}`, moved.get(x)) : known.has(x) ? leaf(`$${x}`, 0) : !own.by.has(x) ? leaf("NaN", 0)
            : factors.has(x) ? operation("*", [leaf(`$${x}__factor`, 1), number(own.by.get(x).root)]) : number(own.by.get(x).root));
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
    // Each value once, before what is made of it; what is used once stands where it is used.  A value that later levels
    // read lies in `m`, from which they take it: all else is a level's own, which engines keep in registers.
    const code = [[], ...levels.map(() => [])], names = [], slots = new Map(), taken = [new Map(), ...levels.map(() => new Map())];
    const said = (x, level) => {
      const value = values[x];
      if (value.text !== undefined && !value.level) return value.text;
      if (value.text === undefined && !names[x]) {
        const text = written(value, level);
        if (value.uses < 2 && value.level === level) return text;
        names[x] = `n${x}`;
        code[value.level].push([x, `const n${x} = ${value.level === level ? text : written(value, value.level)};`]);
      }
      const name = value.text ?? names[x];
      if (value.level && value.level !== level && !taken[level].has(x)) {
        if (!slots.has(x)) slots.set(x, slots.size);
        taken[level].set(x, `const ${name} = m[${slots.get(x)}];`);
      }
      return name;
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
      return `(${over.map(at).join("*") || "1"}${under.map((x) => (names[x] ? `*${at(x)}` : `/${at(values[x].of[0])}`)).join("")})`;
    };
    const last = levels.length, stride = outputs.length + 1, write = roots.map(({ tests, out }, i) => {
      const marks = tests.map((x) => said(x, last)), texts = out.map((x) => said(x, last));
      return [`out[${i * stride}] = ${marks.length ? `(${marks.join(" && ")}) ? 1 : 0` : 1};`, ...texts.map((x, k) => `out[${i * stride + k + 1}] = ${x};`)].join(" ");
    }).join("\n");
    const kept = (level) => [...slots].filter(([x]) => values[x].level === level).map(([x, i]) => `m[${i}] = ${values[x].text ?? names[x]};`);
    const body = (level) => [...taken[level].values(), ...code[level].map(([, text]) => text), ...kept(level), level === last ? write : ""].join("\n");
    const lines = [...given].filter((x) => !moved.has(x)).map((x) => `const $${x} = known.${x};`);
    lines.push(`const out = new Float64Array(${stride * list.length}), m = new Float64Array(${slots.size}), at = [];`, body(0));
    levels.forEach((own, i) => lines.push(`at.push((${own.map((x) => `$${x}`).join(", ")}) => {\n${body(i + 1)}\n});`));
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

  // Where a device's row says what its own kernels take to read a cache of the model's kind, by the letter they give.
  const reads = (model) => data.reads["kv_rank" in model.letters ? "latent" : "grouped"];

  // A list of parts as kinds of blocks, each with its number and its own letters, as scalebook.block.counts.paired has
  // them; their name is without numbers, and `window_1` is the window in the first kind.
  const parted = new Map();
  function kinds(blocks, layers) {
    const key = `${blocks}|${layers}`, { mixers, once } = data.configs.parts;
    if (parted.has(key)) return parted.get(key);
    const parts = blocks.split(" + ").map((x) => /^(\d+) ([^()]+?)(?: \((.*)\))?$/.exec(x)).map(([, number, name, own = ""]) => ({ number: Number(number), name, own }));
    const named = (list, is) => parts.filter((x) => list.includes(x.name) === is && (is || !once.includes(x.name))).map((x) => ({ ...x }));
    const found = named(once, true).map((x) => [x.number, [x.name], x.own]), attends = named(mixers, true), feeds = named(mixers, false);
    let both = [...attends, ...feeds].reduce((x, y) => x + y.number, 0) - layers;
    const letters_ = (own) => own.split(" ").filter(Boolean).map((x) => [x.split("=")[0], Number(x.split("=")[1])]).sort((a, b) => (a[0] < b[0] ? -1 : 1));
    for (const mixer of attends) for (const feed of feeds) {
      const number = Math.min(mixer.number, feed.number, both);
      if (String(letters_(mixer.own)) !== String(letters_(feed.own)) || !(number > 0)) continue;
      found.push([number, [mixer.name, feed.name], mixer.own]);
      mixer.number -= number; feed.number -= number; both -= number;
    }
    for (const x of [...attends, ...feeds]) if (x.number) found.push([x.number, [x.name], x.own]);
    const letters = {};
    found.forEach(([number, , own], i) => { letters[`layers_${i + 1}`] = number; for (const [x, value] of letters_(own)) letters[`${x}_${i + 1}`] = value; });
    parted.set(key, { name: found.map(([, names, own]) => [...names, ...letters_(own).map(([x]) => x)].join(" ")).join(" + "), letters });
    return parted.get(key);
  }
  // What formulas a model's blocks have, as kind_of in sheets.py says it.
  function kind({ letters, words }) {
    let attention = "kv_rank" in letters ? (letters.q_rank ? "latent" : "plain latent") : "grouped";
    if (letters.index_heads) attention = "indexed";
    if (letters.output_gate) attention = "gated";
    const routed = letters.experts && letters.moe_layers, experts = routed ? "some" : "dense";
    const gpt = words.norm === "layernorm" && !letters.gating && attention === "grouped";
    const parts = words.blocks ? [`${kinds(words.blocks, letters.layers).name},`] : []; // its list of parts without numbers
    return [...parts, attention, gpt ? "gpt" : letters.gating ? "gate" : "plain", experts, ...(routed && letters.shared_experts ? ["shared"] : []),
      ...(letters.linear_layers ? ["linear"] : [])].join(" ");
  }
  const shape = ({ letters, words }) => (words.blocks ? { ...letters, ...kinds(words.blocks, letters.layers).letters } : letters); // all of a model's letters
  return { data, nodes, formula, notation, listed, withBoth, sheet, needed, compile, evaluate, good, truth, pairs, reads, kind, shape };
}
