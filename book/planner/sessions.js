// Sessions of agents on a service, and the cheapest service for them: what serve.sessions and search(serve.sessions) give
// (scalebook/inference/session_engine.py, session_loop.py and session_search.py), in the same steps.

function planSessions(cases) {
  const { engine } = cases, { data } = engine, sheet = engine.sheet(engine.listed(data.serve.sessions)), STEPS = ["batch", "prompt", "chunks_of_prompt"];
  const FOUND = ["tpot", "prompt_load", "read_tokens", "queue_time", "ttft", "reserved_sessions", "sessions", "room_tokens"], [TPOT, LOAD, READ, QUEUE, , RESERVED, SESSIONS, ROOM] = [1, 2, 3, 4, 5, 6, 7, 8]; // their places
  const NEAR = 1e-6, CELLS = 2048, BELOW = 256, COARSE = 17 ** 5, FINE = 100 ** 4;
  const list = (n, f) => { const own = new Array(n); for (let i = 0; i < n; i++) own[i] = f(i); return own; }, cells = (f) => { const own = new Float64Array(CELLS); for (let i = 0; i < CELLS; i++) own[i] = f(i); return own; }, sum = (x) => x.reduce((a, b) => a + b, 0), mean = (x) => sum(x) / x.length;
  const even = (a, b, n) => list(n, (i) => (i === n - 1 ? b : i * ((b - a) / (n - 1)) + a));
  const rising = (a, b, n) => even(Math.log10(a), Math.log10(b), n).map((x, i) => (i === 0 ? a : i === n - 1 ? b : 10 ** x));
  function priced(own, known, levels, outputs) {
    const still = cases.used(own, known);
    for (const x of levels.flat()) delete still[x];
    const { at, out } = engine.compile([own], new Set(Object.keys(still)), levels, outputs, false)(still);
    return { at, out, values: () => Object.fromEntries(outputs.map((x, i) => [x, out[i + 1]])) };
  }
  // What another number of sessions or devices does not change is kept from one question to the next.
  const memory = new Map();
  function kept(kind, plan, more, make) {
    const { sessions: _, devices: _1, ...letters } = plan.letters, own = (x) => x.key ?? x;
    const key = JSON.stringify([kind, own(plan.model), own(plan.device), plan.precision, plan.engine, kind === "engine" ? { ...letters, pause: 0, pause_spread: 0 } : letters, more]);
    if (memory.size > 400) memory.clear();
    if (!memory.has(key)) memory.set(key, attempt(make));
    const { is, error } = memory.get(key);
    if (error) throw error;
    return is;
  }
  const attempt = (make) => { try { return { is: make() }; } catch (error) { return { error }; } };
  // Standard normal deviates and the chance of each, or the middle one if nothing is spread.
  function nodes(spread) {
    const z = spread ? even(-4, 5, 37) : [0], bell = z.map((y) => Math.exp(-(y ** 2) / 2)), all = sum(bell);
    return [z, bell.map((y) => y / all)];
  }

  // The engine: a decode step linear in its batch, and the times to read turns.
  function engineOf(plan, tp, draft) {
    const { turns, prefix, appended, output, prompt_spread: uneven = 0, answer_spread: unlike = 0, sessions: _, pause: _1, pause_spread: _2, devices: _3, ...others } = plan.letters;
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
    const [z, chances] = nodes(Math.max(uneven, unlike)), fresh_ = z.map((y) => appended * Math.exp(uneven * y - uneven ** 2 / 2)), dealt = (x) => sum(x.map((y, k) => chances[k] * y));
    const varied = (appended ** 2 * Math.expm1(uneven ** 2) + output ** 2 * Math.expm1(unlike ** 2)) / (appended + output) ** 2, spreads = inputs.map((_, i) => Math.sqrt(Math.log1p(varied / (i + 1))));
    const found = fresh_.map((n) => inputs.map((x) => seconds(n, x - appended))), lost = z.map((y, k) => inputs.map((x, i) => (i ? seconds((x - prefix) * Math.exp(spreads[i] * y - spreads[i] ** 2 / 2), prefix) : found[k][0])));
    const later = turns > 1 ? lost.map((x) => x.slice(1)) : lost, own_ = fresh_.map((n) => seconds(n, middle - appended)), square = (x) => x.map((y) => y ** 2);
    return { known: { ...known, devices: tp, base_time: decode[0] - batch[0] * added, added_time: added, found_time: dealt(found.map(mean)), found_spread: dealt(square(own_)) / dealt(own_) ** 2, lost_time: dealt(later.map(mean)), lost_spread: dealt(later.map((x) => mean(square(x)))) / dealt(later.map(mean)) ** 2, token_cache: token, cache_room: held.cache_room }, turnsRead: { found, lost, later, chances } };
  }
  // Least squares of relative errors: seconds per step, per token, and per pair of tokens, none of them negative.
  function fitted(seconds, fresh, past) {
    const columns = [seconds.map(() => 1), fresh, fresh.map((n, i) => n * (past[i] + n / 2))].map((x) => x.map((y, i) => y / seconds[i])), lengths = columns.map((x) => Math.hypot(...x)), unit = columns.map((x, k) => x.map((y) => y / lengths[k]));
    const dot = (a, b) => sum(a.map((x, i) => x * b[i])), all = unit.map((x) => unit.map((y) => dot(x, y))), right = unit.map(sum), volume = ([a, b, c]) => dot(a, [0, 1, 2].map((i) => b[(i + 1) % 3] * c[(i + 2) % 3] - b[(i + 2) % 3] * c[(i + 1) % 3]));
    return lengths.map((x, k) => Math.max(0, volume(all.map((row, i) => (i === k ? right : row))) / volume(all) / x)); // by Cramer's rule: the matrix is its own transpose
  }

  // The loop of sessions on one copy of the service.
  function loopOf(plan, tp, tiers, draft) {
    const { known: served, turnsRead } = kept("engine", plan, [tp, draft], () => engineOf(plan, tp, draft && data.drafts[draft])), { turns, prefix, appended, output, pause } = plan.letters, spread = Math.max(plan.letters.pause_spread, 0.01);
    const given = Object.fromEntries(Object.entries(served).filter(([n]) => !sheet.by.has(n))), x = { ...given, turns, prefix, appended, output, pause, pause_spread: spread, answer_spread: plan.letters.answer_spread ?? 0, replicas: 1, attention_dp: 1, tier_cost: sum(tiers.map((y) => y.tier_cost)), tier_life: tiers[0]?.tier_life ?? 1 };
    Object.assign(x, priced(sheet, x, [], ["own_tokens", "pause_mean", "pause_deviation"]).values());
    const { token_cache: token } = x, rooms = [x.cache_room / token, ...tiers.map((y) => y.tier_capacity / token)], total = sum(rooms), own = (token * (appended + output) * turns) / 2;
    if (prefix + x.own_tokens > rooms[0]) throw new Error("one session does not fit");
    const fetches = [0, ...tiers.map((y) => own / y.tier_bandwidth + y.tier_latency)], held = [((appended + output) * turns * (turns - 1)) / 2, (appended + output) * turns];
    const waits = priced(sheet, x, [["kept_pause"]], ["found_turns", "pause_kept"]), keeping = (z) => { waits.at[0](z); return [waits.out[1], waits.out[2]]; };
    const near = even(5, -5, 161).map((y) => pause * Math.exp(y * spread)), pauses = [...rising(1e5, 1.05, 60).map((y) => y * near[0]), ...near];
    const states = pauses.map(keeping), sizes = states.map(([, y], i) => held[0] * y + held[1] * pauses[i]).reverse(), shares = states.map(([y]) => y).reverse();
    const edges = priced(sheet, x, [["replicas", "sessions_lost"]], ["sessions_most"]), { at: [place, price], out } = priced(sheet, x, [["found_turns", "pause_kept", "kept_pause"], ["turn_rate", "fetch_time"]], FOUND);
    function between(size) {
      if (size < sizes[0]) return 0;
      const i = lower(sizes, size);
      return i >= sizes.length ? shares.at(-1) : i === 0 || sizes[i] === size ? shares[i] : shares[i - 1] + ((shares[i] - shares[i - 1]) / (sizes[i] - sizes[i - 1])) * (size - sizes[i - 1]);
    }
    function fetched(rate, found) { // mean time to fetch a turn's cache, and the load of the busiest link
      let above = 0, time = 0, load = 0, room = 0;
      for (let i = 0; i < rooms.length; i++) {
        room += rooms[i];
        const idle = (Math.max(room - prefix - out[RESERVED] * x.own_tokens, 0) * turns) / rate - (held[0] + held[1]) * out[QUEUE];
        const to = i === rooms.length - 1 ? found : Math.min(between(idle), found), share = (Math.max(to - above, 0) * (turns - 1)) / turns, busy = rate * share * fetches[i];
        time += share * (fetches[i] + (busy * fetches[i] * 4) / 3 / (2 * Math.max(1 - busy, NEAR)));
        [load, above] = [Math.max(load, busy), Math.max(to, above)];
      }
      return [time, load];
    }
    // The highest turn rates, as steps of a fine grid. What is good up to a rate is not good above it.
    function branch(all, grid) {
      let last = 0, before = 0;
      return all.map((z) => {
        const [found, pause_kept] = keeping(z), high = Math.min(1 / (x.found_time + (output - 1) * x.added_time), ((total - prefix) * turns) / (held[0] * pause_kept + held[1] * z));
        place(found, pause_kept, z);
        let fetch = 0;
        const spare = (step) => { // at least zero where the engine and all caches keep up
          const rate = (step * high) / grid;
          let load = 0;
          price(rate, 0);
          if (rooms.length > 1) { [fetch, load] = fetched(rate, found); price(rate, fetch); }
          const busy = out[LOAD] + rate * (output - 1) * x.added_time;
          if (!(busy < 1)) return -1;
          const least = Math.min(1 - busy, x.chunk_tokens / (rate * out[READ] * out[TPOT]) - 1, rooms[0] / (prefix + out[RESERVED] * x.own_tokens) - 1, 0.98 - load, total / out[ROOM] - 1);
          return least >= -1 ? least : -1;
        };
        const step = lastGood(spare, grid, last + (last - before), Math.abs(last - before)), low = (step * high) / grid;
        [before, last] = [last, step];
        spare(step);
        const wait = out[ROOM] < total * (1 - 1e-3) ? (Math.max(total * (1 - NEAR) - out[ROOM], 0) * turns) / low / (held[0] + held[1]) : 0;
        return { kept_pause: z, turn_rate: low, fetch_time: fetch, queue_time: out[QUEUE] + wait, sessions: out[SESSIONS] + low * wait };
      });
    }
    const curve = branch(pauses, COARSE), rates = curve.map((y) => y.turn_rate), top = rates.indexOf(Math.max(...rates)), fallen = curve.slice(top).filter((y) => y.turn_rate < rates[top] / 2);
    return { x, turnsRead, branch, curve, edge: (copies, lost) => { edges.at[0](copies, lost); return edges.out[1]; }, few: rooms.length === 1 && (rooms[0] - prefix) / x.own_tokens < 12, lostFrom: fallen.length ? Math.min(...fallen.map((y) => y.sessions)) : null };
  }
  // The last whole number below `most` that is good, with everything before it: near the guess in most cases.
  function lastGood(spare, most, guess, near) {
    let low = 0, high = most, good = NaN, bad = NaN, step = Math.max(2, near / 8);
    for (let at = guess, turn = 1; high - low > 1; turn++) { // steps that grow, then straight lines between both ends, or the middle
      at = Math.min(Math.max(Math.round(at), low + 1), high - 1);
      const value = spare(at);
      if (value >= 0) { low = at; good = value; bad /= 2; } else { high = at; bad = value; good /= 2; }
      at = high === most ? low + step : !low ? high - step : turn % 3 ? low + ((high - low) * good) / (good - bad) : (low + high) / 2;
      step *= 8;
    }
    return low;
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
      if (isFirst) own = loop.branch(rising(ends[0].kept_pause, ends[1].kept_pause, 25), FINE);
    }
    const [a, b] = ends, share = a.sessions === b.sessions ? 0 : Math.min(1, Math.max(0, (number - copies * a.sessions) / (copies * (b.sessions - a.sessions))));
    return Object.fromEntries(Object.keys(a).map((n) => [n, a[n] * (1 - share) + b[n] * share]));
  }
  function lower(sorted, value) {
    let low = 0, high = sorted.length;
    while (low < high) { const middle = (low + high) >> 1; if (sorted[middle] < value) low = middle + 1; else high = middle; }
    return low;
  }
  // A Fourier transform in place, of CELLS numbers.
  const TURNS = list(CELLS / 2, (k) => (2 * Math.PI * k) / CELLS), COS = Float64Array.from(TURNS, Math.cos), SIN = Float64Array.from(TURNS, Math.sin);
  function transform(re, im, sign) {
    const n = CELLS;
    for (let i = 1, j = 0; i < n; i++) { let bit = n >> 1; for (; j & bit; bit >>= 1) j ^= bit; j ^= bit; if (i < j) { let y = re[i]; re[i] = re[j]; re[j] = y; y = im[i]; im[i] = im[j]; im[j] = y; } }
    for (let size = 2; size <= n; size *= 2) for (let k = 0, half = size / 2, every = n / size; k < half; k++) {
      const c = COS[k * every], s = sign * SIN[k * every];
      for (let a = k; a < n; a += size) { const b = a + half, p = re[b] * c - im[b] * s, q = re[b] * s + im[b] * c; re[b] = re[a] - p; im[b] = im[a] - q; re[a] += p; im[a] += q; }
    }
    return [re, im];
  }
  const forth = (own) => transform(Float64Array.from(own), new Float64Array(CELLS), -1), back = (re, im) => transform(re, im, 1)[0].map((y) => y / CELLS), summed = (own) => { let all = 0; return own.map((y) => (all += y)); };
  const times = ([a, b], [c, d]) => [a.map((_, i) => a[i] * c[i] - b[i] * d[i]), a.map((_, i) => a[i] * d[i] + b[i] * c[i])], under = (y) => Math.min(CELLS - 1, Math.floor(y));
  const binned = (all, weights, width) => { const own = new Float64Array(CELLS); all.forEach((t, i) => (own[under(t / width)] += weights[i])); return own; };
  const level = (own, at) => { const k = Math.floor(at); return k < 0 ? own[0] : k >= own.length - 1 ? own[own.length - 1] : own[k] + (own[k + 1] - own[k]) * (at - k); }; // between cells
  // The place, with its fraction, at which a rising row reaches a value.
  function reached(rising_, value) {
    let most = -Infinity;
    const own = rising_.map((y) => (most = Math.max(most, y))), k = lower(own, value);
    return k === 0 ? 0 : k >= own.length ? own.length - 1 : k - 1 + (value - own[k - 1]) / (own[k] - own[k - 1]);
  }
  const placeOf = (row) => { const place = row.queue_time - row.met_time / 2 - row.bunch_time; return place > row.met_time ? place : 0; }; // the wait in a full engine
  // The time to first token: its fixed part, and the width of a cell and the chances of the rest.
  function waiting({ x, turnsRead: { found, lost, chances } }, row) {
    const share = (k, i) => chances[k] * (i ? 1 - row.found_turns : 0), of = (own, weight) => own.flatMap((y, k) => y.map((_, i) => weight(k, i) / y.length));
    const all = [...found.flat(), ...lost.flat()], weights = [...of(found, (k, i) => chances[k] - share(k, i)), ...of(lost, share)], load = Math.min(row.prompt_load, 0.98), total = (f) => { let y = 0; for (let i = 0; i < all.length; i++) y += f(all[i]) * weights[i]; return y; };
    const middle = total((t) => t), place = placeOf(row);
    if (place) {
      const late = Math.sqrt(row.turn_rate * place * total((t) => (t - middle) ** 2) + row.pause_mean / row.turn_rate), bell = cells((i) => Math.exp(-((((i + 0.5) * 12) / CELLS - 6) ** 2) / 2)), whole = sum(bell);
      return { shift: row.ttft - 6 * late, width: (12 * late) / CELLS, late: bell.map((y) => y / whole) };
    }
    const wait = (row.turn_rate * total((t) => t * t)) / 2 / (1 - load), width = (12 * wait + 3 * all.reduce((a, b) => Math.max(a, b)) + 2 * row.tpot) / CELLS, own = binned(all, weights, width);
    const rest = summed(own).map((y) => ((1 - y) * width) / middle), most = sum(rest), step = cells((i) => (Math.max(0, Math.min(1, row.tpot / width - i)) * width) / row.tpot), steps = sum(step);
    const shift = x.first_overhead + row.fetch_time + row.queue_time - row.met_time / 2 + row.tpot * (1 - load), longer = Math.max(1, (row.ttft - shift - middle - row.tpot / 2) / wait);
    const [a, b] = forth(rest.map((y) => y / most));
    for (let i = 0; i < CELLS; i++) { const re = 1 - load * a[i], im = -load * b[i], size = re * re + im * im; a[i] = ((1 - load) * re) / size; b[i] = (-(1 - load) * im) / size; }
    const queue = summed(back(a, b)), stretched = cells((i) => level(queue, i / longer));
    return { shift, width, late: back(...[stretched.map((y, i) => y - (i ? stretched[i - 1] : 0)), own, step.map((y) => y / steps)].map(forth).reduce(times)) };
  }
  const first = ({ shift, width, late }, row, share) => shift + (placeOf(row) ? 0 : row.bunch_time) * (2 * share - 1) + (lower(summed(late), share) + 0.5) * width;
  // Percentiles of a turn's times: to its first token, per token, and end to end (session_percentiles.py).
  function percentiles(loop, row) {
    const { x, turnsRead: { later, chances: likely } } = loop, start = waiting(loop, row), mid = (row.output - 1) * row.tpot, spread = x.answer_spread, [z, chances] = nodes(spread), answers = z.map((y) => Math.exp(spread * y - spread ** 2 / 2));
    const place = placeOf(row), lostShare = ((1 - row.found_turns) * (row.turns - 1)) / row.turns, pausing = row.pause_mean / (row.pause_mean + mid), spare = 1 - row.prompt_load - row.turn_rate * (row.output - 1) * row.added_time;
    const gain = 1 / (1 - Math.min(1 - spare, 0.98) * pausing), beside = place ? 0 : row.turn_rate * mid, jumps = later.flat().map((y) => gain * y), weights = later.flatMap((y, k) => y.map(() => likely[k] / y.length)), number = beside * lostShare;
    const reads = beside * (1 - lostShare) * row.found_spread * row.found_time ** 2, others = ((row.output - 1) * row.added_time) ** 2 * row.reserved_sessions, varied = answers.map((y) => gain ** 2 * pausing * (reads * y + others * y ** 2)), top = (own) => own.reduce((a, b) => Math.max(a, b));
    const cell = (mid * Math.min(answers.at(-1), 20) + 8 * Math.sqrt(top(varied)) + 3 * top(jumps) + lower(summed(start.late), 0.9999) * start.width) / (CELLS - BELOW);
    const leaps = forth(binned(jumps, weights, cell)), fixed = mid - number * sum(jumps.map((y, i) => y * weights[i])), bunch = place ? 0 : row.bunch_time, whole = [new Float64Array(CELLS), new Float64Array(CELLS)], token = new Float64Array(CELLS);
    answers.forEach((answer, k) => {
      const [re, im] = [new Float64Array(CELLS), new Float64Array(CELLS)];
      for (let i = 0; i <= CELLS / 2; i++) {
        const wave = (2 * Math.PI * i) / CELLS / cell, size = Math.exp(answer * number * (leaps[0][i] - 1) - ((varied[k] + cell ** 2) * wave ** 2) / 2), angle = answer * number * leaps[1][i] - (fixed * answer + BELOW * cell) * wave, c = size * Math.cos(angle), s = size * Math.sin(angle), flat = wave * bunch ? Math.sin(wave * bunch) / (wave * bunch) : 1;
        for (const [place_, sign] of i % (CELLS / 2) ? [[i, 1], [CELLS - i, -1]] : [[i, 0]]) {
          whole[0][place_] += chances[k] * c; whole[1][place_] += sign * chances[k] * s;
          re[place_] = flat * c; im[place_] = sign * flat * s;
        }
      }
      const own = summed(back(re, im));
      for (let i = 0; i < CELLS; i++) token[i] += chances[k] * level(own, i * answer + BELOW);
    });
    const began = new Float64Array(CELLS);
    start.late.forEach((y, i) => { const at = Math.floor((i * start.width) / cell); if (at < CELLS) began[at] += y; });
    const ended = summed(back(...times(whole, forth(began))));
    return Object.fromEntries([50, 95, 99].flatMap((n) => [[`ttft_p${n}`, first(start, row, n / 100)], [`tpot_p${n}`, ((reached(token, n / 100) + 1) * cell) / (row.output - 1)], [`end_to_end_p${n}`, start.shift + (reached(ended, n / 100) + 1 - BELOW) * cell]]));
  }
  // What so many copies are given, and the most sessions that surely keep their caches there.
  function edgeOf(loop, copies) {
    const given = { ...loop.x, replicas: copies, devices: loop.x.devices * copies };
    if (loop.lostFrom === null) return { given, edge: Infinity, surely: Infinity };
    given.sessions_lost = copies * loop.lostFrom;
    const edge = loop.edge(copies, given.sessions_lost);
    return { given, edge, surely: loop.few ? Math.min(edge, (given.sessions_lost * 2) / 3) : edge };
  }
  // What sessions get whose caches are kept: all letters of the sheet.
  function row(loop, number, copies, given) {
    const { sessions: _, ...point } = pointOf(loop, number, copies, false), letters = cases.used(sheet, { ...given, ...point });
    return { ...engine.evaluate(sheet, letters), given: letters, caches: "kept", loop };
  }
  // The fewest copies that keep all caches within the limits, or why none do.
  function fewest(plan, tp, tiers, draft) {
    const { sessions: number, devices } = plan.letters;
    try {
      const loop = kept("loop", plan, [tp, tiers, draft], () => loopOf(plan, tp, tiers.map((x) => data.tiers[x].letters), draft));
      for (let copies = 1; copies <= devices / tp;) {
        const { given, edge, surely } = edgeOf(loop, copies), found = number <= surely && row(loop, number, copies, given);
        if (found && !Object.entries(plan.targets).some(([n, x]) => found.values[n] > x)) {
          const { values } = found, bought = ((values.devices * values.tier_cost) / values.tier_life) * values.turns / values.request_rate;
          values.ttft_p95 = first(waiting(loop, values), values, 0.95);
          return { ...found, cost: values.session_cost === undefined ? values.devices : values.session_cost + bought };
        }
        copies = Math.max(copies + Math.ceil(copies / 4), Math.ceil(copies * Math.min(edge === Infinity ? 1 : number / edge, 8)));
      }
      return { why: `more than ${cases.g(devices)} devices are needed to keep all caches within the limits` };
    } catch (error) { return { why: error.message }; }
  }
  const each = (plan) => {
    const { fixed } = plan, drafts = fixed.drafts ? [fixed.drafts] : ["none", ...cases.draftsOf(plan.model.key)];
    const stacks = fixed.tiers ? [fixed.tiers] : data.space.tiers.map((x) => x.join(" ") || "none");
    return drafts.flatMap((draft) => (fixed.tp ? [fixed.tp] : [1, 2, 4, 8]).flatMap((tp) => stacks.map((tiers) => ({ letters: { tp }, words: { tiers, drafts: draft } }))));
  };
  const served = (plan, { letters, words }) => {
    const { loop, ...found } = fewest(plan, letters.tp, words.tiers === "none" ? [] : words.tiers.split(" "), words.drafts === "none" ? null : words.drafts);
    return { letters: found.given ? { ...letters, replicas: found.values.replicas } : letters, words, ...found, whole: loop && (() => Object.assign(found.values, percentiles(loop, found.values))) };
  };
  const cheaper = (a, b) => (a.cost ?? Infinity) - (b.cost ?? Infinity) || 0, said = ({ whole, ...x }) => x, full = ([x, ...more]) => { x.whole?.(); return [x, ...more].map(said); };
  // A generator: the service that was the best before, all services on this device with this engine, and with the tier and
  // drafts of the best of them the best of each other engine, and of each device if any may be.
  function* agents(plan) {
    const start = Date.now(), result = { services: [], engines: [], devices: [] }, others = Object.keys(data.engines).filter((x) => x !== plan.engine && cases.runsOn(data.engines[x], plan.device)), { before } = plan;
    const devices = plan.any ? Object.entries(data.devices).filter(([k, x]) => k !== plan.device.key && cases.peaks(x).includes(plan.precision) && cases.runsOn(data.engines[plan.engine], x) && x.letters.price_hour && x.letters.hbm_capacity) : [];
    const of = 1 + others.length + devices.length, told = (done) => ({ share: done / of, count: done, ...result });
    function* best(own) { const all = []; for (const way of each(own)) { all.push(served(own, way)); yield told(0); } return all.sort(cheaper); }
    const same = before && !plan.any && each(plan).find((x) => x.letters.tp === before.letters.tp && x.words.tiers === before.words.tiers && x.words.drafts === before.words.drafts), again = same && served(plan, same);
    if (again && !again.why) { result.services = [said(again)]; yield told(0); }
    result.services = full(yield* best(plan));
    yield { ...told(0), isSearched: true };
    const line = (named, [first_]) => said({ ...named, ...first_ }), like = { ...plan, fixed: { ...plan.fixed, ...result.services[0].words } };
    for (const [i, [key, device]] of devices.entries()) { result.devices.push(line({ device: key }, yield* best({ ...like, device }))); yield told(1 + i); }
    for (const [i, engine] of others.entries()) { result.engines.push(line({ engine }, yield* best({ ...like, engine }))); yield told(1 + devices.length + i); }
    for (const kind of ["device", "engine"]) result[`${kind}s`] = [line({ [kind]: kind === "device" ? plan.device.key : plan.engine }, result.services), ...result[`${kind}s`]].sort(cheaper);
    return { ...result, seconds: (Date.now() - start) / 1e3 };
  }
  return { agents, served: (plan, way) => said(served(plan, way)), sheet };
}
