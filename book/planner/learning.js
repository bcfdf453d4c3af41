// The answer about reinforcement learning: the time of an update, its wall, and what single changes give.

function planLearning({ states, view, draw, worker, part, at, h, show, engine, data, get, set, update, sentence, replace, open, paint: beside }) {
  const many = (n, said) => `${show(n)} ${said}${n === 1 ? "" : "s"}`, HEADS = ["an update", "waiting", "the wall", "dollars"];
  function paint(plan) {
    const { state, answer } = get(), { values, known } = answer, { devices, rollout_wall: wall } = values, figures = (found) => part.figures.replaceChildren(view.figures("rl", answer, open, found));
    const over = known.memory > known.hbm_capacity ? [" ", h("span", { class: "pl-bad" }, h("b", {}, `The learners hold ${show(known.memory, "B", 3)} of ${show(known.hbm_capacity, "B", 3)} on each device, so they do not fit: split them further.`))] : "";
    at.verdict.replaceChildren(h("p", {}, h("b", { class: "pl-good" }, `An update takes ${show(values.update_time, "s", 3)}.`), wall === undefined ? ` ${many(values.rollout_devices, "device")} write answers while ${many(values.train_devices, "other")} learn, so no device waits for the longest answer.`
      : ` The longest answer, the new weights and switching take ${show(values.rollout_tail + values.sync_time + values.update_overhead, "s", 3)} of it on any number of devices. ${wall > devices ? `From ${show(wall, "", 3)} devices on that is half of an update.` : `These ${show(devices)} devices are beyond the wall of ${show(wall, "", 3)}: twice as many take less than a quarter off.`}`, over));
    figures();
    part.bars.replaceChildren(...view.bars("rl", answer, open));
    beside(plan);
    return (spread) => figures(spread);
  }
  function along({ together, apart }) {
    const { state, answer } = get(), { values } = answer, { devices, rollout_wall: wall } = values, own = state.letters.age ? apart : together, other = state.letters.age ? together : apart;
    if (own.length < 2) return;
    const ends = (points, i) => [Math.min, Math.max].map((f) => f(...points.map((p) => p[i]))), [low, high] = ends(own, 0), [least, most] = ends([...own, ...other], 1), lines = [{ points: own, isSteps: true }, { points: other, look: "pl-second" }];
    const floor = values.rollout_tail + values.sync_time + values.update_overhead;
    if (floor) lines.push({ points: [[low, floor], [high, floor]], look: "pl-end" });
    if (wall > low && wall < high) lines.push({ points: [[wall, Math.min(least, floor)], [wall, most]], look: "pl-end" });
    part.curve.replaceChildren(h("h2", {}, "Seconds an update against devices"), draw.curve({ lines, marker: { x: devices, y: values.update_time }, xUnit: "", yUnit: "s", xName: "devices", yName: "", label: `time of an update against devices; now ${show(values.update_time, "s")} on ${show(devices)}`,
      moved: (n) => { state.letters.devices = n; sentence(); update(); }, doubling: own.map((p) => p[0]), steps: own.map((p) => p[0]) }),
    h("p", { class: "pl-soft" }, `Drag the dot. Orange: ${state.letters.age ? "all devices write, then all learn" : "some devices write while others learn, an update later"}. ${floor ? `Dotted: the floor of ${show(floor, "s", 3)}${wall > low && wall < high ? `, and the wall at ${show(wall, "", 3)} devices` : ""}.` : ""}`));
  }
  function changes(all) {
    const { state, answer: { values, why: nothing } } = get(), cells = (x) => [show(x.update_time, "s", 3), show(x.idle_share, "%", 2), x.rollout_wall === undefined ? "none" : show(x.rollout_wall, "", 3), x.update_cost === undefined ? "no price" : `$${show(x.update_cost, "", 3)}`].map((y, i) => h("td", { "data-head": HEADS[i] }, y));
    const go = ({ letters, ...change }) => () => replace({ ...state, ...change, letters: { ...state.letters, ...letters } });
    part.table.replaceChildren(h("h2", {}, "One change at a time"), h("div", { class: "pl-scroll", tabindex: 0, role: "region", "aria-label": "single changes" }, h("table", { class: "pl-near" }, h("thead", {}, h("tr", {}, ["change", ...HEADS].map((x) => h("th", { scope: "col" }, x)))), h("tbody", {}, nothing ? "" : h("tr", { class: "pl-me" }, h("th", { scope: "row" }, "as asked"), cells(values)),
      all.map(({ said, why, change, values: x }) => h("tr", {}, h("th", { scope: "row" }, why ? said : h("button", { type: "button", class: "pl-link", onclick: go(change) }, said)), why ? h("td", { colspan: 4, class: "pl-why-not" }, why) : cells(x)))))));
  }
  return { paint, along, changes };
}
