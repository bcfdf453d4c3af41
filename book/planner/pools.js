// The cheapest two pools that serve a rate: prompts read on devices of one layout, answers written on devices of another.
// It gives what serve.apart gives (scalebook/inference/pools.py), in the same order; of a plan that names its two
// layouts (`pools`) these alone, in as few copies as will do.

function planPools(cases, plan, most = 2e7) {
  const { engine, g } = cases, { rate, devices, output } = plan.letters, { ttft, tpot } = plan.targets, thing = cases.serving;
  const powers = (n) => Array.from({ length: Math.floor(Math.log2(n)) + 1 }, (_, i) => 2 ** i);
  const several = plan.model.letters.experts > 0, all = powers(devices), LOAD = 0.8;
  const own = { ...plan, letters: { ...plan.letters, users: 1 } };
  for (const x of ["rate", "devices"]) delete own.letters[x];

  const is = (which, { letters, words }) => !plan.pools || ["tp", "ep", "attention_dp", "exchange"].every((x) => ({ ...letters, ...words })[x] === plan.pools[which][x]);

  // All layouts: how long each reads a prompt, and how few copies of it write answers fast enough.
  const layouts = [];
  let known;
  for (const exchange of several ? ["all_reduce", "all_to_all", "gather"] : [undefined]) {
    const words = several ? { exchange } : {}, at = thing.at(own, { letters: {}, words: { exchange: exchange ?? "all_reduce" } }), still = { ...at.known };
    known = at.known;
    if (!({ ...plan.device.letters, ...plan.letters }.scaleout_bandwidth > 0)) return { why: "the device's network is not known" };
    for (const x of ["tp", "ep", "attention_dp", "replicas", "users"]) delete still[x];
    const given = cases.used(at.own, still), outputs = ["cache_room", "max_users", "chunks_of_prompt", "mixed_time", "token_time"];
    const { at: [place, price], out } = engine.compile([at.own], new Set(Object.keys(given)), [["tp", "ep", "attention_dp"], ["replicas", "users"]], outputs, false)(given);
    for (const tp of all) for (const ep of several ? all.filter((x) => x <= plan.model.letters.experts) : [1]) for (const groups of several ? all : [1]) {
      if (tp * groups > devices) continue;
      const letters = { tp, ep, attention_dp: groups };
      if (!is("prefill", { letters, words }) && !is("decode", { letters, words })) continue;
      const values = thing.derived({ ...known, replicas: 1, ...letters, ...words });
      if (thing.rules.some((r) => cases.holds(r, values) === false)) continue;
      place(tp, ep, groups);
      const step = (users, replicas = 1) => { price(replicas, users); return out[5]; };
      step(1);
      if (!(out[1] > 0) || !(out[2] >= groups)) continue;
      const room = Math.max(1, out[2]), least = out[5], group = tp * groups;
      step(groups);
      const time = out[3] * out[4];
      const beyond = (users) => { const over = step(users) / tpot - 1; return over > 0 ? over : Math.min(over, -1e-300); };
      const full = tpot ? Math.max(1, cases.firstWhole(beyond, room) - 1) : room, fits = !tpot || step(full) <= tpot;
      const copies = Math.ceil((rate * output * step(full)) / full), most1 = copies * full;
      const users = Math.min(cases.firstWhole((x) => x - rate * output * step(x, copies), most1), most1), token = step(users, copies);
      layouts.push({ letters, words, group, groups, least, read: time, write: token, copies, fits: fits && (!tpot || token <= tpot), link: known.link_bandwidth ?? tp * known.scaleout_bandwidth * known.far_efficiency });
    }
  }
  if (!layouts.length) return { why: `the weights fit on no layout of ${g(devices)} devices or fewer` };
  const readers = layouts.filter((x) => is("prefill", x)), writers = layouts.filter((x) => x.fits && is("decode", x));
  if (!writers.length) return { why: `no pool that writes takes ${g(1e3 * tpot)} ms a token: the fastest step has ${g(1e3 * Math.min(...layouts.map((x) => x.least)))} ms` };
  if (readers.length * writers.length > most) return { why: "there are too many pairs for a page: ask serve.apart in Python" };

  // Every pair: what is sent between them rests on both, and a queue of prompts is as full as the first token allows.
  const price = known.price_hour, cache = (known.prompt * known.layers * known.kv_width * known.kv_bits) / 8, before = (a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
  let best, carried = false, fastest = Infinity, fewest = Infinity;
  for (const r of readers) for (const w of writers) {
    const sent = cache / Math.min(r.link, w.link), fixed = known.first_overhead + r.read + sent + (known.first_tokens - 1) * w.write;
    if (!(sent <= r.read)) continue;
    carried = true;
    fastest = Math.min(fastest, fixed);
    const wait = ttft ? ttft - fixed : Infinity;
    if (!(wait > 0)) continue;
    const copies = Math.ceil((rate * r.read) / (r.groups * (ttft ? (2 * wait) / (r.read + 2 * wait) : LOAD))), used = copies * r.group + w.copies * w.group;
    fewest = Math.min(fewest, used);
    if (used > devices) continue;
    const cost = price === undefined ? used : copies * r.group * price + w.copies * w.group * price, entry = [cost, w.write, fixed, r, w, copies];
    if (!best || before(entry, best) < 0) best = entry;
  }
  if (!carried) return { why: "no link carries caches as fast as prompts are read" };
  if (!Number.isFinite(fewest)) return { why: `the first token is met by no two pools: without a wait the fastest have ${g(1e3 * fastest)} ms` };
  if (!best) return { why: `two pools take ${g(fewest)} devices or more` };
  const [, , , r, w, copies] = best, sheet = engine.sheet(engine.listed(engine.data.serve.pools));
  const letters = { prompt_time: r.read, token_time: w.write, load: (rate * r.read) / (copies * r.groups), link_bandwidth: Math.min(r.link, w.link), rate, prefill_devices: copies * r.group, decode_devices: w.copies * w.group };
  for (const x of ["prompt", "output", "layers", "kv_width", "kv_bits", "first_overhead", "first_tokens"]) letters[x] = known[x];
  if (price !== undefined) Object.assign(letters, { prefill_price: price, decode_price: price });
  const { values } = engine.evaluate(sheet, letters);
  return { values, given: letters, prefill: { letters: { ...r.letters, replicas: copies }, words: r.words }, decode: { letters: { ...w.letters, replicas: w.copies }, words: w.words } };
}
