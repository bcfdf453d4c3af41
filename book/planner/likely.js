// How far an answer may be from its value, as scalebook.language.interval says: cells that have ends, and what spreads
// say of the results of formulas, are drawn some hundreds of times, all at once.

function planLikely(engine, { spreadOf, cases }) {
  const { data, notation } = engine, isShare = (x) => notation[x]?.[3] === "share";

  // The ends of the known letters of a plan: those of the device's cells, or what the formula that made a cell may be off.
  function ends(plan) {
    const { device, precision, letters, model } = plan, found = new Map();
    for (const [x, y] of Object.entries(device.ends ?? {})) found.set(x, { low: y[0], high: y[1], cell: y[2] ?? x, origin: device.origin });
    for (const kind of ["matmul", "training", "grouped"]) {
      found.delete(`${kind}_efficiency`);
      const blocks = kind === "matmul" && cases.hasScales(plan) ? found.get("matmul_fp8_block") : null;
      const own = blocks ?? found.get(`${kind}_${precision}`);
      if (own) found.set(`${kind}_efficiency`, own);
    }
    for (const [x, own] of Object.entries(engine.reads(model))) if (found.has(own) && !found.has(x)) found.set(x, found.get(own));
    for (const row of [device, model]) for (const x of row.made ?? []) if (x in data.spreads && !found.has(x)) found.set(x, { low: data.spreads[x][0], high: data.spreads[x][1], cell: x, origin: "" });
    for (const [x, own] of Object.entries(plan.job === "train" ? cases.frameworkEnds(plan) : {})) own ? found.set(x, { ...own, cell: x }) : found.delete(x);
    for (const x of Object.keys(letters)) found.delete(x); // what is given has no spread
    return found;
  }

  // By letter the ends that eight in ten cases lie between; a letter that rests on nothing uncertain is not among them.
  function likely(plan, answer, asked, level = 0.8) {
    if (plan.job === "train" && (plan.framework ?? "unnamed") === "unnamed") { // both ends, as scalebook.language.interval has them
      const [fast, slow] = ["fastest", "slowest"].map((framework) => cases.training.answer({ ...plan, framework }, answer.laid ?? plan.layout).values);
      const open = asked.filter((x) => fast[x] !== slow[x]), own = drawn(plan, answer, asked, level);
      return { ...own, ...Object.fromEntries(open.map((x) => {
        const [a, b, v] = [fast[x], slow[x], answer.values[x]], [low, high] = b >= a ? [0.95 * a, 1.05 * b] : [b / 1.05, a / 0.95];
        return [x, [Math.min(low, v, own[x]?.[0] ?? v), Math.max(high, v, own[x]?.[1] ?? v)]]; // never narrower than the cells
      })) };
    }
    if (plan.job !== "serve") return drawn(plan, answer, asked, level);
    const all = [answer.values, ...others(plan, answer)], found = drawn(plan, answer, asked, level), given = (x) => all.map((y) => y[x]).filter((y) => y !== undefined);
    return Object.fromEntries(asked.filter((x) => x in answer.values).map((x) => {
      const low = [...given(x), ...given(`${x}_low`), found[x]?.[0] ?? Infinity], high = [...given(x), ...given(`${x}_high`), found[x]?.[1] ?? 0];
      return [x, [Math.min(...low), Math.max(...high)]];
    }));
  }
  // A service's values with each engine, for as many users, if its plan is of none: a range holds them all, as
  // scalebook.language.interval does.
  function others(plan, { laid = plan.layout, values: { users } }) {
    if ((plan.engine ?? data.usual.engine) !== data.usual.engine) return [];
    return Object.keys(data.engines).flatMap((x) => {
      const there = cases.serving.answer({ ...plan, engine: x }, laid, users);
      return there.why ? [] : [there.values];
    });
  }
  function drawn(plan, answer, asked, level) {
    const { sheet, values, given } = answer, known = ends(plan), found = {}, outputs = asked.filter((x) => x in values);
    const leaves = new Map(), factors = new Map(), met = new Map();
    const own = (x, f) => {
      if (!f || !data.spreads[x]) return f ? undefined : known.get(x);
      const [low, high, lowest = low, highest = high] = data.spreads[x], visits = f.inputs.includes("experts_time") && values.experts_time > 0; // lacks more
      return { low: visits ? lowest : low, high: visits ? highest : high, cell: x, origin: f.name };
    };
    // What each letter rests on that is uncertain, itself among it.
    const walk = (x) => {
      if (met.has(x)) return met.get(x);
      const all = new Set(), f = x in given ? null : sheet.by.get(x);
      met.set(x, all);
      for (const y of f?.inputs ?? []) for (const z of walk(y)) all.add(z);
      if (x in values && own(x, f)) { (all.size ? factors : leaves).set(x, own(x, f)); all.add(x); }
      return all;
    };
    outputs.forEach(walk);
    const names = [...leaves.keys(), ...factors.keys()], moved = [...leaves.keys(), ...[...factors.keys()].map((x) => `${x}__factor`)];
    const run = engine.compile([sheet], new Set([...Object.keys(given), ...moved]), [moved], outputs, false, factors)(given);
    outputs.forEach((output, i) => {
      const groups = new Map();
      for (const x of names) if (met.get(output).has(x)) { const { cell } = leaves.get(x) ?? factors.get(x); groups.set(cell, [...(groups.get(cell) ?? []), x]); }
      if (!groups.size) return;
      const causes = [...groups.values()].map((several) => ({ name: `${[...several].sort()[0]} ${(leaves.get(several[0]) ?? factors.get(several[0])).origin}`, ends: several.map((x) => { const { low, high } = leaves.get(x) ?? factors.get(x); return [x, low, high]; }) }));
      const drawn = spreadOf(causes, (factor) => {
        run.at[0](...names.map((x) => { const by = factor[x] ?? 1, v = values[x] * by; return factors.has(x) ? by : isShare(x) ? Math.min(1, v) : v; }));
        return run.out[i + 1];
      }, level);
      if (drawn) found[output] = drawn;
    });
    return found;
  }
  return { likely, ends };
}
