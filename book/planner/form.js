// The parts of the sentence: numbers that are typed or dragged, menus, and pickers that take a pasted model or device.

function planForm({ states, cases, words, view, rows, engine, data, at, current, taken, update, say }) {
  const { h, show, unit, meaning } = words;
  const label = (name) => ({ devices: "devices", global_batch: "sequences a step", seq: "tokens a sequence", users: "users", rate: "requests a second", prompt: "tokens of a prompt", output: "tokens of an answer", ttft: "most time to the first token", tpot: "most time a token", train_tokens: "tokens to train on", sessions: "sessions", turns: "turns of a session", prefix: "tokens of the shared prefix", appended: "new tokens of a turn", pause: "median pause", pause_spread: "spread of the pauses", responses: "answers an update", response: "tokens of an answer on average", response_most: "most tokens of an answer", response_spread: "spread of the answers" })[name] ?? meaning(name);
  function field(name, store = current().letters, whole = true, kept = () => {}, called = label(name)) {
    const isSpread = name.endsWith("_spread"), isLimit = store === current().targets, [, shownIn] = unit(name) === "s" ? show(store[name], "s").split(" ") : [], said = () => (whole ? words.grouped(store[name]) : show(store[name], unit(name)).replace(/ (tokens?|requests?\/s)$/, ""));
    const input = h("input", { class: "pl-field", type: "text", inputmode: whole ? "numeric" : "text", autocomplete: "off", spellcheck: "false", "aria-label": called, title: `${called}: type it, or drag sideways${shownIn ? `; a number alone is in ${shownIn}` : ""}`, value: said() });
    const isFitting = globalThis.CSS?.supports?.("field-sizing: content"), fit = () => isFitting || (input.style.width = `${Math.max(2, input.value.length) + 0.8}ch`);
    const suits = (x) => (x > 0 || (x === 0 && isSpread)) && (!whole || Number.isInteger(x)) && engine.good(name, x) && x <= 1e18;
    const typed = (x) => words.typed(input, view.upper(called), unit(name), store[name], { say, suits, x, shown: said(), wanted: whole ? "a whole number" : undefined, text: isLimit ? input.value.replace(/^\s*[<≤]=?\s*/, "") : input.value });
    const set = (given) => {
      const x = typed(given);
      if (x === undefined) { fit(); return; }
      if (["devices", "global_batch", "users", "rate", "sessions", "responses"].includes(name) && x > 1e6) { say(`${view.upper(called)}: a million at most here.`); input.value = said(); return; }
      store[name] = x;
      kept(x);
      input.value = said();
      fit();
      update();
    };
    input.addEventListener("input", fit);
    input.addEventListener("change", () => set());
    input.addEventListener("keydown", (e) => {
      if (e.key !== "ArrowUp" && e.key !== "ArrowDown") return;
      e.preventDefault();
      const x = (store[name] || (isSpread && e.key === "ArrowUp" ? 0.25 : 0)) * (e.key === "ArrowUp" ? 2 : 0.5);
      set(whole ? Math.max(1, Math.round(x)) : x);
    });
    input.addEventListener("pointerdown", (down) => {
      const begin = store[name] || 0.25;
      let x = begin, moved = false;
      const move = (e) => { const by = Math.round((e.clientX - down.clientX) / 28); if (!by && !moved) return; moved = true; x = whole ? Math.max(1, Math.round(begin * 2 ** by)) : begin * 2 ** (by / 2); input.value = whole ? words.grouped(x) : show(x, unit(name)); fit(); };
      const up = () => { removeEventListener("pointermove", move); removeEventListener("pointerup", up); if (moved) { input.blur(); set(x); } };
      addEventListener("pointermove", move);
      addEventListener("pointerup", up);
    });
    fit();
    return input;
  }
  // Choices of a training run that are neither in the sentence nor of its layout, and in one line what they are.
  function options(isOpen) {
    const state = current(), shown = (x) => show(x, "%", 2), margin = state.letters.memory_margin ?? data.margins.memory, { alone, together } = cases.modulesOf(states.model(state.model)), again = [...new Set(["best", "none", "selective", ...alone, together, "full"])].map((x) => [x, `${view.told(x)}${alone.includes(x) ? ` (${x})` : ""}`]);
    const several = (choice) => { const own = states.chosenOf(state, choice); return menu([...Object.keys(states.CHOICES[choice]), ...(own ? [] : ["as given below"])].map((x) => [x, x]), own ?? "as given below", choice, (x) => { if (x in states.CHOICES[choice]) states.choose(state, choice, x); update(); }); };
    const one = (said, ...inputs) => h("label", {}, h("span", {}, said), inputs);
    const kept = h("input", { class: "pl-field", size: 6, "aria-label": "margin of memory", value: shown(margin), onchange: (e) => { const x = words.typed(e.target, "Margin of memory", "%", margin, { say, suits: (y) => y >= 0 && y < 1, shown: shown(margin) }); if (x === undefined) return; state.letters.memory_margin = x; update(); } });
    const { fixed: { recompute } } = state, { recompute: own } = cases.wordsOf(state), again_ = recompute ?? own, off = states.chosenOf(state, "offload") ?? "as given below";
    const said = [`overlap ${states.chosenOf(state, "overlap") ?? "as given below"}`, again_ && again_ !== "best" ? `${view.told(again_)} run again${recompute ? "" : " (its framework’s default)"}` : "recomputation searched", `${off} offloaded`, state.trained ? "adapters trained" : "all weights trained", `a margin of ${shown(margin)} of memory`];
    return h("details", { class: "pl-choice pl-options", open: isOpen }, h("summary", {}, view.upper(said.join(", "))), h("div", { class: "pl-choices" },
      one("overlap", several("overlap")), one("run again", menu([["", own ? "as the framework" : "nothing or everything"], ...again], recompute ?? "", "recomputation", (x) => { if (x) state.fixed.recompute = x; else delete state.fixed.recompute; update(); })), one("offloaded", several("offload")),
      one("trained", menu([["", "all weights"], ["lora", "adapters (LoRA)"]], state.trained ?? "", "trained weights", (x) => { if (x) state.trained = x; else { delete state.trained; delete state.letters.lora_rank; } update(); })),
      state.trained ? one("rank", field("lora_rank", { lora_rank: data.usual.train.lora_rank, ...state.letters }, true, (x) => (state.letters.lora_rank = x))) : null, one("margin of memory", kept)));
  }
  const menu = (options, value, name, set) => h("select", { class: "pl-field", "aria-label": name, onchange: (e) => set(e.target.value) }, options.map(([key, said]) => h("option", { value: key, selected: key === value }, said)));
  const pill = (said, name, open) => h("button", { type: "button", class: "pl-pill", "aria-label": `${name}: ${said}`, "aria-expanded": "false", onclick: open }, said);
  // Menus of models and devices: a filter, groups, and one's own by pasting.
  function family(row, key, kind) { return kind === "device" ? row.words.vendor ?? "others" : /^[A-Za-z]+/.exec(row.name)?.[0] ?? "others"; }
  function pick(kind, take) {
    const isSentence = !take, table = kind === "model" ? data.models : data.devices, opener = document.activeElement, close = () => { at.pick.hidden = true; at.pick.replaceChildren(); opener?.setAttribute("aria-expanded", "false"); opener?.focus(); };
    if (!at.pick.hidden && at.pick.dataset.kind === kind) { close(); return; }
    take ??= (x, precision) => taken(kind, x, precision);
    at.ask.querySelector("[aria-expanded=true]")?.setAttribute("aria-expanded", "false");
    opener?.setAttribute("aria-expanded", "true");
    const usable = [...Object.entries(table), ...(kind === "model" && isSentence ? Object.entries(data.others).map(([k, name]) => [k, { name, words: {} }]) : [])].filter(([, row]) => (kind === "model" || (cases.peaks(row).length && row.letters.hbm_capacity && row.letters.hbm_bandwidth)));
    const version = ([, { name }]) => { const [n] = /\d+(\.\d+)?/.exec(name) ?? [0]; return n < 10 ? n : 0; };
    if (kind === "model") usable.sort((a, b) => version(b) - version(a)); // the newest of a family first
    const list = h("div", { class: "pl-list" }), filter = h("input", { type: "search", class: "pl-filter", placeholder: `find a ${kind}`, "aria-label": `find a ${kind}` });
    const rank = (g) => { const i = ["Llama", "DeepSeek", "Qwen", "gpt", "Kimi", "GLM", "MiniMax", "Mixtral", "Mistral", "Gemma", "NVIDIA", "AMD", "Google"].indexOf(g); return i < 0 ? 99 : i; };
    const fill = () => {
      const said = filter.value.toLowerCase().split(/[\s@]+/), precision = kind === "device" ? states.ORDER.find((x) => said.includes(x)) : undefined, asked = said.filter((x) => x !== precision); // "h100@fp8"
      const found = usable.filter(([k, row]) => asked.every((x) => `${k} ${row.name} ${row.words.vendor ?? ""}`.toLowerCase().includes(x)) && (!precision || cases.peaks(row).includes(precision))), groups = new Map();
      for (const [k, row] of found) { const g = family(row, k, kind); groups.set(g, [...(groups.get(g) ?? []), h("button", { type: "button", onclick: () => { close(); take(k, precision); } }, `${row.name}${precision ? ` in ${precision}` : ""}`)]); }
      list.replaceChildren(...(found.length ? [...groups].sort((a, b) => rank(a[0]) - rank(b[0])).map(([g, x]) => h("div", {}, h("h2", {}, g), x)) : [h("p", { class: "pl-soft" }, `No ${kind} here is called so${precision ? ` and has ${precision}.` : `; ${words.nearest(asked.join("_"), usable.map(([k]) => k))}`} Or paste yours below.`)]));
    };
    filter.addEventListener("input", fill);
    filter.addEventListener("keydown", (e) => { if (e.key === "Enter") { e.preventDefault(); list.querySelector("button")?.click(); } if (e.key === "ArrowDown") { e.preventDefault(); list.querySelector("button")?.focus(); } });
    at.pick.onkeydown = (e) => { if (e.key === "Escape") { e.stopPropagation(); close(); } };
    const paste = h("textarea", { rows: 8, "aria-label": kind === "model" ? "a config.json" : "a device's cells", spellcheck: "false", placeholder: kind === "model" ? '{"model_type": "llama", "num_hidden_layers": 32, ...}' : 'name = "Mine"\nhbm_capacity = "192 GB"\nhbm_bandwidth = "8 TB/s"\npeak_bf16 = "2.25 PFLOP/s"\npeak_vector = "75 TFLOP/s"\nscaleup_bandwidth = "900 GB/s"\nscaleup_size = 8\nscaleout_bandwidth = "50 GB/s"' });
    const wrong = h("p", { class: "pl-wrong", role: "alert" });
    const read = (own) => { try { const found = own(); close(); take(found); } catch (error) { wrong.textContent = view.upper(error.message).replace(/[^?]$/, "$&."); } };
    const use = kind === "model" ? [h("button", { type: "button", class: "pl-btn", onclick: () => read(() => rows.model(paste.value)) }, "use this config.json")]
      : [h("button", { type: "button", class: "pl-btn", onclick: () => read(() => rows.device(paste.value, null)) }, "use this device"), " ", h("button", { type: "button", class: "pl-btn", onclick: () => read(() => rows.device(paste.value, states.device(current().device))) }, `use it, with the rest from ${states.device(current().device).name}`)];
    at.pick.dataset.kind = kind;
    at.pick.replaceChildren(h("div", { class: "pl-choose" }, filter, kind === "device" && isSentence && current().job !== "rl" ? h("p", { class: "pl-list" }, h("button", { type: "button", onclick: () => { close(); take("any"); } }, "any device")) : null, list), h("div", { class: "pl-own" }, h("h2", {}, kind === "model" ? "Or paste a Hugging Face config.json" : "Or describe one: cells, or the stanza that scalebook.measure wrote"), paste, wrong, h("p", {}, use, " ", h("button", { type: "button", class: "pl-btn", onclick: close }, "close"))));
    at.pick.hidden = false;
    fill();
    filter.focus();
  }
  // The layout, each of its letters and words the best that is found or one that is chosen.
  function layout(space, chosen, isOpen) {
    const state = current(), change = (name, value) => { if (value === "") delete state.fixed[name]; else state.fixed[name] = name in states.WORDS ? value : Number(value); update(); };
    const one = (name, values, word = (x) => x) => {
      const own = state.fixed[name], now = own ?? (chosen ? { ...chosen.letters, ...chosen.words }[name] : undefined), all = own === undefined || values.includes(own) ? values : [...values, own];
      return h("label", {}, h("span", {}, view.CALLED[name]), h("select", { class: "pl-field", onchange: (e) => change(name, e.target.value) }, h("option", { value: "", selected: own === undefined }, `best${now !== undefined && own === undefined ? `: ${word(now)}` : ""}`), all.map((x) => h("option", { value: x, selected: x === own }, word(x)))));
    };
    // Blocks of the first and of the last stage of a pipeline; left open they are as many as the others have.
    const end = (n) => {
      const own = state.letters[n];
      return h("label", {}, h("span", {}, `blocks of the ${n.split("_")[0]} stage`), h("input", { class: "pl-field", inputmode: "numeric", size: 9, "aria-label": meaning(n), placeholder: "as others", value: own ?? "", onchange: (e) => {
        const isEmpty = !e.target.value.trim(), typed = isEmpty ? 1 : words.typed(e.target, view.upper(meaning(n)), "", own, { say, suits: (x) => Number.isInteger(x) && x > 0, shown: own ?? "", wanted: "a whole number, or nothing for as many as the others have" });
        if (typed === undefined) return;
        if (isEmpty) delete state.letters[n]; else state.letters[n] = typed;
        update();
      } }));
    };
    const ends = ["first_blocks", "last_blocks"], isParted = state.job === "train" && (chosen?.letters.pp > 1 || ends.some((n) => n in state.letters));
    const letters = states.LAYOUT[state.job].filter((x) => space.letters[x] && (space.letters[x].length > 1 || x in state.fixed)), { told } = view;
    const names = state.job === "train" ? ["schedule", "sharding", "attention", "context_exchange"] : Object.keys(space.words), fixed = Object.keys(state.fixed).length;
    return h("details", { class: "pl-choice pl-laid", open: isOpen }, h("summary", {}, fixed ? `Layout: ${fixed} chosen here, the rest searched` : "Choose the layout yourself"),
      h("div", { class: "pl-choices" }, letters.map((x) => one(x, space.letters[x])), names.map((x) => one(x, states.WORDS[x], told)), isParted ? ends.map(end) : null), h("p", { class: "pl-soft" }, `Where nothing is chosen the search goes through ${view.searched(space)}.`));
  }
  return { field, menu, pill, pick, layout, options };
}
