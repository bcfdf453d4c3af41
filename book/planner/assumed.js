// What an answer assumes, as scalebook.answers.assumptions says it: letters that a plan does not give and that move its
// time most, each with its value, where that is from, and the time at its other ends.

function planAssumed(cases) {
  const { engine } = cases, { data, notation } = engine, { ends } = planLikely(engine, { cases });

  // Letters that share an assumed value, and its other values.
  function candidates(plan, { sheet, given, values }, letter) {
    if (plan.job === "rl") return [...Object.entries(data.rl.unsaid).map(([x, [, others]]) => [[x], others]), ...Object.entries(cases.frameworkEnds(plan)).filter(([x, y]) => y && data.rl.own.includes(x)).map(([x, { low, high }]) => [[x], [low, high].map((y) => y * cases.framework(plan)[x])])].filter(([[x]]) => !(x in plan.letters));
    const needed = engine.needed(sheet, new Set(Object.keys(given)), [letter]), rests = new Set(needed.flatMap((f) => [f.letter, ...f.inputs]));
    const cells = new Map([...ends(plan)].filter(([x]) => x in given)), groups = new Map();
    for (const f of needed) if (!f.inputs.length && data.spreads[f.letter]) cells.set(f.letter, { low: data.spreads[f.letter][0], high: data.spreads[f.letter][1], cell: f.letter });
    for (const [x, { low, high, cell }] of cells) if (rests.has(x)) groups.set(cell, { names: [...(groups.get(cell)?.names ?? []), x].sort((a, b) => a.length - b.length), by: [low, high] });
    const found = [...groups.values()].map(({ names, by }) => [names, by.map((x) => Math.min(values[names[0]] * x, notation[names[0]][3] === "share" ? 1 : Infinity)).map((x) => (notation[names[0]][4] ? Math.floor(x + 0.5) : x)), true]); // a range
    const isOpen = (x) => rests.has(x) && !(x in plan.letters) && !found.some(([names]) => names.includes(x));
    if (plan.job === "train") {
      const rows = data.ends.map((x) => data.frameworks[x].letters), names = [...new Set(rows.flatMap(Object.keys))].sort();
      for (const x of names.filter((y) => y in given && isOpen(y))) found.push([[x], rows.map((row) => row[x] ?? data.usual.train[x]).filter((y) => y !== undefined)]);
    }
    for (const [x, others] of Object.entries(data.assumed.others)) if (x in values && isOpen(x)) found.push([[x], others]);
    return found;
  }
  function source(plan, { sheet, given }, letter) {
    if (plan.job === "rl") return letter in data.rl.unsaid ? "the default" : data.frameworks[plan.framework].name;
    if (!(letter in given)) return sheet.by.get(letter).sources.join(", ");
    if (plan.job === "train" && letter in cases.framework(plan)) return plan.framework === data.usual.framework ? "half-way, no framework is named" : data.frameworks[plan.framework].name;
    const engine_ = plan.job === "serve" && letter in data.engines[plan.engine].letters && data.engines[plan.engine];
    if (!engine_ && plan.device.sources[letter]?.[0] === "assumed") return "assumed, as comparable devices have";
    return engine_ ? engine_.name : letter in cases.at(plan.device, plan.precision) || engine.reads(plan.model)[letter] ? plan.device.name : "the default";
  }
  function* assumed(plan, chosen, most = 3) {
    const letter = { train: "step_time", rl: "update_time" }[plan.job] ?? "tpot", thing = cases.of(plan.job), here = thing.answer(plan, chosen), now = here.values[letter], found = [];
    const answer = { ...here, given: cases.used(here.sheet, here.known) };
    for (const [names, others, isRange] of candidates(plan, answer, letter)) {
      const value = answer.values[names[0]] ?? here.known[names[0]], tried = [];
      for (const x of new Set(others.filter((y) => y !== value))) {
        yield { list: found };
        try { // another value may not go with this layout
          const there = thing.answer({ ...plan, letters: { ...plan.letters, ...Object.fromEntries(names.map((n) => [n, x])) } }, chosen);
          if (!there.why && there.values[letter] !== undefined) tried.push({ value: x, answer: there.values[letter] });
          else if (isRange) tried.push({ value: x, answer: null }); // within its range, and the layout cannot run there
        } catch (error) { if (error.constructor !== Error) throw error; } // a mistake of the page is not a refusal
      }
      const moved = Math.max(0, ...tried.map((x) => (x.answer === null ? 1 : Math.abs(x.answer / now - 1))));
      if (moved > data.assumed.least) found.push({ letter: names[0], value, source: source(plan, answer, names[0]), ends: tried, moved });
    }
    return { list: found.sort((a, b) => b.moved - a.moved).slice(0, most) };
  }
  return assumed;
}
