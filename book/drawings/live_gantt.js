// A pipeline's schedule in the browser: the order of every device comes from Python, the times from the sliders.

// "F3 B3.7+W3.7": slots of operations, each a kind, a micro-batch and a stage, where it is not the device's own.
export const parse = (order, device) => order.split(" ").map((slot) => slot.split("+").map((text) => {
  const [microbatch, stage = device] = text.slice(1).split(".").map(Number);
  return { kind: text[0], microbatch, stage, key: `${text[0]}${microbatch}.${stage}` };
}));

function needs(x, last) {
  if (x.kind === "F") return x.stage ? `F${x.microbatch}.${x.stage - 1}` : "";
  if (x.kind === "B") return x.stage < last ? `B${x.microbatch}.${x.stage + 1}` : `F${x.microbatch}.${last}`;
  return `B${x.microbatch}.${x.stage}`;
}

// Every slot with its device, start and end; `slow` is how long the last stage takes beside the others.
export function execute(texts, chunks, times, transfer, slow) {
  const orders = texts.map(parse), last = orders.length * chunks - 1, place = {}, ends = {};
  orders.forEach((order, d) => order.flat().forEach((x) => (place[x.key] = d)));
  const free = orders.map(() => 0), at = orders.map(() => 0), slots = [];
  for (let moved = true; moved;) {
    moved = false;
    orders.forEach((order, d) => {
      for (; at[d] < order.length; at[d]++, moved = true) {
        const slot = order[at[d]], inside = slot.map((x) => x.key);
        const needed = slot.map((x) => needs(x, last)).filter((n) => n && !inside.includes(n));
        if (needed.some((n) => !(n in ends))) break;
        const start = Math.max(free[d], ...needed.map((n) => ends[n] + (place[n] === d ? 0 : transfer)));
        const lasts = slot.map((x) => (times[x.kind] * (x.stage === last ? slow : 1)) / chunks).reduce((a, b) => a + b);
        free[d] = start + lasts;
        inside.forEach((key) => (ends[key] = free[d]));
        slots.push({ device: d, slot, start, end: free[d] });
      }
    });
  }
  const span = (d) => { const own = slots.filter((x) => x.device === d); return own.at(-1).end - own[0].start; };
  const step = Math.max(...orders.map((_, d) => span(d)));
  const busy = slots.reduce((sum, x) => sum + x.end - x.start, 0);
  return { slots, step, bubble: (orders.length * step - busy) / busy, end: Math.max(...slots.map((x) => x.end)) };
}

const SVG = "http://www.w3.org/2000/svg";
const make = (tag, attributes, parent, text) => {
  const node = tag === "svg" || parent?.namespaceURI === SVG ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [k, v] of Object.entries(attributes)) node.setAttribute(k, v);
  if (text !== undefined) node.textContent = text;
  parent?.append(node);
  return node;
};

// A later chunk is paler, within an outline of its whole colour.
const paint = (look, keep) => `fill: var(${look}); fill-opacity: ${keep}; stroke: ${keep < 1 ? `var(${look})` : "none"}`;

// As wide as there is room; on a narrow screen wider, to be scrolled, for the shortest bar to have 4 pixels.
function draw(svg, run, devices, spec, chunks, mirrored) {
  const left = 22, shortest = Math.min(...run.slots.map((x) => x.end - x.start));
  const width = Math.max(svg.parentNode.clientWidth || 560, 280, Math.min(left + (4 * run.end) / shortest, 700));
  const row = devices > 8 ? 17 : devices > 4 ? 20 : 28, height = devices * row + 22;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height);
  svg.style.width = `${width}px`;
  svg.replaceChildren();
  const x = (t) => left + ((width - left - 4) * t) / run.end;
  for (let d = 0; d < devices; d++) make("text", { x: 2, y: d * row + row / 2 + 4 }, svg, d + 1);
  const count = 1 + Math.max(...run.slots.flatMap(({ slot }) => slot.map((op) => op.microbatch))), half = count / 2;
  const room = 6 * String(count).length + 3;  // a number stands in every bar of a width or in none
  for (const { device, slot, start, end } of run.slots) {
    const later = slot[0].stage >= devices || (mirrored && slot[0].microbatch >= half);
    const fade = later ? 1 - ((1 - spec.second) * (mirrored ? 1 : Math.floor(slot[0].stage / devices))) / Math.max(chunks - 1, 1) : 1;
    const wide = x(end) - x(start), { look } = spec.kinds[slot.map((op) => op.kind).join("")];
    make("rect", { x: x(start), y: device * row + 1.5, width: Math.max(wide - Math.min(0.7, wide / 6), 0.5), height: row - 3,
      style: paint(look, fade) }, svg);
    if (slot.length < 3 && wide > room) {
      const at = { x: (x(start) + x(end)) / 2, y: device * row + row / 2 + 3.5 };
      make("text", { ...at, "text-anchor": "middle", class: "sb-number", style: `fill: var(${fade < 1 ? "--sb-ink" : `${look}-on`})` }, svg, slot[0].microbatch + 1);
    }
  }
  make("text", { x: width - 4, y: height - 6, "text-anchor": "end" }, svg, `time: ${run.end.toFixed(1)}`);
}

export default {
  render({ model, el }) {
    const spec = model.get("pipeline"), controls = {};
    el.classList.add("sb-calculator", "sb-gantt");
    for (const control of spec.controls) {
      const label = make("label", {}, el), said = make("span", {}, label, control.label);
      if (control.options) {
        const select = (controls[control.name] = make("select", {}, label));
        control.options.forEach((option) => make("option", { value: option }, select, option));
      } else {
        const { min, max, step, value } = control;
        controls[control.name] = make("input", { type: "range", min, max, step, value }, label);
        controls[control.name].shown = make("output", {}, label);
      }
      said.className = "sb-gantt-label";
    }
    const answer = make("p", { "aria-live": "polite", class: "sb-gantt-answer" }, el);
    const svg = make("svg", { role: "img" }, make("div", { class: "sb-curve" }, el));
    const key = make("p", { class: "sb-gantt-key" }, el);
    const redraw = () => {
      const value = (name) => Number(controls[name].value);
      const schedule = controls.schedule.value, { chunks, orders } = spec.schedules[schedule];
      for (const control of Object.values(controls)) if (control.shown) control.shown.textContent = Number(control.value).toFixed(2);
      const texts = orders[controls.size.value];
      const run = execute(texts, chunks, { F: value("F"), B: value("B"), W: value("W") }, value("transfer"), value("slow"));
      answer.textContent = `bubble ${(100 * run.bubble).toFixed(1)} % of the work; a step takes ${run.step.toFixed(1)}`;
      svg.setAttribute("aria-label", `${schedule}, ${controls.size.value}: ${answer.textContent}`);
      const mirrored = schedule === "dualpipe", kinds = new Set(run.slots.map(({ slot }) => slot.map((op) => op.kind).join("")));
      draw(svg, run, texts.length, spec, chunks, mirrored);
      key.replaceChildren();
      const said = Object.entries(spec.kinds).filter(([kind]) => kinds.has(kind)).map(([, x]) => x);
      if (chunks > 1 || mirrored) said.push({ look: "", name: `paler: second ${mirrored ? "direction" : "chunk"}` });
      for (const { look, name } of said) {
        make("span", look ? { style: `background: var(${look})` } : { class: "sb-paler" }, key);
        key.append(`\u00a0${name.replaceAll(" ", "\u00a0")}  `);
      }
    };
    for (const control of Object.values(controls)) control.addEventListener("input", redraw);
    const size = new ResizeObserver(redraw);
    size.observe(el);
    redraw();
    return () => size.disconnect();
  },
};
