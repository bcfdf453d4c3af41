// A model from the text of its config.json, and a device from its cells, by the rules that Python states as data.

function planRows(engine, words, cases) {
  const { data } = engine, MOST = 1e15;
  const fail = (text) => { throw new Error(text); };
  const brief = (x) => { const text = JSON.stringify(x) ?? `${x}`; return text.length > 60 ? `${text.slice(0, 59)}…` : text; };

  const fieldOf = (config, path) => path.split(".").reduce((x, key) => (x && typeof x === "object" && !Array.isArray(x) && Object.hasOwn(x, key) ? x[key] : undefined), config) ?? undefined;
  function typed(config, field, kind, otherwise) {
    const value = fieldOf(config, field);
    if (value === undefined || value === null) return otherwise;
    const fits = kind === "list" ? Array.isArray(value) : kind === "object" ? typeof value === "object" && !Array.isArray(value) : typeof value === kind;
    return fits ? value : fail(`'${field}' must be ${{ boolean: "true or false", list: "a list", object: "an object of fields" }[kind]}; it is ${brief(value)}`);
  }
  const { types: TYPES, refused: REFUSED } = data.configs, BLOCK_WORDS = new Set(data.configs.words), ZERO = new Set(data.configs.zero);
  const PARTS = ["attention", "state", "feed", "routed"], CONDITIONS = ["slides", "linear", "attends", "feeds", "routes"];
  const OPERATIONS = {
    "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => (a % b ? undefined : a / b), "//": (a, b) => Math.floor(a / b), "%": (a, b) => ((a % b) + b) % b,
    ">=": (a, b) => a >= b, "<=": (a, b) => a <= b, "<": (a, b) => a < b, "=": (a, b) => a === b, up: (a, b) => Math.ceil(Math.trunc(a) / b) * b,
  };
  function holdsField(config, condition) {
    const [field, said] = [condition.split("=")[0], condition.split("=").slice(1).join("=")], wanted = said ? JSON.parse(said) : true;
    return typeof wanted === "boolean" ? typed(config, field, "boolean", null) === wanted : Object.hasOwn(config, field) && config[field] === wanted;
  }
  function term(word, config, letters, least, said) {
    if (/^\d/.test(word)) return Number(word);
    if (word[0] === "=" || word === "block") return letters[word.replace(/^=/, "")];
    if (word[0] === "#") { const list = fieldOf(config, word.slice(1)); return (Array.isArray(list) || typeof list === "string") && list.length ? list.length : undefined; }
    const [field, otherwise] = word.replace(/^~/, "").split(":"), value = fieldOf(config, field), where = `'${field}' of model_type '${config.model_type}'`;
    if (value === undefined || (said.includes("is") && Array.isArray(value) && !value.length)) return otherwise === undefined ? undefined : Number(otherwise);
    if (said.includes("is")) return value;
    const smallest = word[0] === "~" ? 0 : least;
    if (typeof value !== "number" || (word[0] !== "~" && !Number.isInteger(value)) || !(value >= smallest)) fail(`${where} must be a whole number, ${smallest} or more; it is ${brief(value)}`);
    return value <= MOST ? value : fail(`${where} is read up to ${words.grouped(MOST)}; it is ${brief(value)}`);
  }
  const texts = (rule) => (typeof rule === "string" ? [rule] : rule && typeof rule === "object" ? Object.values(rule).flatMap(texts) : []);
  const said_ = (kind) => texts(kind).flatMap((x) => [...x.matchAll(/(\w+) is (\S+)/g)].map(([, field, words]) => [field, words.split(",")]));
  function called(field, value, wanted, place) {
    if (!field.endsWith("_pattern")) typed(place.whole, field, "list", null);
    if (typeof value === "object" || !(BLOCK_WORDS.has(String(value)) || place.named.some(([x, words]) => x === field && words.includes(String(value))))) {
      fail(`'${field}' must call each of its ${place.layers} blocks '${wanted[0]}' or by another word that its type knows; it has ${brief(value)}`);
    }
    return wanted.includes(String(value));
  }
  function computed(words, config, letters, letter) {
    let value, pending = "";
    for (const word of words) {
      if (pending === "is") { value = called(words[words.length - 3], value, word.split(","), letters); pending = ""; }
      else if (word.endsWith("?")) { if (!holdsField(config, word.slice(0, -1))) return undefined; }
      else if (Object.hasOwn(OPERATIONS, word) || ["in", "notin", "is"].includes(word)) pending = word;
      else if (pending === "in" || pending === "notin") {
        const list = typed(letters.whole, word, "list", null);
        if (!list) return undefined;
        value = list.includes(value) === (pending === "in"); pending = "";
      } else {
        const found = term(word, config, letters, letter ? Number(!ZERO.has(letter)) : Number(["%", "/", "//"].includes(pending)), words);
        if (found === undefined) return undefined;
        value = pending ? OPERATIONS[pending](Number(value), Number(found)) : found; pending = "";
        if (value === undefined) return undefined;
      }
    }
    return value;
  }
  function value(rule, config, letters, letter, needed) {
    if (typeof rule !== "string") return rule;
    const alternatives = rule.split(" | ").map((x) => x.split(/\s+/).filter(Boolean));
    for (const words of alternatives) {
      if (words[words.length - 1] === "none") { if (words.slice(0, -1).every((x) => holdsField(config, x.slice(0, -1)))) return undefined; continue; }
      const found = computed(words, config, letters, letter);
      if (found !== undefined) return found;
    }
    if (needed) fail(`a configuration of model_type '${config.model_type}' needs the field '${alternatives.flat().find((x) => /^[a-z]/i.test(x) && !x.endsWith("?"))}'`);
    return undefined;
  }
  const holds = (rule, config, place) => (Array.isArray(rule) ? rule.every((x) => holds(x, config, place)) : Boolean(value(rule, config, place, "")));

  // The letters of a configuration, as scalebook.tables.models.read gives them.
  function model(text, name) {
    let config;
    try { config = JSON.parse(text.replace(/-?\b(Infinity|NaN)\b/g, "null")); } catch { fail("this is not JSON, as a Hugging Face config.json is"); }
    if (typeof config !== "object" || config === null || Array.isArray(config)) fail("a config.json holds an object of fields");
    const outer = config.model_type;
    for (const inner of ["text_config", "llm_config", "language_config", "thinker_config", "decoder_config"]) {
      const nested = typed(config, inner, "object", {});
      if (Object.keys(nested).length && !Object.hasOwn(REFUSED, String(outer))) {
        if (inner === "thinker_config") return model(JSON.stringify(nested), name);
        config = { ...config, ...nested, ...("tie_word_embeddings" in config ? { tie_word_embeddings: config.tie_word_embeddings } : {}), model_type: nested.model_type ?? outer };
        break;
      }
    }
    const type = config.model_type;
    if (typeof type !== "string") fail("a configuration needs the field 'model_type'");
    if (Object.hasOwn(REFUSED, type)) fail(`model_type ${brief(type)} is ${REFUSED[type]}; decoders are read, such as 'llama'`);
    if (!Object.hasOwn(TYPES, type)) fail(`model_type ${brief(type)} is not one that can be read; ${words.nearest(type, Object.keys(TYPES))}`);
    const kind = TYPES[type], layers = value(kind.layers, config, {}, "layers", true);
    if (layers > 100_000) fail(`the blocks of a configuration are read up to 100,000; it has ${brief(layers)}`);
    const more = Number.isInteger(config.num_nextn_predict_layers) ? config.num_nextn_predict_layers : 0, own_ = typed(config, "per_layer_config", "object", {}), named = said_(kind);
    const lists = Object.entries(config).filter(([x, y]) => (Array.isArray(y) || (typeof y === "string" && x.endsWith("_pattern"))) && (y.length === layers || y.length === layers + more));
    const blocks = [], shapes = new Map();
    for (let block = 0; block < layers; block++) {
      const own = { ...Object.fromEntries(lists.map(([x, y]) => [x, y[block]])), ...Object.entries(own_).find(([x]) => Number(x) === block)?.[1] }, view = { ...config, ...own };
      const place = { block, whole: config, layers, named }, has = Object.fromEntries(CONDITIONS.map((x) => [x, holds(kind[x] ?? x === "feeds", view, place)]));
      if (!("attends" in kind)) has.attends = !has.linear;
      for (const x of PARTS) { const name = typeof kind[x] === "string" ? kind[x] : Object.entries(kind[x] ?? {}).find(([, y]) => holds(y, view, place))?.[0]; if (name) has[x] = name; }
      has.also = Object.entries(kind.also ?? {}).filter(([, y]) => holds(y, view, place)).map(([x]) => x);
      const key = lists.length || Object.keys(own_).length ? JSON.stringify(own) : "";
      if (!shapes.has(key)) shapes.set(key, lettersOf(view, kind));
      blocks.push([has, shapes.get(key)]);
    }
    const letters = {}; // of most blocks
    for (const x of new Set(blocks.flatMap(([, own]) => Object.keys(own)))) {
      const found = new Map();
      for (const [, own] of blocks) if (x in own) found.set(own[x], (found.get(own[x]) ?? 0) + 1);
      letters[x] = [...found].reduce((a, b) => (b[1] > a[1] ? b : a))[0];
    }
    const many = (x) => blocks.filter(([has]) => has[x]).length, sliding = many("slides");
    if (sliding) { const window = value(kind.window ?? 0, config, {}, "window", true); if (window) Object.assign(letters, { window_layers: sliding, window }); }
    if ("linear" in kind) letters.linear_layers = many("linear");
    letters.moe_layers = blocks.filter(([has]) => has.routes || has.also.includes("experts")).length;
    letters.shared_experts ??= 0;
    const sizes = typed(typed(config, "quantization_config", "object", {}), "weight_block_size", "list", null);
    if (sizes?.length) letters.scale_block = value("weight_block_size", { model_type: type, weight_block_size: sizes[sizes.length - 1] }, {}, "scale_block", true);
    if (typed(config, "use_qk_norm", "boolean", false) && config.qk_norm_type === "per_layer") letters.norm_sums = 1;
    if (letters.moe_layers && letters.experts < letters.top_k) fail(`${letters.experts} experts of model_type '${type}' are fewer than a token visits`);
    const list = irregular(config, kind, blocks, letters);
    const unused = [...(letters.moe_layers === blocks.length ? ["ffn"] : []), ...(letters.moe_layers ? [] : ["experts", "top_k", "expert_ffn", "shared_experts", "shared_ffn"]),
      ...(letters.shared_experts ? [] : ["shared_ffn"]), ...(letters.linear_layers ? [] : Object.keys(letters).filter((x) => x.startsWith("linear_")))];
    unused.forEach((x) => delete letters[x]);
    const own = { norm: kind.norm, ...(kind.family ? { family: kind.family } : {}), ...(kind.windows && "window" in letters ? { windows: kind.windows } : {}), ...list };
    return finished({ name: clean(name) || type, words: own, letters, source: "config.json", sources: {} });
  }
  // The list of parts of a model whose letters do not say which blocks have which parts.
  function irregular(config, kind, blocks, letters) {
    const same = JSON.stringify(blocks[0][1]), isNamed = "once" in kind || blocks.some(([has]) => has.also.length || PARTS.some((x) => x in has));
    if (!isNamed && blocks.every(([has, own]) => has.attends !== has.linear && has.feeds && JSON.stringify(own) === same)) return {};
    const parts = new Map(), add = (x, n = 1) => parts.set(x, (parts.get(x) ?? 0) + n);
    for (const [has, own] of blocks) {
      const differ = [...Object.entries(own).filter(([x, y]) => y !== letters[x]).map(([x, y]) => `${x}=${y}`), ...(has.slides && "window" in letters ? [`window=${letters.window}`] : [])];
      const names = [[has.attends, has.attention ?? "attention"], [has.linear, has.state ?? "linear"], [has.feeds, has.routes ? has.routed ?? "experts" : has.feed ?? "feed"], ...has.also.map((x) => [true, x])];
      for (const [there, name] of names) if (there) add(differ.length ? `${name} (${differ.join(" ")})` : name);
    }
    for (const [x, rule] of Object.entries(kind.once ?? {})) { const n = Math.trunc(value(rule, config, {}, "") ?? 0); if (n) parts.set(x, n); }
    return { blocks: [...parts].map(([x, n]) => `${n} ${x}`).join(" + ") };
  }
  function lettersOf(config, kind) {
    const letters = {};
    for (const [letter, rule] of Object.entries(kind)) {
      if (!Object.hasOwn(data.letters, letter) || letter === "window") continue;
      const found = value(rule, config, letters, letter, !(typeof rule === "string" && rule.endsWith(" | none")));
      if (found !== undefined) letters[letter] = Number(found);
    }
    const { heads = 1, kv_heads: shared = 1 } = letters;
    if (heads % shared) fail(`the ${shared} key-value heads of model_type '${config.model_type}' do not divide its ${heads} heads`);
    for (const [field, letter] of Object.entries(kind.same ?? {})) {
      if ((config[field] === undefined ? letters[letter] : config[field]) !== letters[letter]) fail(`a '${config.model_type}' configuration whose ${field} is not ${kind[letter]} has no letters here`);
    }
    return letters;
  }
  // A list of parts that a link says, if it is one.
  function listed(text) {
    const own = (x) => x.split(" ").every((y) => /^[a-z_]+=\d+(\.\d+)?$/.test(y) && Object.hasOwn(data.letters, y.split("=")[0]));
    const parts = typeof text === "string" && text.length < 2000 ? text.split(" + ").map((x) => /^\d{1,6} [a-z0-9 ,-]+(?: \(([^()]+)\))?$/.exec(x)) : [null];
    return parts.every((x) => x && (x[1] === undefined || own(x[1]))) ? text : fail("a list of parts is one as models.read gives it");
  }
  const clean = (name) => String(name ?? "").replace(/[^\p{L}\p{N} .,_()+/-]/gu, "").slice(0, 60).trim();

  // What follows from the shape, as Models.read adds it.
  function finished(row) {
    const { letters, words: { blocks } } = row;
    if (blocks) {
      const counted = data.serve.counted[engine.kind(row)];
      row.elsewhere = !counted && Object.keys(data.others).length > 0; // the page's second file may have its formulas
      if (!counted && !row.elsewhere) fail(`the page has the formulas of the lists of parts in its menu, for any numbers, but not of ${blocks}. Python prices it: training_step(models.read("config.json"), accelerators.h100.at("bf16"), devices=64, global_batch=512)`);
      for (const f of engine.listed(counted ?? "").map(engine.formula)) {
        const value = engine.truth(f.root, engine.shape(row));
        if (value) letters[f.letter] = value;
      }
    }
    if (letters.window_layers === undefined) { letters.window_layers = 0; if (letters.max_context) letters.window = letters.max_context; }
    letters.experts ??= 0;
    if (!letters.experts) letters.routed_share = 1;
    if ("kv_rank" in letters) letters.cache_heads = 1;
    for (const n of engine.listed(data.follows)) {
      const f = engine.formula(n);
      if (!(f.letter in letters) && f.inputs.every((x) => x in letters)) { letters[f.letter] = engine.truth(f.root, letters); row.sources[f.letter] = ["", `follows: ${f.name}`]; }
    }
    try { letters.params ??= cases.counted(row) || undefined; } catch { /* blocks that this page, or Python, has not */ }
    return row;
  }

  // A device of cells: lines such as `hbm_capacity = "80 GB"`, or `{value = "80 GB", note = "..."}`; others stay those of `base`.
  const USUAL = ["kernel_launch", "near_efficiency", "switch_efficiency", "far_efficiency", "near_latency", "far_latency", "collective_launch", "mesh_peers", "torus_neighbours", "chunk_time"];
  function device(text, base) {
    const letters = {}, named = {}, sources = {}, ends = {};
    let name = "a device of my own", cells = 0;
    if (text.length > 20_000) fail("a device is described in some twenty lines; this is far more");
    for (const [i, raw] of text.split("\n").entries()) {
      const line = raw.replace(/(^|\s)#.*$/, "").trim();
      if (!line || /^\[[\w.-]+\]$/.test(line)) continue;
      const found = /^(\w+)\s*=\s*(.+)$/.exec(line);
      if (!found) fail(`line ${i + 1} is no cell: write hbm_capacity = "80 GB"`);
      const [, key, said] = found, inner = /value\s*=\s*("[^"]*"|[-\d.e+_]+)/.exec(said), value = (said.startsWith("{") ? inner?.[1] ?? "" : said).replace(/^"|"$/g, "");
      if (["name", "vendor", "fabric", "source", "note"].includes(key)) { if (key === "name") name = clean(value); else named[key] = clean(value); continue; }
      if (!Object.hasOwn(data.letters, key)) fail(`line ${i + 1}: no letter is called '${key.slice(0, 40)}'; ${words.nearest(key, Object.keys(data.letters))}`);
      const own = words_(key), number = words.read(value.replaceAll("_", ""), own);
      if (!engine.good(key, number)) fail(`line ${i + 1}: ${key} is a number with the unit ${own || "of a count"}, not ${brief(value)}`);
      letters[key] = number;
      const [low, high] = ["low", "high"].map((x) => new RegExp(`[{,]\\s*${x}\\s*=\\s*"([^"]*)"`).exec(said)?.[1]).map((x) => (x === undefined ? x : words.read(x, own)));
      if (low !== undefined || high !== undefined) {
        if (!(low > 0 && low <= number && number <= high)) fail(`line ${i + 1}: low and high of ${key} are quantities on both sides of its value`);
        ends[key] = [low / number, high / number];
      }
      const note = /note\s*=\s*"([^"]*)"/.exec(said)?.[1];
      sources[key] = ["", `typed here${note ? `: ${note.slice(0, 200)}` : ""}`];
      if (++cells > 200) fail("a device has at most 200 cells");
    }
    if (!cells) fail('no cell was found: write lines such as hbm_capacity = "80 GB"');
    const peaks = (x) => Object.keys(x).some((y) => y.startsWith("peak_") && y !== "peak_vector" && y !== "peak_flops");
    const usual = base ? base.letters : Object.fromEntries(USUAL.map((x) => [x, data.devices.h100.letters[x]]).filter(([, x]) => x !== undefined));
    const all = { ...usual, ...letters };
    for (const x of ["hbm_capacity", "hbm_bandwidth"]) if (!(x in all)) fail(`a device needs ${x}`);
    if (!peaks(all)) fail("a device needs a peak, such as peak_bf16");
    const kept = Object.fromEntries(Object.entries(base?.ends ?? {}).filter(([x]) => !(x in letters)));
    return { name, words: named, letters: all, source: base?.source ?? "", sources: { ...(base?.sources ?? {}), ...sources }, ends: { ...kept, ...ends }, origin: base?.origin ?? name };
  }
  const words_ = (key) => data.letters[key][2];
  return { model, device, clean, finished, listed };
}
