// The pictures of a calculator: its answer along one slider, and its sums and maxima as bars.

const SVG = "http://www.w3.org/2000/svg";

function between(low, high) {
  const log = low > 0 && high / low > 4;
  return Array.from({ length: 97 }, (_, i) => (log ? low * Math.pow(high / low, i / 96) : low + ((high - low) * i) / 96));
}

// The values of the curve's letters at many values of its slider.
export function along(spec, state) {
  const { x, y, steps } = spec.curve, { values } = spec.controls.find((c) => c.name === x);
  const { letters } = known(spec, state), here = state[x];
  const row = (at) => {
    const found = compute(spec, { ...letters, [x]: at });
    return [at, y.map(({ letter }) => found[letter])];
  };
  const every = [...values, here].sort((a, b) => a - b);
  // Where a warning of this slider begins, an answer may jump: both sides are computed.
  const edges = spec.warn.filter(([left]) => left === x).map(([, right]) => compute(spec, { ...letters, [x]: here })[right]).filter((at) => at > every[0] && at < every.at(-1));
  const places = steps ? [...new Set(every)] : [...between(every[0], every.at(-1)), ...edges.flatMap((at) => [at, at * (1 + 1e-9)])].sort((a, b) => a - b);
  return { points: places.map(row), now: row(here), values, edges };
}

// The ends between which the first of them lies in eight of ten cases, at some values of its slider; none without spread.
export function banded(spec, state) {
  const { x, y, steps } = spec.curve, { points } = along(spec, state), { letters } = known(spec, state);
  const every = steps || points.length < 20 ? 1 : 6, found = [];
  for (let i = 0; i < points.length; i += every) {
    const [at, [value]] = points[i], ends = value > 0 ? likely(spec, { ...state, [x]: at }, y[0].letter, { ...letters, [x]: at }) : undefined;
    if (ends) found.push([at, ...ends]);
    else if (value > 0) return undefined;
    else if (found.length) break;
  }
  return found.length > 1 ? found : undefined;
}

// One axis: where a value stands, its ticks, and their words, all in one unit.
function axis(values, from, to, unit, room) {
  let low = Math.min(...values), high = Math.max(...values);
  const log = low > 0 && high / low > 20;
  if (!log && from > to) low = Math.min(low, 0);
  if (low === high) [low, high] = log ? [low / 2, high * 2] : [low, high + 1];
  const scale = (v) => (log ? Math.log10(v) : v), a = scale(low), b = scale(high);
  const place = (v) => from + ((to - from) * (scale(v) - a)) / (b - a);
  const back = (p) => { const v = a + ((p - from) / (to - from)) * (b - a); return log ? Math.pow(10, v) : v; };
  const ticks = [];
  if (log) {
    const every = Math.max(1, Math.ceil((b - a) / room));
    for (const by of [every, 1]) {
      if (ticks.length > 1) break;
      ticks.length = 0;
      for (let t = Math.ceil(a - 1e-9); t <= b + 1e-9; t++) if (t % by === 0) ticks.push(Math.pow(10, t));
    }
    if (ticks.length < 2) for (const m of [2, 5, 20, 50]) { const t = m * Math.pow(10, Math.floor(a)); if (t >= low && t <= high) ticks.push(t); }
  } else {
    const rough = (b - a) / room, ten = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = ten * [1, 2, 5, 10].find((m) => m * ten >= rough - 1e-12);
    for (let t = Math.ceil(a / step - 1e-9); t * step <= b + step * 1e-9; t++) ticks.push(t * step);
  }
  ticks.sort((x, y) => x - y);
  for (let i = ticks.length - 1; i > 0; i--) if (from > to && Math.abs(place(ticks[i]) - place(ticks[i - 1])) < 20) ticks.splice(i, 1);
  return { place, back, log, ticks, say: sayer(ticks, unit) };
}

// Ticks in the unit of the largest, or, where they span more than that unit can say, each in its own short one.
function sayer(ticks, unit) {
  const top = Math.max(...ticks.map(Math.abs)), least = Math.min(...ticks.map(Math.abs).filter((x) => x > 0));
  if (unit === "year" || unit === "%" || !(top > 0)) return (v) => show(v, unit);
  if (top / least > 2e4 || COUNTED.has(unit) && top >= 1e6 && top / least >= 1e3) return (v) => (unit === "s" && v >= 120 ? `${plain(round(v))} s` : plural(show(v, unit)));
  const text = show(unit === "s" && top >= 120 && top < 7200 ? 60 : top, unit), tail = text.replace(/^[-\d.,]+/, "");
  const size = (unit === "s" && top >= 120 && top < 7200 ? 60 : top) / Number(text.replace(tail, "").replaceAll(",", "")) ;
  return tail.startsWith("×") ? (v) => show(v, unit) : (v) => plural(`${v ? plain(round(v / size)) : 0}${v ? tail : ""}`);
}

// A line of what is part of something has that part's colour.
const own = ({ kind, shade }, what = "stroke") => (kind ? `${what}: var(--sb-${kind}-${shade})` : "");

export function draw(svg, spec, state, pinned, { width, height, band }) {
  const found = along(spec, state), { points, now } = found, small = height < 120;
  const { unit, y: lines } = spec.curve;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.style.height = `${height}px`;
  svg.replaceChildren();
  const add = (tag, attributes, text) => {
    const node = document.createElementNS(SVG, tag);
    for (const [k, v] of Object.entries(attributes)) node.setAttribute(k, v);
    if (text !== undefined) node.textContent = text;
    svg.append(node);
    return node;
  };
  const drawn = [points, ...pinned.map((x) => x.points)];
  const ys = drawn.flat().flatMap(([, y]) => y).filter((y) => Number.isFinite(y) && y > 0);
  if (!ys.length) {
    add("text", { x: 10, y: height / 2 }, "nothing to draw for this choice");
    return null;
  }
  const top = 8, bottom = small ? 20 : 40;
  const trial = axis(ys, height - bottom, top, lines[0].unit, small ? 2 : 5);
  const left = 12 + 6.6 * Math.max(...trial.ticks.map((t) => trial.say(t).length)), right = 14;
  const Y = trial, xs = drawn.flat().map(([x]) => x);
  const X = axis(xs, left, width - right, unit, Math.max(2, Math.floor((width - left) / 80)));
  for (const t of Y.ticks) {
    add("line", { x1: left, x2: width - right, y1: Y.place(t), y2: Y.place(t), class: "sb-grid" });
    add("text", { x: left - 6, y: Y.place(t) + 4, "text-anchor": "end" }, Y.say(t));
  }
  // Where a slider doubles, so do the marks; as many as there is room for.
  const { values } = found, doubled = values.filter((x) => x > 0 && Number.isInteger(Math.log2(x / values[0])));
  const marks = X.log && doubled.length > 3 ? doubled : spec.curve.steps && values.length < 9 ? values : X.ticks;
  const said = (x) => (COUNTED.has(unit) && unit !== "%" ? show(x, "") : marks === X.ticks ? X.say(x) : show(x, unit));
  let free = left - 20;
  for (const x of marks) {
    const text = said(x), wide = 6.6 * text.length, at = Math.min(Math.max(X.place(x), left + wide / 2 - 8), width - right - wide / 2 + 8);
    if (at - wide / 2 < free + 10) continue;
    free = at + wide / 2;
    add("line", { x1: X.place(x), x2: X.place(x), y1: height - bottom, y2: height - bottom + 4, class: "sb-axis" });
    add("text", { x: at, y: height - bottom + 16, "text-anchor": "middle" }, text);
  }
  add("line", { x1: left, x2: width - right, y1: height - bottom, y2: height - bottom, class: "sb-axis" });
  if (!small) add("text", { x: width - right, y: height - 6, "text-anchor": "end" }, spec.curve.label);
  if (band) {
    const within = (v) => Math.min(Math.max(Y.place(v), top), height - bottom).toFixed(1);
    const over = band.map(([x, , high]) => `${X.place(x).toFixed(1)} ${within(high)}`), under = band.map(([x, low]) => `${X.place(x).toFixed(1)} ${within(low)}`).reverse();
    add("path", { d: `M${[...over, ...under].join("L")}Z`, class: "sb-band", style: own(lines[0], "fill") });
  }
  const line = (several, k, kind, style = "") => {
    let path = "", pen = "M";
    for (const [x, values] of several) {
      const v = values[k], ok = Number.isFinite(v) && v > 0;
      if (ok) path += `${pen}${X.place(x).toFixed(1)} ${Y.place(v).toFixed(1)}`;
      if (ok && spec.curve.steps && !small) add("circle", { cx: X.place(x), cy: Y.place(v), r: 2.5, class: `${kind.replaceAll("line", "dot")}` });
      pen = ok ? "L" : "M";
    }
    if (path) add("path", { d: path, class: kind, style });
  };
  for (const at of found.edges) add("line", { x1: X.place(at), x2: X.place(at), y1: top, y2: height - bottom, class: "sb-edge" });
  pinned.forEach((pin) => line(pin.points, 0, "sb-line sb-pinned"));
  lines.forEach((_, k) => line(points, k, `sb-line sb-line-${k}${k === 0 && lines.length > 1 ? " sb-under" : ""}`, own(lines[k])));
  lines.forEach((_, k) => {
    const [x, values] = now;
    if (Number.isFinite(values[k]) && values[k] > 0) add("circle", { cx: X.place(x), cy: Y.place(values[k]), r: k ? 3.5 : 6, class: `sb-dot sb-dot-${k}${k ? "" : " sb-handle"}`, style: own(lines[k], "fill") });
  });
  const reading = add("line", { y1: top, y2: height - bottom, class: "sb-reading", visibility: "hidden" });
  return { ...found, X, Y, left, right: width - right, reading };
}

// A value that a person would choose: three digits, whole where the slider's values are, one of the list where there is no other.
export function tidy(spec, control, value) {
  const low = Math.min(...control.values), high = Math.max(...control.values);
  value = Math.min(Math.max(value, low), high);
  if (spec.curve.steps) return control.values.reduce((a, b) => (Math.abs(Math.log(b / value)) < Math.abs(Math.log(a / value)) ? b : a));
  const whole = control.whole || control.values.every(Number.isInteger);
  return whole ? Math.max(low, Math.round(value < 1000 ? value : Number(value.toPrecision(3)))) : Number(value.toPrecision(3));
}

// The curve as a table, numbers unrounded and in base units.
export function csv(spec, state) {
  const { x, unit, y } = spec.curve, said = (name, of) => `${name}${of ? ` (${of})` : ""}`;
  const rows = along(spec, state).points.map(([at, found]) => [at, ...found.map((v) => (Number.isFinite(v) ? v : ""))]);
  return [[said(x, unit), ...y.map((l) => said(l.letter, l.unit))], ...rows].map((row) => row.join(",")).join("\n") + "\n";
}

// A drawing that stands alone: the colours that the page gave it written into it.
export function standalone(svg) {
  const copy = svg.cloneNode(true), own = [...svg.querySelectorAll("*")];
  copy.setAttribute("xmlns", SVG);
  [...copy.querySelectorAll("*")].forEach((node, i) => {
    const style = getComputedStyle(own[i]);
    for (const name of ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity"]) node.setAttribute(name, style.getPropertyValue(name));
    node.removeAttribute("class");
  });
  copy.setAttribute("style", `font: 12px system-ui, sans-serif; background: ${getComputedStyle(svg.closest(".sb-calculator")).backgroundColor}`);
  return copy.outerHTML;
}

// Each bar's rows with the values of their pieces; what is zero or has no value is left out.
export function measured(spec, values) {
  return (spec.bars ?? []).map((bar) => {
    const rows = bar.rows.map((row) => {
      const pieces = row.pieces.map((piece) => ({ ...piece, value: spec.piece[piece.js](values) }));
      return { ...row, pieces: pieces.filter((x) => x.value > 0 && Number.isFinite(x.value)),
               total: pieces.reduce((sum, x) => sum + x.value, 0) };
    });
    const limit = bar.line && Number.isFinite(values[bar.line.letter]) ? values[bar.line.letter] : undefined;
    return { ...bar, rows, limit, most: Math.max(limit ?? 0, ...rows.map((x) => x.total)) };
  }).filter((bar) => bar.most > 0 && Number.isFinite(bar.most));
}
