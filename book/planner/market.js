// One question asked of every device: the best that each of them does, cost against time.

function planMarket(cases, { search }) {
  const { data } = cases.engine;
  // Each device that has the precision; yields after each, and often within its search.
  function* market(plan) {
    const start = Date.now(), [cost, time] = plan.job === "train" ? ["run_cost", "run_time"] : ["million_cost", "tpot"], rows = [], program = plan.job === "train" ? data.frameworks[plan.framework ?? data.usual.framework] : data.engines[plan.engine ?? data.usual.engine];
    const able = Object.entries(data.devices).filter(([, row]) => row.letters.hbm_capacity && row.letters.hbm_bandwidth), has = ([, row]) => cases.peaks(row).includes(plan.precision), runs = ([, row]) => cases.runsOn(program, row), all = able.filter((x) => has(x) && runs(x));
    const named = (some) => some.map(([, { name }]) => name), left = [[`${program.name} does not run on`, named(able.filter((x) => !runs(x)))], [`${plan.precision} is not a precision of`, named(able.filter((x) => runs(x) && !has(x)))]].filter(([, some]) => some.length);
    const order = (a, b) => !a.chosen - !b.chosen || (a.cost ?? Infinity) - (b.cost ?? Infinity) || a.time - b.time;
    const result = () => ({ rows: [...rows].sort(order), left, of: all.length, cost, time, count: rows.reduce((sum, x) => sum + x.count, 0), seconds: (Date.now() - start) / 1e3 });
    for (const [device, row] of all) {
      const own = { ...plan, device: row, fixed: {} };
      try {
        let found;
        for (const running = search(own, 1); ;) { const { value, done } = running.next(); if (done) { found = value; break; } yield result(); }
        const [chosen] = found.best, { values, sheet, known } = chosen ? cases.of(plan.job).answer(own, chosen) : { values: {} }, rests = (letter) => Boolean(chosen) && cases.isAssumed(own, { sheet, given: cases.used(sheet, known) }, letter);
        const out = Object.values(found.rejected).reduce((a, b) => a + b, 0) - (found.count - found.fitting);
        rows.push({ device, count: found.count + out, chosen: chosen && { letters: chosen.letters, words: chosen.words }, cost: values[cost], time: values[time], assumed: [cost, time].map(rests) });
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
    const { state } = get(), fitting = found.rows.filter((x) => x.chosen), none = found.rows.filter((x) => !x.chosen).map((x) => data.devices[x.device].name), left = [...(none.length ? [["No strategy fits on", none]] : []), ...found.left], few = 10, shown = isAll ? fitting : fitting.slice(0, few);
    const of = state.job === "train" ? ["the run", "days with failures"] : ["a million tokens", "a token"];
    const own = fitting.findIndex((x) => x.device === state.device);
    if (own >= shown.length) shown.push(fitting[own]);
    const lines = shown.map((x) => ({ name: data.devices[x.device].name, said: view.layout(x.chosen, state.job), isMe: x.device === state.device, go: () => choose(x.device),
      bars: [[x.cost, x.cost === undefined ? "no price" : `${x.assumed[0] ? "≈\u00a0" : ""}${view.amount(found.cost, x.cost)}`], [x.time, `${x.assumed[1] ? "≈\u00a0" : ""}${show(x.time, "s", 3)}`]] }));
    part.market.replaceChildren(h("h2", {}, `Any device: the best of each of ${fitting.length}, the cheapest first`),
      fitting.length ? draw.pairs(lines, of) : h("p", {}, "It fits on no device that has this precision."),
      h("p", { class: "pl-soft" }, `${words.grouped(found.count)} strategies of ${found.of} devices with ${state.precision}, in ${show(found.seconds, "s", 2)}. `,
        fitting.some((x) => x.assumed.includes(true)) ? "≈: rests on a price or another cell that no data sheet prints, assumed from comparable devices. " : "",
        fitting.length > few ? h("button", { type: "button", class: "pl-btn", onclick: () => { isAll = !isAll; paint(found); } }, isAll ? "fewer" : `all ${fitting.length}`) : null),
      left.length ? h("details", { open: part.market.querySelector("details")?.open }, h("summary", {}, `${left.flatMap(([, some]) => some).length} devices are left out`), h("ul", {}, left.map(([why, some]) => h("li", {}, `${why} ${some.join("; ")}.`)))) : "");
  }
  return { paint };
}
