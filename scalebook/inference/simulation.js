// Continuous batching, executed as `arrivals.py`, `simulation.py` and `served.py` beside this file do, to the last digit.

function uniform(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let x = Math.imul(seed ^ (seed >>> 15), seed | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

function exponential(draw) {
  for (let whole = 0; ; whole++) {
    const first = draw();
    let last = first, odd = true;
    for (let next = draw(); next < last; next = draw()) [last, odd] = [next, !odd];
    if (odd) return whole + first;
  }
}

function drawnLength(nominal, shortest, draw) {
  const low = Math.max(1, Math.floor(shortest * nominal));
  return low + Math.floor(draw() * (nominal - low + 1));
}

function drawn(number, { prompt, output, shortest, rate, seed }) {
  const draw = uniform(seed), prompts = [], outputs = [], arrivals = [];
  for (let i = 0, now = 0; i < number; i++) {
    prompts.push(drawnLength(prompt, shortest, draw));
    outputs.push(drawnLength(output, shortest, draw));
    if (rate !== null) arrivals.push((now += exponential(draw) / rate));
  }
  return { prompts, outputs, arrivals };
}

// When each request arrived, was begun, had its first token and ended; and the steps, equal ones together.
function run(arrivals, unread, outputs, sizes, step, chunk, most, room) {
  const number = outputs.length, starts = [], firsts = Array(number).fill(0), ends = Array(number).fill(0), steps = [], running = [];
  let now = 0, done = 0, ended = 0, left = 0, held = 0;
  while (ended < number) {
    const batch = running.length, read = [];
    let budget = chunk;
    while (budget) {
      if (!left) {
        const next = starts.length;
        if (next === arrivals.length || arrivals[next] > now || batch + read.length >= most || held + sizes[next] > room) break;
        starts.push(now);
        held += sizes[next];
        left = unread[next];
      }
      const taken = Math.min(left, budget);
      left -= taken;
      budget -= taken;
      if (!left) read.push(starts.length - 1);
    }
    const next = starts.length;
    if (budget === chunk && !batch) {
      now = arrivals[next];
      continue;
    }
    const seconds = step(batch, chunk - budget);
    if (!(now < now + seconds && now + seconds < Infinity)) throw new RangeError(`a step of ${seconds} s does not move a clock at ${now} s`);
    let count = 1;
    if (budget === chunk) {
      count = running[0].last - done;
      if (batch < most && next < arrivals.length && arrivals[next] > now) count = Math.min(count, Math.ceil((arrivals[next] - now) / seconds));
    }
    steps.push({ start: now, seconds: count * seconds, batch, tokens: count * batch + read.length });
    now += count * seconds;
    done += count;
    for (const request of read) {
      firsts[request] = now;
      const last = done + outputs[request] - 1;
      let place = running.length;
      while (place && running[place - 1].last > last) place--;
      running.splice(place, 0, { last, request });
    }
    while (running.length && running[0].last === done) {
      const { request } = running.shift();
      ends[request] = now;
      held -= sizes[request];
      ended++;
      if (arrivals.length < number) arrivals.push(now);
    }
  }
  return { arrivals, starts, firsts, ends, steps };
}

const sum = (values) => values.reduce((a, b) => a + b, 0);

function statistics(times) {
  if (!times.length) return null;
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share) => {
    const place = share * (sorted.length - 1), low = Math.floor(place);
    return sorted[low] + (place - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
  };
  return { mean: sum(times) / times.length, p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

// The letters of simulate_serving in Python, one of rate and users; or step(batch, tokens read), in seconds.
export function simulateServing({ prompt, output, rate = null, users = null, base_time, added_time = 0, prompt_time = 0, step,
  requests = 10 * (users ?? 100), chunk = 8192, max_batch = null, cache_limit = null, hits = 0, shortest = 1, warmup = 0, seed = 0 }) {
  const room = cache_limit ?? Infinity, most = max_batch ?? Infinity, token = prompt_time / prompt;
  if (prompt + output > room) throw new RangeError(`a request reserves ${prompt + output} tokens, and cache_limit=${room} would never have them`);
  const { prompts, outputs, arrivals } = drawn(requests, { prompt, output, shortest, rate, seed });
  const unread = prompts.map((x) => Math.max(1, x - Math.floor(hits * x))), sizes = prompts.map((x, i) => x + outputs[i]);
  const seconds = step ?? ((batch, tokens) => base_time + batch * added_time + tokens * token);
  const sent = rate === null ? Array(users).fill(0) : arrivals;
  const times = run(sent, unread, outputs, sizes, seconds, chunk, most, room);
  const counted = times.steps.filter((x) => x.start >= times.arrivals[warmup]), after = (_, i) => i >= warmup;
  const elapsed = times.ends.reduce((a, b) => Math.max(a, b)) - counted[0].start;
  const idle = sum(counted.slice(1).map((x, i) => x.start - (counted[i].start + counted[i].seconds)));
  return {
    ...times, outputs,
    ttft: statistics(times.firsts.map((x, i) => x - times.arrivals[i]).filter(after)),
    tpot: statistics(times.ends.map((x, i) => (x - times.firsts[i]) / (outputs[i] - 1)).filter((_, i) => i >= warmup && outputs[i] > 1)),
    end_to_end: statistics(times.ends.map((x, i) => x - times.arrivals[i]).filter(after)),
    throughput: sum(counted.map((x) => x.tokens)) / elapsed,
    utilisation: 1 - idle / elapsed,
    mean_batch: sum(counted.map((x) => x.batch * x.seconds)) / sum(counted.map((x) => x.seconds)),
  };
}
