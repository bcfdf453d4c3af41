// What an answer shows: whether it fits, four numbers, bars, neighbours, what would help, and the why of each number.

function planAnswer({ engine, cases, words, draw, base, likely, typeset }) {
  const { data } = engine, { h, show, unit, meaning, brief } = words;
  const upper = (x) => x.charAt(0).toUpperCase() + x.slice(1);

  // The chapter that derives a piece; what it is called, and its colour, the package says (display/meanings.py).
  const CHAPTERS = Object.fromEntries([
    ["3-multi-trillion/modelling-a-training-step", "step_forward step_backward step_head"],
    ["2-parallelism/mixed-precision-accumulation-recomputation", "step_again activation_memory"],
    ["2-parallelism/data-parallelism", "optimizer_time dp_exposed"],
    ["2-parallelism/tensor-parallelism", "tp_exposed"],
    ["1-scaling-compute/quadratic-attention", "cp_exposed"],
    ["2-parallelism/mixture-of-experts", "ep_exposed"],
    ["2-parallelism/pipeline-parallelism", "pp_exposed bubble_time"],
    ["3-multi-trillion/tensor-offloading", "offload_exposed"],
    ["2-parallelism/memory-of-a-sharded-model", "weight_memory gradient_memory optimizer_memory logits_memory"],
    ["2-parallelism/fully-sharded-data-parallelism", "buffer_memory"],
    ["4-inference/memory-wall-of-inference", "weights_time"],
    ["4-inference/a-step-kernel-by-kernel", "products_time cache_time reading_time streams_time launches_time engine_time"],
    ["4-inference/experts-when-few-tokens-come", "experts_time routing_time"],
    ["4-inference/jitter-and-more-devices", "exchange_time"],
    ["4-inference/capacity-pipelines-caches-prefixes", "held_weights workspace"],
    ["4-inference/the-wall-of-reinforcement-learning", "rollout_time rollout_tail reward_time logprob_time learning_time sync_time update_overhead"],
  ].flatMap(([place, letters]) => letters.split(" ").map((x) => [x, place])));
  const part = (x) => data.parts[x];
  const nameOf = (x) => part(x)?.[0] ?? brief(x), look = (x) => { const [, kind, shade] = part(x) ?? ["", "waiting", 1]; return `sb-${kind}-${shade}`; };
  const chapter = (x) => (CHAPTERS[x] ? h("a", { href: `${base}notebooks/${CHAPTERS[x]}.html`, class: "pl-chapter", "aria-label": `chapter on ${nameOf(x)}` }, "chapter") : null);
  function pieces(answer, letters) {
    return letters.filter((x) => answer.values[x] > 0).map((x) => ({ letter: x, name: nameOf(x), value: answer.values[x], look: look(x) }))
      .sort((a, b) => a.look.localeCompare(b.look));
  }
  const inputsOf = (answer, letter) => (answer.sheet.by.get(letter)?.inputs ?? []).filter((x) => unit(x) === unit(letter));

  // A quantity as people write it: money with its sign before it, shares in per cent.
  const amount = (letter, value, digits = 4, side = 0) => (unit(letter) === "$" ? `$${show(value, "", Math.min(digits, 3), side)}` : letter === "filled" ? show(value, "%", 3, side) : show(value, unit(letter), ["idle_share", "rollout_share", "rollout_wall", "staleness"].includes(letter) ? 3 : digits, side));
  // The sign of a number that rests on assumed cells, where `answer` says so.
  const about = (answer, letter) => (answer.rests?.(letter) ? "≈\u00a0" : ""), isCost = (x) => unit(x) === "$" || x === "run_energy";
  const priced = (answer, letter, digits) => `${isCost(letter) ? about(answer, letter) : ""}${amount(letter, answer.values[letter], digits)}`;
  // A number that opens its why.
  const num = (answer, letter, open, digits = 4) => h("button", { type: "button", class: "pl-num", "data-letter": letter, "aria-label": `${meaning(letter)}: ${priced(answer, letter, digits)}, why`, onclick: () => open(letter) },
    priced(answer, letter, digits).replace(/ tokens\/s$/, ""));

  // The range that eight of ten cases lie in: the package's own interval, drawn here as row.interval draws it.
  const RANGED = { train: ["step_time", "mfu", "memory", "run_time", "run_cost"], serve: ["ttft", "tpot", "device_rate", "million_cost"], rl: ["update_time", "update_rate", "update_cost"] };
  const ranges = (job, plan, answer) => likely(plan, answer, RANGED[job]);
  function range(found, letter) {
    if (!found[letter]) return null;
    const [low, high] = found[letter].map((x, i) => amount(letter, x, 3, i ? 1 : -1)), [number, ...rest] = low.split(" ");
    return rest.length && high.endsWith(` ${rest.join(" ")}`) ? `${number} to ${high}` : `${low} to ${high}`;
  }

  function figures(job, answer, open, found = {}) {
    const { values } = answer, likelyOf = (x) => (range(found, x) ? h("span", { class: "pl-range", title: "eight of ten cases lie between, by what measured rows say of each part" }, `likely ${range(found, x)}`) : null);
    const one = (letter, said, ...more) => h("div", {}, values[letter] === undefined ? h("b", { class: "pl-none" }, "–") : num(answer, letter, open), h("span", {}, said), h("small", {}, likelyOf(letter), ...more));
    if (job === "train") {
      const link = (x) => h("button", { type: "button", class: "pl-link", onclick: () => open(x) }, priced(answer, x)), capacity = values.hbm_capacity, left = capacity - values.memory;
      return h("div", { class: "pl-big" }, one("step_time", "a step", h("span", {}, link("train_rate"), `, ${show(values.train_rate / values.devices)} from each device`)), one("mfu", "model FLOPs utilisation"),
        one("memory", `of ${show(capacity, "B", 3)}, ${left >= 0 ? `${show(left, "B", 2)} left` : `${show(-left, "B", 2)} too much`}`),
        one("run_time", `for ${show(values.train_tokens, "token", 3)}${values.goodput < 1 ? ", with failures" : ""}`, ...(values.run_cost ? [h("span", {}, link("run_cost"), found.run_cost ? `, ${range(found, "run_cost")}` : "")] : [])));
    }
    if (job === "rl") return h("div", { class: "pl-big" }, one("update_time", "an update"), one("idle_share", "of the devices' time is waiting"), one("update_rate", "tokens a second are learnt from"), one("update_cost", values.update_cost === undefined ? "no price is known" : "an update"), one("rollout_share", values.staleness ? "of the devices write answers" : "should write, if some wrote while others learnt"),
      values.staleness ? one("staleness", "updates old is an answer on average") : one("rollout_wall", "devices: the wall"));
    return h("div", { class: "pl-big" }, one("ttft", "to the first token"), one("tpot", `a token: ${show(1 / values.tpot, "token/s", 3)} for each user`), one("device_rate", "tokens a second from each device"),
      values.million_cost !== undefined ? one("million_cost", "for a million output tokens") : one("filled", "of the memory that may be used", "no price is known: give one below"));
  }

  // The strongest of what was not given, each with the answer at its other ends.
  function strongest(list, job) {
    if (!list.length) return [];
    const of = { train: "a step", rl: "an update" }[job] ?? "a token", few = 3, said = (letter, x) => (letter === "engine" ? data.engines[x].name : typeof x === "string" ? told(x) : amount(letter, x, 3));
    const time = (x) => `${x.answer === null ? "none" : show(x.answer, "s", 3)}${x.ttft ? ` and ${show(x.ttft, "s", 3)} to the first token` : ""} ${x.ttft ? "with" : "at"} `;
    const lines = (some) => h("ul", { class: "pl-others" }, some.map(({ letter, value, source, ends }) => h("li", {}, `${upper((CALLED[letter] ?? brief(letter)).replace(/ \(.*/, ""))}: `, h("b", {}, said(letter, value)), h("small", {}, ` (${data.sources[source.split(" ")[0]]?.[0] ?? source})`), `; ${of} of `, ends.map((x, i) => `${i ? ", " : ""}${time(x)}${said(letter, x.value)}`))));
    return [h("h2", {}, "Assumed, and what else it would be"), lines(list.slice(0, few)), list.length > few ? h("details", { class: "pl-choice" }, h("summary", {}, `${list.length - few} more`), lines(list.slice(few))) : ""];
  }

  function bars(job, answer, open, stages) {
    const { values } = answer, found = [];
    const section = (title, ...more) => found.push(h("h2", {}, title), ...more);
    if (job === "train") {
      const memory = pieces(answer, inputsOf(answer, "train_memory"));
      section("Where the time goes", draw.bar(pieces(answer, inputsOf(answer, "step_time")), { unit: "s", label: "a step's time, piece by piece", open, chapter }));
      section(`Where the memory goes: stage ${show(values.stage ?? 1)} of ${show(values.pp)}, the fullest`, draw.bar(memory.length ? memory : [{ letter: "memory", name: "memory", value: values.memory, look: "sb-memory-0" }],
        { unit: "B", label: "memory of the fullest stage, piece by piece", capacity: values.hbm_capacity, capacityName: "capacity", open, chapter }));
      if (stages.length > 1) {
        const held = stages.map((x) => ({ total: x.values.train_memory, pieces: pieces(x, inputsOf(x, "train_memory")), go: () => open("train_memory", x) })), totals = held.map((x) => x.total);
        found.push(h("p", { class: "pl-soft" }, `All ${stages.length} stages, the first on the left, from ${show(Math.min(...totals), "B", 3)} to ${show(Math.max(...totals), "B", 3)}; the line is the capacity.`), draw.columns(held, values.hbm_capacity, "memory of each stage"));
      }
    } else if (job === "rl") {
      const piece = (letter, value = values[letter], name = nameOf(letter)) => ({ letter, name, value, look: look(letter) }), learnt = ["learning_time", "logprob_time", "reward_time", "sync_time", "update_overhead"].map((x) => piece(x)), { rollout_time: all, rollout_tail: tail } = values;
      const time = (title, own, more) => section(title, draw.bar(own.filter((x) => x.value > 0), { unit: "s", label: title, open, chapter, ...more })), whole = { capacity: values.update_time, capacityName: "an update" };
      if (tail) time("Where the time of an update goes", [piece("rollout_time", Math.max(0, all - tail), "answers, but for the longest"), piece("rollout_tail", Math.min(all, tail)), ...learnt]);
      else { time("Where the time of the engines goes", [piece("rollout_time")], whole); time("Where the time of the learners goes", learnt, whole); }
    } else {
      section("Where the time of a token's step goes", draw.bar(pieces(answer, inputsOf(answer, "pass_time")), { unit: "s", label: "a decoding step, piece by piece", open, chapter }));
      const usable = values.hbm_capacity * values.cache_share, caches = values.filled * usable - values.held_weights - values.workspace;
      const held = [["held_weights", values.held_weights], ["workspace", values.workspace], ["kv_cache", caches]].filter(([, x]) => x > 0).map(([letter, value]) => ({ letter: letter === "kv_cache" ? "filled" : letter, name: nameOf(letter), value, look: look(letter) }));
      section("Where the memory of a device goes", draw.bar(held, { unit: "B", label: "memory of a device, piece by piece", capacity: usable, capacityName: "what the engine may use", open, chapter }));
    }
    return found;
  }

  // Whether a step fits, with what it holds: as scalebook.answers.answer says it, the end of memory's range included.
  function fit(plan, answer) {
    const { memory, hbm_capacity: all, offload_memory: away, host_capacity: host } = answer.values, margin = plan.letters.memory_margin ?? data.margins.memory, b = (x) => show(x, "B"), wide = memory * (1 + margin);
    const [held, most, of] = memory > all ? [memory, all, ""] : [away, host, " of the host's memory"];
    if (held > most) return ["It does not fit.", `It needs at least ${b(held)}${of} on each device, which has ${b(most)}.`];
    const end = memory > 0.8 * all ? likely(plan, answer, ["memory"]).memory?.[1] : 0, room = end > all ? `; the upper end of its range, ${b(end)}, does not fit.` : wide > all ? `; with a margin of ${show(margin, "%", 2)} it is ${b(wide)}.` : `, ${show(all - memory, "B", 2)} free.`;
    return [wide > all ? "It fits, but not with its margin." : memory / all > 0.9 ? "It fits, tightly." : "It fits.", `${b(memory)} of ${b(all)} on each device${room}`];
  }
  // Why most layouts, or the only one, break a rule: by the letter that it is about, what cannot be shared equally.
  const SHARED = { tp: "devices|a layer", etp: "devices|a layer", cp: "devices|a sequence", pp: "stages|the layers", chunks: "stages|the layers", ep: "devices|the experts", batch: "copies|the batch", global_batch: "copies|the batch" };
  function broken(job, name, count) {
    const [among, what] = SHARED[data.rules[job].find((x) => x.name === name)?.letter]?.split("|") ?? [];
    return name === data.beyond ? "" : what && `${count > 1 ? "Most layouts fail" : "This layout fails"} because ${name === "tp within scaleup_size" ? "they split a layer over more devices than one fast network joins" : `${what} cannot be shared out equally among the ${among}`}.`;
  }
  // A layout in few words.
  const NAMES = { zb_h1: "zero bubble H1", zb_h2: "zero bubble H2", zb_v: "zero bubble V", dualpipe: "DualPipe", dualpipe_v: "DualPipeV", gpipe: "GPipe", "1f1b": "1F1B", zero1: "ZeRO-1", zero2: "ZeRO-2", zero3: "ZeRO-3" };
  const named = (x) => NAMES[x] ?? `${x}`.replaceAll("_", " ");
  const CALLED = { tp: "tensor ways", cp: "context ways", ep: "expert ways", pp: "pipeline stages", batch: "micro-batch", chunks: "chunks a stage", attention_dp: "groups that attend apart", replicas: "copies of the model",
    recompute: "run again", attention: "attention", context_exchange: "context", sharding: "sharding", schedule: "schedule", exchange: "messages" };
  const WORD = { best: "the best of these", none: "nothing", selective: "attention", full: "everything", layernorm: "norms", mla_up_proj: "up-projections of MLA", moe_act: "activation of the experts", moe: "experts", mlp: "feed-forward layers", flash: "one kernel", unfused: "scores written out", gather: "gathered", all_to_all: "all-to-all", all_reduce: "all-reduce" }, told = (x) => WORD[x] ?? named(`${x}`.split(",").map((y) => WORD[y] ?? y).join(", "));
  // A step away from a layout: ways and counts by their letters, words as they are said.
  const step = (said) => said.split(", ").map((one) => { const [name, from, , to] = one.split(" "); return /^\d+$/.test(from) ? one.replaceAll("_", " ") : `${CALLED[name]}: ${told(from)} → ${told(to)}`; }).join(", ");
  function layout(chosen, job) {
    const said = Object.entries(chosen.letters).filter(([n, x]) => x > 1 || n === "tp").map(([n, x]) => `${n.replace("attention_dp", "attention dp")} ${show(x)}`);
    const { recompute, sharding, schedule, exchange, attention, context_exchange: gathered } = chosen.words;
    const extra = job === "train" ? [sharding?.replace(/zero(\d)/, "ZeRO-$1"), chosen.letters.pp > 1 ? named(schedule) : "", { none: "", full: "all run again" }[recompute] ?? (recompute ? `${recompute.includes(",") ? "modules" : told(recompute)} run again` : ""), chosen.words.trained === "lora" ? "LoRA" : "",
      attention === "unfused" ? "scores written out" : "", gathered === "all_to_all" && chosen.letters.cp > 1 ? "context by heads" : ""] : [exchange && chosen.letters.tp * chosen.letters.attention_dp > 1 ? exchange.replaceAll("_", "-") : ""];
    return [...said, ...extra.filter(Boolean)].join(" · ");
  }
  // The same for who does not know the letters.
  const SPOKEN = { tp: "each layer split over # devices", cp: "each sequence over #", ep: "the experts over #", pp: "the layers dealt to # stages", chunks: "in # chunks each", dp: "# copies that share the batch", replicas: "# copies of the model", attention_dp: "# groups that attend apart", batch: "# sequences at a time",
    zero1: "each copy stores only its part of the optimizer state (ZeRO-1)", zero2: "each copy stores only its part of the gradients and the optimizer state (ZeRO-2)", zero3: "each copy stores only its part of the weights, the gradients and the optimizer state (ZeRO-3)" };
  function spoken({ letters, words }) {
    const all = Object.keys(SPOKEN).filter((n) => letters[n] > 1 || (n === words.sharding && letters.dp > 1)).map((n) => SPOKEN[n].replace("#", show(letters[n])) + (/^.p$|_dp/.test(n) ? ` (${n.replace("_", " ")})` : ""));
    return all.length ? `That is: ${all.join(", ")}.` : "";
  }
  // What a search goes through.
  function searched({ letters, words: all }) {
    const either = (x) => (x.length < 2 ? `${x}` : `${x.slice(0, -1).join(", ")} or ${x.at(-1)}`);
    const ways = Object.entries(letters).filter(([, x]) => x.length > 1).map(([n, x]) => `${CALLED[n]} ${x.length > 4 ? `${show(Math.min(...x))} to ${show(Math.max(...x))}` : either([...x].sort((a, b) => a - b).map((y) => show(y)))}`);
    const choices = Object.entries(all).filter(([, x]) => x.length > 1).map(([n, x]) => `${CALLED[n] ?? n} ${either(x.map(told))}`);
    return [...ways, ...choices].join("; ");
  }
  // What a framework hides and fuses, or that none was named.
  function assumed(plan) {
    if (plan.job !== "train") return plan.engine === data.usual.engine ? "The engine is ideal: its host takes no time. Name yours for the times of a real one." : "";
    const isChosen = cases.overlaps.some((x) => x in plan.letters), { dp_overlap: dp = 0, tp_pieces: tp = 0, element_passes: passes = 1, block_launch: launch = 0, block_wait: wait = 0 } = { ...cases.framework(plan), ...plan.letters };
    const shared = (x) => (x === 1 ? "all" : x ? `${show(100 * x)} %` : "none"), overlapped = `${shared(dp)} of the data-parallel and ${shared(tp)} of the tensor-parallel collectives are overlapped`;
    if ((plan.framework ?? "unnamed") === "unnamed") return isChosen ? `Chosen here: ${overlapped}. No framework is named, so kernels are half-way between fused and eager. Name yours for a narrower answer.` : "No framework is named, so this is half-way between two ends: everything hidden behind arithmetic and fused, or nothing hidden and every kernel eager. Name yours for a narrower answer.";
    const steps = cases.isEager(plan) ? "run one by one (eager)" : passes > 1 ? `cause ${show(passes)} times the memory traffic of fused ones` : "are fused";
    const host = [launch && `takes at least ${show(launch, "s")} to launch a block`, wait && `adds ${show(wait, "s")} to a block`].filter(Boolean);
    return `${isChosen ? `Chosen here: ${overlapped}. Assumed of this framework:` : `Assumed of this framework: ${overlapped};`} element-wise steps ${steps}; the host ${host.join(" and ") || "adds no time"}.${cases.leavesSequence(plan) ? " Sequence parallelism is on here, though this framework has it off by default." : ""}`;
  }
  const SAID = { tpot: "a token", ttft: "first token" };
  function reason(row) {
    if (row.why) return row.why;
    if (row.over) { const [letter, x, name, most, relation, margin] = row.over; return `${{ memory: "memory", tpot: "a token", ttft: "first token" }[letter] ?? meaning(letter)}: ${show(x, unit(letter), 3)}${margin} is ${relation === "<=" ? "above" : "below"} ${name ? "the device's " : ""}${show(most, unit(letter), 3)}`; }
    if (row.value === null) return row.missing?.outside ? `it holds for ${row.missing.outside.words} only` : "weights and caches do not fit";
    return row.parts.map(([x, by]) => `${SAID[x] ?? nameOf(x)} ${by > 0 ? "+" : "−"}${show(Math.abs(by), unit(x), 3).replaceAll(" ", "\u00a0")}`).join(", ") || "nothing changes";
  }
  const same = (a, b) => JSON.stringify([a.letters, a.words]) === JSON.stringify([b.letters, b.words]);
  function table(job, result, rows, take, openOf, answer) {
    const [axis, also] = result.axes, second = (x) => about(answer, also) + show(x, unit(also), 3), own = result.best[0], best = own.values[axis];
    const asked = (said, chosen, letter) => (chosen && said && said !== "–" ? h("button", { type: "button", class: "pl-link pl-plain", "aria-label": `${said}: why`, onclick: () => openOf(chosen, letter) }, said) : said);
    const line = (label, value, second, why, chosen, me) => h("tr", { class: me ? "pl-me" : undefined }, h("th", { scope: "row" }, chosen && !me ? h("button", { type: "button", class: "pl-link", onclick: () => take(chosen) }, label) : label),
      h("td", {}, asked(value, chosen, axis)), h("td", {}, asked(second, chosen, job === "train" ? "memory" : also)), h("td", { class: "pl-why-not" }, why));
    const by = (value) => (value === null ? "–" : `${value >= best ? "+" : "−"}${show(Math.abs(value / best - 1), "%", 2)}`);
    return h("div", { class: "pl-scroll", tabindex: 0, role: "region", "aria-label": "best layouts and neighbours" }, h("table", { class: "pl-near" }, h("thead", {}, h("tr", {}, ["layout, or one step away from the best", { step_time: "step", device_rate: "tokens/s a device", million_cost: "a million tokens", devices: "devices" }[axis], job === "train" ? "memory" : "a token", "what changes, or why not"].map((x, i) => h("th", { scope: "col", class: i === 3 ? "pl-why-not" : undefined }, x)))),
      h("tbody", {}, line(layout(own, job), about(answer, axis) + amount(axis, best), second(own.values[also]), "the best", own, true),
        result.best.slice(1, 6).filter((x) => !rows.some((y) => same(x, y))).slice(0, 2).map((x) => line(layout(x, job), by(x.values[axis]), second(x.values[also]), "another of the best", x)),
        rows.slice(0, 14).map((x) => line(step(x.said), by(x.value), x.second ? second(x.second) : "", reason(x), x.value === null ? null : { letters: x.letters, words: x.words })))));
  }

  // Why: the formula, with letters and with numbers, its source, and the same of all that it is made of.
  function why(answer, letter, state, depth = 0, seen = new Set()) {
    const f = answer.sheet.by.get(letter), value = answer.values[letter], isFormula = f && !(letter in answer.given);
    const head = h("span", {}, `${upper(meaning(letter))} \\(${words.letter(letter)}\\): `, h("b", {}, amount(letter, value)));
    if (!isFormula) return h("div", { class: "pl-leaf" }, head, " ", origin(letter, state));
    const body = h("div", { class: "pl-body" }), fill = () => {
      if (body.childElementCount) return;
      const small = words.sizeOf(f.root) < 220;
      if (f.doc) body.append(h("p", {}, f.doc));
      if (small) {
        const filled = words.terms(f.root, (x) => words.number(answer.values[x], x), " \\cdot "), end = [words.number(value, letter)], isPlain = !f.inputs.length || `${filled}` === `${end}`;
        body.append(h("div", { class: "pl-math", tabindex: 0, role: "group", "aria-label": `formula of ${meaning(letter)}` }, words.equation(words.letter(letter), words.terms(f.root, words.letter), ...(isPlain ? [] : [filled, end]))));
      } else body.append(h("p", { class: "pl-soft" }, "A sum over all kernels of the blocks, too long to be set here; what it is made of stands below."));
      for (const x of f.domain) body.append(h("p", { class: "pl-soft" }, `It holds for ${x.words}.`));
      const link = f.stated ? h("a", { href: `${base}book/reference/formulas.html#formula-${f.name.replaceAll("_", "-")}` }, `formula ${f.name}`) : h("span", {}, "formula put together for these blocks");
      body.append(h("p", { class: "pl-source" }, link, " · ", f.sources.flatMap((x, i) => (i ? ["; ", words.cited(x)] : [words.cited(x)]))));
      for (const x of f.inputs) if (x in answer.values) body.append(why(answer, x, state, depth + 1));
      if (depth) typeset(body);
    };
    if (!depth) fill();
    return h("details", { open: !depth, ontoggle: (event) => { if (event.target.open) fill(); } }, h("summary", {}, head), body);
  }
  // Where a number comes from that no formula gives.
  function origin(letter, context) {
    const [said, source, note] = cases.from(letter, context);
    return h("small", {}, `— ${said}`, source || note ? ": " : "", source ? words.cited(source) : null, note ? `${source ? "; " : ""}${note}` : "");
  }

  // Assumptions: constants and usual values that the answer rests on.
  function assumptions(answer, job) {
    const targets = job === "train" ? ["step_time", "memory", "mfu"] : job === "rl" ? ["update_time"] : ["ttft", "tpot", "device_rate", "filled"];
    const list = engine.needed(answer.sheet, new Set(Object.keys(answer.given)), targets), names = new Set();
    for (const f of list) { if (!f.inputs.length) names.add(f.letter); for (const x of f.inputs) if (x in answer.given) names.add(x); }
    if (job === "rl") for (const x of [...data.rl.own, ...Object.keys(data.rl.unsaid)]) names.add(x);
    return [...names].filter((x) => x in answer.values);
  }
  return { fit, broken, about, strongest, priced, searched, num, figures, bars, table, layout, spoken, assumed, named, CALLED, told, amount, why, origin, assumptions, nameOf, ranges, range, reason, upper };
}
