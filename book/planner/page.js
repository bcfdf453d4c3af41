// The planner's page: a sentence that is the form, and below it the answer.

// A page that loads the data of all models, from the script `file`, when one is asked for that it lacks.
function planPages(root, text, options, file) {
  const load = () => new Promise((done, fail) => { const script = document.createElement("script"); Object.assign(script, { src: file, onload: () => done(globalThis.scalebookPlanned), onerror: fail }); document.head.append(script); });
  let page = planPage(root, JSON.parse(text), text, { ...options, whole: () => load().then((all) => { page.close(); page = planPage(root, JSON.parse(all), all, options); }) });
}

function planPage(root, data, text, { base, linked, whole, state: given, typeset = (node) => globalThis.scalebook?.typeset?.(node) }) {
  const worker = planWorker([planEngine, planCases, planPools, planUpdates, planSessions, planSearch, planLikely, planAssumed, rateOf, planChanges, planMarket, planTasks], data, text);
  const engine = planEngine(data), cases = planCases(engine), words = planWords(engine), rows = planRows(engine, words, cases), draw = planDraw(words);
  const { likely } = planLikely(engine, { spreadOf, cases }), states = planState({ engine, cases, words, rows }), view = planAnswer({ engine, cases, words, draw, base, likely, typeset }), searching = planSearch(cases);
  const { h, show, unit, meaning, brief } = words;
  let state = states.copy(states.START.train), answer, chosen, result, near = [], helped = null, along = [], beside = [], spread = {}, rests = [], asked = "", turn = 0, changed = false;
  let isClosed = false, curveOf = { x: "devices", y: "step_time" };

  // Places
  const place = (name, tag = "div", more = {}) => h(tag, { class: `pl-${name}`, ...more });
  const shut = (e) => { if (e.key === "Escape") { e.preventDefault(); e.currentTarget.close(); } }; // the site's theme takes the key for its search
  const at = { ask: place("ask"), pick: place("pick", "div", { hidden: true }), said: place("said", "p", { role: "status" }), verdict: place("verdict", "div", { "aria-live": "polite" }), layout: place("layout"), main: place("main", "section", { "aria-label": "answer" }),
    aside: place("aside", "section", { "aria-label": "what binds, curves and assumptions" }), why: h("dialog", { class: "pl-why", tabindex: -1, "aria-label": "why", onkeydown: shut }), out: h("dialog", { class: "pl-out", "aria-label": "text to copy", onkeydown: shut }) };
  const part = Object.fromEntries(["market", "figures", "rests", "costs", "bars", "table", "pools", "compare", "buttons", "binds", "curve", "trust", "assume"].map((x) => [x, place(x)]));
  part.binds.tabIndex = -1;
  at.main.append(part.market, part.figures, part.rests, part.costs, part.bars, part.table, part.pools, part.compare, part.buttons);
  at.aside.append(part.binds, part.curve, part.trust, part.assume);
  root.replaceChildren(h("div", { class: "pl" }, at.ask, at.pick, at.said, at.verdict, at.layout, h("div", { class: "pl-grid" }, at.main, at.aside), at.why, at.out));

  // The sentence
  const { field, menu, pill, pick, layout, options } = planForm({ states, cases, words, view, rows, engine, data, at, current: () => state, taken: (kind, x, precision) => { if (kind === "model" && (data.others[x] || x.elsewhere)) { history.replaceState(null, "", states.write({ ...state, model: x, fixed: {} })); elsewhere(data.others[x] ?? x.name); return; } if (kind === "device") delete state.any; if (x === "any") state.any = true; else state[kind] = x; state.precision = precision ?? state.precision; settle(); sentence(); update(); }, update: () => update(), say: (x) => say(x) });
  function sentence() {
    const { job } = state, named = (x, table) => (typeof x === "string" ? table[x].name : x.name), precision = menu(states.precisions(state).map((x) => [x, x]), state.precision, "precision", (x) => { state.precision = x; update(); });
    const verb = menu([["train", "Train"], ["serve", "Serve"], ["agents", "Run agents with"], ["rl", "Train by reinforcement"]], job, "train, serve, run agents or train by reinforcement", (x) => { state = states.copy(states.START[x]); sentence(); update(); });
    const keep = (...x) => h("span", { class: "pl-keep" }, ...x), loop = job === "serve" && menu([["users", "users"], ["rate", "requests a second"]], "rate" in state.letters ? "rate" : "users", "users or requests a second", turned);
    const model = pill(named(state.model, data.models), "model", () => pick("model")), device = pill(state.any ? "any device" : named(state.device, data.devices), "device", () => pick("device"));
    const label = (x) => x.getAttribute("aria-label").split(":")[0], had = at.ask.contains(document.activeElement) && label(document.activeElement);
    const served = [" in ", precision, " with ", keep(menu(Object.entries(data.engines).map(([k, x]) => [k, x.name]), state.engine, "engine", (x) => { state.engine = x; update(); }), ","), " first token within ", keep(field("ttft", state.targets, false), ","), " ", field("tpot", state.targets, false), " a token", ...(job === "serve" ? drafts(keep) : []), "."];
    const calls = (k, x) => (k === "unnamed" ? "no framework named" : x.name); // a menu does not break a long name over two lines, but a text does
    const frameworkOf = (all) => keep(h("span", { class: "pl-field pl-wide" }, h("span", { "aria-hidden": "true" }, calls(state.framework, data.frameworks[state.framework])), menu(all.map(([k, x]) => [k, calls(k, x)]), state.framework, "framework", (x) => { state.framework = x; state.fixed = {}; if (data.frameworks[x].words.placement === "apart") state.letters.age ||= 1; sentence(); update(); })), ","), programs = Object.entries(data.frameworks).filter(([, x]) => x.words.engine);
    at.ask.replaceChildren(h("p", {}, ...(job === "rl" ? [verb, " ", model, " on ", field("devices"), " × ", keep(device, ","), " in ", precision, " with ", frameworkOf(programs), " from ", field("responses"), " answers an update of ", field("response"), " tokens (spread ", keep(field("response_spread", state.letters, false), ","), " at most ", keep(field("response_most"), "),"), " learnt from ", ...aged(keep)] : job === "agents" ? [verb, " ", keep(model, ":"), " ", field("sessions"), " sessions of ", field("turns"), " turns, each of ", field("appended"), " new (spread ", keep(field("prompt_spread", state.letters, false), ")"), " and ", field("output"), " written tokens (spread ", keep(field("answer_spread", state.letters, false), ")"), " after a shared prefix of ", keep(field("prefix"), ","), " with pauses of ", field("pause", state.letters, false), " (spread ", keep(field("pause_spread", state.letters, false), "),"), " on at most ", field("devices"), " × ", device, ...served] : job === "train"
      ? [verb, " ", model, " on ", field("devices"), " × ", keep(device, ","), " batch ", field("global_batch"), " × ", field("seq"), " tokens, in ", precision, " with ", frameworkOf(Object.entries(data.frameworks).filter(([k, x]) => ![...data.ends, "plain"].includes(k) && !x.words.engine)), " for ", field("train_tokens", state.letters, false), " tokens."]
      : [verb, " ", model, ...("rate" in state.letters ? [" at ", field("rate", state.letters, false)] : [" to ", field("users")]), " ", loop, " of ", field("prompt"), " + ", field("output"), " tokens on at most ", field("devices"), " × ", device, ...served])));
    if (had) [...at.ask.querySelectorAll("[aria-label]")].find((x) => label(x) === had)?.focus({ preventScroll: true });
  }

  // Drafted tokens that each step checks, or none; a model's own row of drafts says how many and how good they are.
  function drafts(keep) {
    const { letters } = state, { drafted = 3, acceptance = 0.8 } = data.drafts[cases.draftsOf(state.model)[0]]?.letters ?? {}, isOn = "drafted" in letters;
    const choice = menu([["", "no drafts"], ["on", "drafts"]], isOn ? "on" : "", "drafts or none", (x) => { if (x) Object.assign(letters, { drafted, acceptance }); else { delete letters.drafted; delete letters.acceptance; } sentence(); update(); });
    return [" with ", ...(isOn ? [choice, ": ", field("drafted"), " a step, ", keep(field("acceptance", letters, false), " right")] : [choice])];
  }

  // Of an update: how old its answers are, which devices write them, and how the model is split there.
  function aged(keep) {
    const { letters, rollout, training } = state, few = (own, all) => [...new Set([...all, own])].sort((a, b) => a - b), ways = { tp: "tensor", cp: "context", pp: "pipeline", ep: "expert" };
    const share = menu([["", "the best share"], ...few(letters.rollout_share ?? 0.5, [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875]).map((x) => [`${x}`, show(x, "%", 3)])], `${letters.rollout_share ?? ""}`, "share of the devices that write", (x) => { if (x) letters.rollout_share = Number(x); else delete letters.rollout_share; update(); });
    const split = (which, own) => { const all = Object.keys(own).filter((x) => x !== "ep" || states.model(state.model).letters.experts); return [` ${which}: `, all.map((x, i) => [keep(field(x, own, true, () => {}, `${ways[x]} ways of ${which.toLowerCase()}`), ` ${ways[x]}${i < all.length - 1 ? "," : " ways."}`), " "])]; };
    return [keep(menu(few(letters.age, [0, 1, 2, 4, 8]).map((x) => [`${x}`, x ? `when ${show(x)} update${x === 1 ? "" : "s"} old` : "at once, by the same devices"]), `${letters.age}`, "age of the answers", (x) => { letters.age = Number(x); sentence(); update(); }), "."), letters.age ? [" Of the devices ", share, " write."] : "", split("Engines", rollout), split("Learners", training)];
  }

  // A model whose formulas are in the page's second file.
  function elsewhere(name) {
    say(`The formulas of ${name} are being loaded.`);
    whole().catch(() => say(`The formulas of ${name} could not be loaded: ask training_step or serve in Python.`));
  }

  // From users to the rate that they ask for, and back.
  function turned(to) {
    const { letters } = state, known = answer?.sheet.by.has("request_rate") ? answer.values : {};
    if (to === "rate") { letters.rate = Number((known.request_rate ?? 20).toPrecision(2)); delete letters.users; }
    else { letters.users = known.users ?? 64; delete letters.rate; delete state.pools; }
    curveOf = { x: to, y: to === "rate" ? "million_cost" : "tpot" };
    sentence();
    update();
  }

  // What no longer fits with another model or device goes.
  function settle() {
    if (!states.precisions(state).includes(state.precision)) state.precision = states.nearest(state);
    state.fixed = {};
    delete state.pools;
    const keep = states.usual(state.job);
    for (const x of Object.keys(state.letters)) if (!(x in keep) && !states.isKept(x)) delete state.letters[x];
  }
  const remember = () => { if (linked) history.replaceState(null, "", states.write(state)); };
  const say = (said) => { at.said.textContent = said; };

  // The answer: the best layout, found by a search, then what stands beside it.
  const task = (n) => (x) => (n === turn ? x : new Promise(() => {}));
  async function update() {
    const now = ++turn, only = task(now);
    if (changed) remember();
    changed = true;
    say("");
    root.firstChild.setAttribute("aria-busy", "true");
    const bar = h("progress", { max: 1, value: 0, "aria-label": "search" }), count = h("span", {}, "searching"), timer = setTimeout(() => { if (now === turn) at.verdict.replaceChildren(bar, " ", count, " ", h("button", { type: "button", class: "pl-btn", onclick: stop }, "stop")); }, 250);
    let last = null, here = null;
    const stop = () => { worker.stop(); if (last?.best.length) settleOn({ ...last, stopped: true }); else if (state.any) { delete state.any; settle_(); } };
    const settleOn = (found) => { clearTimeout(timer); if (now === turn) finish(here, found, now); };
    try {
      if (state.job === "agents") { await sessions(only, (x) => { if (x.services.length) clearTimeout(timer); bar.value = x.share; count.textContent = `${x.services.length} services found so far`; }); clearTimeout(timer); root.firstChild.removeAttribute("aria-busy"); return; }
      if (state.job === "rl") { clearTimeout(timer); await learnt(only); return; }
      if (states.question(state) !== asked) part.market.replaceChildren();
      if (state.any) await everywhere(only, () => now === turn, count, bar);
      const plan = states.plan(state);
      here = plan;
      settleOn(await worker.ask("search", { plan }, (x) => { last = x; bar.value = x.share; count.textContent = `${words.grouped(x.count)} strategies priced so far`; }).then(only));
    } catch (error) { clearTimeout(timer); root.firstChild.removeAttribute("aria-busy"); show_nothing(error.message); }
  }
  // Agents: first the service that was the best before, then all of this device and engine, then others.
  let before = null;
  async function sessions(only, told) {
    const shown = (found, isDone) => { const of = agents.paint(found, isDone); if (of) { ({ answer, chosen } = of); [before] = found.services; } };
    const found = await worker.ask("agents", { plan: { ...states.plan(state), before } }, (x) => { told(x); if (x.services.length && (x.isSearched || x.services.length === 1)) Promise.resolve(only(x)).then((y) => shown(y, false)); }).then(only);
    if (state.any && found.devices[0].device && !found.devices[0].why) state.device = found.devices[0].device;
    shown(found, true);
  }
  // An update: the numbers first, then their ranges, and from the worker what is assumed and what changes would give.
  async function learnt(only) {
    const plan = states.plan(state), none = { letters: {}, words: {} };
    at.layout.replaceChildren();
    [answer, chosen, spread, rests, helped] = [solve(plan, none), none, {}, [], null];
    for (const x of Object.values(part)) x.replaceChildren();
    if (answer.why) show_nothing(answer.why);
    else {
      const ranged = learning.paint(plan);
      setTimeout(() => ranged(spread = view.ranges("rl", plan, answer)));
      assume(plan, only);
    }
    root.firstChild.removeAttribute("aria-busy");
    const shown = (x) => { if (!answer.why) learning.along(x); if (x.changes.length) learning.changes(x.changes); };
    shown(await worker.ask("updates", { plan }, (x) => Promise.resolve(only(x)).then(shown)).then(only));
  }
  // What an answer assumes, from the worker.
  function assume(plan, only) {
    worker.ask("assumed", { plan, chosen }).then(only).then(({ list }) => { rests = list; part.rests.replaceChildren(...view.strongest(list, state.job)); }).catch(() => {});
  }
  // Every device is asked; the best of them is then the one that is answered for.
  async function everywhere(only, isNow, count, bar) {
    const found = states.question(state) === asked ? bought : await worker.ask("market", { plan: states.plan(state, { fixed: {} }) }, (x) => { bar.value = x.rows.length / x.of; count.textContent = `${x.rows.length} of ${x.of} devices`; if (isNow()) devices.paint(x); }).then(only);
    [asked, bought] = [states.question(state), found];
    if (found.rows[0]?.chosen) state.device = found.rows[0].device;
    if (changed) remember();
    devices.paint(found);
  }
  let bought = null;
  const clear = () => { for (const [x, y] of Object.entries(part)) if (x !== "market") y.replaceChildren(); };
  function show_nothing(why) {
    at.verdict.replaceChildren(h("p", { class: "pl-bad" }, `${view.upper(why)}.`));
    clear();
  }
  function solve(plan, layout) {
    const found = cases.of(plan.job).answer(plan, layout);
    const all = { ...found, laid: layout, given: cases.used(found.sheet, found.known) };
    return { ...all, rests: (letter) => cases.isAssumed(plan, all, letter) };
  }
  const isOpen = (name) => at.layout.querySelector(`details.${name}`)?.open;
  const choices = (plan) => at.layout.replaceChildren(...(state.job === "train" ? [options(isOpen("pl-options"))] : []), layout(searching.space({ ...plan, fixed: {} }), result.best[0], isOpen("pl-laid")));
  async function finish(plan, found, now) {
    result = found;
    choices(plan);
    root.firstChild.removeAttribute("aria-busy");
    near = along = rests = [];
    helped = null;
    spread = {};
    if (!found.best.length) { await nothing(plan, now); return; }
    chosen = found.best[0];
    answer = solve(plan, chosen);
    verdict(plan);
    paint(plan);
    const only = task(now);
    worker.ask("neighbours", { plan, chosen }).then(only).then((x) => { near = x; part.table.replaceChildren(...best()); });
    help(plan, only);
    pools(plan, only);
    points(plan, only);
    compare(plan, only);
  }
  // What was left out for a network that is not known.
  function unreached(plan) {
    const known = { ...plan.device.letters, ...plan.letters }, most = cases.reach(known), left = result.rejected[data.beyond];
    if (!left) return "";
    return ` ${words.grouped(left)} over ${most > 1 ? `more than ${most} devices` : "several devices"} are left out, since ${plan.device.name} has no ${cases.either(cases.NETWORK.filter((x) => known[x] === undefined))}.`;
  }
  function verdict(plan) {
    const seconds = ` in ${result.seconds >= 0.01 ? show(result.seconds, "s", 2) : "less than 10 ms"}`, out = Object.values(result.rejected).reduce((a, b) => a + b, 0) - (result.count - result.fitting);
    const pinned = Object.keys(state.fixed).length ? [" ", h("button", { type: "button", class: "pl-btn", onclick: () => { state.fixed = {}; update(); } }, "search all layouts again")] : [];
    const among = view.searched(searching.space(plan)), { filled, max_users: most } = answer.values, [how, room] = state.job === "train" ? view.fit(plan, answer)
      : [`It fits${filled > 0.9 ? ", tightly" : ""}, and keeps to the targets.`, `${show(filled, "%", 2)} of the memory that may be used${most < 1e9 ? `; ${show(Math.floor(most))} users have room` : ""}.`];
    at.verdict.replaceChildren(h("p", {}, h("b", { class: "pl-good" }, how), " ", room, ` ${result.stopped ? "Best so far" : "Best"}${state.any ? ` of all, on ${plan.device.name}` : ""}: `, h("b", {}, view.layout(chosen, state.job)), state.job === "serve" ? `, by ${show(answer.values.devices)} device${answer.values.devices > 1 ? "s" : ""} and ${show(answer.values.users)} users at a time` : "", h("span", { class: "pl-hidden" }, state.job === "train" ? `, ${show(answer.values.step_time, "s")} a step` : `, ${show(answer.values.tpot, "s")} a token`),
      h("small", { class: "pl-spoken" }, view.spoken(chosen)), h("small", { class: "pl-spoken" }, view.assumed(plan)), h("small", { class: "pl-counted" }, `The best of ${words.grouped(result.count + out)} ${result.count + out === 1 ? "strategy" : "strategies"} on ${state.job === "serve" ? "at most " : ""}${show(plan.letters.devices)} devices${among && ` (${among})`}, gone through${seconds}: ${out ? `${words.grouped(result.count)} can run and were priced, ${words.grouped(out)} cannot` : "all were priced"}.${unreached(plan)}`), pinned));
  }

  // Nothing fits: the smallest change that would do.
  async function nothing(plan, now) {
    clear();
    chosen = null;
    side.buttons();
    const lacking = cases.lacking(plan), { h100 } = data.devices;
    if (lacking.length) {
      const cells = lacking.map((x) => `${brief(x)} (${x})`), take = lacking.every((x) => x in h100.letters) ? h("button", { type: "button", class: "pl-btn", onclick: () => { for (const x of lacking) state.letters[x] = h100.letters[x]; update(); } }, `take ${lacking.length === 1 ? "it" : "them"} from ${h100.name}`) : null;
      at.verdict.replaceChildren(h("p", { class: "pl-bad" }, h("b", {}, "It cannot be said."), ` Of ${plan.device.name} is not known: ${cells.join(", ")}. `, take));
      return;
    }
    const only = task(now), isServed = state.job === "serve", list = h("ul", {});
    const find = async ({ letters, ...more }) => (await worker.ask("search", { plan: { ...plan, ...more, letters: { ...plan.letters, ...letters } } }).then(only)).best[0];
    // A change of the plan is offered if a layout goes with it.
    const offer = async (said, more) => {
      const found = await find(more), take = () => { const { letters, ...rest } = more; Object.assign(state, rest); Object.assign(state.letters, letters); sentence(); update(); };
      if (found) list.append(h("li", {}, `${said}: `, h("b", {}, view.layout(found, state.job)), " ", h("button", { type: "button", class: "pl-btn", onclick: take }, "do that")));
      return found;
    };
    // What a strategy that can run is held to says more than what no such layout can do.
    const rank = (x) => (/[<>]=/.test(x) ? 0 : x === "a formula holds" ? 1 : 2), all = Object.entries(result.rejected);
    const most = all.sort(([a, x], [b, y]) => rank(a) - rank(b) || y - x)[0]?.[0] ?? "", pinned = Object.fromEntries(Object.entries(state.fixed).filter(([n]) => !(n in states.WORDS)));
    const verdict = h("b", {}, /memory|formula/.test(most) ? "It does not fit." : most.includes("=") ? "It misses a target." : "It cannot be done so."), why = h("span", {}, view.broken(state.job, most, all.reduce((n, [, x]) => n + x, 0)) ?? cases.of(state.job).answer(plan, { letters: pinned, words: {} }).why);
    const head = h("p", { class: "pl-bad" }, verdict, " ", why, unreached(plan), " Looking for the smallest change that would do …");
    at.verdict.replaceChildren(head, list);
    if (isServed) {
      const [own, text] = await unserved(plan, find, pinned);
      if (text) [verdict.textContent, why.textContent] = [own, text];
    } else { // what it would hold all the same, of the layout that holds least
      const least = await worker.ask("search", { plan: { ...plan, aim: { axes: ["memory", "step_time"] }, lift: ["memory <= hbm_capacity", "offload_memory <= host_capacity"] } }).then(only);
      if (least.best.length) {
        [result, chosen] = [{ ...least, axes: ["step_time", "memory"] }, least.best[0]];
        answer = solve(plan, chosen);
        [verdict.textContent, why.textContent] = view.fit(plan, answer);
        paint(plan, h("p", { class: "pl-soft" }, `If memory were no limit, the layout that needs least of it (${view.layout(chosen, state.job)}) would give:`));
        helped = await worker.ask("changes", { plan, chosen }).then(only);
        binds.paint(helped);
      }
    }
    if (Object.keys(state.fixed).length) await offer("another layout", { fixed: {} });
    for (const by of [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]) {
      const devices = state.letters.devices * by;
      if (devices > 1e6 || (await offer(`${show(devices)} × ${plan.device.name}`, { letters: { devices }, fixed: {} }))) break;
    }
    if (!isServed) {
      const margin = state.letters.memory_margin ?? data.margins.memory;
      if (margin) await offer(`with no margin of memory, which is ${show(margin, "%", 2)} here`, { letters: { memory_margin: 0 } });
      for (const [n, away] of [["optimizer", "optimizer state"], ["activation", "activations"]]) await offer(`${away} in the host's memory`, { letters: { [`${n}_offload`]: 1 } });
      if (!state.trained) await offer("adapters alone trained (LoRA)", { trained: "lora" });
      for (const seq of [state.letters.seq / 2, state.letters.seq / 4]) if (!Number.isInteger(seq) || (await offer(`sequences of ${show(seq)} tokens`, { letters: { seq } }))) break;
    } else {
      await offer("without the targets", { targets: { ttft: 1e3, tpot: 10 } });
      const isRate = "rate" in state.letters, asked = isRate ? "rate" : "users", whole = (x) => (isRate ? Number(x.toPrecision(3)) : Math.floor(x));
      let low = 0, high = state.letters[asked]; // the most that are served: by halves first, then between
      for (let tries = 0, x; tries < 19 && (x = whole((low + high) / 2)) > low; tries++) if (await find({ letters: { [asked]: x } })) low = x; else high = x;
      if (low) await offer(isRate ? show(low, "request/s") : `${show(low)} users`, { letters: { [asked]: low } });
      for (const precision of states.precisions(state).filter((x) => ["fp8", "fp4"].includes(x) && x !== state.precision)) await offer(precision, { precision });
    }
    head.lastChild.textContent = list.childElementCount ? " What would do:" : " No single change that was tried would do: many more devices, another device or another model.";
  }

  // What a service lacks, with numbers as `serve` and its search say them: room for its weights or for all users' caches,
  // or a target, for one user alone or for all.
  async function unserved(plan, find, pinned) {
    const { letters: { devices, users, rate }, targets } = plan, one = { users: 1, rate: undefined }, laid = (x) => view.layout(x, "serve"), b = (x) => show(x, "B", 3);
    async function missed(letters, alone) {
      for (const n of Object.keys(targets)) {
        const near = await find({ letters, targets: n === "tpot" ? { ttft: targets.ttft } : {}, fixed: alone ? { ...plan.fixed, replicas: 1 } : plan.fixed, aim: { axes: [n, n] } });
        if (near?.values[n] > targets[n]) return `${view.upper(brief(n))}: at least ${show(near.values[n], "s")}${alone ? " even for one user" : ""} (${laid(near)}), and ${show(targets[n], "s")} are asked for.`;
      }
      return "";
    }
    const room = await find({ letters: one, targets: {}, aim: { axes: ["max_users", "max_users"], rising: true } }), most = Math.floor(room?.values.max_users);
    if (most >= 1) {
      const slow = await missed(one, true);
      if (most < users) return ["It does not fit.", `The caches of ${show(users)} users do not fit: ${show(most)} fit (${laid(room)}). ${slow}`];
      return ["It misses a target.", slow || (rate ? `${show(devices)} devices serve fewer than ${show(rate, "request/s")} within the targets.` : await missed({}))];
    }
    // The weights at the widest split of a layer, and the first at which they would fit.
    const at = (tp) => cases.serving.answer({ ...plan, letters: { ...plan.letters, ...one } }, { letters: { pp: 1, ep: 1, attention_dp: 1, ...pinned, replicas: 1, tp }, words: {} }), usable = ({ values: x }) => x.hbm_capacity * x.cache_share - x.workspace;
    const can = searching.powers(64 * devices).filter((x) => !at(x).why), tp = pinned.tp ?? can.filter((x) => x <= devices).at(-1) ?? 1, here = at(tp), { held_weights: each, hbm_capacity: whole, workspace: work, pp, attention_dp: groups } = here.values, ways = tp * pp * groups, { formula, outside } = here.missing.device_rate ?? {};
    if (outside && !/room/.test(outside.words)) return ["It cannot be done so.", `${view.upper(brief(formula.letter))} holds for ${outside.words} only.`];
    const wide = can.find((x) => x > tp && at(x).values.held_weights <= usable(at(x)));
    return each > usable(here) ? ["It does not fit.", `${b(each * ways)} of weights are ${b(each)} on each of ${show(ways)} devices of ${b(whole)}, of which ${b(usable(here) + work)} are for weights, caches and ${b(work)} of work space; ${wide ? `${show(wide)} tensor ways would hold them` : "fewer bits or more stages may let them in"}.`] : [];
  }

  // What binds: single changes, each with its gain, and of more memory what a search finds in it.
  async function help(plan, only) {
    helped = await worker.ask("changes", { plan, chosen }).then(only);
    binds.paint(helped);
    const letter = "hbm_capacity", letters = { [letter]: 2 * answer.values[letter] }, own = states.plan(state, { letters }), more = await worker.ask("search", { plan: own }).then(only);
    if (!more.best.length || helped.list.some((x) => x.twice === letter)) return;
    const there = solve(own, more.best[0]), gain = rateOf(there) / rateOf(answer) - 1;
    if (gain > data.changes.least) helped.list.push({ letters, twice: letter, isSearched: true, isFree: false, gain, time: there.values.step_time ?? there.values.tpot });
    binds.paint(helped);
  }
  function take(change) {
    states.take(state, chosen, change);
    part.binds.focus({ preventScroll: true }); // the button that was clicked goes
    settle_();
  }
  const best = () => [h("h2", {}, "The best layout, and its neighbours"), view.table(state.job, result, near, (x) => { state.fixed = states.fixedOf(state, x); update(); }, (x, letter) => open(letter, { state, chosen: x, answer: solve(states.plan(state), x) }), answer)];
  const more = { states, cases, words, view, draw, worker, part, at, h, show, unit, meaning, brief, solve, pick, say, engine, data, base, searching,
    get: () => ({ market: state.any ? bought : null, state, answer, chosen, result, along, beside, curveOf, spread, rests, helped: () => ({ changes: (helped?.list ?? []).map(binds.asData), nearest: helped?.nearest ? binds.asData(helped.nearest) : null }) }), set: (x) => { if (x.along) along = x.along; if (x.curveOf) curveOf = x.curveOf; if (x.beside) beside = x.beside; }, update, sentence, typeset, replace: (x) => { state = x; settle_(); } };
  const settle_ = () => { sentence(); update(); };
  const side = planSide({ ...more, linked, remember }), agents = planAgents({ ...more, ...side, menu }), learning = planLearning({ ...more, ...side }), { points, compare, open } = side, { pools } = planApart({ ...more, ...side }), costs = planCosts({ ...more, open });
  const binds = planBinds({ ...more, take });
  const devices = planDevices({ ...more, choose: (x) => { state.device = x; delete state.any; settle(); sentence(); update(); if (bought) devices.paint(bought); } });
  function paint(plan, note) { // of a layout that does not fit with a note in place of its neighbours
    const stages = [];
    if (state.job === "train" && answer.values.pp > 1 && answer.values.pp <= 256) {
      for (let stage = 1; stage <= answer.values.pp; stage++) stages.push(solve(states.plan(state, { letters: { stage } }), chosen));
    }
    const figures = (found) => part.figures.replaceChildren(...(note ? [note] : []), view.figures(state.job, answer, open, found)), now = turn;
    figures();
    part.rests.replaceChildren();
    costs.paint();
    assume(plan, task(now));
    setTimeout(() => { if (now === turn) figures(spread = view.ranges(state.job, plan, answer)); }); // drawn some hundred times: the numbers come first
    part.bars.replaceChildren(...view.bars(state.job, answer, (letter, there) => open(letter, there && { state, answer: there, chosen }), stages.every((x) => x.values.train_memory > 0) ? stages : []));
    if (!note) part.table.replaceChildren(...best());
    side.paint(plan);
  }

  // Begin: with a link, with what a notebook asks, or with the usual.
  let wrong = "";
  if (given) { try { state = states.checked(given, (why) => { throw new Error(`This plan cannot be shown (${why}).`); }); } catch (error) { wrong = error.message; } }
  const follow = () => { const other = states.modelOf(location.hash), there = data.others[other] ?? (other?.words?.blocks && "this model"); if (whole && there) { elsewhere(there); return; } try { const dropped = [], found = states.read(location.hash, dropped); if (found) state = found; if (dropped.length) wrong = `This link is shown but for one thing: ${dropped.join("; ")}.`.replace("one thing", dropped.length > 1 ? "some things" : "one thing"); if (found?.curve) curveOf = { x: found.curve[0], y: found.curve[1] }; } catch (error) { wrong = error.message; state = states.copy(states.START.train); } };
  if (linked) { follow(); addEventListener("hashchange", () => { if (isClosed) return; wrong = ""; follow(); changed = false; sentence(); update(); say(wrong); }); }
  sentence();
  update();
  say(wrong);
  return { close: () => { isClosed = true; worker.close(); }, get: () => state };
}
