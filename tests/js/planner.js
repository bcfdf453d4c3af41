const engine = planEngine(data), cases = planCases(engine), searching = planSearch(cases), words = planWords(engine);
const rows = planRows(engine, words), states = planState({ engine, cases, words, rows });
const row = (p) => ({ ...p, model: data.models[p.model] ?? p.model, device: data.devices[p.device] ?? p.device });
const answer = (p) => { const q = row(p), r = cases.of(q.job).answer(q); return { values: r.values, why: r.why }; };
const find = (p) => {
  const q = row(p), r = searching.searched(q);
  return { ...r, layouts: 0, space: 0, near: searching.neighbours(q, r.space, r.best[0]) };
};
const attempt = (f) => { try { return { is: f() }; } catch (error) { return { error: error.message }; } };
const csv = ([s, c]) => {
  const r = cases.of(s.job).answer(states.plan(s), c);
  return states.sheet(s, { ...r, given: cases.used(r.sheet, r.known) }, c);
};
const CALLS = {
  best: (p) => searching.searched(row(p)).best, lacking: (p) => cases.lacking(row(p)),
  pooled: states.pooled, write: states.write,
  answer, tried: (p) => attempt(() => answer(p)), find, csv, pools: (p) => searching.pools(row(p)),
  config: (x) => attempt(() => rows.model(x)), link: (x) => attempt(() => states.read(x)),
  device: (x) => attempt(() => rows.device(x, null)), read: (x) => words.read(...x),
  again: (x) => states.write(states.read(x)),
  ranges: ([s, c, x]) => {
    const p = states.plan(s), r = cases.of(s.job).answer(p, c), given = cases.used(r.sheet, r.known);
    return planLikely(engine, { spreadOf, cases }).likely(p, { ...r, given, laid: c }, x);
  },
  python: ([s, c]) => states.python(s, c), flags: ([s, c, f]) => states.flags(s, c, f),
};
const ask = (name, said) => JSON.stringify(CALLS[name](JSON.parse(said)) ?? null);
