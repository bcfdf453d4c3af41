// A calculator on the screen: controls that are plain inputs, its answers, its pictures, and what can be taken away.

let count = 0;  // of calculators on this page, for names that none shares

// Formulas with a reader's numbers are set by JupyterLab, or by the page (book/js/widgets.js).
const typeset = (node, model) => (model.widget_manager?._rendermime?.latexTypesetter ?? globalThis.scalebook)?.typeset?.(node);

// ---- the state in the address: #c1=device:h100;batch:64&c2=...

const number = (el) => 1 + [...document.querySelectorAll(".sb-calculator:not(.sb-gantt, .sb-guess)")].indexOf(el);

function addressed(n) {
  const part = location.hash.slice(1).split("&").find((x) => x.startsWith(`c${n}=`));
  return part?.slice(part.indexOf("=") + 1).split(";").filter(Boolean).map((x) => {
    const [name, ...rest] = x.split(":");
    try { return [name, decodeURIComponent(rest.join(":"))]; } catch { return [name, ""]; }
  });
}

export function read(spec, pairs, state) {
  const next = { ...state }, refused = [];
  for (const [name, text] of pairs) {
    const control = spec.controls.find((x) => x.name === name), value = text === "" ? NaN : Number(text);
    if (control?.options?.some((x) => x.key === text)) next[name] = text;
    else if (control && !control.options && good(value, control.sign)) next[name] = value;
    else refused.push(name);
  }
  return { next, refused };
}

export const written = (spec, state) => spec.controls.map(({ name }) => `${name}:${encodeURIComponent(state[name])}`).join(";");

// ---- what a reader takes away

const literal = (x) => (typeof x === "number" && Math.abs(x) < 1e15 && Number.isInteger(x) ? String(x) : JSON.stringify(x).replace(/e\+/, "e"));

// The same answer in Python: by the package's formulas where it states all of them, else from the chapter's own cell.
export function python(spec, state) {
  const menus = spec.controls.filter((x) => x.keys), answer = spec.outputs[0].letter;
  if (!spec.formulas.every((f) => f.module) || menus.some((x) => x.rows)) {
    const said = spec.controls.map(({ name }) => `${name}=${literal(state[name])}`);
    return `# in the chapter's notebook, with calc = calculator(...) in the cell of this calculator\ncalc.choose(${said.join(", ")})\ncalc\n`;
  }
  const modules = {}, rows = [], seen = new Set(), { letters } = known(spec, state);
  for (const f of spec.formulas) (modules[f.module] ??= []).push(f.name);
  const own = {};
  for (const control of menus) {
    const option = chosen(control, state), place = `${control.table}[${literal(option.key)}]`;
    const alone = !seen.size || control.table === "models";
    if (alone) rows.push(option.peaks && state.precision ? `${place}.at(${literal(state.precision)})` : place);
    for (const x of Object.keys(option.letters)) if (!alone || seen.has(x) || x in (control.usual ?? {})) own[x] = letters[x];
    Object.keys(option.letters).forEach((x) => seen.add(x));
  }
  for (const { name, options } of spec.controls) if (!options) own[name] = state[name];
  Object.assign(own, spec.fixed);
  const asked = Object.entries(own).filter(([x]) => x in spec.unknown).map(([x, v]) => `${x}=${literal(v)}`);
  const tables = [...new Set(menus.map((x) => x.table))].sort();
  return [
    "from scalebook.language import Sheet",
    ...Object.entries(modules).map(([module, names]) => `from ${module} import ${names.join(", ")}`),
    ...(tables.length ? [`from scalebook.tables import ${tables.join(", ")}`] : []),
    "",
    `sheet = Sheet(${JSON.stringify(spec.name)}, ${spec.formulas.map((f) => f.name).join(", ")})`,
    `print(sheet(${[...rows, ...asked].join(", ")})[${JSON.stringify(answer)}])`,
    "",
  ].join("\n");
}

function save(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// ---- why: from the answer down to rows and to what was chosen

// Each letter that a formula gives folds what it is made of; `opened` are the folds that stay open while a slider moves.
function reasons(spec, values, state, opened, set) {
  const root = document.documentElement.dataset.content_root, first = spec.outputs[0].letter, { letters } = known(spec, state);
  const to = (path, text) => (root === undefined ? text : make("a", { href: `${root}book/reference/${path}` }, text));
  const say = (name) => `${spec.letters[name][1]} \\(${spec.letters[name][0]}\\): ${Number.isFinite(values[name]) ? plural(show(values[name], spec.units[name])) : "none"}`;
  const cited = (source) => to(`bibliography.html#source-${source.split(" ")[0]}`, source);
  const by = (f) => make("small", {}, ...(f.module ? ["formula ", to(`formulas.html#formula-${f.name.replaceAll("_", "-")}`, f.name)] : ["formula put together for what is chosen here"]),
    ...(f.sources ?? []).flatMap((x, i) => [i ? "; " : " · ", cited(x)]));
  const given = (name) => {
    const control = spec.controls.find((c) => (c.options ? name in chosen(c, state).letters || (chosen(c, state).peaks && spec.by_precision.includes(name)) : c.name === name));
    return make("small", {}, "— ", !control ? "fixed here" : !control.options ? "chosen here" : control.table ? to(`${control.table}.html`, chosen(control, state).label) : chosen(control, state).label);
  };
  const made = (f) => {
    const tex = f.letter === first ? spec.right : f.tex;
    return [tex ? make("div", { class: "sb-equation", tabindex: 0, role: "group", "aria-label": `formula of ${spec.letters[f.letter][1]}` }, `\\(\\begin{aligned}${spec.letters[f.letter][0]} &= ${tex}\\end{aligned}\\)`)
      : make("p", {}, "Its formula is too long to be set here; what it is made of stands below."), make("p", {}, by(f)), make("ul", {}, ...f.inputs.map((x) => item(x, f.letter)))];
  };
  const item = (name, above) => {
    const f = spec.formulas.find((x) => x.letter === name), path = `${above} ${name}`;
    if (!f || (spec.over.includes(name) && name in letters)) return make("li", {}, `${say(name)} `, given(name));
    if (!f.inputs.length) return make("li", {}, `${say(name)} `, make("small", {}, "— "), by(f));
    if (!above) return make("li", {}, say(name), ...made(f));
    const fold = make("details", { open: opened.has(path) }, make("summary", {}, say(name)));
    const fill = () => { if (fold.children.length < 2) fold.append(...made(f)); };
    if (fold.open) fill();
    fold.addEventListener("toggle", () => {
      if (!fold.open) opened.delete(path);
      else if (!opened.has(path)) { opened.add(path); fill(); set(fold); }
    });
    return make("li", {}, fold);
  };
  return make("ul", {}, item(first, ""));
}

// "8 tokens", "1 token": as people say it.
export const plural = (text) => text.replace(/^(?!1 )(\S+(?: million| billion| trillion| quadrillion)?) (token|bit|request)(?=$|\/)/, "$1 $2s");

// ---- all of it

const ROOM = 6;  // as many more assumptions as stand beside the answers without making a calculator longer; from so many on they have heads

function build(model, el, spec, first) {
  const id = `sb-${++count}`, kernel = Boolean(model.get("data")?.formulas);
  el.classList.add("sb-calculator");
  const get = () => model.get("state");
  const set = (state) => { model.set("state", state); model.save_changes(); };
  const change = (name) => (value) => {
    const state = { ...get(), [name]: value };
    // A device without the precision takes the first that it has.
    if ("precision" in state && name !== "precision") {
      const has = offered(spec, state).map((x) => x.key);
      if (has.length && !has.includes(state.precision)) state.precision = has[0];
    }
    set(state);
  };

  const parts = spec.controls.filter((x) => !(x.options?.length === 1)).map((control) => {
    const one = (control.options ? chooser : control.values.length === 2 && control.name !== spec.curve?.x ? pair : slider)(control, `${id}-${control.name}`, change(control.name), spec);
    return { ...one, name: control.name };
  });
  const by = Object.fromEntries(parts.map((x) => [x.name, x]));
  const open = spec.first.filter((x) => by[x]), shut = parts.map((x) => x.name).filter((x) => !open.includes(x) && x !== "precision");
  const device = open.find((x) => spec.controls.find((c) => c.name === x).options?.[0].peaks);
  const order = by.precision ? (device ? open.flatMap((x) => (x === device ? [x, "precision"] : [x])) : ["precision", ...open]) : open;
  const kinds = grouped(spec.controls.filter((x) => shut.includes(x.name)));
  const more = shut.length ? make("details", { class: "sb-more" }, make("summary", {}, `${kinds.map(([kind]) => kind).join(", ")} (${shut.length} more)`),
    ...kinds.flatMap(([kind, own]) => [kinds.length > 1 && shut.length >= ROOM ? make("p", { class: "sb-kind" }, kind) : null, ...own.map((x) => by[x.name].row)])) : null;
  const alone = spec.controls.filter((x) => x.options?.length === 1).map((x) => `${x.label}: ${x.options[0].label}`);
  const controls = make("div", { class: "sb-controls" }, ...order.map((x) => by[x].row), more,
    alone.length ? make("p", { class: "sb-alone" }, alone.join("; ")) : null);

  const labels = spec.outputs.map(() => make("output", { class: "sb-value" }));
  labels[0].setAttribute("aria-live", "polite");
  const message = make("p", { class: "sb-message", role: "status" });
  const range = make("p", { class: "sb-likely", title: "eight in ten measured cases like this one lie between these ends" });
  const head = make("div", { class: "sb-head" },
    make("p", { class: "sb-answer sb-first" }, make("span", {}, spec.outputs[0].meaning), " ", labels[0]), range, message);
  const bars = make("div", { class: "sb-bars" });
  const others = make("dl", { class: "sb-others" }, ...spec.outputs.slice(1).flatMap((x, i) => [make("dt", { title: x.meaning }, brief(x.meaning)), make("dd", {}, labels[i + 1])]));

  // What is folded is made when it is opened, and followed while it is open.
  const fold = (kind, title, fill) => {
    const body = make("div", { class: "sb-body" }), node = make("details", { class: kind }, make("summary", {}, title), body);
    const refresh = () => { if (node.open) fill(body); };
    node.addEventListener("toggle", refresh);
    return { node, refresh };
  };
  let found;
  const worked = fold("sb-worked", "the formula, worked", (body) => {
    const sum = measured(spec, found.values).find((x) => x.letter === spec.outputs[0].letter && x.rows.length === 1);
    const long = sum && sum.rows[0].pieces.length > 3;
    const tex = !found.worked ? "" : long ? `\\(\\begin{aligned}${spec.left} &= ${spec.right}\\end{aligned}\\)` : found.worked;
    const terms = sum?.rows[0].pieces.map((x) => make("tr", {}, make("th", { scope: "row" }, make("i", { class: `sb-swatch ${hue(x)}` }), x.label), make("td", {}, show(x.value, sum.unit))));
    const table = terms && make("table", {}, ...terms, make("tr", { class: "sb-total" }, make("th", { scope: "row" }, sum.meaning), make("td", {}, found.texts[0])));
    const names = [spec.outputs[0].letter, ...Object.keys(spec.units).filter((x) => spec.template.includes(`⟦${x}⟧`))];
    const legend = make("ul", { class: "sb-letters" }, ...[...new Set(names)].map((x) => make("li", {}, `\\(${spec.letters[x][0]}\\) ${spec.letters[x][1]}`)));
    body.replaceChildren(make("div", { class: "sb-equation", tabindex: 0, role: "group", "aria-label": "the formula" }, tex || "no value here"), ...(table ? [table] : []), legend);
    typeset(body, model);
  });
  const opened = new Set(), why = fold("sb-because", "why", (body) => { body.replaceChildren(reasons(spec, found.values, get(), opened, (node) => typeset(node, model))); typeset(body, model); });
  const lacking = spec.lacking?.length ? make("details", { class: "sb-note" }, make("summary", {}, `not in the menus, for want of a figure: ${spec.lacking.length}`), make("p", {}, `${spec.lacking.join("; ")}.`)) : null;

  const curve = spec.curve ? picture(spec, get, (value) => change(spec.curve.x)(value)) : null;
  if (curve) head.append(curve.figure);

  const said = make("output", { class: "sb-said-done", "aria-live": "polite" });
  const shown = make("textarea", { class: "sb-shown", readonly: true, hidden: true, rows: 3, "aria-label": "to copy" });
  const copy = async (text, done) => {
    try { await navigator.clipboard.writeText(text); said.textContent = done; shown.hidden = true; }
    catch { shown.value = text; shown.hidden = false; shown.rows = Math.min(12, text.split("\n").length + 1); shown.select(); said.textContent = "copy it from here"; }
  };
  const button = (text, title, act) => make("button", { type: "button", title, onclick: act }, text);
  const name = spec.outputs[0].letter;
  const buttons = make("div", { class: "sb-buttons" },
    kernel ? null : button("link", "copy the address of this page with these choices", () => {
      const own = `c${number(el)}=${written(spec, get())}`, rest = location.hash.slice(1).split("&").filter((x) => /^c\d+=/.test(x) && !x.startsWith(`c${number(el)}=`));
      history.replaceState(null, "", `#${[...rest, own].join("&")}`);
      copy(location.href, "link copied");
    }),
    button("Python", "copy the call that gives the same answer", () => copy(python(spec, get()), "Python copied")),
    curve && button("CSV", "save the curve as a table", () => save(`${name}.csv`, csv(spec, get()), "text/csv")),
    curve && button("SVG", "save the curve as a drawing", () => save(`${name}.svg`, standalone(curve.svg), "image/svg+xml")),
    curve && button("pin", "keep this curve for comparison", () => { curve.pin(label()); refresh(); }),
    button("reset", "back to where it began", () => { curve?.clear(); set(first); refresh(); }), said);
  const label = () => spec.controls.filter((x) => x.name !== spec.curve.x && get()[x.name] !== first[x.name]).map((x) => (x.options ? chosen(x, get()).label : `${brief(x.label)} ${plural(exact(get()[x.name], x.unit))}`)).slice(0, 3).join(", ") || "as it began";

  const right = make("div", { class: "sb-right" }, head, bars, others, worked.node, why.node, buttons, shown, lacking);
  el.append(make("div", { class: "sb-columns" }, controls, right));
  el.setAttribute("role", "group");
  el.setAttribute("aria-label", `calculator: ${spec.outputs[0].meaning}`);

  // The ends take as long as everything else together: the first time they come after what is seen first.
  let shown_once = false;
  const few = (x) => plural(show(Number(x.toPrecision(3)), spec.outputs[0].unit));
  const said_range = (state) => {
    const ends = found.texts[0] === "none" ? undefined : likely(spec, state, spec.outputs[0].letter);
    range.textContent = ends ? `likely ${few(ends[0])} to ${few(ends[1])} (80 %)` : "";
  };
  if (spec.spread) range.textContent = "\u00a0";
  setTimeout(() => { shown_once = true; said_range(get()); }, 60);
  const refresh = () => {
    const state = get();
    found = answers(spec, state);
    parts.forEach((x) => x.refresh(state));
    labels.forEach((node, i) => { const text = plural(found.texts[i]); if (node.textContent !== text) node.textContent = text; });
    if (message.textContent !== found.message) message.textContent = found.message;
    if (shown_once) said_range(state);
    const measures = measured(spec, found.values);
    bars.replaceChildren(...measures.map((x) => bar(x, x.letter === spec.outputs[0].letter)));
    bars.hidden = !measures.length;
    curve?.refresh(plural(found.texts[0]));
    worked.refresh();
    why.refresh();
    el.dataset.state = JSON.stringify(state);
  };
  // At most one run a frame, however fast a slider moves.
  let due = false;
  const later = () => { if (!due) { due = true; requestAnimationFrame(() => { due = false; refresh(); }); } };
  model.on("change:state", later);

  const follow = () => {
    const pairs = kernel ? undefined : addressed(number(el));
    if (!pairs) return;
    const { next, refused } = read(spec, pairs, first);
    set(next);
    refresh();
    if (refused.length) said.textContent = `The link says something that this calculator does not know; it was left out.`;
    el.scrollIntoView({ block: "start" });
  };
  refresh();
  if (more && shut.length <= ROOM && matchMedia("(min-width: 900px)").matches) more.open = true;
  curve?.start(el);
  if (!kernel) { follow(); addEventListener("hashchange", follow); }
  return () => { model.off("change:state", later); removeEventListener("hashchange", follow); curve?.stop(); };
}

// A part has the colour of what it is: scalebook/display/meanings.py.
const hue = ({ kind, shade }) => `sb-${kind}-${shade}`;

function bar(one, answered) {
  const share = (x) => `${Math.min(100, (100 * x) / (one.most * 1.02))}%`;
  const largest = Math.max(...one.rows.map((x) => x.total)), over = one.limit !== undefined && largest > one.limit;
  const say = (x) => show(x, one.unit).replaceAll(" ", "\u00a0"), words = (x) => `${x.label} ${say(x.value)}`;
  const rows = one.rows.map((row) => make("div", { class: `sb-bar-row${one.rows.length > 1 && row.total === largest ? " sb-largest" : ""}` },
    one.rows.length > 1 ? make("span", { class: "sb-bar-label", title: row.title }, `${row.label}: ${say(row.total)}`) : null,
    make("div", { class: "sb-track", "aria-hidden": "true" }, ...row.pieces.map((x) => make("span", { class: hue(x), style: `width:${share(x.value)}`, title: `${x.title}: ${say(x.value)}` })),
      one.limit === undefined ? null : make("b", { class: "sb-limit", style: `left:${share(one.limit)}` }))));
  const seen = new Map(one.rows.flatMap((row) => row.pieces.map((x) => [`${x.label}|${x.value}`, x])));
  const key = one.rows.every((row) => row.pieces.length === 1 && row.pieces[0].label === row.label) ? null
    : make("ul", { class: "sb-bar-key" }, ...[...seen.values()].map((x) => make("li", { title: x.title }, make("i", { class: `sb-swatch ${hue(x)}` }), words(x))));
  const line = one.limit === undefined ? "" : `, of ${say(one.limit)}`;
  return make("section", { class: `sb-bar${over ? " sb-over" : ""}`, "aria-label": `${one.meaning}: ${show(largest, one.unit)}${line}` },
    answered && !line ? "" : make("p", { class: "sb-bar-title" }, `${brief(one.meaning)}: ${say(largest)}${line}`), ...rows, key);
}

function picture(spec, get, move) {
  const svg = document.createElementNS(SVG, "svg"), caption = make("figcaption"), reading = make("span", { class: "sb-read" });
  svg.setAttribute("role", "img");
  const figure = make("figure", { class: "sb-curve" }, caption, svg);
  const control = spec.controls.find((x) => x.name === spec.curve.x);
  let pinned = [], drawn = null, held = false, band = null, due = 0;
  const legend = () => {
    caption.replaceChildren(...named(), reading);
    caption.classList.toggle("sb-many", caption.children.length > 4);
  };
  const named = () => [...(spec.curve.y.length > 1 || spec.curve.y[0].letter !== spec.outputs[0].letter || pinned.length ? spec.curve.y : [])
      .map((y, k) => make("span", { class: `sb-key sb-key-${k}`, style: own(y, "--sb-own") }, brief(y.meaning))),
    ...(band?.points ? [make("span", { class: "sb-key sb-key-band", style: own(spec.curve.y[0], "--sb-own") }, "likely (80 %)")] : []),
    ...pinned.map((x) => make("span", { class: "sb-key sb-key-pinned" }, x.label))];
  const at = (event) => {
    const box = svg.getBoundingClientRect();
    return Math.min(Math.max(((event.clientX - box.left) * svg.viewBox.baseVal.width) / box.width, drawn.left), drawn.right);
  };
  svg.addEventListener("pointermove", (event) => {
    if (!drawn) return;
    const x = tidy(spec, control, drawn.X.back(at(event)));
    if (held) return move(x);
    const found = compute(spec, { ...known(spec, get()).letters, [spec.curve.x]: x });
    const texts = spec.curve.y.map((y) => (good(found[y.letter], y.sign) ? show(found[y.letter], y.unit) : "none"));
    reading.textContent = `at ${exact(x, spec.curve.unit)}: ${texts.join(", ")}`;
    for (const k of ["x1", "x2"]) drawn.reading.setAttribute(k, drawn.X.place(x));
    drawn.reading.setAttribute("visibility", "visible");
    return undefined;
  });
  svg.addEventListener("pointerleave", () => { reading.textContent = ""; drawn?.reading.setAttribute("visibility", "hidden"); });
  svg.addEventListener("pointerdown", (event) => {
    if (!drawn || event.button) return;
    held = true;
    svg.setPointerCapture(event.pointerId);
    move(tidy(spec, control, drawn.X.back(at(event))));
  });
  for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => { held = false; });
  let last = "";
  // Its room is told by the browser, and never asked for: that would have the whole page laid out anew.
  let own_width = 0, whole_width = 0;
  const refresh = (text = last) => {
    last = text;
    if (!own_width) return;
    const small = whole_width < 560, width = Math.max(own_width, 200);
    // The band takes a while: it is drawn once the controls rest, and kept while only the curve's own slider moves.
    const of = JSON.stringify({ ...get(), [spec.curve.x]: 0 });
    if (band?.of !== of) {
      if (band) { band = null; legend(); }
      clearTimeout(due);
      due = setTimeout(() => { band = { of, points: banded(spec, get()) }; legend(); refresh(); }, 150);
    }
    drawn = draw(svg, spec, get(), pinned, { width, height: small ? 104 : 210, band: band?.points });
    svg.setAttribute("aria-label", `${spec.outputs[0].meaning} against ${spec.curve.label}; now ${text}`);
  };
  const size = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) if (target === figure) own_width = contentRect.width; else whole_width = contentRect.width;
    refresh();
  });
  legend();
  return {
    figure, svg, refresh,
    start(whole) { size.observe(whole); size.observe(figure); },
    pin(label) { pinned = [...pinned, { label: `pinned: ${label}`, points: along(spec, get()).points }].slice(-3); legend(); },
    clear() { pinned = []; legend(); },
    stop() { size.disconnect(); clearTimeout(due); },
  };
}

export default {
  render({ model, el }) {
    const own = model.get("data"), spec = whole(model.get("spec"), own?.formulas ? own : globalThis.scalebook);
    return build(model, el, spec, spec.start);
  },
};
