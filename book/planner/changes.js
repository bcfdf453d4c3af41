// What to change next, as scalebook.answers.changes says it: single changes of a plan with the gain of each, those that
// need no other hardware first.  What is tried are that module's lists.  Only what keeps to the plan's own limits is among
// them: memory with its margin, and the targets of a service.

// Tokens a second of each device, by which changes are compared.
function rateOf({ values }) {
  return values.train_rate === undefined ? values.device_rate : values.train_rate / values.devices;
}

function planChanges(cases, { beyond }) {
  const { data } = cases.engine, tried = data.changes, permutations = (all) => all.flatMap((x) => all.filter((y) => y !== x).map((y) => [x, y]));

  // Letters: batch, overlap, layout.  Of a layout of training the copies follow from the devices.
  function* numbers({ job, letters: given }, { values }) {
    const time = job === "train" ? "step_time" : "tpot", times = (n) => tried.factors[n].map((x) => ({ letters: { [n]: values[n] * x } }));
    if (job === "serve") yield* [...(given.rate === undefined ? times("users") : []), { letters: tried.cache }, ...(values.experts ? tried.groups : []).filter((x) => values.tp % x === 0).map((x) => ({ letters: { ep: values.tp * values.attention_dp, tp: values.tp / x, attention_dp: values.attention_dp * x } }))];
    else {
      yield* times("batch");
      const several = tried.overlaps.filter((n) => n in values && (values[n.split("_")[0]] ?? 2) > 1);
      for (const n of several) if (values[n] < 1) yield { letters: { [n]: 1 } };
      for (const n of tried.contended) if (several.includes(n) && values[n] > 0) yield { letters: { [n]: 0 } };
      if (values.ep > 1) yield* times("ep");
    }
    for (const [down, up] of permutations(tried.ways[time])) {
      if (!(down in values && up in values) || values[down] % 2) continue;
      const { dp, ...letters } = { [down]: values[down] / 2, [up]: 2 * values[up] };
      yield { letters };
    }
  }
  // A narrower precision, recomputation, and another engine or framework.  This page has no sheet of a step in two halves
  // (overlap="half_batches"), and its plans always name a schedule, so that no chunks are tried beside it.
  function* words({ job, device, precision }, { words: now, values }) {
    const peak = (x) => device.letters[`peak_${x}`] ?? 0, vendor = device.words.vendor ?? "";
    yield* tried.narrower.filter((x) => peak(x) > peak(precision)).slice(0, 1).map((x) => ({ precision: x }));
    if (job === "serve") yield* (tried.engines[vendor] ?? []).map((x) => ({ engine: x }));
    else yield* [...recomputed({ words: now, values }), ...(tried.frameworks[vendor] ?? []).map((x) => ({ framework: x }))];
  }
  // Also by module, in models that have what a set of modules needs.
  function recomputed({ words: now, values }) {
    const whole = tried.recompute.filter((x) => x !== "selective" || now.attention !== "flash"), sets = Object.keys(tried.modules).filter((x) => tried.modules[x].every((n) => values[n]));
    return [...whole, ...sets].filter((x) => x !== now.recompute).map((x) => ({ words: { recompute: x } }));
  }
  const asChange = (all) => Object.entries(all).reduce((x, [n, y]) => ({ ...x, ...(typeof y === "string" ? { words: { ...x.words, [n]: y } } : { letters: { ...x.letters, [n]: y } }) }), {});
  // Other layouts of the same devices, with the plan's own words and with less to hold, which is tried alone first.
  function laidOut({ values, words: now }) {
    const { tp, pp, ep } = tried.laid_out, differs = (all) => Object.fromEntries(Object.entries(all).filter(([n, y]) => (values[n] ?? now[n]) !== y)), own = tp.flatMap((x) => pp.flatMap((y) => (values.experts ? ep : [1]).map((z) => ({ tp: x, pp: y, ep: z }))));
    return tried.beside.flatMap((more) => [[{}], own].map((some) => some.map((x) => asChange(differs({ ...x, ...more })))));
  }
  function* hardware({ values, given }) {
    const twice = (names) => Object.fromEntries(names.map((n) => [n, 2 * values[n]]));
    yield { letters: twice(Object.keys(values).filter((n) => n.startsWith("peak_") && n in given)), twice: "peaks" };
    for (const n of tried.hardware) if (n in values) yield { letters: twice([n]), twice: n };
  }

  // A plan and its layout with a change.
  function changed(plan, chosen, { letters = {}, words: own = {}, twice, ...rest }) {
    const isOfLayout = (n) => n in chosen.letters, of = (test) => Object.fromEntries(Object.entries(letters).filter(([n]) => test(n)));
    return [{ ...plan, ...rest, letters: { ...plan.letters, ...of((n) => !isOfLayout(n)) } }, { letters: { ...chosen.letters, ...of(isOfLayout) }, words: { ...chosen.words, ...own } }];
  }
  function* priced(plan, chosen, here, candidates, isFree, found) {
    for (const change of candidates) {
      yield { list: found };
      try { // a change may not go with this plan
        const [own, layout] = changed(plan, chosen, change), there = cases.of(plan.job).answer(own, layout), gain = rateOf(there) / rateOf(here) - 1;
        const { step_time: step, tpot, memory } = there.values;
        if (!there.why && Number.isFinite(gain) && !beyond(own, there)) found.push({ ...change, gain, isFree, time: step ?? tpot, memory });
      } catch (error) { if (error.constructor !== Error) throw error; } // a mistake of the page is not a refusal
    }
    return found;
  }
  // As many users as wait at a rate, in its place: at a rate a device's tokens a second follow from it.
  function byUsers(plan, chosen) {
    const { rate: asked, ...letters } = plan.letters;
    return asked === undefined ? plan : { ...plan, letters: { ...data.usual.rate, ...letters, users: cases.serving.answer(plan, chosen).values.users } };
  }
  // All changes that gain something, the best first, or of a plan that does not fit all that make it fit, with the nearest.
  function* changes(asked, chosen) {
    const plan = byUsers(asked, chosen), thing = cases.of(plan.job), first = thing.answer(plan, chosen), here = { ...first, given: cases.used(first.sheet, first.known) }, fits = !beyond(plan, here);
    const best = (list) => list.sort((a, b) => b.gain - a.gain), gaining = (list) => best(list.filter((x) => x.gain > tried.least || !fits)), own = [...numbers(asked, here)];
    const free = yield* priced(plan, chosen, here, [...own, ...words(plan, here)], true, []), bought = yield* priced(plan, chosen, here, hardware(here), false, []);
    let nearest = null;
    if (!fits) for (const candidates of [[...own, ...recomputed(here), ...tried.to_fit.map(asChange)], ...laidOut(here)]) nearest ??= best(yield* priced(plan, chosen, here, candidates, true, []))[0] ?? null;
    const without = (all, n) => Object.fromEntries(Object.entries(all ?? {}).filter(([x]) => x !== n));
    for (const n of Object.keys({ ...nearest?.letters, ...nearest?.words })) { // a part without effect is left out
      const [x] = yield* priced(plan, chosen, here, [{ letters: without(nearest.letters, n), words: without(nearest.words, n) }], true, []);
      if (x?.gain > nearest.gain - 1e-9) nearest = x;
    }
    return { list: [...gaining(free), ...gaining(bought)], nearest, fits };
  }
  return changes;
}

// The same on the page: a button for each change, with a bar of its gain.
function planBinds({ words, view, part, h, show, brief, data, get, take }) {
  const FEW = 5, NAMES = { ...view.CALLED, users: "users", kv_bits: "bits of a cached number" };
  const HIDDEN = { dp_overlap: "data-parallel collectives hidden", ep_overlap: "experts' exchange hidden", cp_overlap: "context exchange hidden", tp_pieces: "tensor-parallel collectives sent in pieces", tp_beside: "tensor-parallel sums beside weight gradients", optimizer_offload: "gradients and optimizer state in the host's memory" };
  const share = (x) => show(Math.abs(x), "%", 2).replace(" ", "\u00a0");
  // A change in words: each of its parts with what it is now.
  function said({ letters = {}, words: own = {}, precision, framework, engine, twice, isSearched }) {
    const { state, answer, chosen } = get();
    if (twice) return twice === "peaks" ? "twice the arithmetic" : `twice the ${brief(twice).replace(/ (of one|per) device$/, "")}${isSearched ? ", in the best layout for it" : ""}`;
    if (precision) return `precision ${state.precision} → ${precision}`;
    if (framework) return data.frameworks[framework].name;
    if (engine) return data.engines[engine].name;
    const value = (n, x) => (words.unit(n) === "%" ? show(x, "%").replace(" ", "\u00a0") : show(x));
    const letter = (n, x) => (x === 1 && HIDDEN[n] ? `${HIDDEN[n]}${answer.values[n] ? `, all instead of ${value(n, answer.values[n])}` : ""}` : `${NAMES[n] ?? brief(n)} ${value(n, answer.values[n] ?? 0)}\u00a0→\u00a0${value(n, x)}`);
    return [...Object.entries(letters).map(([n, x]) => letter(n, x)), ...Object.entries(own).map(([n, x]) => `${NAMES[n] ?? n}: ${view.told(chosen.words[n])} → ${view.told(x)}`)].join(", ");
  }
  const more = (gain) => (Math.abs(gain) < 0.0005 ? "as many tokens a second" : `${share(gain)} ${gain > 0 ? "more" : "fewer"} tokens a second`);
  const then = ({ time, memory }) => `${show(time, "s", 3)} a ${get().state.job === "train" ? "step" : "token"}${memory === undefined ? "" : ` and ${show(memory, "B", 3)} of memory`}`;
  function button(change) {
    const text = said(change);
    return h("button", { type: "button", class: "pl-link", title: then(change), "aria-label": `${text}: ${more(change.gain)} from each device, ${then(change)}; take it`, onclick: () => take(change) }, text);
  }
  function line(change, most) {
    const { gain } = change;
    return h("li", {}, button(change), h("i", { style: `width:${Math.max(0, (100 * gain) / most)}%` }), h("b", {}, Math.abs(gain) < 0.0005 ? "±0" : `${gain > 0 ? "+" : "−"}${share(gain)}`));
  }
  function paint({ list, nearest, fits }) {
    const most = Math.max(0.01, ...list.map((x) => x.gain)), free = list.filter((x) => x.isFree), bought = list.filter((x) => !x.isFree).sort((a, b) => b.gain - a.gain), wasOpen = part.binds.querySelector("details")?.open;
    const name = (x) => x.getAttribute("aria-label"), had = part.binds.contains(document.activeElement) && name(document.activeElement);
    const lines = (all) => h("ul", { class: "pl-help" }, all.map((x) => line(x, most))), rest = free.slice(FEW), { job, letters } = get().state;
    const first = nearest ? [`The nearest change that fits${get().answer.values.memory <= get().answer.values.hbm_capacity ? " with its margin" : ""}: `, h("b", {}, button(nearest)), `, with ${then(nearest)}.`] : free.length ? ["Most would help: ", h("b", {}, said(free[0])), `, ${more(free[0].gain)} from each device.`] : bought.length ? ["Only other hardware would help: ", h("b", {}, said(bought[0])), `, ${more(bought[0].gain)} from each device.`] : [fits ? "No single change that was tried gains a percent." : "No single change that was tried makes this layout fit."];
    part.binds.replaceChildren(h("h2", {}, "What binds"), h("p", {}, first), ...(free.length ? [h("h3", {}, "On these devices"), lines(free.slice(0, FEW)), ...(rest.length ? [h("details", { open: wasOpen }, h("summary", {}, `${rest.length} more`), lines(rest))] : [])] : []),
      ...(bought.length ? [h("h3", {}, "With other hardware"), lines(bought)] : []), list.length ? h("p", { class: "pl-soft" }, `${fits ? "More tokens" : "Tokens"} a second from each device${fits ? "" : ", against this layout if it fitted"}, one change at a time${job === "serve" && "rate" in letters ? ", with as many users as wait now" : ""}. Click one to take it.`) : "");
    if (had) [...part.binds.querySelectorAll("button")].find((x) => name(x) === had)?.focus({ preventScroll: true });
  }
  const asData = (x) => ({ said: said(x), gain: x.gain, is_free: x.isFree, [get().state.job === "train" ? "step_time" : "tpot"]: x.time, ...(x.memory === undefined ? {} : { memory: x.memory }) });
  return { paint, asData };
}
