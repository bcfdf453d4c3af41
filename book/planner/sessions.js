// Sessions of agents on a service, and the cheapest service for them: what serve.sessions and search(serve.sessions) give
// (scalebook/inference/session_engine.py, session_loop.py and session_search.py), in the same steps.

function planSessions(cases) {
  const { engine } = cases, { data } = engine, sheet = engine.sheet(engine.listed(data.serve.sessions)), STEPS = ["batch", "prompt", "chunks_of_prompt"];
  const FOUND = ["tpot", "prompt_load", "read_tokens", "queue_time", "ttft", "reserved_sessions", "sessions", "room_tokens"], NEAR = 1e-6, CELLS = 2048;
  const list = (n, f) => Array.from({ length: n }, (_, i) => f(i)), sum = (x) => x.reduce((a, b) => a + b, 0), mean = (x) => sum(x) / x.length;
  const even = (a, b, n) => list(n, (i) => (i === n - 1 ? b : i * ((b - a) / (n - 1)) + a));
  const rising = (a, b, n) => even(Math.log10(a), Math.log10(b), n).map((x, i) => (i === 0 ? a : i === n - 1 ? b : 10 ** x));
  function priced(own, known, levels, outputs) {
    const still = cases.used(own, known);
    for (const x of levels.flat()) delete still[x];
    const { at, out } = engine.compile([own], new Set(Object.keys(still)), levels, outputs, false)(still);
    const found = Object.fromEntries(outputs.map((x) => [x, 0])); // one object, which the next call fills again
    return { at, values: () => { for (let i = 0; i < outputs.length; i++) found[outputs[i]] = out[i + 1]; return found; } };
  }

  // The engine: a decode step linear in its batch, and the times to read turns.
  function engineOf(plan, tp, draft) {
    const { turns, prefix, appended, output, sessions: _, pause: _1, pause_spread: _2, devices: _3, ...others } = plan.letters;
    const inputs = list(turns, (i) => prefix + appended * (i + 1) + output * i), middle = mean(inputs), context = middle + output / 2;
    const { own, known } = cases.serving.at({ ...plan, job: "serve", letters: { ...others, ...draft?.letters, prompt: middle, output, users: 1 } }, { letters: { tp, replicas: 1, attention_dp: 1 }, words: {} });
    const why = cases.serving.reason(known), apart = tp > cases.reach(known) ? `${plan.device.name} has no ${cases.either(cases.NETWORK.filter((x) => known[x] === undefined))}` : "";
    if (why || apart) throw new Error(why || apart);
    const held = priced(own, known, [], ["cache_room", "token_cache", "cached_tokens", "max_users"]).values();
    if (!(held.cache_room > 0)) throw new Error("the weights do not fit");
    const token = (held.token_cache * held.cached_tokens) / context, full = Math.max(2, held.cache_room / token / context), chunk = known.chunk_tokens, short = Math.min(appended, chunk);
    const fresh = [chunk, chunk, short, short, chunk], past = [0, 0, 0, context, context], batch = [full / 8, full / 2, full / 4, full / 4, full / 4];
    const step = priced(own, { ...known, context, prompts_together: 1, prompts_beside: 1e12, prompts_ahead: 0, prompts_met: 0 }, [STEPS], ["pass_time", "mixed_time"]);
    const times = fresh.map((n, i) => { step.at[0](batch[i], n + 2 * past[i], (n + 2 * past[i]) / n); return { ...step.values() }; });
    const drafts = draft && priced(own, known, [], ["step_tokens", "draft_cost"]).values(), per = draft ? (1 + known.drafted * drafts.draft_cost) / drafts.step_tokens : 1;
    const decode = times.map((x) => x.pass_time * per), added = Math.max(0, (decode[1] - decode[0]) / (batch[1] - batch[0])), read = [0, 2, 3, 4];
    const [each, tokens, old] = fitted(read.map((i) => Math.max(times[i].mixed_time - times[i].pass_time, 0)), read.map((i) => fresh[i]), read.map((i) => past[i]));
    const seconds = (n, before) => Math.ceil(n / chunk) * each + n * (tokens + old * (before + n / 2));
    const found = inputs.map((x) => seconds(appended, x - appended)), lost = inputs.slice(turns > 1 ? 1 : 0).map((x) => seconds(x - prefix, prefix));
    return { known: { ...known, devices: tp, base_time: decode[0] - batch[0] * added, added_time: added, found_time: mean(found), found_spread: 1, lost_time: mean(lost), lost_spread: mean(lost.map((x) => x ** 2)) / mean(lost) ** 2, token_cache: token, cache_room: held.cache_room }, turnsRead: [found, [found[0], ...lost].slice(0, turns)] };
  }
  // Least squares of relative errors: seconds per step, per token, and per pair of tokens, none of them negative.
  function fitted(seconds, fresh, past) {
    const columns = [seconds.map(() => 1), fresh, fresh.map((n, i) => n * (past[i] + n / 2))].map((x) => x.map((y, i) => y / seconds[i])), lengths = columns.map((x) => Math.hypot(...x)), q = [], r = [[], [], []];
    let rest = seconds.map(() => 1);
    const dot = (a, b) => sum(a.map((x, i) => x * b[i])), less = (a, by, b) => a.map((x, i) => x - by * b[i]);
    columns.forEach((column, k) => {
      let own = column.map((x) => x / lengths[k]);
      for (let turn = 0; turn < 2; turn++) q.forEach((x, i) => { const by = dot(x, own); r[i][k] = (r[i][k] ?? 0) + by; own = less(own, by, x); });
      r[k][k] = Math.hypot(...own);
      q.push(own.map((x) => x / r[k][k]));
    });
    const y = q.map((x) => { const by = dot(x, rest); rest = less(rest, by, x); return by; }), found = [0, 0, 0];
    for (let k = 2; k >= 0; k--) found[k] = (y[k] - sum(found.map((x, i) => (i > k ? r[k][i] * x : 0)))) / r[k][k];
    return found.map((x, i) => Math.max(0, x / lengths[i]));
  }

  // The loop of sessions on one copy of the service.
  function loopOf(plan, tp, tiers, draft) {
    const { known: served, turnsRead } = engineOf(plan, tp, draft), { turns, prefix, appended, output, pause } = plan.letters, spread = Math.max(plan.letters.pause_spread, 0.01);
    const given = Object.fromEntries(Object.entries(served).filter(([n]) => !sheet.by.has(n))), x = { ...given, turns, prefix, appended, output, pause, pause_spread: spread, answer_spread: 0, replicas: 1, attention_dp: 1, tier_cost: sum(tiers.map((y) => y.tier_cost)), tier_life: tiers[0]?.tier_life ?? 1 };
    Object.assign(x, priced(sheet, x, [], ["own_tokens", "pause_mean", "pause_deviation"]).values());
    const { token_cache: token } = x, rooms = [x.cache_room / token, ...tiers.map((y) => y.tier_capacity / token)], total = sum(rooms), own = (token * (appended + output) * turns) / 2;
    if (prefix + x.own_tokens > rooms[0]) throw new Error("one session does not fit");
    const fetches = [0, ...tiers.map((y) => own / y.tier_bandwidth + y.tier_latency)], kept = [((appended + output) * turns * (turns - 1)) / 2, (appended + output) * turns];
    const waits = priced(sheet, x, [["kept_pause"]], ["found_turns", "pause_kept"]), keeping = (z) => { waits.at[0](z); return { ...waits.values() }; };
    const near = even(5, -5, 161).map((y) => pause * Math.exp(y * spread)), pauses = [...rising(1e5, 1.05, 60).map((y) => y * near[0]), ...near];
    const states = pauses.map(keeping), sizes = states.map((y, i) => kept[0] * y.pause_kept + kept[1] * pauses[i]).reverse(), shares = states.map((y) => y.found_turns).reverse();
    const { at: [place, price], values } = priced(sheet, x, [["found_turns", "pause_kept", "kept_pause"], ["turn_rate", "fetch_time"]], FOUND);
    function between(size) {
      if (size < sizes[0]) return 0;
      const i = lower(sizes, size);
      return i >= sizes.length ? shares.at(-1) : i === 0 || sizes[i] === size ? shares[i] : shares[i - 1] + ((shares[i] - shares[i - 1]) / (sizes[i] - sizes[i - 1])) * (size - sizes[i - 1]);
    }
    function fetched(rate, found, row) { // mean time to fetch a turn's cache, and the load of the busiest link
      let above = 0, time = 0, load = 0, room = 0;
      rooms.forEach((own, i) => {
        room += own;
        const idle = (Math.max(room - prefix - row.reserved_sessions * x.own_tokens, 0) * turns) / rate - (kept[0] + kept[1]) * row.queue_time;
        const to = i === rooms.length - 1 ? found : Math.min(between(idle), found), share = (Math.max(to - above, 0) * (turns - 1)) / turns, busy = rate * share * fetches[i];
        time += share * (fetches[i] + (busy * fetches[i] * 4) / 3 / (2 * Math.max(1 - busy, NEAR)));
        [load, above] = [Math.max(load, busy), Math.max(to, above)];
      });
      return [time, load];
    }
    function branch(all, pieces) {
      return all.map((z) => {
        const { found_turns: found, pause_kept: held } = keeping(z);
        place(found, held, z);
        const at = (rate) => {
          price(rate, 0);
          let row = values(), fetch = 0, load = 0;
          if (rooms.length > 1) { [fetch, load] = fetched(rate, found, row); price(rate, fetch); row = values(); }
          return { row, fetch, load };
        };
        const good = (rate) => {
          const { row, load } = at(rate), used = prefix + row.reserved_sessions * x.own_tokens;
          return row.prompt_load + rate * (output - 1) * x.added_time < 1 && rate * row.read_tokens * row.tpot <= x.chunk_tokens && used <= rooms[0] && load < 0.98 && row.room_tokens <= total;
        };
        let low = 0, high = Math.min(1 / (x.found_time + (output - 1) * x.added_time), ((total - prefix) * turns) / (kept[0] * held + kept[1] * z));
        for (let turn = 0; turn < (pieces === 17 ? 5 : 4); turn++) {
          const width = (high - low) / pieces;
          let many = 0, over = pieces; // what is good up to a rate is not good above it
          while (over - many > 1) { const middle = (many + over) >> 1; if (good(low + middle * width)) many = middle; else over = middle; }
          low += many * width;
          high = low + width;
        }
        const { row, fetch } = at(low), wait = row.room_tokens < total * (1 - 1e-3) ? (Math.max(total * (1 - NEAR) - row.room_tokens, 0) * turns) / low / (kept[0] + kept[1]) : 0;
        return { kept_pause: z, turn_rate: low, fetch_time: fetch, queue_time: row.queue_time + wait, sessions: row.sessions + low * wait };
      });
    }
    const curve = branch(pauses, 17), rates = curve.map((y) => y.turn_rate), top = rates.indexOf(Math.max(...rates)), fallen = curve.slice(top).filter((y) => y.turn_rate < rates[top] / 2);
    return { x, turnsRead, branch, curve, few: rooms.length === 1 && (rooms[0] - prefix) / x.own_tokens < 12, lostFrom: fallen.length ? Math.min(...fallen.map((y) => y.sessions)) : null };
  }
  // The working point of a number of sessions on so many copies; of several, `isLost` takes the last.
  function pointOf(loop, number, copies, isLost) {
    let own = loop.curve, place, ends;
    for (const isFirst of [true, false]) {
      const here = own.map((y) => copies * y.sessions >= number);
      if (isLost) place = here.every(Boolean) ? 0 : here.lastIndexOf(false) + 1;
      else { place = here.indexOf(true); if (place < 0) place = own.length; }
      if (place >= own.length && isFirst) { const last = own.at(-1); return { ...last, queue_time: last.queue_time + (number - copies * last.sessions) / (copies * last.turn_rate) }; }
      place = Math.min(place, own.length - 1);
      ends = [own[Math.max(place - 1, 0)], own[place]];
      if (isFirst) own = loop.branch(rising(ends[0].kept_pause, ends[1].kept_pause, 25), 100);
    }
    const [a, b] = ends, share = a.sessions === b.sessions ? 0 : Math.min(1, Math.max(0, (number - copies * a.sessions) / (copies * (b.sessions - a.sessions))));
    return Object.fromEntries(Object.keys(a).map((n) => [n, a[n] * (1 - share) + b[n] * share]));
  }
  function lower(sorted, value) {
    let low = 0, high = sorted.length;
    while (low < high) { const middle = (low + high) >> 1; if (sorted[middle] < value) low = middle + 1; else high = middle; }
    return low;
  }
  // A Fourier transform in place, of as many numbers as a power of two.
  function transform(re, im, sign) {
    const n = re.length;
    for (let i = 1, j = 0; i < n; i++) { let bit = n >> 1; for (; j & bit; bit >>= 1) j ^= bit; j ^= bit; if (i < j) { [re[i], re[j]] = [re[j], re[i]]; [im[i], im[j]] = [im[j], im[i]]; } }
    for (let size = 2; size <= n; size *= 2) for (let k = 0; k < size / 2; k++) {
      const c = Math.cos((2 * Math.PI * k) / size), s = (sign * Math.sin((2 * Math.PI * k) / size));
      for (let a = k; a < n; a += size) { const b = a + size / 2, p = re[b] * c - im[b] * s, q = re[b] * s + im[b] * c; re[b] = re[a] - p; im[b] = im[a] - q; re[a] += p; im[a] += q; }
    }
    return [re, im];
  }
  const forth = (own) => transform(Float64Array.from(own), new Float64Array(own.length), -1), summed = (own) => { let all = 0; return own.map((y) => (all += y)); };
  // The time to first token that a share of the turns keeps to.
  function quantile({ x, turnsRead }, row, share) {
    const lost = turnsRead[0].map((_, i) => (i ? 1 - row.found_turns : 0)), times = turnsRead.flat(), weights = [...lost.map((y) => 1 - y), ...lost].map((y) => y / lost.length), load = Math.min(row.prompt_load, 0.98);
    const middle = sum(times.map((t, i) => t * weights[i])), place = row.queue_time - row.met_time / 2 - row.bunch_time; // a full engine
    if (place > row.met_time) {
      const late = Math.sqrt(row.turn_rate * place * sum(times.map((t, i) => (t - middle) ** 2 * weights[i])) + row.pause_mean / row.turn_rate), bell = list(CELLS, (i) => Math.exp(-((((i + 0.5) * 12) / CELLS - 6) ** 2) / 2)), under = sum(bell);
      return row.ttft + ((lower(summed(bell.map((y) => y / under)), share) + 0.5) * 12 * late) / CELLS - 6 * late;
    }
    const wait = (row.turn_rate * sum(times.map((t, i) => t * t * weights[i]))) / 2 / (1 - load), width = (12 * wait + 3 * Math.max(...times) + 2 * row.tpot) / CELLS;
    const own = new Float64Array(CELLS);
    times.forEach((t, i) => (own[Math.floor(t / width)] += weights[i]));
    const rest = summed(own).map((y) => ((1 - y) * width) / middle), all = sum(rest), step = list(CELLS, (i) => (Math.max(0, Math.min(1, row.tpot / width - i)) * width) / row.tpot), steps = sum(step);
    const shift = x.first_overhead + row.fetch_time + row.queue_time - row.met_time / 2 + row.tpot * (1 - load), bunch = row.bunch_time * (2 * share - 1), longer = Math.max(1, (row.ttft - shift - middle - row.tpot / 2) / wait);
    const [a, b] = forth(rest.map((y) => y / all));
    for (let i = 0; i < CELLS; i++) { const re = 1 - load * a[i], im = -load * b[i], size = re * re + im * im; a[i] = ((1 - load) * re) / size; b[i] = (-(1 - load) * im) / size; }
    const queue = summed(transform(a, b, 1)[0].map((y) => y / CELLS)), stretched = list(CELLS, (i) => { const at = i / longer, k = Math.floor(at); return k >= CELLS - 1 ? queue[CELLS - 1] : queue[k] + (queue[k + 1] - queue[k]) * (at - k); });
    const parts = [stretched.map((y, i) => y - (i ? stretched[i - 1] : 0)), own, step.map((y) => y / steps)].map(forth), [re, im] = [new Float64Array(CELLS).fill(1), new Float64Array(CELLS)];
    for (const [c, d] of parts) for (let i = 0; i < CELLS; i++) [re[i], im[i]] = [re[i] * c[i] - im[i] * d[i], re[i] * d[i] + im[i] * c[i]];
    return shift + bunch + (lower(summed(transform(re, im, 1)[0].map((y) => y / CELLS)), share) + 0.5) * width;
  }
  // What sessions get from so many copies of a service: all letters of the sheet, and whether caches are kept.
  function row(loop, number, copies) {
    const given = { ...loop.x, replicas: copies, devices: loop.x.devices * copies };
    if (loop.lostFrom !== null) given.sessions_lost = copies * loop.lostFrom;
    const edge = loop.lostFrom === null ? Infinity : priced(sheet, given, [], ["sessions_most"]).values().sessions_most, { sessions: _, ...point } = pointOf(loop, number, copies, number > edge);
    const letters = cases.used(sheet, { ...given, ...point }), { values } = engine.evaluate(sheet, letters);
    const few = loop.few && loop.lostFrom !== null ? (copies * loop.lostFrom * 2) / 3 : Infinity;
    return { values, given: letters, caches: number <= Math.min(edge, few) ? "kept" : number > edge && values.found_turns < 0.5 ? "lost" : "kept now and then" };
  }
  // The fewest copies that keep all caches within the limits, or why none do.
  function fewest(plan, tp, tiers, draft) {
    const { sessions: number, devices } = plan.letters;
    try {
      const loop = loopOf(plan, tp, tiers.map((x) => data.tiers[x].letters), draft && data.drafts[draft]);
      for (let copies = 1; copies <= devices / tp;) {
        const found = row(loop, number, copies), { values } = found, over = Object.entries(plan.targets).filter(([n, x]) => values[n] > x);
        if (found.caches === "kept" && !over.length) {
          const bought = ((values.devices * values.tier_cost) / values.tier_life) * values.turns / values.request_rate;
          values.ttft_p95 = quantile(loop, values, 0.95);
          return { ...found, cost: values.session_cost === undefined ? values.devices : values.session_cost + bought };
        }
        copies = Math.max(copies + Math.ceil(copies / 4), Math.ceil(copies * Math.min(values.sessions_most === undefined ? 1 : number / values.sessions_most, 8)));
      }
      return { why: `more than ${cases.g(devices)} devices are needed to keep all caches within the limits` };
    } catch (error) { return { why: error.message }; }
  }
  const each = (plan) => {
    const { fixed } = plan, drafts = fixed.drafts ? [fixed.drafts] : ["none", ...Object.keys(data.drafts).filter((x) => plan.model.key?.startsWith(x.split("_")[1]))]; // a row of drafts is named for its model
    const stacks = fixed.tiers ? [fixed.tiers] : data.space.tiers.map((x) => x.join(" ") || "none");
    return drafts.flatMap((draft) => (fixed.tp ? [fixed.tp] : [1, 2, 4, 8]).flatMap((tp) => stacks.map((tiers) => ({ letters: { tp }, words: { tiers, drafts: draft } }))));
  };
  const served = (plan, { letters, words }) => {
    const found = fewest(plan, letters.tp, words.tiers === "none" ? [] : words.tiers.split(" "), words.drafts === "none" ? null : words.drafts);
    return { letters: found.given ? { ...letters, replicas: found.values.replicas } : letters, words, ...found };
  };
  const cheaper = (a, b) => (a.cost ?? Infinity) - (b.cost ?? Infinity) || 0;
  // A generator: the services on this device with this engine, and with the tier and drafts of the best of them the best of
  // each other engine, and of each device if any may be.
  function* agents(plan) {
    const start = Date.now(), result = { services: [], engines: [], devices: [] }, others = Object.keys(data.engines).filter((x) => x !== plan.engine);
    const devices = plan.any ? Object.entries(data.devices).filter(([k, x]) => k !== plan.device.key && cases.peaks(x).includes(plan.precision) && x.letters.price_hour && x.letters.hbm_capacity) : [];
    const of = 1 + others.length + devices.length, told = (done) => ({ share: done / of, count: done, ...result });
    function* best(own) { const all = []; for (const way of each(own)) { all.push(served(own, way)); yield told(0); } return all.sort(cheaper); }
    result.services = yield* best(plan);
    const line = (named, [first]) => ({ ...named, ...first }), like = { ...plan, fixed: { ...plan.fixed, ...result.services[0].words } };
    for (const [i, [key, device]] of devices.entries()) { result.devices.push(line({ device: key }, yield* best({ ...like, device }))); yield told(1 + i); }
    for (const [i, engine] of others.entries()) { result.engines.push(line({ engine }, yield* best({ ...like, engine }))); yield told(1 + devices.length + i); }
    for (const kind of ["device", "engine"]) result[`${kind}s`] = [line({ [kind]: kind === "device" ? plan.device.key : plan.engine }, result.services), ...result[`${kind}s`]].sort(cheaper);
    return { ...result, seconds: (Date.now() - start) / 1e3 };
  }
  return { agents, served, sheet };
}
