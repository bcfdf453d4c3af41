// What an answer takes: days with failures and checkpoints, and dollars of devices that are rented or bought.

function planCosts({ words, view, states, cases, engine, part, h, show, unit, meaning, get, open, solve, say, update }) {
  const YEAR = 8766; // hours, of which nobody says how many a device lives
  // A letter that can be typed here, with what stands for it where nothing is.
  function ask(letter, value) {
    const { state } = get(), isLife = letter === "service_life", said = value === undefined ? "" : isLife ? `${show(value / YEAR, "", 3)} years` : show(value, unit(letter), 4);
    return h("input", { class: "pl-field", size: Math.max(6, said.length), "aria-label": meaning(letter), value: said, placeholder: `a price, ${unit(letter)}`, onchange: (e) => {
      const isEmpty = !e.target.value.trim(), typed = isEmpty ? 1 : words.typed(e.target, view.upper(meaning(letter)), unit(letter), value, { say, suits: (x) => engine.good(letter, x), shown: said, text: isLife ? e.target.value.replace(/^\s*[\d.]+\s*$/, "$& years") : e.target.value });
      if (typed === undefined) return;
      if (isEmpty) delete state.letters[letter]; else state.letters[letter] = typed;
      update();
    } });
  }
  const SAID = { rented: "rent", owned: "buy" };
  function paint() {
    const { state, answer, chosen } = get(), { values } = answer, isRun = state.job === "train", plan = states.plan(state), known = { ...cases.bill(plan), ...plan.device.letters, ...values, ...state.letters };
    const prices = Object.fromEntries(states.prices(state, answer).map((x) => [x.kind, x]));
    const cost = (x) => (!x ? undefined : isRun ? x.cost : x.kind === "rented" ? values.million_cost : solve(states.plan(state, { letters: { price_hour: x.price_hour } }), chosen).values.million_cost);
    const line = (kind, letter, ...more) => { const x = prices[kind], y = cost(x), isAssumed = cases.isAssumedCell(plan, letter), about = isAssumed ? "≈\u00a0" : "", abouts = about || view.about(answer, isRun ? "run_time" : "device_rate"); return h("tr", {}, h("th", { scope: "row" }, SAID[kind]), h("td", {}, ask(letter, known[letter]), isAssumed ? h("small", {}, " assumed") : "", more, x || kind === "rented" || !(plan.device.words.vendor in engine.data.unsold) ? "" : h("small", {}, `; ${engine.data.unsold[plan.device.words.vendor]}`)), h("td", {}, x ? about + show(x.price_hour, "$/h", 3) : "–"), h("td", {}, y === undefined ? "–" : abouts + view.amount(isRun ? "run_cost" : "million_cost", y))); };
    const lost = isRun && values.goodput < 1 ? h("p", {}, h("button", { type: "button", class: "pl-link", onclick: () => open("run_time") }, show(values.run_time, "s", 3)), `, of which failures and checkpoints take ${show(1 - values.goodput, "%", 2)}: a device fails every `, ask("device_mtbf", values.device_mtbf), ", a restart takes ", ask("restart_time", values.restart_time), ", and storage takes ", ask("storage_bandwidth", values.storage_bandwidth), ".",
      values.run_energy ? ` ${view.about(answer, "run_energy")}${show(values.run_energy, "MWh", 3)} in all.` : "") : isRun && values.run_time ? h("p", {}, "Failures and checkpoints are left out, for nobody has counted the parameters of this model.") : isRun ? h("p", {}, "Devices fail so often here that no work would be left.") : null;
    part.costs.replaceChildren(h("h2", {}, isRun ? "Days and dollars" : "Dollars"), lost ?? "", h("table", { class: "pl-prices" }, h("thead", {}, h("tr", {}, [h("span", { class: "pl-hidden" }, "how"), "a device", "an hour of it", isRun ? "the run" : "a million tokens"].map((x) => h("th", { scope: "col" }, x)))), h("tbody", {},
      line("rented", "price_hour"), line("owned", "device_price", " for ", ask("service_life", known.service_life)))));
  }
  return { paint };
}
