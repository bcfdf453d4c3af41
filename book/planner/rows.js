// A model from the text of its config.json, and a device from its cells, by the rules that Python states as data.

function planRows(engine, words) {
  const { data } = engine, MOST = 1e15;
  const fail = (text) => { throw new Error(text); };
  const brief = (x) => { const text = JSON.stringify(x) ?? `${x}`; return text.length > 60 ? `${text.slice(0, 59)}…` : text; };

  function count(config, field, otherwise, least = 1) {
    const value = Object.hasOwn(config, field) ? config[field] : undefined;
    if (value === undefined || value === null) {
      return otherwise ?? fail(`a configuration of model_type '${config.model_type}' needs the field '${field}'`);
    }
    if (typeof value !== "number" || !Number.isInteger(value) || value < least) fail(`'${field}' must be a whole number, ${least} or more; it is ${brief(value)}`);
    const most = field === "num_hidden_layers" || field === "n_layer" ? 100_000 : MOST;
    return value <= most ? value : fail(`'${field}' is read up to ${words.grouped(most)}; it is ${brief(value)}`);
  }
  function typed(config, field, kind, otherwise) {
    const value = Object.hasOwn(config, field) ? config[field] : undefined;
    if (value === undefined || value === null) return otherwise;
    const fits = kind === "list" ? Array.isArray(value) : kind === "object" ? typeof value === "object" && !Array.isArray(value) : typeof value === kind;
    return fits ? value : fail(`'${field}' must be ${{ boolean: "true or false", list: "a list", object: "an object of fields" }[kind]}; it is ${brief(value)}`);
  }
  const RULES = {
    head_dim: () => (config, letters) => {
      if (!(config.head_dim ?? false) && letters.hidden % letters.heads) fail(`a configuration of model_type '${config.model_type}' needs the field 'head_dim' here`);
      return count(config, "head_dim", Math.floor(letters.hidden / letters.heads));
    },
    null_is_none: ({ field }) => (config) => (Object.hasOwn(config, field) && config[field] === null ? 0 : count(config, field, undefined, 0)),
    same: ({ letter }) => (config, letters) => letters[letter],
    or_times: ({ field, factor, letter }) => (config, letters) => count(config, field, factor * letters[letter]),
    plus: ({ field, more }) => (config) => count(config, field) + more,
    unprojected_vocab: () => (config, letters) => (count(config, "word_embed_proj_dim", letters.hidden) === letters.hidden ? count(config, "vocab_size")
      : fail("an 'opt' configuration whose word_embed_proj_dim is not hidden_size has no letters here")),
    falcon_kv_heads: () => (config, letters) => (typed(config, "new_decoder_architecture", "boolean", false) ? count(config, "num_kv_heads", letters.heads)
      : typed(config, "multi_query", "boolean", true) ? 1 : letters.heads),
    own_indexers: () => (config) => (typed(config, "indexer_types", "list", []).includes("shared") ? fail("a configuration whose blocks share indexers has no letters here") : count(config, "index_n_heads")),
    every: () => () => true,
    when_used: ({ slides }) => (config, block) => typed(config, "use_sliding_window", "boolean", false) && rule(slides)(config, block),
    upper: () => (config, block) => block >= count(config, "max_window_layers", 28, 0),
    even: () => (config, block) => block % 2 === 0,
    all_but: ({ field, default: usual }) => (config, block) => (block + 1) % count(config, field, usual) !== 0,
    after_dense: ({ first }) => (config, block) => block >= count(config, "first_k_dense_replace", first, 0) && block % count(config, "moe_layer_freq", 1) === 0,
    sparse_step: () => (config, block) => !typed(config, "mlp_only_layers", "list", []).includes(block) && (block + 1) % count(config, "decoder_sparse_step", 1) === 0,
    interleaved: () => (config, block) => {
      const routed = typed(config, "moe_layers", "list", null);
      return routed ? routed.includes(block) : (block + 1) % count(config, "interleave_moe_layer_step", 1) === 0;
    },
    listed: ({ otherwise, local, full, field }) => (config, block) => {
      const types = typed(config, field, "list", []);
      if (!types.length) return rule(otherwise)(config, block);
      if (types.length !== config.num_hidden_layers || types.some((x) => x !== local && x !== full)) {
        fail(`'${field}' must call each of its ${brief(config.num_hidden_layers)} blocks ${brief(local)} or ${brief(full)}`);
      }
      return types[block] === local;
    },
  };
  const rule = ([name, made]) => RULES[name](made);

  // The letters of a configuration, as scalebook.tables.models.read gives them.
  function model(text, name) {
    let config;
    try { config = JSON.parse(text); } catch { fail("this is not JSON, as a Hugging Face config.json is"); }
    if (typeof config !== "object" || config === null || Array.isArray(config)) fail("a config.json holds an object of fields");
    config = { ...config, ...typed(config, "text_config", "object", {}) };
    const type = config.model_type;
    if (typeof type !== "string") fail("a configuration needs the field 'model_type'");
    if (!Object.hasOwn(data.configs, type)) fail(`model_type ${brief(type)} is not one that can be read; there are: ${Object.keys(data.configs).slice(0, 12).join(", ")}, ...`);
    const kind = data.configs[type], letters = {};
    for (const [letter, said] of Object.entries(kind.letters)) {
      letters[letter] = typeof said === "number" ? said : typeof said === "string" ? count(config, said)
        : Array.isArray(said) ? rule(said)(config, letters)
          : count(config, said.field, typeof said.default === "string" ? letters[said.default] : said.default);
    }
    letters.embeddings = typed(config, "tie_word_embeddings", "boolean", kind.tied) ? 1 : 2;
    const blocks = Array.from({ length: letters.layers }, (_, i) => i), many = (x) => blocks.filter((block) => rule(x)(config, block)).length;
    if (kind.slides && (Object.hasOwn(config, kind.window_field) ? config[kind.window_field] : kind.window) !== null) {
      const sliding = many(kind.slides);
      if (sliding) Object.assign(letters, { window_layers: sliding, window: count(config, kind.window_field, kind.window ?? undefined) });
    }
    if (kind.linear) letters.linear_layers = many(kind.linear);
    letters.moe_layers = kind.routes ? many(kind.routes) : 0;
    letters.shared_experts ??= 0;
    const sizes = typed(typed(config, "quantization_config", "object", {}), "weight_block_size", "list", null);
    if (sizes?.length) letters.scale_block = count({ model_type: type, weight_block_size: sizes[sizes.length - 1] }, "weight_block_size");
    if (typed(config, "use_qk_norm", "boolean", false) && config.qk_norm_type === "per_layer") letters.norm_sums = 1;
    if (letters.heads % (letters.kv_heads ?? 1)) fail(`the ${letters.kv_heads} key-value heads of model_type '${type}' do not divide its ${letters.heads} heads`);
    if (letters.moe_layers && letters.experts < letters.top_k) fail(`${letters.experts} experts of model_type '${type}' are fewer than a token visits`);
    const unused = [...(letters.moe_layers === blocks.length ? ["ffn"] : []), ...(letters.moe_layers ? [] : ["experts", "top_k", "expert_ffn", "shared_experts", "shared_ffn"]),
      ...(letters.shared_experts ? [] : ["shared_ffn"]), ...(letters.linear_layers ? [] : Object.keys(letters).filter((x) => x.startsWith("linear_")))];
    unused.forEach((x) => delete letters[x]);
    const own = { norm: kind.norm, ...(kind.family ? { family: kind.family } : {}), ...("window" in letters && kind.window_field === "attention_chunk_size" ? { windows: "chunked" } : {}) };
    return finished({ name: clean(name) || type, words: own, letters, source: "config.json", sources: {} });
  }
  const clean = (name) => String(name ?? "").replace(/[^\p{L}\p{N} .,_()+/-]/gu, "").slice(0, 60).trim();

  // What follows from the shape, as Models.read adds it.
  function finished(row) {
    const { letters } = row;
    if (letters.window_layers === undefined) { letters.window_layers = 0; if (letters.max_context) letters.window = letters.max_context; }
    letters.experts ??= 0;
    if (!letters.experts) letters.routed_share = 1;
    if ("kv_rank" in letters) letters.cache_heads = 1;
    for (const n of engine.listed(data.follows)) {
      const f = engine.formula(n);
      if (!(f.letter in letters) && f.inputs.every((x) => x in letters)) { letters[f.letter] = engine.truth(f.root, letters); row.sources[f.letter] = ["", `follows: ${f.name}`]; }
    }
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
      if (!Object.hasOwn(data.letters, key)) fail(`line ${i + 1}: no letter is called '${key.slice(0, 40)}'`);
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
  return { model, device, clean, finished };
}
