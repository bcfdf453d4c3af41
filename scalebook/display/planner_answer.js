// What an answer shows: whether it fits, four numbers, bars, neighbours, what would help, and the why of each number.

function planAnswer({ engine, cases, words, draw, base }) {
  const { data } = engine, { h, show, unit, meaning } = words;
  const upper = (x) => x.charAt(0).toUpperCase() + x.slice(1);

  // What a piece is called, how it looks, and the chapter that derives it.
  const P2 = "2-parallelism/", P4 = "4-inference/";
  const PIECES = {
    step_forward: ["forward", "a1", `3-multi-trillion/modelling-a-training-step`], step_backward: ["backward", "a2", "3-multi-trillion/modelling-a-training-step"],
    step_again: ["run again", "a3", `${P2}mixed-precision-accumulation-recomputation`], step_head: ["embeddings and logits", "a4", "3-multi-trillion/modelling-a-training-step"],
    optimizer_time: ["optimizer", "m2", `${P2}data-parallelism`], tp_exposed: ["tensor parallel", "n1", `${P2}tensor-parallelism`], cp_exposed: ["context parallel", "n2", "1-scaling-compute/quadratic-attention"],
    ep_exposed: ["expert parallel", "n3", `${P2}mixture-of-experts`], pp_exposed: ["pipeline messages", "n4", `${P2}pipeline-parallelism`], dp_exposed: ["data parallel", "n5", `${P2}data-parallelism`],
    bubble_time: ["bubble", "w1", `${P2}pipeline-parallelism`], offload_exposed: ["offload", "n6", "3-multi-trillion/tensor-offloading"],
    weight_memory: ["weights", "m1", `${P2}memory-of-a-sharded-model`], gradient_memory: ["gradients", "m2", `${P2}memory-of-a-sharded-model`], optimizer_memory: ["optimizer state", "m3", `${P2}memory-of-a-sharded-model`],
    activation_memory: ["activations", "m4", `${P2}mixed-precision-accumulation-recomputation`], logits_memory: ["logits", "m5", `${P2}memory-of-a-sharded-model`], buffer_memory: ["under way", "m6", `${P2}fully-sharded-data-parallelism`],
    weights_time: ["weights read", "m1", `${P4}memory-wall-of-inference`], products_time: ["products beyond reading", "a1", `${P4}a-step-kernel-by-kernel`], cache_time: ["caches read", "m3", `${P4}a-step-kernel-by-kernel`],
    reading_time: ["prompts", "a2", `${P4}a-step-kernel-by-kernel`], experts_time: ["experts", "m4", `${P4}experts-when-few-tokens-come`], routing_time: ["routing", "a3", `${P4}experts-when-few-tokens-come`],
    streams_time: ["norms and activations", "m5", `${P4}a-step-kernel-by-kernel`], exchange_time: ["messages", "n1", `${P4}jitter-and-more-devices`], launches_time: ["launches", "w1", `${P4}a-step-kernel-by-kernel`],
    engine_time: ["engine", "w2", `${P4}a-step-kernel-by-kernel`], held_weights: ["weights", "m1", `${P4}capacity-pipelines-caches-prefixes`], workspace: ["work space", "m5", `${P4}capacity-pipelines-caches-prefixes`], caches: ["caches of users", "m3", `${P4}capacity-pipelines-caches-prefixes`],
  };
  const nameOf = (x) => PIECES[x]?.[0] ?? x.replaceAll("_", " ");
  const chapter = (x) => (PIECES[x] ? h("a", { href: `${base}notebooks/${PIECES[x][2]}.html`, class: "pl-chapter", "aria-label": `chapter on ${nameOf(x)}` }, "chapter") : null);
  function pieces(answer, letters) {
    return letters.filter((x) => answer.values[x] > 0).map((x, i) => ({ letter: x, name: nameOf(x), value: answer.values[x], look: `pl-${PIECES[x]?.[1] ?? `w${1 + (i % 2)}`}` }))
      .sort((a, b) => a.look.localeCompare(b.look));
  }
  const inputsOf = (answer, letter) => (answer.sheet.by.get(letter)?.inputs ?? []).filter((x) => unit(x) === unit(letter));

  // A number that opens its why.
  const num = (answer, letter, open, digits = 4) => h("button", { type: "button", class: "pl-num", "data-letter": letter, "aria-label": `${meaning(letter)}: ${show(answer.values[letter], unit(letter), digits)}, why`, onclick: () => open(letter) },
    letter === "million_cost" ? `$${show(answer.values[letter], "", 3)}` : letter === "filled" ? show(answer.values[letter], "%", 3) : show(answer.values[letter], unit(letter), digits).replace(/ tokens\/s$/, ""));

  // The range that eight of ten public measurements like this one lie in. An interval of its own takes its place here.
  function range(job, letter, value) {
    const { train, serve } = data.trust, ends = job === "train" ? train.ends : letter === "ttft" ? serve.first : serve.ends;
    const sign = { step_time: 1, mfu: -1, train_time: 1, train_cost: 1, tpot: 1, ttft: 1, device_rate: -1, million_cost: 1 }[letter];
    if (!sign || !(value > 0)) return null;
    const [low, high] = sign > 0 ? [value * ends[0], value * ends[1]] : [value / ends[1], value / ends[0]];
    return `${show(low, unit(letter), 2)} to ${show(high, unit(letter), 2)}`;
  }

  function figures(job, answer, open, state) {
    const { values } = answer, one = (letter, said, more) => h("div", {}, values[letter] === undefined ? h("b", { class: "pl-none" }, "–") : num(answer, letter, open),
      h("span", {}, said), h("small", {}, more ?? (range(job, letter, values[letter]) ? `likely ${range(job, letter, values[letter])}` : " ")));
    if (job === "train") {
      const capacity = values.hbm_capacity, left = capacity - values.memory;
      return h("div", { class: "pl-big" }, one("step_time", "a step"), one("mfu", "model FLOPS utilisation"),
        one("memory", `of ${show(capacity, "B", 3)}, the fullest stage`, left >= 0 ? `${show(left, "B", 3)} left` : `${show(-left, "B", 3)} too much`),
        one("train_time", `for ${show(values.train_tokens, "token", 3)}`, values.train_cost ? `$${show(values.train_cost, "", 3)}, ${range(job, "train_time", values.train_time)}` : undefined));
    }
    return h("div", { class: "pl-big" }, one("ttft", "to the first token"), one("tpot", `a token: ${show(1 / values.tpot, "token/s", 3)} for each user`), one("device_rate", "tokens a second from each device"),
      values.million_cost !== undefined ? one("million_cost", "for a million output tokens") : one("filled", "of the memory that may be used", "no price is known: give one below"));
  }

  function bars(job, answer, open, stages) {
    const { values } = answer, found = [];
    const section = (title, ...more) => found.push(h("h2", {}, title), ...more);
    if (job === "train") {
      const memory = pieces(answer, inputsOf(answer, "train_memory"));
      section("Where the time goes", draw.bar(pieces(answer, inputsOf(answer, "step_time")), { unit: "s", label: "a step's time, piece by piece", open, chapter }));
      section(`Where the memory goes: stage ${show(values.stage ?? 1)} of ${show(values.pp)}, the fullest`, draw.bar(memory.length ? memory : [{ letter: "memory", name: "memory", value: values.memory, look: "pl-m1" }],
        { unit: "B", label: "memory of the fullest stage, piece by piece", capacity: values.hbm_capacity, capacityName: "capacity", open, chapter }));
      if (stages.length > 1) found.push(h("p", { class: "pl-soft" }, `All ${stages.length} stages, the first on the left; the line is the capacity.`), draw.columns(stages, values.hbm_capacity, `memory of ${stages.length} stages, ${show(Math.min(...stages), "B", 3)} to ${show(Math.max(...stages), "B", 3)}`));
    } else {
      section("Where the time of a token's step goes", draw.bar(pieces(answer, inputsOf(answer, "pass_time")), { unit: "s", label: "a decoding step, piece by piece", open, chapter }));
      const usable = values.hbm_capacity * values.cache_share, caches = values.filled * usable - values.held_weights - values.workspace;
      const held = [["held_weights", values.held_weights], ["workspace", values.workspace], ["caches", caches]].filter(([, x]) => x > 0).map(([letter, value]) => ({ letter: letter === "caches" ? "filled" : letter, name: nameOf(letter), value, look: `pl-${PIECES[letter][1]}` }));
      section("Where the memory of a device goes", draw.bar(held, { unit: "B", label: "memory of a device, piece by piece", capacity: usable, capacityName: "what the engine may use", open, chapter }));
    }
    return found;
  }

  // A layout in few words.
  function layout(chosen, job) {
    const said = Object.entries(chosen.letters).filter(([n, x]) => x > 1 || n === "tp").map(([n, x]) => `${n.replace("attention_dp", "attention dp")} ${show(x)}`);
    const { recompute, sharding, schedule, exchange } = chosen.words;
    const extra = job === "train" ? [sharding?.replace(/zero(\d)/, "ZeRO-$1"), chosen.letters.pp > 1 ? schedule : "", recompute === "full" ? "all run again" : ""] : [exchange && chosen.letters.tp * chosen.letters.attention_dp > 1 ? exchange.replaceAll("_", "-") : ""];
    return [...said, ...extra.filter(Boolean)].join(" · ");
  }
  const SAID = { request_rate: "", device_rate: "", devices: "devices" };
  function reason(row) {
    if (row.why) return row.why;
    if (row.over) { const [letter, x, name, most, relation] = row.over; return `${{ memory: "memory", tpot: "a token", ttft: "first token" }[letter] ?? meaning(letter)}: ${show(x, unit(letter), 3)} is ${relation === "<=" ? "above" : "below"} ${name ? "the device's " : ""}${show(most, unit(letter), 3)}`; }
    if (row.value === null) return row.missing?.outside ? `it holds for ${row.missing.outside.words} only` : "weights and caches do not fit";
    return row.parts.map(([x, by]) => `${SAID[x] ?? nameOf(x)}${SAID[x] === "" ? "" : " "}${by > 0 ? "+" : "−"}${show(Math.abs(by), unit(x), 3)}`).join(", ") || "nothing changes";
  }
  const same = (a, b) => JSON.stringify([a.letters, a.words]) === JSON.stringify([b.letters, b.words]);
  function table(job, result, rows, take) {
    const axis = result.axes[0], own = result.best[0], best = own.values[axis];
    const line = (label, value, second, why, chosen, me) => h("tr", { class: me ? "pl-me" : undefined }, h("th", { scope: "row" }, chosen && !me ? h("button", { type: "button", class: "pl-link", onclick: () => take(chosen) }, label) : label),
      h("td", {}, value), h("td", {}, second), h("td", { class: "pl-why-not" }, why));
    const by = (value) => (value === null ? "–" : `${value >= best ? "+" : "−"}${show(Math.abs(value / best - 1), "%", 2)}`);
    return h("div", { class: "pl-scroll", tabindex: 0, role: "region", "aria-label": "best layouts and neighbours" }, h("table", { class: "pl-near" }, h("thead", {}, h("tr", {}, ["layout, or one step away from the best", job === "train" ? "step" : "tokens/s a device", job === "train" ? "memory" : "a token", "what changes, or why not"].map((x) => h("th", { scope: "col" }, x)))),
      h("tbody", {}, line(layout(own, job), show(best, unit(axis)), show(own.values[result.axes[1]], unit(result.axes[1]), 3), "the best", own, true),
        result.best.slice(1, 6).filter((x) => !rows.some((y) => same(x, y))).slice(0, 2).map((x) => line(layout(x, job), by(x.values[axis]), show(x.values[result.axes[1]], unit(result.axes[1]), 3), "another of the best", x)),
        rows.slice(0, 14).map((x) => line(x.said.replaceAll("_", " "), by(x.value), x.memory ? show(x.memory, "B", 3) : "", reason(x), x.value === null ? null : { letters: x.letters, words: x.words })))));
  }

  // Why: the formula, with letters and with numbers, its source, and the same of all that it is made of.
  function why(answer, letter, state, depth = 0, seen = new Set()) {
    const f = answer.sheet.by.get(letter), value = answer.values[letter], isFormula = f && !(letter in answer.given);
    const head = h("span", {}, words.inline(words.letter(letter)), ` ${meaning(letter)}: `, h("b", {}, show(value, unit(letter))));
    if (!isFormula) return h("div", { class: "pl-leaf" }, head, " ", origin(letter, state));
    const body = h("div", { class: "pl-body" }), fill = () => {
      if (body.childElementCount) return;
      const small = words.sizeOf(f.root) < 220;
      if (f.doc) body.append(h("p", {}, f.doc));
      if (small) {
        body.append(h("div", { class: "pl-math", tabindex: 0, role: "group", "aria-label": `formula of ${meaning(letter)}` }, words.maths(words.letter(letter), words.m("mo", "="), words.print(f.root, words.letter)),
          words.maths(words.m("mphantom", words.letter(letter)), words.m("mo", "="), words.print(f.root, (x) => words.number(answer.values[x], x), 0), words.m("mo", "="), words.number(value, letter))));
      } else body.append(h("p", { class: "pl-soft" }, "A sum over all kernels of the blocks, too long to be set here; what it is made of stands below."));
      for (const x of f.domain) body.append(h("p", { class: "pl-soft" }, `It holds for ${x.words}.`));
      const link = f.stated ? h("a", { href: `${base}book/reference/formulas.html#formula-${f.name.replaceAll("_", "-")}` }, `formula ${f.name}`) : h("span", {}, `formula ${f.name}, put together for these blocks`);
      body.append(h("p", { class: "pl-source" }, link, " · ", f.sources.flatMap((x, i) => (i ? ["; ", words.cited(x)] : [words.cited(x)]))));
      for (const x of f.inputs) if (x in answer.values) body.append(why(answer, x, state, depth + 1));
    };
    if (!depth) fill();
    return h("details", { open: !depth, ontoggle: (event) => { if (event.target.open) fill(); } }, h("summary", {}, head), body);
  }
  // Where a number comes from that no formula gives.
  function origin(letter, { plan, state, chosen }) {
    const small = (...x) => h("small", {}, "— ", ...x);
    if (letter in (chosen?.letters ?? {})) return small(letter in (state.fixed ?? {}) ? "chosen here" : "found by the search");
    if (letter in state.letters) return small(letter in state.usual ? "from the sentence" : "given here, in place of what is known");
    for (const [row, said] of [[plan.device, plan.device.name], [plan.model, plan.model.name]]) {
      const [kind, rest] = letter.split("_"), precise = `${kind}_${plan.precision}`;
      const key = ["flops", "efficiency"].includes(rest) && precise in row.letters ? precise : letter;
      if (!(key in row.letters)) continue;
      const [source, note] = row.sources[key] ?? [row.source, ""];
      return small(`${said}: `, source ? words.cited(source) : null, note ? `${source ? "; " : ""}${note}` : "");
    }
    const own = data.engines[state.engine];
    if (state.job === "serve" && own && letter in own.letters) { const [source, note] = own.sources[letter] ?? [own.source, ""]; return small(`${own.name}: `, words.cited(source), note ? `; ${note}` : ""); }
    return small("usual: what a call means that says nothing else");
  }

  // Assumptions: constants and usual values that the answer rests on.
  function assumptions(answer, job) {
    const targets = job === "train" ? ["step_time", "memory", "mfu"] : ["ttft", "tpot", "device_rate", "filled"];
    const list = engine.needed(answer.sheet, new Set(Object.keys(answer.given)), targets), names = new Set();
    for (const f of list) { if (!f.inputs.length) names.add(f.letter); for (const x of f.inputs) if (x in answer.given) names.add(x); }
    return [...names].filter((x) => x in answer.values);
  }
  return { figures, bars, table, layout, why, origin, assumptions, nameOf, range, reason, upper };
}
