// How far to trust an answer: errors of measured rows, those most like it, and the public runs of its model.

function planEvidence({ states, words, part, h, show, data, get }) {
  // The public runs of a model, read from their columns (trust.py) when they are first asked for.
  const SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  let runs;
  function all() {
    const { users, first, each, steps, ...columns } = data.measured, lists = [users, first, each].map((x) => x.split(" "));
    const times = (text, step) => {
      let last = 0;
      return [...text.matchAll(/(\d+):|[A-Za-z]/g)].map(([sign, whole]) => step ** (last = whole ? Number(whole) : last + SIGNS.indexOf(sign) - 26));
    };
    return lists[0].flatMap((several, i) => {
      const own = Object.fromEntries(Object.entries(columns).map(([x, y]) => [x, y[i]])), firsts = times(lists[1][i], steps.first), others = times(lists[2][i], steps.each);
      return several.split(",").map((x, k) => ({ ...own, users: Number(x), first: firsts[k], each: others[k] }));
    });
  }
  const runsOf = (model) => (runs ??= all()).filter((x) => x.model === model);
  // Rows like this one: of the same device, model or precision, the nearest first.
  const shape = (name) => { const plain = name.toLowerCase().replace(/[^a-z0-9.]/g, ""); return [/^[a-z]+/.exec(plain)?.[0] ?? "", /(\d+)b(?![a-z0-9]*\db)/.exec(plain)?.[1] ?? ""]; };
  function alike(state, named) {
    const [family, size] = shape(named), { devices } = state.letters, class_ = (x) => (/4/.test(x) ? 4 : /8/.test(x) ? 8 : 16);
    return data.trained.map((row) => { const [f, n] = shape(row[0]), own = f === family && family ? (n === size ? 3 : 1) : 0; return [own + 2 * (row[1] === state.device) + (class_(row[3]) === class_(state.precision)), -Math.abs(Math.log(row[2] / devices)), row]; })
      .filter(([score]) => score >= 3).sort((a, b) => b[0] - a[0] || b[1] - a[1]).map((x) => x[2]);
  }
  function rowsOf(near) { // several runs of the same on one line
    const found = new Map();
    for (const [model, device, many, precision, off] of near) {
      const said = `${model.replaceAll("_", " ")}, ${words.grouped(many)} × ${data.devices[device].name}, ${precision.replace(/[ -].*/, "")}`;
      found.set(said, [...(found.get(said) ?? []), off]);
    }
    return found;
  }
  function trust() {
    const { state } = get(), job = state.job, [[, sets, rows, median, covered], [other, , moreRows, moreMedian] = []] = data.trust[job];
    const model = typeof state.model === "string" ? state.model : null, here = job === "serve" ? runsOf(model) : [], near = job === "train" ? alike(state, states.model(state.model).name) : [];
    const said = { train: "steps", rl: "updates and parts of them" }[job] ?? "decoding steps";
    part.trust.replaceChildren(h("div", {}, h("h2", {}, "How far to trust it"), h("p", {}, `${words.grouped(rows)} measured ${said} of ${sets} published sets: median error ${show(median, "%", 2)}; ${show(covered, "%", 2)} of them lie in the range that stands here beside a number. `,
      job === "rl" ? "" : job === "train" ? `Of ${words.grouped(moreRows)} peaks of memory the median error is ${show(moreMedian, "%", 2)}.` : `Of ${words.grouped(moreRows)} first tokens the median error is ${show(moreMedian, "%", 2)}: queues and hosts make the most of them.`),
    near.length ? [h("p", {}, "Measured steps most like this one, and how far the prediction is off:"), h("ul", {}, [...rowsOf(near)].slice(0, 5).map(([said, offs]) => h("li", {}, `${said}: `, h("b", {}, offs.slice(0, 6).map((x) => `${x >= 0 ? "+" : "−"}${show(Math.abs(x), "%", 2)}`).join(", ")))))] : job === "train" ? h("p", {}, "No measured step of such a model on such devices is at hand.") : null,
    job === "serve" ? h("p", {}, here.length ? `${words.grouped(here.length)} of the public runs are of this model, ${words.grouped(here.filter((x) => x.device === state.device).length)} of them on this device.` : "None of the public runs is of this model.") : null, h("p", { class: "pl-soft" }, `Not modelled: ${data.trust.without[job]}.`)));
  }
  return { trust, runsOf };
}
