// What an answer assumes, as scalebook.answers.assumptions says it: letters that a plan does not give and that move its
// time most, each with its value, where that is from, and the time at its other ends.

function planAssumed(cases) {
  const { engine } = cases, { data, notation } = engine, { ends } = planLikely(engine, { cases });

  // Letters that share an assumed value, and its other values.
  function candidates(plan, chosen, { sheet, given, values, words }, letter) {
    if (plan.job === "rl") return [...Object.entries(data.rl.unsaid).map(([x, [, others]]) => [[x], others]), ...Object.entries(cases.frameworkEnds(plan)).filter(([x, y]) => y && data.rl.own.includes(x)).map(([x, { low, high }]) => [[x], [low, high].map((y) => y * cases.framework(plan)[x])])].filter(([[x]]) => !(x in plan.letters));
    const needed = engine.needed(sheet, new Set(Object.keys(given)), [letter]), rests = new Set(needed.flatMap((f) => [f.letter, ...f.inputs]));
    const cells = new Map([...ends(plan)].filter(([x]) => x in given)), groups = new Map();
    for (const f of needed) if (!f.inputs.length && data.spreads[f.letter]) cells.set(f.letter, { low: data.spreads[f.letter][0], high: data.spreads[f.letter][1], cell: f.letter });
    for (const [x, { low, high, cell }] of cells) if (rests.has(x)) groups.set(cell, { names: [...(groups.get(cell)?.names ?? []), x].sort((a, b) => a.length - b.length), by: [low, high] });
    const found = [...groups.values()].map(({ names, by }) => [names, by.map((x) => Math.min(values[names[0]] * x, notation[names[0]][3] === "share" ? 1 : Infinity)).map((x) => (notation[names[0]][4] ? Math.floor(x + 0.5) : x)), true]); // a range
    const isOpen = (x) => rests.has(x) && !(x in plan.letters) && !found.some(([names]) => names.includes(x));
    if (plan.job === "serve" && engineOf(plan) === data.usual.engine) found.push([["engine"], data.changes.engines[plan.device.words.vendor] ?? ["vllm"]], ...Object.entries(data.changes.unnamed).filter(([x]) => !(x in plan.letters)).map(([x, others]) => [[x], others]));
    if (plan.job === "train") {
      const isNamed = (plan.framework ?? data.usual.framework) !== data.usual.framework; // or else with the ends' libraries too
      const rows = data.ends.map((framework) => (isNamed ? data.frameworks[framework].letters : cases.training.answer({ ...plan, framework }, chosen).values)), names = [...new Set(rows.flatMap(Object.keys))].sort();
      for (const x of names.filter((y) => y in given && isOpen(y))) {
        const others = rows.map((row) => row[x] ?? data.usual.train[x]).filter((y) => y !== undefined && y !== given[x]);
        if (others.length) found.push([[x], others]);
      }
      // Words that a layout has from the plan's framework, and neither from the plan nor from a search.
      const own = cases.wordsOf(plan), isOfFramework = (x) => x in own && words[x] === own[x] && !(x in (plan.fixed ?? {}));
      for (const [x, { way, without, beside, values: others }] of Object.entries(data.assumed.options)) {
        if (rests.has(way) && values[way] > 1 && (isOfFramework(x) || (x in values && isOpen(x)))) found.push([[x], values[without] > 1 ? beside : others]);
      }
    }
    for (const [x, others] of Object.entries(data.assumed.others)) if (x in values && isOpen(x)) found.push([[x], others]);
    return found;
  }
  const engineOf = (plan) => plan.engine ?? data.usual.engine;
  function source(plan, { sheet, given, words = {} }, letter) {
    if (letter === "engine") return "no engine is named";
    if (letter in words) return data.frameworks[plan.framework].name;
    if (plan.job === "rl") return letter in data.rl.unsaid ? "the default" : data.frameworks[plan.framework].name;
    if (!(letter in given)) return sheet.by.get(letter).sources.join(", ");
    const owner = plan.job === "train" && cases.owners(plan)[letter];
    if (owner) return owner === data.frameworks[data.usual.framework] ? "half-way, no framework is named" : owner.name;
    const engine_ = plan.job === "serve" && letter in data.engines[plan.engine].letters && data.engines[plan.engine];
    if (!engine_ && cases.isAssumedCell(plan, letter)) return "assumed, as comparable devices have";
    return engine_ ? engine_.name : letter in cases.at(plan.device, plan.precision) || engine.reads(plan.model)[letter] ? plan.device.name : "the default";
  }
  function* assumed(plan, chosen, most = data.assumed.most) {
    const letter = { train: "step_time", rl: "update_time" }[plan.job] ?? "tpot", thing = cases.of(plan.job), here = thing.answer(plan, chosen), found = [];
    const answer = { ...here, given: cases.used(here.sheet, here.known) };
    // The plan and its layout with another value.
    const changed = (names, x) => (names[0] === "engine" ? [{ ...plan, engine: x }, chosen] : typeof x === "string" ? [plan, { ...chosen, words: { ...chosen.words, [names[0]]: x } }]
      : [{ ...plan, letters: { ...plan.letters, ...Object.fromEntries(names.map((n) => [n, x])) } }, chosen]);
    // The answer at another value, null if the layout cannot run there; it has no time if arithmetic forbids the value.
    const tryAt = (names, x) => {
      try {
        const { values, why } = thing.answer(...changed(names, x));
        return why && (plan.job !== "train" || values[letter] !== undefined) ? null : values;
      } catch (error) { if (error.constructor !== Error) throw error; return null; } // a mistake of the page is not a refusal
    };
    // The possible value that is nearest to one that arithmetic forbids.
    const nearest = (names, value, end) => {
      let found = [], least = 0, most = data.assumed.steps;
      while (most - least > 1) {
        const middle = Math.floor((least + most) / 2), x = value + ((end - value) * middle) / data.assumed.steps, answer = tryAt(names, x)?.[letter] ?? null;
        if (answer === null) most = middle; else [found, least] = [[{ value: x, answer }], middle];
      }
      return found;
    };
    const share = (x, letter) => Math.abs(x / here.values[letter] - 1);
    // As Python picks them: at a rate only what moves the time of as many users as wait now.
    const isWeak = (names, others) => plan.letters.rate !== undefined && !others.some((x) => share(thing.answer(...changed(names, x), here.values.users).values[letter], letter) > data.assumed.least / 4);
    for (const [names, others, isRange] of candidates(plan, chosen, answer, letter)) {
      if (isRange && isWeak(names, others)) continue;
      const value = { engine: engineOf(plan), ...here.words }[names[0]] ?? answer.values[names[0]] ?? here.known[names[0]], hasFirst = names[0] === "engine" || names[0] in data.changes.unnamed, tried = [];
      for (const x of new Set(others.filter((y) => y !== value))) {
        yield { list: found };
        const there = tryAt(names, x), time = there && there[letter], [last] = time === undefined && isRange ? nearest(names, value, x) : [];
        if (time !== undefined && (time !== null || isRange)) tried.push({ value: x, answer: time, ...(hasFirst ? { ttft: there.ttft } : {}) });
        if (last) tried.push(last);
      }
      const moved = Math.max(0, ...tried.flatMap((x) => (x.answer === null ? 1 : [share(x.answer, letter), hasFirst ? share(x.ttft, "ttft") : 0])));
      if (moved > data.assumed.least) found.push({ letter: names[0], letters: names, value, source: source(plan, answer, names[0]), ends: tried, moved });
    }
    return { list: found.sort((a, b) => b.moved - a.moved).slice(0, most) };
  }
  return assumed;
}
