const engine = planEngine(data), cases = planCases(engine), searching = planSearch(cases), words = planWords(engine);
const rows = planRows(engine, words, cases), states = planState({ engine, cases, words, rows });
const row = (p) => ({ ...p, model: data.models[p.model] ?? p.model, device: data.devices[p.device] ?? p.device });
const answer = (p) => { const q = row(p), r = cases.of(q.job).answer(q); return { values: r.values, why: r.why }; };
const find = (p) => {
  const q = row(p), r = searching.searched(q);
  return { ...r, layouts: 0, space: 0, near: r.best.length ? searching.neighbours(q, r.space, r.best[0]) : [] };
};
const tasks = planTasks(cases);
const ended = (running) => { for (;;) { const { value, done } = running.next(); if (done) return value; } };
const whole = (s, c) => { const r = cases.of(s.job).answer(states.plan(s), c); return { ...r, laid: c, given: cases.used(r.sheet, r.known) }; };
const ranges = (s, c, x) => planLikely(engine, { spreadOf, cases }).likely(states.plan(s), whole(s, c), x);
const rests = (s, c) => ended(tasks.assumed(states.plan(s), c, 6)).list;
const attempt = (f) => { try { return { is: f() }; } catch (error) { return { error: error.message }; } };
const csv = ([s, c]) => states.sheet(s, whole(s, c), c);
const CALLS = {
  best: (p) => searching.searched(row(p)).best, lacking: (p) => cases.lacking(row(p)),
  market: (p) => ended(tasks.market(row(p))), agents: (p) => ended(tasks.agents(row(p))), updates: (p) => ended(tasks.updates(row(p))), sessions: ([p, c]) => planSessions(cases).served(row(p), c), assumed: ([s, c]) => rests(s, c), changes: ([s, c]) => ended(tasks.changes(states.plan(s), c)),
  prices: ([s, c]) => states.prices(s, whole(s, c)),
  chosen: ([s, choice, said]) => {
    states.choose(s, choice, said);
    return { is: states.chosenOf(s, choice), letters: Object.fromEntries(Object.entries(s.letters).filter(([n]) => /overlap|pieces|beside|offload/.test(n))) };
  },
  json: ([s, c]) => states.json(s, whole(s, c), c, ranges(s, c, [s.job === "train" ? "step_time" : "tpot"]), rests(s, c)),
  pooled: states.pooled, write: states.write,
  answer, tried: (p) => attempt(() => answer(p)), find, csv, pools: (p) => searching.pools(row(p)),
  config: (x) => attempt(() => rows.model(x)), link: (x) => { const dropped = []; return { ...attempt(() => states.read(x, dropped)), dropped }; },
  device: (x) => attempt(() => rows.device(x, null)), read: (x) => words.read(...x),
  again: (x) => states.write(states.read(x)),
  ranges: ([s, c, x]) => ranges(s, c, x),
  shown: ([n, x, side]) => words.read(words.show(x, words.unit(n), 3, side), words.unit(n), x), granted: ([s, c, x]) => { states.take(s, c, x); return searching.searched(states.plan(s), 1).best.length; },
  python: ([s, c]) => states.python(s, c), flags: ([s, c, f]) => states.flags(s, c, f),
};
const ask = (name, said) => JSON.stringify(CALLS[name](JSON.parse(said)) ?? null);
