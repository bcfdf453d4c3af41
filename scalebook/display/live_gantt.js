// A pipeline's schedule in the browser: the order of every device comes from Python, the times from the sliders.

// "F3.0 B3.0+W3.0": slots of operations, each a kind, a micro-batch and a stage.
export const parse = (order) => order.split(" ").map((slot) => slot.split("+").map((text) => {
  const [microbatch, stage] = text.slice(1).split(".").map(Number);
  return { kind: text[0], microbatch, stage, key: text };
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

function draw(svg, run, devices, spec, chunks, mirrored) {
  const width = Math.max(svg.clientWidth || 560, 280), left = 22, row = devices > 4 ? 20 : 28, height = devices * row + 22;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height);
  svg.replaceChildren();
  const x = (t) => left + ((width - left - 4) * t) / run.end;
  for (let d = 0; d < devices; d++) make("text", { x: 2, y: d * row + row / 2 + 4 }, svg, d + 1);
  const half = (1 + Math.max(...run.slots.flatMap(({ slot }) => slot.map((op) => op.microbatch)))) / 2;
  for (const { device, slot, start, end } of run.slots) {
    const later = slot[0].stage >= devices || (mirrored && slot[0].microbatch >= half);
    const fade = later ? 1 - (0.45 * (mirrored ? 1 : Math.floor(slot[0].stage / devices))) / Math.max(chunks - 1, 1) : 1;
    make("rect", { x: x(start), y: device * row + 2, width: Math.max(x(end) - x(start) - 0.7, 0.5), height: row - 4,
      fill: spec.colours[slot.map((op) => op.kind).join("")], "fill-opacity": fade }, svg);
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
    for (const [kind, name] of Object.entries(spec.names)) {
      make("span", { style: `background:${spec.colours[kind]}` }, key);
      key.append(` ${name}  `);
    }
    const redraw = () => {
      const value = (name) => Number(controls[name].value);
      const schedule = controls.schedule.value, { chunks, orders } = spec.schedules[schedule];
      for (const control of Object.values(controls)) if (control.shown) control.shown.textContent = Number(control.value).toFixed(2);
      const texts = orders[controls.size.value];
      const run = execute(texts, chunks, { F: value("F"), B: value("B"), W: value("W") }, value("transfer"), value("slow"));
      answer.textContent = `bubble ${(100 * run.bubble).toFixed(1)} % of the work; a step takes ${run.step.toFixed(1)}`;
      svg.setAttribute("aria-label", `${schedule}, ${controls.size.value}: ${answer.textContent}`);
      draw(svg, run, texts.length, spec, chunks, schedule === "dualpipe");
    };
    for (const control of Object.values(controls)) control.addEventListener("input", redraw);
    const size = new ResizeObserver(redraw);
    size.observe(el);
    redraw();
    return () => size.disconnect();
  },
};
