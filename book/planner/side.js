// What stands beside the answer: curves, plans side by side, how far to trust it, assumptions, buttons, and the why.

function planSide({ states, cases, words, view, draw, worker, part, at, h, show, unit, meaning, brief, solve, pick, say, engine, data, base, get, set, update, sentence, replace, typeset, linked, remember, searching }) {
  const { trust, runsOf } = planEvidence({ states, words, part, h, show, data, get });
  const copyable = (title, text, file, type = "text/plain", more = null) => {
    const area = h("pre", { tabindex: 0 }, text), done = h("span", { role: "status" });
    const copy = () => (navigator.clipboard?.writeText(text) ?? Promise.reject()).then(() => (done.textContent = " copied"), () => (done.textContent = " mark the text and copy it"));
    const save = () => { const link = h("a", { href: URL.createObjectURL(new Blob([text], { type })), download: file }); link.click(); };
    at.out.replaceChildren(h("h2", {}, title), area, h("p", { class: "pl-soft" }, more), h("p", {}, h("button", { type: "button", class: "pl-btn", onclick: copy }, "copy"), " ", file ? h("button", { type: "button", class: "pl-btn", onclick: save }, `save ${file}`) : null, " ", h("button", { type: "button", class: "pl-btn", onclick: () => at.out.close() }, "close"), done));
    at.out.showModal();
  };

  const linkTo = (state) => `${linked ? location.href.split("#")[0] : `${base}book/planner.html`}${states.write(state)}`; // a notebook has no address of its own
  // Two pools as an answer like others: their letters, and of what they are made.
  const apart = (state, found) => ({ state, laid: found, chosen: { letters: found.given, words: {} }, answer: { rests: () => cases.isAssumedCell(states.plan(state), "price_hour"), values: found.values, given: found.given, sheet: engine.sheet(engine.listed(data.serve.pools)) } });

  // Why
  function open(letter, of = get()) {
    const { state, answer, chosen } = of;
    const all = h("div", { class: "pl-tree" }, view.why(answer, letter, { plan: states.plan(state), state: { ...state, usual: states.usual(state.job) }, chosen }));
    at.why.replaceChildren(h("h2", {}, `Why ${view.amount(letter, answer.values[letter])}?`), h("p", { class: "pl-soft" }, "Open a line to see what it is made of, down to the cells of the tables and their sources."), all, h("p", {}, h("button", { type: "button", class: "pl-btn", onclick: () => at.why.close() }, "close")));
    at.why.showModal();
    at.why.focus(); // a summary would lose it while its letter is set, and the keys with it
    typeset(all);
  }

  // Against one letter
  const XS = { train: ["devices", "global_batch", "seq", "hbm_capacity", "hbm_bandwidth", "peak_flops", "scaleup_bandwidth", "scaleout_bandwidth", "training_efficiency", "train_tokens", "price_hour"], serve: ["users", "rate", "prompt", "output", "devices", "hbm_capacity", "hbm_bandwidth", "peak_flops", "scaleup_bandwidth", "weight_bits", "kv_bits", "price_hour"] };
  const YS = { train: ["step_time", "mfu", "memory", "run_time", "run_cost"], serve: ["tpot", "ttft", "device_rate", "million_cost", "filled"] };
  const isWhole = (x) => WHOLE.includes(x) || Boolean(data.letters[x]?.[4]);
  const WHOLE = ["devices", "global_batch", "seq", "users", "prompt", "output"];
  const curveLetters = (job, answer) => [XS[job].filter((x) => answer.values[x] > 0 && (job === "train" || x !== "devices") && (x !== "users" || !("rate" in answer.given))), YS[job].filter((y) => answer.values[y] > 0)];
  // Any other number that an answer rests on, as far as it was given: cells, the shape of the model, usual values.
  const others = (job, { answer, chosen }) => engine.needed(answer.sheet, new Set(Object.keys(answer.given)), YS[job]).flatMap((f) => [f.letter, ...f.inputs])
    .filter((x, i, all) => answer.values[x] > 0 && !XS[job].includes(x) && !(x in chosen.letters) && all.indexOf(x) === i && (x in answer.given || !answer.sheet.by.get(x)?.inputs.length))
    .sort((a, b) => meaning(a).localeCompare(meaning(b)));
  async function points(plan, only) {
    const { state, answer, chosen, curveOf } = get(), [xs, ys] = curveLetters(state.job, answer);
    if (!xs.includes(curveOf.x) && !others(state.job, get()).includes(curveOf.x)) curveOf.x = xs[0];
    if (!ys.includes(curveOf.y)) curveOf.y = ys[0];
    const { x } = curveOf, here = answer.values[x], y = curveOf.y;
    if (x === "devices") { // the best layout of each number
      set({ along: [[here, answer.values[y]]] });
      paintCurve();
      const counts = [2, 0.5, 4, 0.25, 8, 0.125, 1.5, 3, 0.75, 6, 0.375].map((by) => here * by).filter((n) => Number.isInteger(n) && n >= 1 && n <= 1e6);
      for (const n of counts) {
        const other = states.plan(state, { letters: { devices: n }, fixed: states.wordsAlone(state) }), found = await worker.ask("curve", { plan: other }).then(only);
        if (found.best.length) { set({ along: [...get().along, [n, solve(other, found.best[0]).values[y]]].sort((a, b) => a[0] - b[0]) }); paintCurve(); }
      }
      return;
    }
    const found = [], low = unit(x) === "%" ? 0.25 : 1 / 8, high = unit(x) === "%" ? 1 / here : 8;
    const steps = isWhole(x) || x.endsWith("_bits") ? Array.from({ length: 13 }, (_, i) => Math.round(here * 2 ** (i / 2 - 3))) : Array.from({ length: 25 }, (_, i) => here * low * (high / low) ** (i / 24));
    for (const value of [...new Set([...steps, here])].filter((v) => v > 0).sort((a, b) => a - b)) {
      const there = solve(states.plan(state, { letters: { [x]: value } }), chosen);
      if (!there.why && there.values[y] !== undefined) found.push([value, there.values[y]]);
    }
    set({ along: found });
    paintCurve();
  }
  // Where a curve reaches a target: between the points by halving on the formulas, of devices the first that will do.
  function reached(target) {
    const { along, curveOf: { x, y } } = get(), rising = along.length > 1 && along[along.length - 1][1] > along[0][1], meets = (v) => (y === "mfu" || y === "device_rate" ? v >= target : v <= target);
    const good = along.filter(([n, v]) => meets(v) && (x === "devices" || meets(possible(n))));
    if (!good.length) return null;
    if (x === "devices") return rising && y !== "mfu" && y !== "device_rate" ? good[good.length - 1][0] : good[0][0];
    const edge = rising === (y !== "mfu" && y !== "device_rate") ? good[good.length - 1][0] : good[0][0], i = along.findIndex((p) => p[0] === edge), next = along[rising === (y !== "mfu" && y !== "device_rate") ? i + 1 : i - 1];
    if (!next) return edge;
    let [a, b] = [edge, next[0]];
    for (let k = 0; k < 40; k++) {
      const mid = Math.sqrt(a * b), tried = isWhole(x) ? Math.round(mid) : mid;
      if (meets(possible(tried))) a = tried; else b = mid;
    }
    return a;
  }
  // What the curve's layout gives at a value of its letter, if it can run there and keeps to the limits of the plan.
  function possible(value) {
    const { state, chosen, curveOf: { x, y } } = get(), plan = states.plan(state, { letters: { [x]: value } }), there = solve(plan, chosen);
    return there.why || searching.beyond(plan, there) ? undefined : there.values[y];
  }
  let target = null;
  const choose_ = (curveOf) => { set({ curveOf }); get().state.curve = [curveOf.x, curveOf.y]; remember(); };
  const move = (value) => {
    const { state, chosen, along, curveOf: { x } } = get(), found = isWhole(x) ? Math.max(1, Math.round(value)) : value;
    const near = x === "devices" || possible(found) ? [] : along.map(([n]) => n).filter(possible).sort((a, b) => Math.abs(a - found) - Math.abs(b - found));
    states.takePoint(state, chosen, x, near[0] ?? found);
    target = null;
    sentence();
    update();
  };
  function paintCurve() {
    const { state, answer, along, curveOf } = get(), [xs, ys] = curveLetters(state.job, answer), { x, y } = curveOf;
    const option = (which) => (n) => h("option", { value: n, selected: n === curveOf[which] }, brief(n));
    const choose = (which, list) => h("select", { class: "pl-field", "aria-label": which === "x" ? "along" : "what", onchange: (e) => { choose_({ ...curveOf, [which]: e.target.value }); target = null; points(states.plan(state), (v) => v); } }, list.map(option(which)), which === "x" ? h("optgroup", { label: "any other" }, others(state.job, get()).map(option("x"))) : null);
    target ??= answer.values[y] * 0.8;
    const said = h("p", { class: "pl-solved", role: "status" }), solved = () => {
      const found = reached(target);
      said.replaceChildren(found === null ? `No value drawn here gives ${show(target, unit(y), 3)}.` : h("span", {}, `${view.upper(brief(y))} of ${show(target, unit(y), 3)}: `, h("b", {}, `${show(found, unit(x))}${unit(x) ? "" : ` ${x === "devices" ? x : brief(x)}`}`), x === "devices" ? `, ${show(along.find(([n]) => n === found)[1], unit(y), 3)}` : ""), found === null ? "" : " ", found === null ? "" : h("button", { type: "button", class: "pl-btn", onclick: () => move(found) }, "take it"));
    };
    const drawn = draw.curve({ lines: [{ points: along, isSteps: x === "devices" }], marker: { x: answer.values[x], y: answer.values[y] }, target: { value: target }, xUnit: unit(x), yUnit: unit(y), xName: x === "devices" ? "devices, the best layout of each" : `${brief(x)}, in this layout`, yName: "",
      label: `${meaning(y)} against ${meaning(x)}; now ${show(answer.values[y], unit(y))} at ${show(answer.values[x], unit(x))}`, moved: move, doubling: x === "devices" ? along.map((p) => p[0]) : null, steps: x === "devices" || isWhole(x) ? along.map((p) => p[0]).filter((n) => Number.isInteger(Math.log2(n / answer.values[x])) || !isWhole(x)) : null, targeted: (v) => { target = v; asked.value = show(target, unit(y), 3); solved(); } });
    const asked = h("input", { class: "pl-field", "aria-label": "target", value: show(target, unit(y), 3), size: 12, onchange: (e) => { const v = words.typed(e.target, "Target", unit(y), target, { say, suits: (n) => n > 0, shown: show(target, unit(y), 3) }); if (v) { target = v; paintCurve(); } } });
    const hadFocus = document.activeElement?.matches(".pl-marker") && part.curve.contains(document.activeElement);
    part.curve.replaceChildren(h("h2", {}, "Against one unknown"), h("p", {}, choose("y", ys), " against ", choose("x", xs)), drawn, h("p", { class: "pl-soft" }, "Drag the dot, or the dashed target: ", asked), said);
    if (hadFocus) part.curve.querySelector(".pl-marker")?.focus({ preventScroll: true });
    solved();
    if (state.job === "serve") part.curve.append(...speedCost());
  }

  // Speed against cost: users from one to all who have room, the ends of the hyperbola, and public measured runs.
  function speedCost() {
    const { state, answer, chosen } = get(), price = answer.values.price_hour, most = answer.values.max_users ?? answer.values.users, line = [], model = state.model;
    const by = (users) => { const plan = states.plan(state, { letters: { users } }); delete plan.letters.rate; return plan; };
    for (let users = 1; users <= most; users = Math.ceil(users * 1.4)) {
      const { values } = solve(by(users), chosen);
      if (values.tpot && values.device_rate) line.push([1 / values.tpot, price ? values.million_cost : values.device_rate]);
    }
    const cost = (rate, device) => { const hour = data.devices[device].letters.price_hour; return price ? (hour / 3600 / rate) * 1e6 : rate; };
    const dots = typeof model !== "string" ? [] : runsOf(model).filter((x) => !price || data.devices[x.device].letters.price_hour).map(({ device, engine: eng, precision, devices, prompt, output, users, first, each }) => {
      const rate = (users * output) / ((first + (output - 1) * each) / 1e3) / devices, own = device === state.device;
      return { x: 1e3 / each, y: cost(rate, device), look: own ? "pl-seen pl-own-seen" : "pl-seen", title: `measured: ${data.devices[device].name} × ${devices}, ${data.engines[eng].name}, ${precision}, ${users} users of ${prompt} + ${output} tokens` };
    });
    const now = [1 / answer.values.tpot, price ? answer.values.million_cost : answer.values.device_rate];
    const fastest = Math.max(...line.map((p) => p[0])), least = price ? Math.min(...line.map((p) => p[1])) : Math.max(...line.map((p) => p[1]));
    return [h("h2", {}, price ? "Speed against cost" : "Speed against tokens a device"), draw.curve({ lines: [{ points: line }], dots, marker: { x: now[0], y: now[1] }, ends: [fastest, least], xUnit: "token/s", yUnit: price ? "$" : "token/s", xName: "tokens a second of one user", yName: "", label: `cost against speed, ${dots.length} measured runs beside it`,
      moved: (v) => { const near = line.reduce((a, b) => (Math.abs(b[0] - v) < Math.abs(a[0] - v) ? b : a)), k = line.indexOf(near); let users = 1; for (let i = 0; i < k; i++) users = Math.ceil(users * 1.4); if ("rate" in state.letters) state.letters.rate = Number(solve(by(users), chosen).values.request_rate.toPrecision(3)); else state.letters.users = users; sentence(); update(); } }),
      h("p", { class: "pl-soft" }, `One user alone gets ${show(fastest, "token/s", 3)}; ${price ? `no million tokens costs less than $${show(least, "", 3)}` : `a device gives at most ${show(least, "token/s", 3)}`} here. `,
        dots.length ? `Dots: ${dots.length} public runs of this model (InferenceX and NVIDIA)${dots.some((d) => d.look.includes("own")) ? ", the orange ones on this device" : ""}; lengths and targets differ.` : "No public run of this model is at hand.")];
  }

  // Up to four side by side
  async function compare(plan, only) {
    const { state, answer, chosen } = get(), all = [{ state, answer, chosen }];
    paintCompare(all);
    for (const own of state.beside) {
      const other = states.plan(own), found = await worker.ask("beside", { plan: other }).then(only).catch(() => null);
      if (own.pools) all.push(found && !found.why ? apart(own, found) : { state: own });
      else all.push(found?.best.length ? { state: own, chosen: found.best[0], answer: solve(other, found.best[0]) } : { state: own });
      paintCompare(all);
    }
  }
  function paintCompare(all) {
    const { state } = get(), job = state.job, add = (kind) => () => pick(kind, (x, precision) => {
      const own = { ...states.copy({ ...state, beside: [] }), [kind]: x, precision: precision ?? state.precision, fixed: {} }, fit = states.precisions(own);
      if (!fit.includes(own.precision)) own.precision = ["bf16", "fp8", "fp16"].find((p) => fit.includes(p)) ?? fit[0];
      state.beside.push(own);
      update();
    });
    const pin = () => { state.beside.push({ ...states.copy({ ...state, beside: [] }), fixed: states.fixedOf(state, get().chosen) }); update(); };
    const room = state.beside.length < 3, buttons = h("p", {}, "Side by side: ", room ? [["another device", add("device")], ["another model", add("model")], ["this layout, pinned", pin]].flatMap(([said, go]) => [h("button", { type: "button", class: "pl-btn", onclick: go }, `+ ${said}`), " "]) : "four are the most.");
    if (all.length < 2) { part.compare.replaceChildren(buttons); return; }
    const letters = job === "train" ? ["step_time", "mfu", "memory", "filled", "run_time", "run_cost"] : ["devices", "ttft", "tpot", "device_rate", "million_cost", "filled"];
    const best = Object.fromEntries(letters.map((x) => [x, Math[x === "mfu" || x === "device_rate" ? "max" : "min"](...all.flatMap((a) => a.answer?.values[x] ?? []))]));
    const isBest = (x, v) => v !== undefined && v === best[x] && all.some((a) => a.answer?.values[x] !== undefined && a.answer.values[x] !== v);
    const name = (x) => `${x.job === "serve" ? "at most " : ""}${show(x.letters.devices)} × ${states.device(x.device).name}`;
    const head = all.map((a, i) => h("th", { scope: "col" }, name(a.state), h("br"), h("small", {}, `${states.model(a.state.model).name}, ${a.state.precision}`), i ? [" ", h("button", { type: "button", class: "pl-link", "aria-label": `leave out ${name(a.state)}`, onclick: () => { state.beside.splice(i - 1, 1); update(); } }, "×"), " ",
      h("button", { type: "button", class: "pl-link", onclick: () => { const rest = [...state.beside]; rest.splice(i - 1, 1, { ...states.copy({ ...state, beside: [] }) }); replace({ ...states.copy(a.state), beside: rest }); } }, "go there")] : null));
    part.compare.replaceChildren(h("h2", {}, "Side by side"), h("div", { class: "pl-scroll", tabindex: 0, role: "region", "aria-label": "plans side by side" }, h("table", { class: "pl-beside" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("span", { class: "pl-hidden" }, "what")), head)), h("tbody", {},
      h("tr", {}, h("th", { scope: "row" }, "layout"), all.map((a) => h("td", {}, a.laid ? `prompts: ${view.layout(a.laid.prefill, job)}; answers: ${view.layout(a.laid.decode, job)}` : a.answer ? view.layout(a.chosen, job) : "does not fit, or cannot run"))),
      letters.filter((x) => all.some((a) => a.answer?.values[x] !== undefined)).map((x) => h("tr", {}, h("th", { scope: "row" }, x === "filled" ? "share of the memory" : x === "devices" ? x : brief(x)), all.map((a) => { const v = a.answer?.values[x]; return h("td", { class: isBest(x, v) ? "pl-best" : undefined }, v === undefined ? "–" : h("button", { type: "button", class: "pl-link pl-plain", "aria-label": `${brief(x)}, ${view.priced(a.answer, x)}: why`, onclick: () => open(x, a) }, view.priced(a.answer, x)), isBest(x, v) ? h("small", {}, " best") : null); })))))), buttons);
  }

  function assume(plan) {
    const { state, answer, chosen } = get(), list = view.assumptions(answer, state.job), shape = new Set(Object.keys(plan.model.letters)), main = new Set([...Object.keys(states.usual(state.job)), ...Object.keys(chosen.letters), "dp"]);
    const own = list.filter((x) => !shape.has(x) && !main.has(x)), changed = own.filter((x) => x in state.letters), context = { plan, state: { ...state, usual: states.usual(state.job) }, chosen };
    const price = !own.includes("price_hour") ? ["price_hour"] : [];
    const line = (x) => {
      const f = answer.sheet.by.get(x), isGiven = x in state.letters;
      const input = h("input", { class: "pl-field", size: 11, "aria-label": meaning(x), value: x in answer.values ? show(answer.values[x], unit(x)) : "", placeholder: unit(x), onchange: (e) => {
        const v = words.typed(e.target, view.upper(meaning(x)), unit(x), answer.values[x], { say, suits: (y) => engine.good(x, y), shown: x in answer.values ? show(answer.values[x], unit(x)) : "" });
        if (v === undefined) return;
        state.letters[x] = v;
        update();
      } });
      return h("li", {}, h("span", {}, `${meaning(x)} \\(${words.letter(x)}\\) `), input, isGiven ? h("button", { type: "button", class: "pl-link", onclick: () => { delete state.letters[x]; update(); } }, "as it was") : null, " ",
        isGiven ? h("small", {}, "— given here") : f && !(x in answer.given) ? h("small", {}, "— ", f.sources.flatMap((y, i) => (i ? ["; ", words.cited(y)] : [words.cited(y)]))) : x in answer.values ? view.origin(x, context) : h("small", {}, "— not known: give one for a cost"));
    };
    const isOpen = part.assume.querySelector("details")?.open;
    part.assume.replaceChildren(h("details", { open: isOpen, ontoggle: (e) => e.target.open && typeset(e.target.lastChild) }, h("summary", {}, h("h2", {}, `${own.length} assumptions, each with its source`), changed.length ? h("small", {}, ` ${changed.length} changed here`) : null), h("ul", {}, [...changed, ...price, ...own.filter((x) => !changed.includes(x))].map(line))));
  }

  function buttons() { // of no answer a link and a print alone
    const { state, answer, chosen } = get(), button = (said, go) => [h("button", { type: "button", class: "pl-btn", onclick: go }, said), " "];
    const frameworks = Object.entries(data.flags?.[state.job] ?? {});
    part.buttons.replaceChildren(h("p", { class: "pl-buttons" }, button("link", () => copyable("A link to this plan", linkTo(state))), chosen ? [button("Python", () => copyable("The call that prints the same answer", states.python(state, chosen), "plan.py")),
      button("CSV", () => copyable("Every letter of this answer", states.sheet(state, answer, chosen, get().spread, get().rests, get().market), "plan.csv", "text/csv")), button("JSON", () => copyable("The same as data", states.json(state, answer, chosen, get().spread, get().rests, get().helped(), get().market), "plan.json", "application/json"))] : "", button("report", () => { part.assume.querySelector("details")?.setAttribute("open", ""); print(); }),
      !chosen ? "" : frameworks.map(([key, x]) => button(`flags of ${x.name}`, () => copyable(`Flags of ${x.name}`, states.flags(state, chosen, key), "", "text/plain", [x.source ? [words.cited(x.source), ". "] : "", h("a", { href: `${base}notebooks/2-parallelism/knobs.html` }, "What each flag means")])))));
  }
  function paint(plan) { target = null; trust(); assume(plan); buttons(); }
  return { points, compare, open, paint, buttons, copyable, linkTo, apart };
}
