// What a planner's page is asked: its state, read from a link without trust, and written as a link, as Python and as CSV.

function planState({ engine, cases, words, rows }) {
  const { data } = engine, has = (table, key) => typeof key === "string" && Object.hasOwn(table, key);
  const START = data.start;
  // The letters that a sentence says; a service is asked for users, or in their place for a rate.
  const usual = (job) => ({ ...START[job].letters, ...(job === "serve" ? { rate: 20 } : {}) }), copy = (x) => JSON.parse(JSON.stringify(x));
  const WORDS = { recompute: ["best", ...data.changes.recompute, "layernorm", "mla_up_proj", "moe_act", "moe", "mlp", "layernorm,moe_act", "layernorm,mla_up_proj", data.modules], attention: ["flash", "unfused"], context_exchange: ["gather", "all_to_all"], sharding: Object.keys(data.shardings), schedule: Object.keys(data.schedules), exchange: ["all_reduce", "all_to_all", "gather"], tiers: data.space.tiers.map((x) => x.join(" ") || "none"), drafts: ["none", ...Object.keys(data.drafts)] };
  const LAYOUT = { train: ["tp", "cp", "ep", "pp", "batch", "chunks"], serve: ["tp", "pp", "ep", "attention_dp", "replicas"], agents: ["tp"], rl: [] }, APART = ["rollout", "training"]; // the last are layouts of their own, of engines and of learners
  const model = (said) => (typeof said === "string" ? data.models[said] : said), device = (said) => (typeof said === "string" ? data.devices[said] : said);
  const plan = (state, more = {}) => ({
    job: state.job, model: model(state.model), device: device(state.device), precision: state.precision, engine: state.engine, framework: state.framework, trained: more.trained ?? state.trained,
    letters: { ...state.letters, ...more.letters }, targets: { ...state.targets, ...more.targets }, fixed: more.fixed ?? state.fixed, words: {}, pools: state.pools, any: state.any, rollout: state.rollout, training: state.training,
  });
  const POOL = ["tp", "ep", "attention_dp"]; // what a pool's layout is; how many copies of it follows from the rate
  const ORDER = ["bf16", "fp16", "fp8", "int8", "fp4", "tf32", "fp32"];
  const TRAINED = ["lora"]; // adapters only, where all weights are trained otherwise
  const precisions = (state) => (state.any ? Object.values(data.devices) : [device(state.device)]).flatMap(cases.peaks).filter((x, i, all) => all.indexOf(x) === i).filter((x) => ORDER.includes(x)).sort((a, b) => ORDER.indexOf(a) - ORDER.indexOf(b));

  const nearest = (state) => { const all = precisions(state); return ["bf16", "fp8", "fp16"].find((x) => all.includes(x)) ?? all[0]; };

  // A link. Whatever is not just as a page writes it is refused in one sentence, and nothing of it is used.  Only a name
  // that no table has any more gives way to the usual one: `dropped` says which.
  const write = (state) => `#plan=${encodeURIComponent(JSON.stringify(state))}`;
  function read(hash, dropped = []) {
    if (!hash.startsWith("#plan=")) return null;
    const refuse = (why) => { throw new Error(`This link cannot be read (${why}); the usual plan is shown.`); };
    if (hash.length > 60_000) refuse("it is too long");
    let said;
    try { said = JSON.parse(decodeURIComponent(hash.slice(6))); } catch { refuse("it is broken"); }
    return checked(said, refuse, dropped);
  }
  const modelOf = (hash) => { try { return JSON.parse(decodeURIComponent(hash.slice(6))).model; } catch { return null; } }; // of a link
  function checked(said, refuse, dropped = [], depth = 0) {
    const isObject = (x) => typeof x === "object" && x !== null && !Array.isArray(x);
    if (!isObject(said) || !has(START, said.job)) refuse(`it asks none of ${Object.keys(START).join(", ")}`);
    const state = copy(START[said.job]), job = said.job;
    const numbers = (x, names, what) => {
      if (!isObject(x) || Object.keys(x).length > 200) refuse(`${what} are no numbers by name`);
      return Object.fromEntries(Object.entries(x).map(([n, v]) => {
        if (!has(data.letters, n) || (names && !names.includes(n))) refuse(`${what} have an unknown name`);
        const [, , , , whole] = data.letters[n];
        if (typeof v !== "number" || !engine.good(n, v) || Math.abs(v) > 1e30 || (whole && v % 1)) refuse(`${what} have a value that cannot be`);
        return [n, v];
      }));
    };
    const known = (x, table, what) => {
      if (has(table, x)) return x;
      if (typeof x !== "string" || !/^[a-z][a-z0-9_]{1,59}$/.test(x) || x in {}) refuse(`its ${what} is not known`);
      dropped.push(`no ${what} ${x} is known any more, and ${table[START[job][what]].name} stands in its place`);
      return START[job][what];
    };
    const row = (x, table, what) => {
      if (typeof x === "string") return known(x, table, what);
      if (!isObject(x) || !isObject(x.letters)) refuse(`its ${what} is not known`);
      const text = (y) => Object.fromEntries(Object.entries(isObject(y) ? y : {}).slice(0, 8).map(([n, v]) => [rows.clean(n), rows.clean(v)]));
      const made = { name: rows.clean(x.name) || `a ${what}`, words: text(x.words), letters: numbers(x.letters, null, `${what}s`), source: "", sources: {} };
      if (isObject(x.ends)) { // how far its cells may be off, over their values
        made.ends = Object.fromEntries(Object.entries(x.ends).slice(0, 200).map(([n, y]) => {
          if (!has(made.letters, n) || !Array.isArray(y) || !(y[0] > 0 && y[0] <= 1 && y[1] >= 1 && y[1] < 1e3)) refuse(`its ${what} has ends that cannot be`);
          return [n, [y[0], y[1]]];
        }));
        made.origin = rows.clean(x.origin) || made.name;
      }
      if (what === "model" && x.words?.blocks !== undefined) {
        made.words.blocks = rows.listed(x.words.blocks);
        if (!(made.letters.layers >= 1)) refuse("its model lacks layers");
        rows.finished(made);
      }
      const needed = what === "model" ? ["layers", "hidden", "heads", "vocab", "gating", "embeddings"] : ["hbm_capacity", "hbm_bandwidth"];
      for (const n of needed) if (!(n in made.letters)) refuse(`its ${what} lacks ${n}`);
      if (what === "model" && made.letters.layers > 1e5) refuse("its model is too deep");
      return made;
    };
    state.model = row(said.model, data.models, "model");
    state.device = row(said.device, data.devices, "device");
    if (said.any !== undefined) { if (said.any !== true || job === "rl") refuse("it is broken"); state.any = true; } // the device is then the best of all
    state.precision = said.precision;
    if (!precisions(state).includes(said.precision)) {
      if (state.device === said.device || !ORDER.includes(said.precision)) refuse("its precision is none of the device's");
      state.precision = nearest(state);
      dropped.push(`${said.precision} is none of its precisions, and ${state.precision} stands in its place`);
    }
    if (START[job].engine) state.engine = known(said.engine, data.engines, "engine");
    if (START[job].framework && said.framework !== undefined) state.framework = known(said.framework, data.frameworks, "framework");
    if (job === "rl" && !data.frameworks[state.framework].words.engine) refuse("its framework has no engine that writes answers");
    for (const which of APART) if (START[job][which]) {
      state[which] = { ...START[job][which], ...numbers(said[which] ?? {}, Object.keys(START[job][which]), `its ${which}`) };
      if (Object.values(state[which]).some((x) => !Number.isInteger(x) || x < 1 || x > 1e6)) refuse("its layout is not one");
    }
    if (said.trained !== undefined) { if (job !== "train" || !TRAINED.includes(said.trained)) refuse("what it trains is not known"); state.trained = said.trained; }
    state.letters = numbers(said.letters, null, "its numbers");
    if (job === "agents") state.letters = { prompt_spread: 0, answer_spread: 0, ...state.letters }; // which older links do not say
    for (const n of Object.keys(START[job].letters)) if (!(n in state.letters) && (n !== "users" || !("rate" in state.letters))) refuse(`it lacks ${n}`);
    if ("users" in state.letters && "rate" in state.letters) refuse("it says both users and a rate");
    if (state.letters.rate === 0) refuse("it asks for no requests");
    if (["devices", "global_batch", "users", "rate", "sessions", "turns", "responses"].some((n) => state.letters[n] > 1e6)) refuse("it asks for more than a million");
    state.targets = numbers(said.targets ?? {}, ["ttft", "tpot"], "its targets");
    const fixed = isObject(said.fixed ?? {}) ? said.fixed ?? {} : refuse("its layout is broken");
    for (const [n, v] of Object.entries(fixed)) {
      if (has(WORDS, n) ? !WORDS[n].includes(v) : !LAYOUT[job].includes(n) || !Number.isInteger(v) || v < 1 || v > 1e6) refuse("its layout is not one");
    }
    state.fixed = { ...fixed };
    if (said.curve !== undefined) {
      if (!Array.isArray(said.curve) || said.curve.length !== 2 || !said.curve.every((n) => has(data.letters, n))) refuse("its curve is of no letters");
      state.curve = [...said.curve];
    }
    if (said.pools !== undefined) { // two layouts, the one that reads prompts and the one that writes answers
      if (!("rate" in state.letters) || !isObject(said.pools)) refuse("its two pools are none");
      state.pools = Object.fromEntries(["prefill", "decode"].map((which) => {
        const own = said.pools[which];
        if (!isObject(own) || POOL.some((n) => !Number.isInteger(own[n]) || own[n] < 1 || own[n] > 1e6) || (own.exchange !== undefined && !WORDS.exchange.includes(own.exchange))) refuse("its two pools are none");
        return [which, Object.fromEntries([...POOL, "exchange"].filter((n) => own[n] !== undefined).map((n) => [n, own[n]]))];
      }));
    }
    if (!Array.isArray(said.beside ?? []) || (said.beside ?? []).length > 3) refuse("more than four plans side by side");
    state.beside = depth ? [] : (said.beside ?? []).map((x) => checked(x, refuse, dropped, 1));
    return state;
  }

  // What is chosen by a name: each of several letters at once, which then are among the plan's own.
  const CHOICES = {
    overlap: { "as the framework": [], "everything hidden": cases.overlaps.map((x) => [x, 1]), "nothing hidden": cases.overlaps.map((x) => [x, 0]) },
    offload: Object.fromEntries(Object.entries({ nothing: "", "optimizer state": "optimizer", "optimizer state and weights": "optimizer weight", "optimizer state and activations": "optimizer activation", "optimizer state, weights and activations": "optimizer weight activation" }).map(([said, of]) => [said, of.split(" ").filter(Boolean).map((x) => [`${x}_offload`, 1])])),
  };
  const lettersOf = (choice) => [...new Set(Object.values(CHOICES[choice]).flatMap((x) => x.map(([n]) => n)))];
  const chosenOf = (state, choice) => Object.keys(CHOICES[choice]).find((said) => lettersOf(choice).every((n) => (state.letters[n] ?? null) === (CHOICES[choice][said].find(([x]) => x === n)?.[1] ?? null)));
  function choose(state, choice, said) {
    for (const n of lettersOf(choice)) delete state.letters[n];
    for (const [n, x] of CHOICES[choice][said]) state.letters[n] = x;
  }
  const isKept = (n) => n === "memory_margin" || n === "lora_rank" || ["overlap", "offload"].some((x) => lettersOf(x).includes(n)) || n in data.bill.known; // with another model or device

  // The call that prints the same answer.
  const py = (x) => (typeof x === "string" ? JSON.stringify(x) : x === true ? "True" : x === false ? "False" : Number.isInteger(x) && Math.abs(x) >= 1e15 ? x.toExponential() : `${x}`);
  function python(state, chosen) {
    const own = model(state.model), chip = device(state.device), lines = [], args = [];
    const table = { train: "training_step", rl: "rl_step" }[state.job] ?? "serve", framework = START[state.job].framework && state.framework !== "unnamed" ? state.framework : "";
    lines.push(`from scalebook.${{ serve: "inference", rl_step: "rl" }[table] ?? "training"} import ${table}`, `from scalebook.tables import accelerators, ${framework ? "frameworks, " : ""}models`, "");
    const dict = (x) => `{${Object.entries(x).map(([n, v]) => `${py(n)}: ${py(v)}`).join(", ")}}`;
    if (typeof state.model === "string") args.push(`models.${state.model}`);
    else { lines.push(`from scalebook.language.row import Cell, Row`, `model = Row(${py(own.name)}, {n: Cell(float(x), "here") for n, x in ${dict(own.letters)}.items()}, ${dict(own.words)})`); args.push("model"); }
    if (typeof state.device === "string") args.push(`accelerators.${state.device}.at(${py(state.precision)})`);
    else {
      lines.push(`from scalebook.language.row import Cell`, `from scalebook.tables import Device`, `device = Device(${py(chip.name)}, {n: Cell(float(x), "here") for n, x in ${dict(chip.letters)}.items()})`);
      args.push(`device.at(${py(state.precision)})`);
    }
    if (framework) args.push(`frameworks.${framework}`);
    const letters = { ...state.letters, ...chosen.letters, ...chosen.words };
    delete letters.dp;
    const priced = Object.keys(letters).filter((n) => n in data.bill.known || n === "device_price"), billed = priced.map((n) => `, ${n}=${py(letters[n])}`).join("");
    if (state.job === "train") { // letters of a search and of a bill are none of a step
      const { sheet: own } = cases.training.answer(plan(state), chosen), names = Object.keys(cases.used(own, letters));
      for (const n of Object.keys(letters)) if (n === "memory_margin" || priced.includes(n) || (cases.overlaps.includes(n) && !names.includes(n))) delete letters[n];
    }
    if (state.job === "agents") {
      Object.assign(letters, letters.drafts === "none" ? {} : data.drafts[letters.drafts].letters);
      args.push(`tiers=[${letters.tiers === "none" ? "" : letters.tiers.split(" ").map(py).join(", ")}]`);
      delete letters.drafts; delete letters.tiers;
    }
    if (state.job === "rl") {
      const { rollout_share: share, ...rest } = letters;
      for (const n of Object.keys(letters)) if (!(n in rest)) delete letters[n];
      if (share) letters.share = share;
      for (const which of APART) args.push(`${which}=${dict(state[which])}`);
    } else if (state.job !== "train") { delete letters.devices; if (!(own.letters.experts > 0)) delete letters.ep; if (state.engine !== data.usual.engine) args.push(`engine=${py(state.engine)}`); }
    if (state.job !== "train" || !cases.leavesSequence(state)) delete letters.sequence_parallel;
    args.push(...Object.entries(letters).map(([n, x]) => `${n}=${py(x)}`));
    const said = { train: ["step_time", "mfu", "memory"], serve: ["ttft", "tpot", "device_rate"], agents: ["sessions_most", "session_cost", "ttft", "ttft_p95", "tpot"], rl: ["update_time", "idle_share", "update_rate", "update_cost"] }[state.job];
    lines.push(`row = ${table}${state.job === "agents" ? ".sessions" : ""}(`, ...args.map((x) => `    ${x},`), ")", `print(${said.map((x) => `row.${x}`).join(", ")})`);
    if (billed && state.job === "train") { lines.unshift("from scalebook.answers import bill"); lines.push(`print(bill(row${billed}))`); }
    return lines.join("\n");
  }
  function pythonApart(state) {
    const { letters, targets } = state, said = python(state, { letters: {}, words: {} }), args = Object.entries(targets).map(([n, x]) => `    ${n}=${py(x)},`);
    return said.replace("row = serve(", "found = serve.apart(").replace(/\n\)\nprint.*/s, `\n    devices=${letters.devices},\n${args.join("\n")}\n)\nprint(found)`);
  }
  const pooled = (found) => Object.fromEntries(["prefill", "decode"].map((which) => [which, Object.fromEntries([...POOL.map((n) => [n, found[which].letters[n]]), ...Object.entries(found[which].words)])]));
  const cell = (x) => { const text = `${x ?? ""}`; return /^[=+@\t-]/.test(text) && Number.isNaN(Number(text)) ? `"'${text.replaceAll('"', '""')}"` : /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; };
  const csv = (lines) => lines.map((x) => x.map(cell).join(",")).join("\n");
  // Where a letter is from that no formula gives: only what the plan says is given.
  function source(letter, state, chosen) {
    const [said, key] = cases.from(letter, { plan: plan(state), state, chosen });
    return letter in state.letters || letter in state.fixed ? "given" : key || said.replace(/, where.*/, "");
  }
  const fits = ({ memory, hbm_capacity: most, offload_memory: away, host_capacity: host }) => !(memory > most || away > host);
  const barsOf = ({ rows, cost, time }) => rows.filter((x) => x.chosen).map((x) => ({ device: data.devices[x.device].name, [cost]: x.cost ?? null, [time]: x.time, assumed: [cost, time].filter((_, i) => x.assumed[i]), letters: x.chosen.letters, words: x.chosen.words }));
  // What is shown, line by line: letters, whether it fits, prices, assumptions, and of any device the best of each.
  function sheet(state, answer, chosen, found = {}, assumed = [], market = null) {
    const lines = [["letter", "value", "low", "high", "unit", "meaning", "from"]], { values } = answer, said = (n, x) => (words.unit(n) === "%" && typeof x === "number" ? Number((100 * x).toPrecision(12)) : x);
    for (const [n, x] of Object.entries(answer.values)) {
      const f = answer.sheet.by.get(n);
      if (f || n in answer.given) lines.push([n, ...[x, ...(found[n] ?? ["", ""])].map((y) => said(n, y)), words.unit(n), words.meaning(n), n in answer.given || !f ? source(n, state, chosen) : f.name]);
    }
    if (values.memory) lines.push(["fits", fits(values) ? "yes" : "no", "", "", "", "whether memory suffices on each device", "memory and hbm_capacity"]);
    for (const { kind, cost, price_hour: hour } of prices(state, answer)) lines.push([kind, cost ?? hour, "", "", cost === undefined ? "$/h" : "$", cost === undefined ? "an hour of a device" : state.job === "train" ? "the run" : "a million output tokens", `at ${words.show(hour, "$/h")} for each device`]);
    for (const { letter: n, value, source: from, ends } of assumed) lines.push([`assumed ${n}`, said(n, value), "", "", words.unit(n), ends.map((x) => `${x.answer === null ? "cannot run" : words.show(x.answer, "s")} at ${words.show(x.value, words.unit(n))}`).join("; "), from]);
    for (const { device: at, letters, words: _, assumed: rests, ...both } of market ? barsOf(market) : []) for (const [n, x] of Object.entries(both)) lines.push([n, x, "", "", words.unit(n), `${words.meaning(n)}, on ${at}`, `the best of this device: ${Object.entries(letters).map((y) => y.join(" ")).join(" ")}${rests.includes(n) ? "; rests on assumed cells" : ""}`]);
    return csv([...lines, ...Object.entries(chosen.words).map(([n, x]) => [n, x, "", "", "", "a word of the strategy", state.fixed[n] === x ? "given" : "found by the search"])]);
  }

  // The same as data, with ranges, as scalebook/answers/schema.json describes it.
  function json(state, answer, chosen, found = {}, assumed = [], { changes, nearest } = { changes: [], nearest: null }, market = null) {
    const letters = Object.fromEntries(Object.entries(answer.values).filter(([n]) => answer.sheet.by.has(n) || n in answer.given).map(([n, value]) => {
      const f = n in answer.given ? null : answer.sheet.by.get(n), [low, high] = found[n] ?? [null, null];
      return [n, { value, unit: words.unit(n), low, high, source: f ? f.sources.join(", ") : source(n, state, chosen), formula: f ? words.text(f.root) : null }];
    }));
    const { job } = state, { values } = answer, costs = Object.fromEntries(["run_time", "train_time", "device_hours", "goodput", "run_energy", "train_rate", "device_rate", "million_cost", "update_rate", "update_cost"].filter((n) => n in values).map((n) => [n, values[n]]));
    const program = (START[job].framework ? state.framework : state.engine) ?? "unnamed", named = [model(state.model).name, `${device(state.device).name} at ${state.precision}`, program === "unnamed" ? "no framework named" : (data.frameworks[program] ?? data.engines[program]).name];
    const call = `${{ train: "training_step", rl: "rl_step" }[job] ?? "serve"}: ${named.join(", ")}, ${words.grouped(values.devices)} device${values.devices > 1 ? "s" : ""}`;
    const said = { call, letter: { train: "step_time", rl: "update_time" }[job] ?? "tpot", fits: fits(values), nearest: fits(values) ? null : nearest, assumed: assumed.map((x) => ({ ...x, unit: words.unit(x.letter) })), costs: { ...costs, prices: prices(state, answer).filter((x) => x.cost !== undefined) }, changes, ...(market && { devices: barsOf(market) }) };
    return JSON.stringify({ name: Object.entries({ ...chosen.letters, ...chosen.words }).map(([n, x]) => `${n}=${x}`).join(" "), letters, missing: {}, answer: job === "agents" ? null : said }, null, 2);
  }
  // Two ways to pay: a device that is rented, and one that is bought.
  function prices(state, { values }) {
    const own = cases.owned(plan(state), values), hours = values.device_hours ?? (values.million_cost && 1e6 / 3600 / values.device_rate), cost = (x) => (hours === undefined ? {} : { cost: x * hours });
    return [...(values.price_hour ? [{ kind: "rented", price_hour: values.price_hour, ...cost(values.price_hour) }] : []), ...(own ? [{ kind: "owned", price_hour: own, ...cost(own) }] : [])];
  }

  // A layout as flags: filled into texts that `scalebook.flags` wrote.
  function flags(state, chosen, framework) {
    const known = { ...state.letters, ...chosen.letters };
    if ("rate" in known) known.users = cases.serving.answer(plan(state), chosen).values.users;
    if (state.job === "serve") return serverFlags(data.flags.serve[framework], { ...data.precisions[state.precision], tp: 1, pp: 1, ep: 1, attention_dp: 1, replicas: 1, ...known, ...chosen.words });
    const { name, sign, pieces } = data.flags.train[framework], ways = Object.fromEntries(["tp", "cp", "ep", "pp", "chunks"].map((n) => [n, known[n] > 1 ? 1 : 0]));
    const isOfModules = cases.isOfModules(chosen.words.recompute), all = { precision: state.precision, ...chosen.words, ...(isOfModules && { recompute: data.modules }), ...ways }, [[, possible], ...rest] = pieces;
    const holds = (boxes) => boxes.some((box) => Object.entries(box).every(([n, values]) => values.includes(all[n])));
    if (!holds(possible)) return `${name} has no flags here for this strategy.`;
    const unsaid = [chosen.words.attention === "unfused" ? "attention whose scores are written out" : "", chosen.words.context_exchange === "all_to_all" && known.cp > 1 ? "context exchanged by heads" : "", "first_blocks" in known || "last_blocks" in known ? "a first or last stage with its own number of blocks" : ""].filter(Boolean);
    return rest.filter(([, boxes]) => holds(boxes)).map(([piece]) => piece.replace(/⟦(\w+)⟧/g, (_, n) => known[n])).join(sign).replace(data.modules.replaceAll(",", " "), isOfModules ? chosen.words.recompute.replaceAll(",", " ") : "").replace(/\n\[/g, "\n\n[")
      + (unsaid.length ? `\n# not said here: ${unsaid.join(", ")}` : "");
  }
  // As scalebook.inference.flags writes them.
  function serverFlags({ name, command, flags: all, all_experts: alike }, known) {
    const said = all.flatMap(([flag, [operation, ...of], above, equal]) => {
      if (of.some((x) => known[x] === undefined) || (above && !(known[above] > 1)) || (equal.length && known[equal[0]] !== equal[1])) return [];
      if (!of.length) return [flag];
      const [first, ...rest] = of.map((x) => known[x]), product = rest.reduce((x, y) => x * y, 1);
      const number = operation === "*" ? first * product : operation === "+" ? rest.reduce((x, y) => x + y, first) : Math.ceil(first / product);
      return [`${flag} ${number < 1 ? Number(number.toPrecision(6)) : Math.round(number)}`];
    });
    const { tp, attention_dp: groups, ep, replicas } = known, devices = tp * groups;
    return [[command, ...said].join(" "), ...(alike && ep > 1 && ep < devices ? [`# ${name} deals experts to all ${devices} devices: no flag deals them to ${ep} and splits each over ${devices / ep}`] : []),
      ...(replicas > 1 ? [`# ${replicas} such servers behind one router`] : [])].join("\n");
  }
  // A layout as what a plan fixes, and of what is fixed the words alone.
  const fixedOf = ({ job }, { letters, words: own }) => Object.fromEntries(Object.entries({ ...letters, ...own }).filter(([n]) => LAYOUT[job].includes(n) || n in WORDS));
  const wordsAlone = ({ fixed }) => Object.fromEntries(Object.entries(fixed).filter(([n]) => n in WORDS));
  // A change is taken: parts of a layout are pinned with the rest of it, and whatever else is searched again.
  function take(state, chosen, { letters = {}, words: own = {}, precision, framework, engine: served }) {
    const laid = Object.fromEntries(Object.entries(letters).filter(([n]) => LAYOUT[state.job].includes(n)));
    for (const [n, x] of Object.entries(letters)) if (!(n in laid)) state.letters[n] = x;
    delete state.any;
    if (precision) state.precision = precision;
    if (framework) state.framework = framework;
    if (served) state.engine = served;
    if (Object.keys({ ...laid, ...own }).length) state.fixed = fixedOf(state, { letters: { ...chosen.letters, ...laid }, words: { ...chosen.words, ...own } });
  }
  // A point of a curve is taken, with the layout that it was drawn with: of each number of devices that is the best.
  function takePoint(state, chosen, x, value) {
    state.letters[x] = value;
    delete state.any;
    state.fixed = x === "devices" ? wordsAlone(state) : fixedOf(state, chosen);
  }
  const question = ({ device: _, any, fixed, beside, curve, ...rest }) => JSON.stringify(rest); // all but the device
  return { question, ORDER, fixedOf, wordsAlone, take, takePoint, START, TRAINED, CHOICES, chosenOf, choose, isKept, nearest, prices, json, usual, copy, WORDS, LAYOUT, model, device, plan, precisions, write, read, checked, modelOf, python, pythonApart, pooled, sheet, csv, flags };
}
