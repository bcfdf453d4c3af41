// The answer about agents: which service keeps the caches of all sessions cheapest, and on which tier, engine and device.

function planAgents({ states, view, part, at, h, show, engine, data, get, update, replace, open, copyable, linkTo, menu }) {
  const name = (x) => (x === "none" ? "device memory alone" : x.split(" ").map((y) => data.tiers[y].name.split(",")[0].replace(" per GPU", "")).join(" and ")), drafted = (x) => (x === "none" ? "" : `, ${data.drafts[x].name}`);
  const laid = ({ letters, words: own }) => `tp ${letters.tp}, ${name(own.tiers)}${drafted(own.drafts)}`, money = (x) => `$${show(x, "", 3)}`, many = (n, said) => `${show(n)} ${said}${n === 1 ? "" : "s"}`;
  const edge = ({ values }) => (values.sessions_most === undefined ? "any number" : show(Math.floor(values.sessions_most)));
  const button = (said, go) => [h("button", { type: "button", class: "pl-btn", onclick: go }, said), " "];
  const pin = ({ letters, words: own }) => { get().state.fixed = { tp: letters.tp, ...own }; update(); };
  // What is chosen here, and what is left to the search.
  function choices() {
    const { fixed } = get().state, set = (n) => (x) => { if (x) fixed[n] = n === "tp" ? Number(x) : x; else delete fixed[n]; update(); };
    const one = (said, n, all) => h("label", {}, h("span", {}, said), menu([["", "best"], ...all], `${fixed[n] ?? ""}`, said, set(n)));
    at.layout.replaceChildren(h("details", { class: "pl-choice", open: at.layout.querySelector("details")?.open }, h("summary", {}, Object.keys(fixed).length ? "Some of the service is chosen here, the rest searched" : "Choose tiers, drafts and tensor parallelism yourself"),
      h("div", { class: "pl-choices" }, one("tensor ways", "tp", [1, 2, 4, 8].map((x) => [`${x}`, `${x}`])), one("tier", "tiers", states.WORDS.tiers.map((x) => [x, name(x)])), one("drafts", "drafts", states.WORDS.drafts.map((x) => [x, x === "none" ? "none" : data.drafts[x].name])))));
  }
  const grid = (label, heads, lines) => h("div", { class: "pl-scroll", tabindex: 0, role: "region", "aria-label": label }, h("table", { class: "pl-near" }, h("thead", {}, h("tr", {}, heads.map((x) => h("th", { scope: "col" }, x)))), h("tbody", {}, lines)));
  const HEADS = ["a session", "devices", "sessions kept", "first token (95 %)", "a token"];
  const line = (said, x, go, isMe) => h("tr", { class: isMe ? "pl-me" : undefined }, h("th", { scope: "row" }, x.why || isMe ? said : h("button", { type: "button", class: "pl-link", onclick: go }, said)),
    x.why ? h("td", { colspan: 5, class: "pl-why-not" }, x.why) : [x.values.session_cost === undefined ? "no price" : money(x.cost), show(x.values.devices), edge(x), show(x.values.ttft_p95, "s", 3), show(x.values.tpot, "s", 3)].map((y, i) => h("td", { "data-head": HEADS[i] }, y)));
  function paint(found, isDone) {
    const { state } = get(), [best] = found.services, { letters } = state;
    const isAlone = !isDone && found.services.length === 1; // others of this device and engine follow within a moment
    choices();
    for (const x of Object.values(part)) if (!isAlone) x.replaceChildren();
    if (best.why) {
      at.verdict.replaceChildren(h("p", { class: "pl-bad" }, h("b", {}, "No service keeps the caches of all sessions."), " More devices, fewer sessions or longer times may."));
      part.table.replaceChildren(h("h2", {}, "What was tried"), grid("services tried", ["service", ...HEADS], found.services.map((x) => line(laid(x), x))));
      return null;
    }
    const { values } = best, of = { state, chosen: { letters: best.letters, words: {} }, answer: { values, given: best.given, sheet: engine.sheet(engine.listed(data.serve.sessions)) } }, why = (letter, said, more) => h("div", {}, values[letter] === undefined ? h("b", { class: "pl-none" }, letter === "sessions_most" ? "no cliff" : "–") : view.num(of.answer, letter, (x) => open(x, of)), h("span", {}, said), h("small", {}, more));
    at.verdict.replaceChildren(h("p", {}, h("b", { class: "pl-good" }, "All caches are kept."), ` Cheapest${state.any ? ` on ${states.device(state.device).name}` : ""}: `, h("b", {}, laid(best)), `, in ${many(values.replicas, "service")} on ${many(values.devices, "device")}.`,
      h("small", { class: "pl-counted" }, isDone ? `The best of ${found.services.length} services, each with the fewest copies that do, in ${show(found.seconds, "s", 2)}.` : isAlone ? "This service was the best before; others are being tried." : "Other engines and devices are being tried."), Object.keys(state.fixed).length ? button("search all services again", () => { state.fixed = {}; update(); }) : null));
    part.figures.replaceChildren(h("div", { class: "pl-big" }, why("session_cost", "a session", values.session_cost === undefined ? "no price is known" : `${money(best.cost) === money(values.session_cost) ? "" : `${money(best.cost)} with its tier; `}${money(values.read_cost)} for a million tokens read, ${money(values.written_cost)} written`), why("sessions_most", "sessions keep their caches", values.sessions_most === undefined ? "more sessions only wait longer" : `${show(letters.sessions)} are asked for; beyond the edge all caches are lost`),
      why("ttft", "to the first token", `95 % of the turns within ${show(values.ttft_p95, "s", 3)}`), why("tpot", "a token", `${show(values.hit_share, "%", 3)} of the input is found`)));
    if (isAlone) return of;
    const shares = [50, 95, 99], times = [["ttft", "to the first token"], ["tpot", "a token"], ["end_to_end", "a whole turn"]];
    part.rests.replaceChildren(h("h2", {}, "How turns differ"), grid("percentiles of a turn's times", ["of the turns", ...shares.map((x) => `${x} % within`)], times.map(([n, said]) => h("tr", {}, h("th", { scope: "row" }, said), shares.map((x) => h("td", { "data-head": `${x} % within` }, show(values[`${n}_p${x}`], "s", 3)))))));
    part.table.replaceChildren(h("h2", {}, "Which tier to buy, and how many devices for a copy"), grid("services", ["service", ...HEADS], found.services.map((x) => line(laid(x), x, () => pin(x), x === best))));
    const plain = found.services.find((x) => x.words.drafts === "none" && !x.why), quick = found.services.find((x) => x.words.drafts !== "none" && !x.why), lost = (values.turn_rate * values.lost_time) / (1 - values.prompt_load);
    part.pools.replaceChildren(h("h2", {}, "One pool or two, and drafts"), h("p", {}, "If turns were read in a pool of their own, ", h("button", { type: "button", class: "pl-link", onclick: () => open("pool_ratio", of) }, show(values.pool_ratio, "", 2)), ` devices would read for each that writes answers. If no turn found its cache, ${show(lost, "", 2)} would. ${values.pool_ratio < 1 ? "So few readers are needed that one pool is enough." : "A pool of readers spares the writers their wait."} `,
      plain && quick ? `With drafts a session costs ${money(quick.cost)} and a token takes ${show(quick.values.tpot, "s", 3)}; without, ${money(plain.cost)} and ${show(plain.values.tpot, "s", 3)}.` : quick ? "Each step checks drafted tokens." : "No drafts are checked: choose some above, or a model that predicts several tokens."));
    const others = (kind, table, title) => (found[`${kind}s`].length > 1 ? [h("h2", {}, title), grid(title, [kind, ...HEADS], found[`${kind}s`].slice(0, 12).map((x) => line(`${table[x[kind]].name}${x.why ? "" : `, tp ${x.letters.tp}`}`, x, () => { delete state.any; replace({ ...state, [kind]: x[kind], fixed: {} }); }, x[kind] === (kind === "device" ? states.device(state.device).key : state.engine))))] : []);
    part.market.replaceChildren(...others("device", data.devices, "The cheapest devices for a session"));
    part.compare.replaceChildren(...others("engine", data.engines, "The cheapest engine for a session"));
    part.buttons.replaceChildren(h("p", {}, button("link to this plan", () => copyable("A link to this plan", linkTo(state))), button("Python", () => copyable("The call that gives this service", states.python(state, { letters: best.letters, words: best.words }), "agents.py")),
      button("CSV", () => copyable("Every letter of this service", states.sheet(state, of.answer, best), "agents.csv", "text/csv")), button("JSON", () => copyable("The same as data", states.json(state, of.answer, best), "agents.json", "application/json"))));
    part.assume.replaceChildren(h("h2", {}, "What this rests on"), h("p", { class: "pl-soft" }, "Pauses are lognormal; caches are evicted least recently used first; a cache that leaves device memory moves to the tier. Latencies and prices of tiers are partly assumed: open a number to see which. Simulated percentiles are 0.85 to 1.2 times as long, and up to 1.7 times where turns lose their caches or wait for a place."));
    return of;
  }
  return { paint };
}
