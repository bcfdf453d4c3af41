// What a plan says as letters of a sheet, and which plans can run: training steps and services.  A plan is
// { job, model, device, precision, words, letters, layout }, its rows { name, letters, words }.

function planCases(engine) {
  const { data, sheet, evaluate, kind } = engine;
  const whole = (x) => x % 1 === 0 && x >= 1;
  const g = (x) => (typeof x === "string" || typeof x === "boolean" ? `${x}` : Math.abs(x) >= 1e6 && Math.abs(x) < 1e15
    ? Math.round(x).toLocaleString("en-US") : `${Number(x.toPrecision(6))}`);
  const either = (x) => (x.length < 2 ? x.join("") : `${x.slice(0, -1).join(", ")} or ${x[x.length - 1]}`);

  // A device at a precision: its peak, and the share of it that products reach.
  function at(device, precision) {
    const letters = { ...device.letters, peak_flops: device.letters[`peak_${precision}`] };
    for (const kind of ["matmul", "training"]) {
      delete letters[`${kind}_efficiency`];
      if (`${kind}_${precision}` in letters) letters[`${kind}_efficiency`] = letters[`${kind}_${precision}`];
    }
    return letters;
  }
  const peaks = (device) => Object.keys(device.letters).filter((x) => x.startsWith("peak_") && x !== "peak_flops" && x !== "peak_vector")
    .map((x) => x.slice(5));

  // Blocks that all have experts are counted as some, with no dense ones beside them: of these any width will do.
  const hasNoDense = ({ letters, words }) => !words.blocks && Boolean(letters.experts) && letters.moe_layers === letters.layers;

  // Rules

  const conditions = new Map();
  function holds(rule, values) {
    if (rule.needs.some((x) => values[x] === undefined)) return null;
    const said = rule.words ? rule.words.map((x) => (typeof values[x] === "boolean" ? (values[x] ? "True" : "False") : values[x])).join("|") : "";
    const js = rule.words ? rule.js[said] : rule.js, names = rule.needs.filter((x) => !rule.words?.includes(x)), key = `${names}:${js}`;
    if (!conditions.has(key)) conditions.set(key, new Function("v", `const {${names}} = v; return !!(${js});`));
    return conditions.get(key)(values);
  }
  const filled = (says, said) => says.replace(/\{(\w+)(!r)?\}/g, (_, name, quoted) => (quoted ? `'${said[name]}'` : said[name]));
  const notWhole = (letter, x) => `${letter}=${g(x)} is no whole number, as ${either([Math.floor(x), Math.ceil(x)].filter((n, i, a) => n >= 1 && a.indexOf(n) === i).map(g))} is`;

  // Training

  // Blocks of the fullest stage, rounded up; the first and the last one may have their own number.
  function fullest({ layers, pp, first_blocks: first, last_blocks: last }) {
    const own = [first, last].filter((x) => x !== undefined), others = pp - own.length;
    return own.length && others > 0 ? Math.ceil((layers - own.reduce((x, y) => x + y)) / others) : Math.ceil(layers / pp);
  }
  function derivedTraining(values) {
    const known = { tp: 1, cp: 1, ep: 1, pp: 1, batch: 1, chunks: 1, experts: 0, near_blocks: 3, offload: false, ...values };
    known.etp ??= known.tp;
    const model = known.tp * known.cp * known.pp;
    if (known.dp === undefined && known.devices !== undefined) known.dp = known.devices / model;
    if (known.dp !== undefined) {
      known.devices ??= known.dp * model;
      if (known.microbatches === undefined && known.global_batch !== undefined) known.microbatches = known.global_batch / (known.dp * known.batch);
      else if (known.microbatches !== undefined) known.global_batch ??= known.microbatches * known.dp * known.batch;
    }
    if (known.layers !== undefined) known.stage_blocks ??= fullest(known);
    return known;
  }
  const COUNTS = ["devices", "global_batch", "tp", "cp", "ep", "etp", "pp", "dp", "batch", "chunks", "microbatches", "seq", "shard_group", "first_blocks"];
  function sentenceTraining(rule, known, isGiven) {
    const said = Object.fromEntries(Object.entries(known).map(([n, x]) => [n, typeof x === "number" ? g(x) : `${x}`]));
    const { tp, cp, pp, ep, etp, dp = 1 } = known;
    Object.assign(said, { product: g(tp * cp * pp * dp), own_seq: g((known.seq ?? 0) / cp), own_batch: g((known.global_batch ?? 0) / dp),
      shards: g(dp * cp), spread: g((dp * cp * tp) / etp), routed_shards: g((dp * cp * tp) / (ep * etp)), others: g(pp - 1) });
    const first = rule.letter === "ep" && rule.needs.includes("etp") ? ["etp"] : [];
    let letter, values = [];
    for (letter of [...first, rule.letter, ...(rule.needs.includes("devices") ? ["devices"] : [])]) {
      const others = data.rules.train.filter((x) => x === rule || (x.letter === letter && !x.advice && x.name !== "global_batch in micro-batches"));
      values = wouldDo(letter, known, others, isGiven, Math.min(4096 + 2 * Math.min(known[letter] ?? 1, 1e5), 1e5) - 1);
      if (values.length) break;
    }
    return filled(rule.says, said) + listedTraining(letter, values, known[letter]);
  }
  function wouldDo(letter, known, rules, isGiven, most) {
    const found = [];
    for (let x = 1; x <= most; x++) {
      const now = { ...known, [letter]: x };
      if (letter === "pp" && !isGiven.stage_blocks) now.stage_blocks = fullest(now);
      if (letter === "tp" && !isGiven.etp) now.etp = x;
      if (rules.every((r) => holds(r, now) !== false)) found.push(x);
    }
    return found;
  }
  function listedTraining(letter, values, near) {
    if (!values.length) return `: no ${letter} would do`;
    if (values.length > 12 && ["global_batch", "microbatches", "devices"].includes(letter)) {
      values = [...values].sort((a, b) => Math.abs(a - near) - Math.abs(b - near) || a - b).slice(0, 4).sort((a, b) => a - b);
    }
    const said = values.slice(0, 12).map(g);
    return values.length > 12 ? `: ${letter}=${said.slice(0, 8).join(", ")}, ... would do` : `: ${letter}=${either(said)} would do`;
  }
  function domainFails(list, known) {
    for (const f of list) for (const x of f.domain) if (x.letters.every((y) => known[y] !== undefined) && !engine.truth(x.place, known)) return [f, x];
  }
  function reasonTraining(values, own, advice = true) {
    const known = derivedTraining(values), isGiven = { stage_blocks: "stage_blocks" in values, etp: "etp" in values };
    for (const letter of COUNTS) {
      if ((letter in values || letter === "dp") && known[letter] !== undefined && !whole(known[letter])) {
        if (letter in values) return notWhole(letter, known[letter]);
        const ways = ["tp", "cp", "pp"], product = ways.reduce((x, n) => x * known[n], 1), most = product * Math.floor(known.devices / product);
        return `devices=${g(known.devices)} is no multiple of ${g(product)} (${ways.map((n) => `${n}=${g(known[n])}`).join(", ")})`
          + `: devices=${either([most, most + product].filter((x) => x).map(g))} would do`;
      }
    }
    for (const rule of data.rules.train) {
      if ((advice || !rule.advice) && holds(rule, known) === false) return sentenceTraining(rule, known, isGiven);
    }
    const [f, x] = (own && domainFails(own.order, known)) ?? [];
    return f ? `${f.name} holds for ${x.words}, not at ${x.letters.map((n) => `${n}=${g(known[n])}`).join(", ")}` : null;
  }

  // A framework's cells with those of its libraries on a device, as scalebook.training.frameworks settles them: of each
  // row what `of` takes of it, by letter.
  function settled({ framework: key = data.usual.framework, device, model, precision }, of) {
    const row = data.frameworks[key], named = (row.words.libraries ?? "").split(" "), found = { ...of(row) };
    for (const x of Object.values(data.libraries)) {
      const { library, devices, precisions = precision } = x.words;
      if (named.includes(library) && precisions.split(" ").includes(precision) && device.kin?.some((y) => devices.split(" ").includes(y))) Object.assign(found, of(x));
    }
    for (const x of ["element_passes", "block_wait", "block_launch"]) {
      const own = found[`moe_${x}`];
      delete found[`moe_${x}`];
      if (model.letters.experts) { delete found[x]; if (own !== undefined) found[x] = own; }
    }
    return found;
  }
  const framework = (plan) => settled(plan, (row) => row.letters);
  // The row of each of them: the framework's, or that of a library.
  const owners = (plan) => settled(plan, (row) => Object.fromEntries(Object.keys(row.letters).map((x) => [x, row])));
  // Whether a framework runs the element-wise steps of a block one by one.
  const isEager = ({ framework: key = data.usual.framework }) => data.frameworks[key].words.blocks === "eager";
  const leavesSequence = ({ framework: key = data.usual.framework }) => data.frameworks[key].words.sequence_parallel === "False";
  // How far these may be off, and whose cells they are; null for one that has no ends.
  const frameworkEnds = (plan) => settled(plan, (row) => Object.fromEntries(Object.keys(row.letters).map((x) => {
    const [low, high] = row.ends?.[x] ?? [];
    return [x, low === undefined ? null : { low, high, origin: row.origin }];
  })));
  // What a framework hides or does not, of the two ends between which a step without a framework lies.
  const [fastest, slowest] = data.ends.map((x) => data.frameworks[x].letters);
  const overlaps = [...new Set([...Object.keys(fastest).filter((x) => fastest[x] === 1 && slowest[x] === 0), ...data.changes.overlaps])];
  // The words of a strategy that a plan or its framework sets where a layout says nothing else.  Sequence parallelism is
  // on in all plans, which have no blocks without it.
  function wordsOf({ framework: key = data.usual.framework, trained, model }) {
    const said = data.frameworks[key].words, found = trained ? { trained } : {};
    for (const x of ["sharding", "recompute", "attention"]) if (x in said) found[x] = said[x];
    if (found.recompute) found.recompute = again(found.recompute, data.models[model] ?? model);
    return found;
  }
  // The modules of a model's blocks that may run again alone, and those of them that may together.
  function modulesOf({ letters, words }) {
    const routed = letters.experts && letters.moe_layers, has = { layernorm: 1, mla_up_proj: "kv_rank" in letters, moe_act: routed, moe: routed, mlp: !routed };
    return { alone: words.blocks ? [] : Object.keys(has).filter((x) => has[x]), together: data.modules.split(",").filter((x) => words.blocks || has[x]).join() };
  }
  const isOfModules = (recompute) => !data.changes.recompute.includes(recompute);
  // Of the modules that run again those that a model has.
  function again(recompute, model) {
    const { alone, together } = modulesOf(model), own = recompute.split(",").filter((x) => alone.includes(x)).join();
    return !isOfModules(recompute) ? recompute : alone.length ? own : together;
  }

  // Where a letter is from that no formula gives: in words, a source's key, and a note.
  function from(letter, { plan, state, chosen }) {
    if (letter in (chosen?.letters ?? {})) return [letter in (state.fixed ?? {}) ? "chosen here" : "found by the search"];
    if (letter in state.letters) return [letter in (state.usual ?? {}) ? "from the sentence" : "given here, in place of what is known"];
    for (const row of [plan.device, plan.model]) {
      const [kind, rest] = letter.split("_"), precise = `${kind}_${plan.precision}`;
      const read = row === plan.device && !(letter in row.letters) && engine.reads(plan.model)[letter];
      const key = read || (["flops", "efficiency"].includes(rest) && precise in row.letters ? precise : letter);
      if (!(key in row.letters)) continue;
      const made = row === plan.model && engine.listed(data.follows).map(engine.formula).find((f) => f.letter === key);
      return [row.name, ...(row.sources[key] ?? (made ? ["", `follows: ${made.name}`] : [row.source, ""]))];
    }
    const settled_ = state.framework ? owners(plan) : {};
    if (state.rollout && (letter in data.rl.made || letter in data.rl.unsaid)) return [data.rl.made[letter] ?? "the default"];
    if (letter in settled_) { const row = settled_[letter]; return [row.name, ...(row.sources[letter] ?? row.sources[`moe_${letter}`] ?? [row.source, ""])]; }
    if (state.job === "train" && letter in data.bill.known) return data.bill.known[letter].slice(1);
    const own = data.engines[state.engine];
    return state.job !== "train" && own && letter in own.letters ? [own.name, ...(own.sources[letter] ?? [own.source, ""])] : ["usual, where nothing else is said"];
  }

  // What days and dollars rest on where nothing else is said.  Checkpoints of a model whose parameters nobody counted are
  // left out, and failures with them.
  const bill = ({ model }) => ({ ...Object.fromEntries(Object.entries(data.bill.known).map(([x, [value]]) => [x, value])), ...("params" in model.letters ? {} : { goodput: 1 }) });
  // The parameters of a model as scalebook.block.counts counts them: with its last norm and its positions, without blocks
  // that predict further tokens.
  function counted(model) {
    const one = { tp: 1, cp: 1, ep: 1, pp: 1, batch: 1, chunks: 1 }, { hidden, learned_positions: positions = 0 } = model.letters;
    const { dense_params: dense, routed_params: routed = 0 } = training.answer({ job: "train", model, device: data.devices.h100, precision: "bf16", letters: { devices: 1, global_batch: 1, seq: 1, mtp_blocks: 0 } }, { letters: one, words: {} }).values;
    return Math.round(dense + routed + hidden * (positions + (/ gpt /.test(` ${kind(model)}`) ? 2 : 1)));
  }
  // What an hour of a device costs that is bought, or nothing where its price or its power is not known.
  function owned(plan, values) {
    const own = sheet(engine.listed(data.bill.owned)), { price_hour: rent, ...known } = { ...bill(plan), ...plan.device.letters, ...values, ...plan.letters };
    return evaluate(own, used(own, known)).values.price_hour;
  }

  const training = {
    job: "train", rules: data.rules.train, derived: derivedTraining, reason: reasonTraining,
    limits: [["memory", "hbm_capacity", "memory <= hbm_capacity", data.margins.memory], ["offload_memory", "host_capacity", "offload_memory <= host_capacity"]],
    layout: ["tp", "cp", "ep", "pp", "dp"], ways: ["tp", "cp", "pp", "dp"], beside: ["ep"],
    words: { recompute: "none", sequence_parallel: true, attention: "flash", context_exchange: "gather", sharding: "zero1", schedule: "1f1b", trained: "all" },

    // The sheet for a plan's rows and words.
    sheet(plan, words, offload) {
      const { model, device, letters } = plan, known = { ...device.letters, ...letters }, { words: others, swaps, always, lora } = data.train, of = (all) => all[kind(model)] ?? {}, blocks = of(data.train.blocks);
      const quantized = (data.formats[`peak_${plan.precision}`] ?? 16) <= 8 ? 1 : 0, kept = words.attention === "flash" && words.recompute === "selective" ? "none" : again(words.recompute, model);
      if (!kept) throw new Error(`recompute='${words.recompute}' is not in this model: ${either([...modulesOf(model).alone, "none"])} would do`);
      const own = [kept === modulesOf(model).together ? data.modules : kept, words.attention, words.context_exchange, quantized].join("|"), steps = isEager(plan) ? of(data.train.eager)[`${own}|${model.words.family ?? "llama"}`] : "";
      if (!blocks[own] && words.context_exchange === "all_to_all") {
        throw new Error("kv_rank" in model.letters ? `the keys of ${model.name} are of all heads together: its context can be gathered only` : "context is exchanged by heads here with attention in one kernel only: choose that, or gather the context");
      }
      if (quantized && words.attention === "unfused") throw new Error("scores that are written out stand on this page with products in 16 bits only: choose attention in one kernel, or ask training_step in Python");
      if (isEager(plan) && (words.attention === "unfused" || words.context_exchange === "all_to_all")) throw new Error(`${data.frameworks[plan.framework].name} runs the steps of a block one by one, which this page has only with attention in one kernel and gathered context: choose these, or ask training_step in Python`);
      const ends = ["first_blocks", "last_blocks"].filter((x) => letters[x] !== undefined), { first: first_, last: last_, both } = data.train.stages, key = `${words.sharding}|${words.schedule}|${offload ? 1 : 0}`;
      const isFirst = ends.includes("first_blocks"), stages = isFirst ? ["always", key].flatMap((x) => engine.listed(first_[x] ?? "")) : [], middle = ends.length === 2 ? [both] : ends.length && !isFirst ? [last_] : [];
      if (isFirst && first_[key] === undefined) throw new Error(`${words.schedule} has both ends of the pipeline on one device: a first stage with its own number of blocks needs 1F1B or interleaved stages`);
      if (isFirst && words.trained === "lora") throw new Error("adapters stand on this page with equal stages or a shorter last one: leave the blocks of the first stage open, or ask training_step in Python");
      // Adapters add the same to fused and eager blocks, and to attention that writes its scores (of a gated one not quite).
      const adapted = of(lora.blocks), adapters = lora.words, isAdapted = words.trained === "lora", plain = model.letters.output_gate ? own : own.replace("selective", "none").replace("unfused", "flash");
      if (isAdapted && adapted[plain] === undefined) throw new Error(`this page cannot price LoRA with ${model.words.blocks ? model.name : "this attention, recomputation or exchange of context"}: choose another ${model.words.blocks ? "model" : "layout"}, or ask training_step in Python`);
      if (isEager(plan) && isOfModules(words.recompute)) throw new Error(`${data.frameworks[plan.framework].name} runs the steps of a block one by one, and modules that run again are those of fused blocks: run nothing or everything again`);
      if (!blocks[own] || steps === undefined) throw new Error(`blocks like those of ${model.name} are not on this page: ask training_step in Python`);
      const others_ = ["always", key], costs = (x) => ["", x].flatMap((y) => engine.listed(blocks[y])), windows = { ...model.letters, ...letters }, slides = !model.words.blocks && windows.window_layers && "window" in windows; // a list of parts says its windows
      const among = slides ? (model.words.windows === "chunked" ? "chunks" : "windows") : "";
      const attended = swaps.attended["attention_tile" in known ? ["tiles", among].filter(Boolean).join("_") : among || "half"];
      const fused = swaps.fused["attention_whole" in known ? ("kv_rank" in model.letters ? "latent" : "arrays") : "usual"];
      const grouped = swaps.grouped["grouped_whole" in known ? "arrays" : "same"];
      return sheet([...engine.listed(always), attended, swaps.counted[among || "whole"], fused, grouped, swaps.peak["peak_bf16" in known ? "bf16" : "same"],
        swaps.heads["head_dim" in model.letters ? "even" : "latent"], ...[swaps.launched, swaps.eager].map((x) => x[model.letters.experts && model.letters.moe_layers ? "moe" : "all"]),
        ...others_.flatMap((x) => engine.listed(others[x])), ...costs(own), ...engine.listed(steps), ...(hasNoDense(model) ? [swaps.dense] : []),
        ...(isAdapted ? [...others_.flatMap((x) => engine.listed(adapters[x])), ...engine.listed(adapted[plain]), ...engine.withBoth(costs(plain), [...costs(own), ...engine.listed(steps)], engine.listed(adapted[plain]))] : []), ...stages, ...middle, ...engine.listed(data.bill.sheet)]); // days and dollars with failures
    },
    known(plan) {
      const bits = data.formats[`peak_${plan.precision}`] ?? 16;
      const wide = bits > 16 ? Object.fromEntries(Object.entries(data.usual.wide).map(([n, x]) => [n, x * bits])) : {};
      return { ...data.usual.train, ...bill(plan), ...wide, ...(bits < 5 ? { quantized_bits: 4 } : {}), ...engine.shape(plan.model), ...at(plan.device, plan.precision), ...framework(plan), ...plan.letters };
    },
    offloads: (known) => ["weight_offload", "activation_offload", "optimizer_offload"].some((x) => known[x]),
    answer(plan, chosen = plan.layout) {
      const words = { ...this.words, ...wordsOf(plan), ...plan.words, ...chosen.words }, known = { ...this.known(plan), ...chosen.letters };
      const own = this.sheet(plan, words, this.offloads(known));
      delete known.dp;
      const found = evaluate(own, used(own, known));
      const why = reasonTraining({ ...known, ...words, offload: this.offloads(known) }, own, false);
      return { ...found, sheet: own, words, why, known };
    },
  };

  // Serving

  const NETWORK = ["scaleup_bandwidth", "scaleup_size", "scaleout_bandwidth"];
  // How many devices the networks that are known join: within its scale-up domain a device asks for no other.
  function reach(known) {
    if (known.scaleup_bandwidth === undefined || known.scaleup_size === undefined) return 1;
    return known.scaleout_bandwidth === undefined ? known.scaleup_size : Infinity;
  }
  function derivedServing(values) {
    const known = { tp: 1, ep: 1, pp: 1, attention_dp: 1, experts: 0, overlap: "none", ...values };
    if (known.users !== undefined) known.batch = Math.max(1, known.users / ((known.replicas ?? 1) * known.attention_dp));
    if (known.hbm_bandwidth !== undefined) known.reach = reach(known);
    known.etp ??= known.experts ? (known.tp * known.attention_dp) / known.ep : 1;
    return known;
  }
  function reasonServing(values) {
    for (const letter of ["tp", "pp", "ep", "etp", "attention_dp", "replicas", "users"]) {
      if (letter in values && !whole(values[letter])) return notWhole(letter, values[letter]);
    }
    const known = derivedServing(values);
    for (const rule of data.rules.serve) {
      if (holds(rule, known) !== false) continue;
      const said = Object.fromEntries(Object.entries(known).map(([n, x]) => [n, typeof x === "number" ? `${Number(x.toPrecision(6))}` : x]));
      said.group = `${known.tp * known.attention_dp}`;
      const text = filled(rule.says, said);
      if (text.includes("would do")) return text;
      const fine = Array.from({ length: 1024 }, (_, i) => `${i + 1}`).filter((x) => data.rules.serve.every((r) => r.letter !== rule.letter
        || holds(r, derivedServing({ ...values, [rule.letter]: Number(x) })) !== false));
      return text + (fine.length ? `: ${rule.letter}=${fine.length <= 12 ? either(fine) : `${fine.slice(0, 8).join(", ")}, ...`} would do` : `: no ${rule.letter} would do`);
    }
    return null;
  }
  // The least whole number up to `most` at which a rising function is zero or more, and one beyond where none is: found as
  // scalebook.inference.layouts finds it.
  function firstWhole(f, most) {
    let low = 1, below = f(1), above = f(most), high = below >= 0 ? 1 : above >= 0 ? most : most + 1, side = 0;
    if (below >= 0 || !(above >= 0)) low = high - 1;
    for (let turn = 0; high - low > 1 && high < 2 ** 53; turn++) {
      const line = Math.ceil(low + ((high - low) * below) / (below - above));
      let tried = [line, line, side > 0 ? high - 1 : low + 1, line, line, Math.floor((low + high) / 2)][turn % 6];
      tried = Number.isFinite(tried) ? Math.min(Math.max(tried, low + 1), Math.max(high - 1, low + 1)) : low + 1;
      const value = f(tried), isHigh = value >= 0;
      if (isHigh) { if (side > 0) below /= 2; high = tried; above = value; }
      else { if (side < 0) above /= 2; low = tried; below = value; }
      side = isHigh ? 1 : -1;
    }
    return high;
  }
  // The fewest users who ask for so many requests a second, and where there is no room for so many as have room; `at`
  // gives of users how many have room and what they ask for.
  function usersAt(rate, at) {
    const room = at(1)[0], most = Math.max(1, room === Infinity ? 2 ** 53 : room || 0);
    return Math.min(firstWhole((users) => users - (rate * users) / at(users)[1], most), most);
  }
  // Weights are used in the 8 bits of which each block has a scale.
  const hasScales = (plan) => plan.job === "serve" && "scale_block" in { ...plan.model.letters, ...plan.letters } && plan.precision === "fp8" && (plan.letters.weight_bits ?? 8) === 8;
  const exchanged = ({ exchange, attention_dp = 1, ep = 1 }) => exchange ?? (attention_dp <= 1 ? "all_reduce" : ep > 1 ? "all_to_all" : "gather");

  const serving = {
    job: "serve", rules: data.rules.serve, derived: derivedServing, reason: reasonServing,
    limits: [["ttft", "ttft_target", "ttft"], ["tpot", "tpot_target", "tpot"]], layout: [], ways: [], beside: [], words: {},
    known(plan) {
      const bits = data.precisions[plan.precision] ?? data.precisions.bf16, given = { ...engine.shape(plan.model), ...at(plan.device, plan.precision), ...plan.letters };
      const own = { ...data.engines[plan.engine ?? data.usual.engine].letters };
      if (!hasScales(plan)) delete own.scale_kernels;
      else if ("matmul_fp8_block" in given && !("matmul_efficiency" in plan.letters)) given.matmul_efficiency = given.matmul_fp8_block;
      const usual = { ...data.usual.serve, ...(plan.letters.rate === undefined ? {} : data.usual.rate), ...bits, expert_bits: bits.weight_bits, window_layers: 0, window: 1 };
      return { usual, given: { ...own, ...given } };
    },
    sheet(plan, exchange) {
      const key = kind(plan.model), { sheets, swaps } = data.serve, given = { ...plan.device.letters, ...plan.letters };
      const numbers = sheets[`${key}|${exchange}`];
      if (!numbers) throw new Error(`blocks like those of ${plan.model.name} are not on this page: ask serve in Python`);
      const index = plan.model.letters.index_heads && !("index_peak" in given) ? [swaps.index["peak_fp8" in given ? "fp8" : "same"]] : [];
      return sheet([...engine.listed(numbers), ...("drafted" in plan.letters ? engine.listed(data.serve.drafted[`${key}|${exchange}`]) : []), ...("attention_peak" in given ? [] : [swaps.peak["peak_bf16" in given ? "bf16" : "same"]]), ...index,
        ...(plan.letters.rate === undefined ? [] : [swaps.rate])]);
    },
    // All letters of a way to serve, and its sheet.
    at(plan, chosen) {
      const { usual, given } = this.known(plan), known = { ...given, ...chosen.letters };
      const ways = ["tp", "pp", "attention_dp"].reduce((x, n) => x * (known[n] ?? 1), 1);
      delete known.devices; // they follow from the ways
      const usual_ = known.experts && known.attention_dp > 1 ? { exchange: data.engines[plan.engine ?? data.usual.engine].words.exchange } : {};
      let exchange = exchanged({ ...usual_, ...known, ...chosen.words });
      if (ways === 1 && NETWORK.some((x) => !(x in known))) exchange = "none";
      const own = this.sheet(plan, exchange);
      const filled = { ...usual };
      if ("scaleup_size" in known && "scaleup_bandwidth" in known && ways <= known.scaleup_size) filled.scaleout_bandwidth = known.scaleup_bandwidth;
      for (const x of Object.keys(filled)) if (own.by.has(x) && x !== "scaleout_bandwidth") delete filled[x];
      for (const [x, cell] of Object.entries(engine.reads(plan.model))) if (cell in known) filled[x] = known[cell];
      const parts = data.kinds[plan.model.words.blocks ? kind(plan.model) : ""] ?? [];
      for (const [part, letters, on] of data.kernels) if (parts.includes(part) && on[plan.engine]?.split(" ").includes(plan.device.key)) for (const [x, value] of Object.entries(letters)) if (own.by.has(x)) filled[x] = value;
      if (!("cores" in known)) Object.assign(filled, { item_time: 0, exchange_cores: 0 });
      return { own, known: { ...filled, ...known }, exchange };
    },
    answer(plan, chosen = plan.layout, users = undefined) {
      const { own, known, exchange } = this.at(plan, chosen), { rate } = plan.letters;
      if (rate !== undefined && users !== undefined) known.users = users;
      else if (rate !== undefined) {
        delete known.users;
        const letters = used(own, known), { at: [price], out } = engine.compile([own], new Set(Object.keys(letters)), [["users"]], ["max_users", "request_rate"], false)(letters);
        known.users = usersAt(rate, (users) => { price(users); return [out[1], out[2]]; });
      }
      const found = evaluate(own, used(own, known)), served = found.values.request_rate;
      const why = reasonServing({ ...known, ...chosen.words }) ?? (served < rate ? `rate=${g(rate)} is more than such a layout serves, ${g(served)} requests a second` : null);
      return { ...found, sheet: own, words: { ...chosen.words, exchange }, why, known };
    },
  };

  // Whether a row of frameworks or engines runs on a device, as its `vendors` say.
  const runsOn = ({ words: { vendors } }, device) => !vendors || !device.words.vendor || vendors.split(" ").includes(device.words.vendor);
  // Whether a device's cell is what comparable devices have, and the plan says no other; and whether a letter rests on one.
  const isAssumedCell = ({ device, precision, letters }, letter) => !(letter in letters) && device.sources?.[letter === "peak_flops" ? `peak_${precision}` : letter]?.[0] === "assumed";
  const isAssumed = (plan, { sheet: own, given }, letter) => [letter, ...engine.needed(own, new Set(Object.keys(given)), [letter]).flatMap((f) => f.inputs)].some((x) => x in given && isAssumedCell(plan, x));

  // What is best, and beside it what else counts; of services what they cost.
  function aim(plan) {
    if (plan.job === "train") return { axes: ["step_time", "memory"], rising: false };
    return { axes: ["price_hour" in plan.device.letters || "price_hour" in plan.letters ? "million_cost" : "devices", "tpot"], rising: false };
  }
  // A model has blocks that predict further tokens while it is trained.
  const withFurther = ({ mtp_blocks: more, layers, moe_layers: routed }) => (more ? { layers: layers + more, moe_layers: routed + more } : {});
  function used(own, known) {
    const names = (own.names ??= new Set(own.order.flatMap((f) => [f.letter, ...f.inputs])));
    if (own.by.has("step_time")) known = { ...known, ...withFurther(known) };
    const width = names.has("ffn") && known.ffn === undefined && known.experts ? { ffn: 1 } : {}; // of no blocks
    const found = { ...width };
    for (const x in known) if (names.has(x) && known[x] !== undefined) found[x] = known[x];
    return found;
  }
  // What nothing says of the letters that an answer rests on: most often cells that a device of one's own was not given.
  function lacking(plan) {
    const thing = thingOf(plan.job), ways = plan.job === "train" ? {} : { tp: Math.min(2, plan.letters.devices, reach({ ...plan.device.letters, ...plan.letters })), pp: 1, ep: 1, attention_dp: 1, replicas: 1 };
    const { sheet: own, known } = thing.answer(plan, { letters: ways, words: {} });
    return engine.needed(own, new Set(Object.keys(known)), aim(plan).axes).flatMap((f) => f.inputs).filter((x, i, all) => !own.by.has(x) && known[x] === undefined && all.indexOf(x) === i && x !== "users");
  }
  const draftsOf = (model) => Object.keys(data.drafts).filter((x) => typeof model === "string" && model.startsWith(x.split("_")[1])); // a row of drafts is named for its model
  const thingOf = (job) => ({ serve: serving, rl: made.updating })[job] ?? training, made = { modulesOf, isOfModules, counted, runsOn, isAssumed, isAssumedCell, draftsOf, engine, training, serving, fullest, bill, owned, overlaps, hasScales, framework, owners, isEager, leavesSequence, frameworkEnds, wordsOf, from, aim, lacking, reach, NETWORK, withFurther, firstWhole, usersAt, of: thingOf, holds, peaks, at, kind, used, either, g, domainFails };
  made.updating = planUpdates(made);
  return made;
}
