// Updates of reinforcement learning: what rl_step gives (scalebook/rl/update.py), in the same steps.

function planUpdates(cases) {
  const { engine } = cases, { data } = engine, sheets = data.rl.sheets.map((x) => engine.sheet(engine.listed(x))), POINTS = 160;
  const list = (n, f) => Array.from({ length: n }, (_, i) => f(i)), gcd = (a, b) => (b ? gcd(b, a % b) : a), lcm = (a, b) => (a * b) / gcd(a, b);
  const even = (x) => { const near = Math.round(x); return near - x === 0.5 && near % 2 ? near - 1 : near; }; // halves as Python rounds them
  const program = (plan) => ({ ...cases.framework(plan), ...Object.fromEntries(Object.entries(data.rl.unsaid).map(([x, [value]]) => [x, value])), ...plan.letters });
  function need({ values, missing }, letter, { device }) {
    if (values[letter] === undefined) throw new Error(`${device.name} has no ${missing[letter]?.lacks ?? letter}, which an update needs`);
    return values[letter];
  }

  // The complementary error function: a series, and a continued fraction where that is small.
  function erfc(x) {
    if (x < 0) return 2 - erfc(-x);
    let sum = x, term = x;
    if (x > 2.5) { for (let n = 80; n; n--) sum = x + n / 2 / sum; return Math.exp(-x * x) / Math.sqrt(Math.PI) / sum; }
    for (let n = 1; term > 1e-17 * sum; n++) sum += term *= (2 * x * x) / (2 * n + 1);
    return 1 - (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
  }
  // The mean of the largest of so many draws, of values at these normal deviates.
  const Z = list(4801, (i) => i * 0.005 - 10), BELOW = Z.map((z) => Math.log(erfc(-z / Math.SQRT2) / 2));
  const weights = (ways) => Z.map((z, i) => ((ways * Math.exp((ways - 1) * BELOW[i] - (z * z) / 2)) / Math.sqrt(2 * Math.PI)) * 0.005), ONE = weights(1);
  const mean = (values, by = ONE) => { let all = 0; for (let i = 0; i < by.length; i++) all += values(i) * by[i]; return all; };

  // Lengths of answers: lognormal with a cap, whose mean is that with the cap.
  let last = {};
  function lengthsOf({ response, response_spread: spread, response_most: most }) {
    const key = `${response} ${spread} ${most}`;
    if (last.key === key) return last;
    if (!(response >= 1 && response <= most)) throw new Error(`answers have a mean of 1 token or more and at most their cap, not ${cases.g(response)}`);
    const lifted = Z.map((z) => Math.exp(spread * z)), at = (typical) => (i) => Math.min(typical * lifted[i], most);
    let low = response / 2, high = most * Math.exp(8 * spread + 1);
    for (let turn = 0; turn < 100; turn++) { const middle = Math.sqrt(low * high); if (mean(at(middle)) < response) low = middle; else high = middle; }
    const law = at(low), longer = (tokens) => (tokens < most ? erfc(Math.log(tokens / low) / Math.max(spread, 1e-9) / Math.SQRT2) / 2 : 0);
    return (last = { key, typical: low, square: mean((i) => law(i) ** 2), longest: (many) => mean(law, weights(many)), longer });
  }

  // The letters of a rollout on so many devices, with a decode step that is linear in its answers.
  function writing(plan, devices) {
    const { tp } = plan.rollout, { responses, response, response_most: most, age } = plan.letters, { prompt, step_overhead } = program(plan), lengths = lengthsOf(plan.letters), engines = devices / tp;
    if (devices < tp || devices % tp) throw new Error(`${cases.g(devices)} devices that write answers hold no whole number of engines on ${tp}`);
    const served = (tp) => cases.serving.at({ ...plan, job: "serve", engine: data.frameworks[plan.framework].words.engine, letters: { prompt, output: response, users: 1 } }, { letters: { tp, pp: 1, replicas: 1, attention_dp: 1 }, words: {} });
    const { own, known } = served(tp), why = cases.serving.reason(known), fitting = (of) => engine.evaluate(of.own, cases.used(of.own, of.known)), { values, missing } = fitting({ own, known });
    if (why) throw new Error(why);
    if (missing.max_users && !missing.max_users.lacks) { const would = [2, 4, 8, 16, 32, 64, 128].find((x) => x > tp && !cases.serving.reason(served(x).known) && fitting(served(x)).values.max_users); throw new Error(`the weights do not fit on the ${tp === 1 ? "one device" : `${tp} devices`} of an engine${would ? `: ${would} tensor ways would do` : ""}`); }
    const room = Math.floor(need({ values, missing }, "max_users", plan));
    const whole = (responses * Math.max(age, 1)) / engines, group = Math.max(1, Math.min(whole, room)), still = cases.used(own, { ...known, step_overhead });
    for (const x of ["batch", "context"]) delete still[x];
    const { at: [price], out } = engine.compile([own], new Set(Object.keys(still)), [["batch", "context"]], ["pass_time"], false)(still), pass = (batch, context) => { price(batch, context); return out[1]; };
    const context = prompt + (lengths.square / response - 1) / 2, full = pass(group, context);
    let seconds = full, steps = 1, found = { response_group: group, in_flight: group * engines };
    if (!age) {
      const width = most / POINTS, many = Math.max(group, responses);
      let begun = 0; // all begin together, and the longest of all ends them
      for (let i = 0; i < POINTS; i++) {
        const tokens = (i + 0.5) * width, longer = Math.min(lengths.longer(tokens), 1 - 1e-12), [here, left] = [group, many].map((n) => -Math.expm1(n * Math.log1p(-longer)));
        begun += left * pass(Math.max(1, (group * longer) / Math.max(here, 1e-300)), prompt + tokens);
      }
      steps = lengths.longest(responses);
      seconds = (Math.max(0, whole - group) / group) * response * full + begun * width; // others take free places before
      found = { response_group: whole, longest_response: steps };
    }
    const base = Math.min(pass(1, context), seconds / steps);
    return { ...found, rollout_devices: devices, pass_base: base, pass_token: 0, pass_answer: (seconds - base * steps) / (found.response_group * (age ? 1 : response)) };
  }
  function learning(plan, devices) {
    const said = plan.training, ways = said.tp * said.pp * said.cp, dp = devices / ways, { responses, response, response_most: most } = plan.letters, { prompt, packed_share, optimizer_steps } = program(plan), { square } = lengthsOf(plan.letters);
    if (devices < ways || devices % ways) throw new Error(`${cases.g(devices)} devices that learn hold no whole number of models on ${ways}`);
    const packed = most + prompt, seq = Math.max(64, even(Math.min(packed, square / response + prompt) / 64) * 64), batch = Math.max(1, Math.floor(packed / seq));
    const micro = (responses * (response + prompt)) / optimizer_steps / packed_share / (dp * batch * seq), whole = Math.max(1, even(micro));
    const step = cases.training.answer({ ...plan, job: "train", letters: { devices, batch, seq, global_batch: whole * batch * dp }, words: { recompute: "full" } }, { letters: said, words: {} });
    if (step.why) throw new Error(step.why);
    return { train_devices: devices, learning_time: (need(step, "step_time", plan) * optimizer_steps * micro) / whole, memory: step.values.memory };
  }
  function update(plan, first, last) {
    const { letters } = plan, { devices, age } = letters, lengths = lengthsOf(letters), sheet = sheets[age ? 1 : 0];
    const known = { ...engine.shape(plan.model), ...cases.at(plan.device, plan.precision), weight_bits: 16, response_square: lengths.square, response_typical: lengths.typical, ...writing(plan, first), ...learning(plan, last), ...program(plan) };
    if (!("forward_passes" in letters)) delete known.forward_passes; // the sheet has it
    if (age) known.rollout_share = first / devices; else delete known.rollout_share;
    const found = { ...engine.evaluate(sheet, cases.used(sheet, known)), sheet, words: {}, why: null, known };
    need(found, "update_time", plan);
    for (const x of [...data.rl.own, "optimizer_steps", "memory", "hbm_capacity"]) if (x in known) found.values[x] ??= known[x]; // of its engine and its learners
    return found;
  }
  // The update of a plan. With the best share, engines and learners take equally long.
  function settled(plan) {
    const { devices, age, rollout_share: share } = plan.letters, { tp, cp, ep, pp } = plan.training;
    if (!age) return update(plan, devices, devices);
    const block = lcm(plan.rollout.tp, pp * lcm(tp * cp, ep)), whole = Math.floor(devices / block), tried = new Map();
    if (whole < 2) throw new Error(`${cases.g(devices)} devices hold no engine beside learners on ${block}: give more devices`);
    const at = (n) => { if (!tried.has(n)) tried.set(n, update(plan, n * block, devices - n * block)); return tried.get(n); };
    if (share) return at(Math.min(Math.max(even((devices * share) / block), 1), whole - 1));
    let few = 1, many = whole - 1;
    while (few < many) {
      const middle = Math.floor((few + many) / 2), { values } = at(middle);
      if (values.rollout_time >= values.update_time) few = middle + 1; else many = middle; // engines are what it waits for
    }
    const [a, b] = [at(Math.max(1, few - 1)), at(few)];
    return a.values.update_time <= b.values.update_time ? a : b;
  }
  function answer(plan) {
    try { return settled(plan); } catch (error) {
      if (error.constructor !== Error) throw error; // a mistake of the page is not a refusal
      return { values: {}, missing: {}, sheet: sheets[0], words: {}, why: error.message, known: {} };
    }
  }

  // What one change of a plan gives: another framework, other ways, or answers of another age.
  function changes({ framework, rollout, training, model, letters: { age } }) {
    const named = { rollout: "an engine's", training: "a learner's" }, ways = { tp: "tensor ways", cp: "context ways", pp: "pipeline stages", ep: "expert ways" };
    const laid = Object.entries({ rollout, training }).flatMap(([which, own]) => Object.entries(own).flatMap(([x, now]) => [now / 2, now * 2].filter((y) => y >= 1 && (x !== "ep" || model.letters.experts)).map((y) => [`${named[which]} ${ways[x]} ${now} → ${y}`, { [which]: { ...own, [x]: y } }])));
    return [...Object.entries(data.frameworks).filter(([key, x]) => x.words.engine && key !== framework).map(([key, x]) => [x.name, { framework: key, letters: { age: x.words.placement === "apart" ? age || 1 : age } }]), ...laid, age ? ["answers learnt from at once", { letters: { age: 0 } }] : ["answers learnt from an update later", { letters: { age: 1 } }]];
  }
  // A generator: the time on other numbers of devices, of a fleet together and one apart, and every single change.
  function* updates(plan) {
    const found = { together: [], apart: [], changes: [] }, { devices, age } = plan.letters, of = (letters) => answer({ ...plan, letters: { ...plan.letters, ...letters } }).values.update_time;
    for (const by of [1, 2, 1 / 2, 4, 1 / 4, 8, 1 / 8, 16]) for (const [name, other] of [["together", 0], ["apart", age || 1]]) {
      const n = devices * by, time = Number.isInteger(n) && n <= 1e6 ? of({ devices: n, age: other }) : undefined;
      if (time) found[name] = [...found[name], [n, time]].sort((a, b) => a[0] - b[0]);
      yield found;
    }
    for (const [said, change] of changes(plan)) {
      const { values, why, known: { memory, hbm_capacity: room } } = answer({ ...plan, ...change, letters: { ...plan.letters, ...change.letters } }), gb = (x) => Math.round(x / 1e9);
      found.changes.push({ said, change, why: why ?? (memory > room ? `the learners would hold ${gb(memory)} GB of ${gb(room)} GB on each device` : null), values });
      yield found;
    }
    found.changes.sort((a, b) => Boolean(a.why) - Boolean(b.why) || (a.values.update_time ?? Infinity) - (b.values.update_time ?? Infinity) || 0);
    return found;
  }
  return { answer, updates };
}
