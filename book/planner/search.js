// The search over all layouts and words of a plan, and why the neighbours of a layout are worse.  It gives what
// scalebook.search gives, in the same order: of equal strategies the first is the better.

function planSearch(cases) {
  const { engine, holds } = cases, { data } = engine;
  const divisors = (n) => Array.from({ length: Math.floor(Math.sqrt(n)) }, (_, i) => i + 1).filter((x) => n % x === 0)
    .flatMap((x) => (x * x === n ? [x] : [x, n / x])).sort((a, b) => a - b);
  const powers = (n) => Array.from({ length: Math.floor(Math.log2(n)) + 1 }, (_, i) => 2 ** i);
  // Copies of a model that are tried where a rate says what is needed: each number, and of many only every hundredth part.
  const copies = (n) => {
    const found = [];
    for (let x = 1; x <= n; x += Math.max(1, Math.floor(x / 256))) found.push(x);
    return found;
  };
  const shared = (dp, cp, schedule) => dp * cp > 1 || data.schedules[schedule].copies > 1;

  // What is searched where a plan does not fix it: letters and words with their values, the first the usual.
  function space(plan) {
    const fixed = plan.fixed ?? {}, pick = (values) => Object.fromEntries(Object.entries(values).map(([x, y]) => [x, x in fixed ? [fixed[x]].flat() : y]));
    const known = plan.job === "serve" ? { ...cases.engine.shape(plan.model), ...plan.letters } : cases.training.known(plan), { devices } = known;
    if (plan.job === "serve") {
      const some = powers(devices), values = { powers: some, "powers up to experts": some.filter((x) => x <= known.experts), each: copies(devices) };
      const ours = Object.entries(data.space.serve).filter(([, [, isOfExperts]]) => !isOfExperts || known.experts), named = Object.fromEntries(ours.map(([x, [said]]) => [x, values[said] ?? said]));
      const { exchange, ...found } = named, letters = pick({ tp: [1], pp: [1], ep: [1], attention_dp: [1], replicas: [1], ...found });
      return { words: pick(exchange ? { exchange } : {}), letters, layout: [], ways: [], beside: [], rows: Object.keys(letters), known: { ...known, reach: cases.reach({ ...plan.device.letters, ...plan.letters }) } };
    }
    const ways = divisors(devices), seq = known.seq ?? known.max_context ?? 0;
    const letters = pick({
      tp: ways.filter((x) => x <= (known.heads ?? x)), cp: ways.filter((x) => x === 1 || seq >= 4096 * x),
      ep: ways.filter((x) => x === 1 || (known.experts && known.experts % x === 0)), pp: ways.filter((x) => x <= (known.layers ?? x)),
      batch: data.space.train.batch, chunks: data.space.train.chunks,
    });
    const { batch, chunks, ...choices } = data.space.train, words = pick({ ...choices, context_exchange: ["gather"], ...Object.fromEntries(Object.entries(cases.wordsOf(plan)).map(([x, y]) => [x, [y]])) });
    if (fixed.recompute === "best") words.recompute = [...new Set([...data.changes.recompute, ...cases.modulesOf(plan.model).alone, cases.modulesOf(plan.model).together])].filter((x) => isPriced(plan, { ...words, recompute: [x] }));
    words.sharding = [...words.sharding].sort((a, b) => data.shardings[a].gathered - data.shardings[b].gathered);
    words.schedule = [...words.schedule].sort((a, b) => (a !== "1f1b") - (b !== "1f1b"));
    return { words, letters, layout: cases.training.layout, ways: cases.training.ways, beside: ["ep"], rows: ["batch", "chunks"], known: { ...known, seq } };
  }

  // Whether this page has the sheet of these words, each the first of its values; attention in one kernel runs again in any case.
  function isPriced(plan, words) {
    const said = { ...cases.training.words, ...Object.fromEntries(Object.entries(words).map(([x, [y]]) => [x, y])) };
    if (said.recompute === "selective" && said.attention === "flash") return false;
    try { return Boolean(cases.training.sheet(plan, said, false)); } catch (error) { if (error.constructor !== Error) throw error; return false; } // a mistake of the page is not a refusal
  }
  // Whether a letter or word says anything; where it does not, it has its first value.
  const IDLE = {
    train: {
      sequence_parallel: (v) => v.tp > 1, sharding: (v) => shared(v.dp, v.cp, v.schedule), schedule: (v) => v.pp > 1, chunks: (v) => v.pp > 1,
    },
    serve: { exchange: (v) => v.tp * v.attention_dp > 1 },
  };
  function distinct(s, job, v) {
    for (const [name, says] of Object.entries(IDLE[job])) {
      const values = s.words[name] ?? s.letters[name];
      if (values?.length > 1 && v[name] !== values[0] && !says(v)) return false;
    }
    if (job === "serve") return true;
    const { schedule, chunks } = v;
    return data.schedules[schedule].plain ? chunks > 1 || !s.words.schedule.includes("1f1b") : chunks === 1 || s.letters.chunks[0] !== 1;
  }

  function layouts(s) {
    if (!s.layout.length) return [[]];
    const { devices } = s.known, found = [], whole = (x) => devices % x === 0;
    for (const tp of s.letters.tp.filter(whole)) for (const cp of s.letters.cp.filter(whole)) for (const ep of s.letters.ep) {
      for (const pp of s.letters.pp.filter(whole)) {
        const dp = devices / (tp * cp * pp);
        if (Number.isInteger(dp)) found.push([tp, cp, ep, pp, dp]);
      }
    }
    return found;
  }
  const product = (lists) => lists.reduce((all, list) => all.flatMap((x) => list.map((y) => [...x, y])), [[]]);
  const named = (names, values) => Object.fromEntries(names.map((x, i) => [x, values[i]]));

  // The rules that are about what is known, as one function: the place of the first that fails, or -1.
  function ruled(rules, known, words) {
    const own = rules.filter((r) => r.needs.every((x) => known.has(x)));
    const lines = own.map((r, i) => {
      const js = r.words ? r.js[r.words.map((x) => (words[x] === true ? "True" : words[x] === false ? "False" : words[x])).join("|")] : r.js;
      return js === undefined ? "" : `if (!(${js})) return ${i};`;
    });
    const letters = [...new Set(own.flatMap((r) => r.needs))].filter((x) => !own.some((r) => r.words?.includes(x)));
    return [own, new Function("v", `const {${letters}} = v; ${lines.join(" ")} return -1;`)];
  }

  function limitsOf(plan) {
    const targets = plan.targets ?? {};
    const { rate } = plan.letters, least = rate === undefined ? [] : [["request_rate", ">=", rate, "request_rate >= rate"]];
    const own = plan.job === "serve"
      ? [...Object.entries(targets).filter(([, x]) => x > 0).map(([n, x]) => [n, "<=", x, `${n} <= ${x} s`]), ...least]
      : cases.training.limits.map(([a, b, name, margin]) => [a, "<=", b, name, 1 + (margin === undefined ? 0 : plan.letters.memory_margin ?? margin)]);
    return [...own, ...(plan.limits ?? [])];
  }

  // A generator: yields what is found so far, and how much of the whole is done.
  function* search(plan, best = 10, lift = plan.lift ?? []) {
    const start = Date.now(), job = plan.job, thing = cases.of(job), s = space(plan), limits = limitsOf(plan).filter(([, , , name]) => !lift.includes(name));
    const { axes, rising } = { ...cases.aim(plan), ...plan.aim }, [first, second] = axes, sign = rising ? -1 : 1, { rate } = plan.letters;
    const combos = product(Object.values(s.words)).map((x) => named(Object.keys(s.words), x));
    const whole = layouts(s), rows = job === "train" ? product(s.rows.map((x) => s.letters[x])) : [s.rows.map((x) => s.letters[x][0])], inLayout = rows.length;
    const rules = thing.rules.filter((r) => !lift.includes(r.name) && !(r.advice && r.letter in (plan.fixed ?? {}))); // what is chosen needs no advice
    const fixedWords = job === "train" ? { offload: thing.offloads(s.known) } : { overlap: "none" };
    const sample = { ...(s.layout.length ? named(s.layout, whole[0] ?? []) : {}), ...named(s.rows, rows[0] ?? []) };
    const names = new Set(Object.keys(thing.derived({ ...s.known, ...sample })).filter((x) => thing.derived({ ...s.known, ...sample })[x] !== undefined));
    const wordNames = [...Object.keys(s.words), ...Object.keys(fixedWords)];
    const isWordy = (r) => r.needs.some((x) => wordNames.includes(x) || (job === "train" ? x in thing.words : x === "exchange" || x === "overlap"));
    // Rules about a layout alone are asked once for all that is searched beside it.
    const isRowy = (r) => !s.layout.length || r.needs.some((x) => s.rows.includes(x) || x === "microbatches"), plain = rules.filter((r) => !isWordy(r));
    const [layoutRules, laidOut] = ruled(plain.filter((r) => !isRowy(r)), names, {}), [plainRules, plainly] = ruled(plain.filter(isRowy), names, {});
    const priced = combos.map((words) => {
      const all = { ...fixedWords, ...(job === "train" ? thing.words : {}), ...words };
      const [own, wordly] = ruled(rules.filter(isWordy), new Set([...names, ...Object.keys(all)]), all);
      return { words, all, own, wordly, at: null };
    });
    // Only what rules and layouts ask for, so that it stays an object of few fields, which engines read fast.
    const asked = new Set([...rules.flatMap((r) => r.needs), ...s.layout, ...s.rows, "devices", "layers", "users", "experts", "global_batch", "etp", "microbatches", "stage_blocks", "first_blocks", "last_blocks"]);
    const v = Object.fromEntries([...asked].map((x) => [x, fixedWords[x] ?? thing.words[x] ?? s.known[x]]));
    const outputs = [...new Set([first, second, ...limits.flatMap(([a, , b]) => (typeof b === "string" ? [a, b] : [a])), ...(rate === undefined ? [] : ["request_rate", "max_users"])])];
    const place = Object.fromEntries(outputs.map((x, i) => [x, i + 1]));
    const moved = job === "train" ? [["tp", "cp", "ep", "batch"], ["pp", "chunks"]] : [["tp", "pp", "ep", "attention_dp", "replicas", "scaleout_bandwidth"], ...(rate === undefined ? [] : [["users"]])];
    // All sheets are priced together, so that what they share is computed once.
    const still = { ...s.known };
    for (const one of priced) {
      if (job === "train") one.sheet = thing.sheet(plan, one.all, fixedWords.offload);
      else {
        const { own, known } = thing.at(plan, { letters: Math.min(plan.letters.devices, s.known.reach) > 1 ? { tp: 2 } : {}, words: { exchange: one.words.exchange ?? "all_reduce" } });
        one.sheet = own;
        Object.assign(still, known);
      }
      one.limits = limits.filter(([a, , b]) => one.sheet.by.has(a) && (typeof b !== "string" || one.sheet.by.has(b) || b in s.known))
        .map(([a, relation, b, ...more]) => [a, relation, one.sheet.by.has(b) ? b : s.known[b] ?? b, ...more]); // no formula reads the host's memory
    }
    for (const x of ["dp", "microbatches", ...moved.flat(), ...(job === "serve" ? ["devices"] : [])]) delete still[x];
    if (still.experts) still.ffn ??= 1; // of no blocks
    if (job === "train") Object.assign(still, cases.withFurther(still)); // rules are about the model's own blocks
    const sheets = priced.map((x) => x.sheet), run = engine.compile(sheets, new Set(sheets.flatMap((x) => Object.keys(cases.used(x, still)))), moved, outputs)(still);
    const stride = outputs.length + 1, priceAt = run.at, found = run.out;
    let priced1 = -1;
    const rejected = {}, out = (name, n = 1) => (rejected[name] = (rejected[name] ?? 0) + n);
    let count = 0, fitting = 0, kept = [], front = [], mark = Date.now(), done = 0;
    const { scaleup_bandwidth: near, scaleup_size: domain, scaleout_bandwidth: far } = { ...plan.device.letters, ...plan.letters }; // within a domain no other network is asked for
    const compare = (a, b) => a[0] - b[0] || a[2] - b[2] || a[3] - b[3];
    function take(value, other, combo, row, letters) {
      const entry = [value, other, combo, row, letters];
      if (kept.length < best || compare(entry, kept[kept.length - 1]) < 0) {
        kept.push(entry);
        kept.sort(compare);
        kept.length = Math.min(kept.length, best);
      }
      let i = front.findIndex((x) => x[1] > other || (x[1] === other && x[0] > value));
      if (i < 0) i = front.length;
      if (i && front[i - 1][0] <= value) return;
      front.splice(i, 0, entry);
      let j = i + 1;
      while (j < front.length && front[j][0] >= value) j++;
      front.splice(i + 1, j - i - 1);
    }
    const result = (share) => ({
      share, count, fitting, rejected, seconds: (Date.now() - start) / 1e3, axes, rising,
      best: (rate === undefined ? kept : [...front].sort(compare).slice(0, best)).map(strategy), front: front.map(strategy), space: s, layouts: whole,
    });
    const strategy = ([value, other, combo, , letters]) => ({ values: { [first]: sign * value, [second]: first === second ? sign * value : other }, letters, words: combos[combo] });

    const brokenAt = whole.map(() => undefined), lives = new Map();
    function live() {
      const key = job === "train" ? 16 * v.chunks + (v.pp > 1) + 2 * (v.dp * v.cp > 1) + 4 * (v.tp > 1) : v.tp * v.attention_dp > 1;
      if (!lives.has(key)) lives.set(key, priced.flatMap(({ words }, i) => (distinct(s, job, { ...v, ...words }) ? [i] : [])));
      return lives.get(key);
    }
    // Of a rate the users follow, for each sheet its own: all sheets are priced at each that is tried.
    const asked1 = (i) => cases.usersAt(rate, (users) => { priceAt[1](users); return [found[i * stride + place.max_users], found[i * stride + place.request_rate]]; });
    function price(layout, lay, digits, r, order) {
      for (let i = 0; i < layout.length; i++) v[s.layout[i]] = layout[i];
      for (let i = 0; i < digits.length; i++) v[s.rows[i]] = digits[i];
      if (job === "train") { v.microbatches = v.global_batch / (v.dp * v.batch); v.stage_blocks = s.known.stage_blocks ?? cases.fullest(v); v.etp = s.known.etp ?? v.tp; }
      else {
        v.batch = Math.max(1, v.users / (v.replicas * v.attention_dp));
        v.etp = v.experts ? (v.tp * v.attention_dp) / v.ep : 1;
      }
      const own = live();
      if (!own.length) return;
      const whole1 = (brokenAt[lay] ??= laidOut(v));
      if (whole1 >= 0) { out(layoutRules[whole1].name, own.length); return; }
      const broken = plainly(v);
      if (broken >= 0) { out(plainRules[broken].name, own.length); return; }
      let isPriced = false;
      for (const i of own) {
        const one = priced[i], wrong = one.own.length ? one.wordly(v) : -1, at = i * stride;
        if (wrong >= 0) { out(one.own[wrong].name); continue; }
        if (!isPriced) {
          isPriced = true;
          if (job === "train") {
            if (priced1 !== order) { priceAt[0](v.tp, v.cp, v.ep, v.batch); priced1 = order; }
            priceAt[1](v.pp, v.chunks);
          } else priceAt[0](v.tp, v.pp, v.ep, v.attention_dp, v.replicas, far ?? (v.tp * v.pp * v.attention_dp <= domain ? near : NaN));
        }
        if (rate !== undefined) priceAt[1](asked1(i));
        if (found[at] !== 1 || (job === "serve" && outputs.some((x) => !engine.good(x, found[at + place[x]])))) { out("a formula holds"); continue; }
        count++;
        const over = one.limits.find(([a, relation, b, , need = 1]) => {
          const own = found[at + place[a]] * need, bound = typeof b === "string" ? found[at + place[b]] : b;
          return relation === "<=" ? !(own <= bound) : !(own >= bound);
        });
        if (over) { out(over[3]); continue; }
        fitting++;
        const value = sign * found[at + place[first]];
        if (Number.isFinite(value)) take(value, found[at + place[second]], i, lay * inLayout + r, named([...s.layout, ...s.rows], [...layout, ...digits]));
      }
    }

    // What kernels cost rests on tp, cp, ep and batch alone: layouts that share these are priced one after another.
    let order = 0;
    if (job === "train") {
      const groups = new Map();
      whole.forEach((x, lay) => { const key = x.slice(0, 3).join(); groups.set(key, [...(groups.get(key) ?? []), lay]); });
      const total = groups.size * s.letters.batch.length, each = s.letters.chunks.length;
      for (const group of groups.values()) for (let b = 0; b < s.letters.batch.length; b++) {
        order++;
        for (const lay of group) for (let c = 0; c < each; c++) price(whole[lay], lay, rows[b * each + c], b * each + c, order);
        done++;
        if (Date.now() - mark > 80) { mark = Date.now(); yield result(done / total); }
      }
    } else {
      const { tp: tps, pp: pps, ep: eps, attention_dp: groups, replicas } = s.letters, { devices } = s.known;
      for (const tp of tps) for (const pp of pps) for (const ep of eps) for (const group of groups) for (const many of replicas) {
        if (tp * pp * group * many > devices) continue;
        price([], 0, [tp, pp, ep, group, many], order, ++order);
        if (order % 64 === 63 && Date.now() - mark > 80) { mark = Date.now(); yield result(tps.indexOf(tp) / tps.length); }
      }
    }
    return result(1);
  }
  function searched(plan, ...more) {
    const running = search(plan, ...more);
    for (;;) { const { value, done } = running.next(); if (done) return value; }
  }

  // Each step away from a strategy: what changes, what it costs, and why it is worse or not possible.
  function neighbours(plan, s, chosen, paired = false) {
    const job = plan.job, thing = cases.of(job), own = { ...chosen.letters, ...chosen.words }, found = new Map();
    const { axes, rising } = { ...cases.aim(plan), ...plan.aim }, whole = new Set(layouts(s).map(String));
    for (const [said, x] of steps(s, job, own, whole)) if (!same(x, own)) found.set(said, x);
    if (paired) { // a service keeps its devices: what one way gives another takes
      const ways = ["tp", "pp", "replicas", ...(s.letters.attention_dp.length > 1 ? ["attention_dp"] : [])], devices = (x) => x.tp * x.pp * x.attention_dp * x.replicas;
      for (const a of ways) for (const b of ways) if (a !== b && own[a] % 2 === 0) found.set(...step(s, job, own, { [a]: own[a] / 2, [b]: own[b] * 2 }));
      for (const [said, x] of found) if (devices(x) > plan.letters.devices) found.delete(said);
    }
    const split = (x) => ({ letters: pickOf(x, Object.keys(chosen.letters)), words: pickOf(x, Object.keys(chosen.words)) });
    const here = thing.answer(plan, chosen), rows = [];
    for (const [said, x] of found) {
      const all = { ...s.known, ...x }, there = thing.answer(plan, split(x));
      const why = job === "train" ? thing.reason({ context_exchange: "gather", ...all, offload: thing.offloads(all) }, there.sheet) : thing.reason(all);
      rows.push({ said, ...split(x), ...worth(plan, axes, there, here, why) });
    }
    const sign = rising ? -1 : 1;
    return rows.map((x, i) => [x, i]).sort(([a, i], [b, j]) => (a.value === null) - (b.value === null) || sign * ((a.value ?? 0) - (b.value ?? 0)) || i - j).map(([x]) => x);
  }
  const pickOf = (x, names) => Object.fromEntries(names.map((n) => [n, x[n]]));
  const same = (a, b) => Object.keys(a).every((x) => a[x] === b[x]);
  // The first limit that an answer does not keep to.
  function beyond(plan, there) {
    for (const [letter, relation, bound, , need = 1] of limitsOf(plan)) {
      if (!(letter in there.values)) continue;
      const most = typeof bound === "string" ? there.values[bound] ?? there.known[bound] : bound, x = there.values[letter];
      if (relation === "<=" ? x * need > most : x * need < most) return [letter, x * need, typeof bound === "string" ? bound : "", most, relation, need > 1 ? " with its margin" : ""];
    }
    return null;
  }
  function worth(plan, [objective, second], there, here, why) {
    if (why) return { value: null, why, parts: [] };
    const over = beyond(plan, there);
    if (over) return { value: null, over, parts: [] };
    if (!(objective in there.values)) return { value: null, missing: there.missing[objective], parts: [] };
    let parts = [objective], of = objective, more;
    while (parts.length === 1 && (more = (there.sheet.by.get(parts[0])?.inputs ?? []).filter((x) => there.sheet.by.has(x))).length) [of, parts] = [parts[0], more];
    if (plan.job === "serve") [of, parts] = ["tpot", ["tpot", "ttft"]]; // what a user sees of it
    const changes = parts.map((x) => [x, (there.values[x] ?? 0) - (here.values[x] ?? 0)]).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, 2);
    return { value: there.values[objective], parts: changes.filter(([, x]) => Math.abs(x) > 1e-9 * Math.abs(here.values[of])), second: there.values[second] };
  }
  function* steps(s, job, own, whole) {
    const primes = s.layout.length ? divisors(s.known.devices).filter((x) => x > 1 && divisors(x).length === 2) : [];
    for (const a of s.ways) for (const b of s.ways) for (const factor of a === b ? [] : primes) {
      if (own[a] % factor) continue;
      const changed = { [a]: own[a] / factor, [b]: own[b] * factor }, all = { ...own, ...changed };
      if (whole.has(String(s.layout.map((x) => all[x])))) yield step(s, job, own, changed);
    }
    for (const name of [...s.beside, ...s.rows]) {
      const values = s.letters[name] ?? [], up = values.filter((x) => x > own[name]).sort((a, b) => a - b);
      for (const side of [values.filter((x) => x < own[name]).sort((a, b) => b - a), up]) {
        const found = side.map((x) => step(s, job, own, { [name]: x })).filter(([, x]) => !same(x, own));
        const more = job === "train" ? { offload: cases.training.offloads(s.known) } : {};
        if (found.length) yield found.find(([, x]) => !cases.of(job).reason({ ...s.known, ...x, ...more })) ?? found[0];
      }
    }
    for (const [name, words] of Object.entries(s.words)) for (const x of words) if (x !== own[name]) yield step(s, job, own, { [name]: x });
  }
  function step(s, job, own, changed) {
    changed = { ...changed, ...(job === "train" ? settle(s, { ...own, ...changed }, changed) : {}) };
    const said = Object.entries(changed).filter(([n, x]) => x !== own[n]).map(([n, x]) => `${n} ${own[n]} → ${x}`).join(", ");
    const now = { ...own, ...changed };
    for (const [name, says] of Object.entries(IDLE[job])) if (name in now && !says({ ...s.known, ...now })) now[name] = (s.words[name] ?? s.letters[name])[0];
    return [said, now];
  }
  function settle(s, now, changed) {
    const more = {};
    if ("pp" in changed) {
      const stage = Math.ceil(s.known.layers / now.pp), fits = s.letters.chunks.filter((x) => stage % x === 0 && x <= now.chunks);
      if (fits.length && stage % now.chunks) more.chunks = Math.max(...fits);
    }
    const all = { ...changed, ...more }, at = { ...now, ...more }, { words: { schedule: schedules = [] } } = s, plain = data.schedules[at.schedule].plain;
    if ("chunks" in all && at.chunks === 1 && schedules.includes(plain)) return { ...more, schedule: plain };
    const chunked = schedules.find((x) => data.schedules[x].plain === at.schedule);
    if ("chunks" in all && at.chunks > 1 && chunked) return { ...more, schedule: chunked };
    if ("schedule" in all && plain === null && s.letters.chunks.includes(1)) return { ...more, chunks: 1 };
    return more;
  }
  return { search, searched, pools: (plan) => planPools(cases, plan), neighbours, space, limitsOf, beyond, divisors, powers };
}
