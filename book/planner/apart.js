// The same rate from two pools, one that reads prompts and one that writes answers: found, linked, put beside others.

function planApart({ states, words, view, worker, part, h, show, meaning, engine, data, get, update, open, copyable, linkTo, apart }) {
  async function pools(plan, only) {
    part.pools.replaceChildren();
    const { state, answer } = get();
    if (plan.letters.rate === undefined || (Object.keys(state.fixed).length && !state.pools)) return;
    const found = await worker.ask("pools", { plan }).then(only), own = answer.values, button = (said, go) => [h("button", { type: "button", class: "pl-btn", onclick: go }, said), " "];
    const title = h("h2", {}, "Or in two pools"), again = state.pools ? button("search all pools again", () => { delete state.pools; update(); }) : null;
    if (found.why) { part.pools.replaceChildren(title, h("p", { class: "pl-soft" }, `Prompts read on devices of their own${state.pools ? ", in the two layouts chosen here" : ""}: ${found.why}. `, again)); return; }
    const { values } = found, chosen = () => ({ ...states.copy(get().state), pools: states.pooled(found) });
    const link = (x) => h("button", { type: "button", class: "pl-link", "aria-label": `${meaning(x)}: why`, onclick: () => open(x, apart(state, found)) }, view.amount(x, values[x])), cost = values.million_cost === undefined ? "devices" : "million_cost";
    const laid = (x, many) => [h("b", {}, `${show(many)} ${many === 1 ? "device" : "devices"}`), ` (${view.layout(x, "serve")})`];
    part.pools.replaceChildren(title, h("p", {}, "Prompts read on ", laid(found.prefill, values.prefill_devices), ", answers written on ", laid(found.decode, values.decode_devices), ": ", link("ttft"), " to the first token, ", link("tpot"), " a token, ", link(cost), cost === "devices" ? " in all" : " for a million tokens", `: ${Math.abs(values[cost] / own[cost] - 1) < 0.005 ? "as much as" : `${show(Math.abs(values[cost] / own[cost] - 1), "%", 2)} ${values[cost] < own[cost] ? "less" : "more"} than`} in one pool. `,
      h("small", {}, "Each prompt's cache is sent over the network once; the wait before it is read is a queue of its own.")),
    h("p", {}, state.beside.length < 3 ? button("+ these pools, side by side", () => { state.beside.push({ ...chosen(), beside: [], fixed: {} }); update(); }) : null, button("link to these pools", () => copyable("A link to these two pools", linkTo(chosen()))),
      button("Python of two pools", () => copyable("The call that searches two pools", states.pythonApart(state), "pools.py")), again));
  }
  return { pools };
}
