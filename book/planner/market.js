// One question asked of every device: the best that each of them does, cost against time.

function planMarket(cases, { search }) {
  const { data } = cases.engine;
  // Each device that has the precision; yields after each, and often within its search.
  function* market(plan) {
    const start = Date.now(), [cost, time] = plan.job === "train" ? ["run_cost", "run_time"] : ["million_cost", "tpot"], rows = [], all = Object.entries(data.devices).filter(([, row]) => cases.peaks(row).includes(plan.precision) && row.letters.hbm_capacity && row.letters.hbm_bandwidth);
    const order = (a, b) => !a.chosen - !b.chosen || (a.cost ?? Infinity) - (b.cost ?? Infinity) || a.time - b.time;
    const result = () => ({ rows: [...rows].sort(order), of: all.length, cost, time, count: rows.reduce((sum, x) => sum + x.count, 0), seconds: (Date.now() - start) / 1e3 });
    for (const [device, row] of all) {
      const own = { ...plan, device: row, fixed: {} };
      try {
        let found;
        for (const running = search(own, 1); ;) { const { value, done } = running.next(); if (done) { found = value; break; } yield result(); }
        const [chosen] = found.best, values = chosen ? cases.of(plan.job).answer(own, chosen).values : {};
        const out = Object.values(found.rejected).reduce((a, b) => a + b, 0) - (found.count - found.fitting);
        rows.push({ device, count: found.count + out, chosen: chosen && { letters: chosen.letters, words: chosen.words }, cost: values[cost], time: values[time], assumed: cases.isAssumed(own, "price_hour") });
      } catch (error) { rows.push({ device, count: 0, why: error.message }); }
      yield result();
    }
    return result();
  }
  return market;
}

// The same on the page: devices as lines of bars, the cheapest first.
function planDevices({ words, view, draw, states, part, h, show, data, get, choose }) {
  let isAll = false;
  function paint(found) {
    const { state } = get(), fitting = found.rows.filter((x) => x.chosen), others = found.rows.filter((x) => !x.chosen).map((x) => data.devices[x.device].name), few = 10, shown = isAll ? fitting : fitting.slice(0, few);
    const of = state.job === "train" ? ["the run", "days with failures"] : ["a million tokens", "a token"];
    const own = fitting.findIndex((x) => x.device === state.device);
    if (own >= shown.length) shown.push(fitting[own]);
    const lines = shown.map((x) => ({ name: data.devices[x.device].name, said: view.layout(x.chosen, state.job), isMe: x.device === state.device, go: () => choose(x.device),
      bars: [[x.cost, x.cost === undefined ? "no price" : `${x.assumed ? "≈ " : ""}${view.amount(found.cost, x.cost)}`], [x.time, show(x.time, "s", 3)]] }));
    part.market.replaceChildren(h("h2", {}, `Any device: the best of each of ${fitting.length}, the cheapest first`),
      fitting.length ? draw.pairs(lines, of) : h("p", {}, "It fits on no device that has this precision."),
      h("p", { class: "pl-soft" }, `${words.grouped(found.count)} strategies of ${found.of} devices with ${state.precision}, in ${show(found.seconds, "s", 2)}. `,
        fitting.some((x) => x.assumed) ? "≈: no source prints a price, and that of comparable devices stands in its place. " : "", others.length ? `No strategy fits on ${others.slice(0, 6).join(", ")}${others.length > 6 ? ` and ${others.length - 6} more` : ""}. ` : "",
        fitting.length > few ? h("button", { type: "button", class: "pl-btn", onclick: () => { isAll = !isAll; paint(found); } }, isAll ? "fewer" : `all ${fitting.length}`) : null));
  }
  return { paint };
}
