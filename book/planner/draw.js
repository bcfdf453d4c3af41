// Bars of what a whole is made of, and curves with a dot that can be dragged.

function planDraw(words) {
  const { h, s, show } = words;

  // Pieces of a whole: [{ letter, name, value, look }], and a line where the capacity is.
  function bar(pieces, { unit, label, capacity, capacityName, open, chapter }) {
    const total = pieces.reduce((x, p) => x + p.value, 0), whole = Math.max(total, capacity ?? 0) || 1, shown = pieces.filter((p) => p.value > 1e-4 * total);
    const strip = h("div", { class: "pl-bar", role: "group", "aria-label": label }, shown.map((p) => {
      const share = (100 * p.value) / whole;
      return h("button", { type: "button", class: `pl-piece ${p.look}`, style: `width:${share}%`, title: `${p.name}: ${show(p.value, unit)}`, "aria-label": `${p.name}, ${show(p.value, unit, 3)}: why`, onclick: () => open(p.letter) },
        share > 9 ? h("span", {}, show(p.value, unit, 3)) : null);
    }), capacity ? h("i", { class: `pl-cap${total > capacity ? " pl-over" : ""}`, style: `left:${(100 * capacity) / whole}%`, title: `${capacityName}: ${show(capacity, unit)}` }) : null);
    const key = h("ul", { class: "pl-key" }, shown.map((p) => h("li", {}, h("i", { class: p.look }), h("button", { type: "button", class: "pl-link", onclick: () => open(p.letter) }, p.name),
      ` ${show(p.value, unit, 3)} `, chapter(p.letter))), capacity ? h("li", {}, h("i", { class: "pl-line" }), `${capacityName} ${show(capacity, unit, 3)}`) : null);
    return h("div", {}, strip, key);
  }

  // What each stage holds, piece by piece, as columns under the line of the capacity.
  function columns(stages, capacity, label) {
    const most = Math.max(capacity, ...stages.map((x) => x.total)), share = (x) => `${(100 * x) / most}%`;
    return h("div", { class: "pl-stages", role: "group", "aria-label": label }, stages.map(({ total, pieces, go }, i) => h("button", { type: "button", class: `pl-stage${total > capacity ? " pl-full" : ""}`, style: `height:${share(total)}`, title: `stage ${i + 1}: ${show(total, "B")}`, "aria-label": `stage ${i + 1}, ${show(total, "B")}: why`, onclick: go },
      pieces.map((p) => h("i", { class: p.look, style: `height:${(100 * p.value) / total}%` })))), h("i", { class: "pl-capline", style: `bottom:${share(capacity)}` }));
  }

  const tick = (v, unit) => (unit === "$" ? `$${show(v, "", 3)}` : show(v, unit, 3).replace(/ (tokens?|requests?)(\/s)?$/, ""));
  // Where a value stands between two ends, and the ticks between: of times in the unit that they are said in.
  const scale = (low, high, from, to, log, unit) => {
    const by = unit === "s" ? [86400, 3600, 60].find((x) => (log ? low >= x : high >= 2 * x)) ?? 1 : 1;
    [low, high] = [low / by, high / by];
    if (log) [low, high] = [Math.log10(low), Math.log10(high)];
    if (low === high) [low, high] = [low - 0.5, high + 0.5];
    const at = (v) => from + ((to - from) * ((log ? Math.log10(v / by) : v / by) - low)) / (high - low);
    const back = (p) => { const v = low + ((high - low) * (p - from)) / (to - from); return by * (log ? 10 ** v : v); };
    const span = high - low, step = log ? Math.max(1, Math.ceil(span / 4)) : 10 ** Math.floor(Math.log10(span)) / (span / 10 ** Math.floor(Math.log10(span)) > 4 ? 1 : 2);
    let ticks = [];
    if (log && span < 2) for (let e = Math.floor(low); e <= high; e++) for (const k of span < 0.8 ? [1, 1.5, 2, 3, 5, 7] : [1, 2, 5]) { const v = Math.log10(k) + e; if (v >= low && v <= high) ticks.push(10 ** v); }
    else for (let t = Math.ceil(low / step); t * step <= high + 1e-9; t++) ticks.push(log ? 10 ** (t * step) : t * step);
    if (ticks.length > 6) ticks = ticks.filter((_, i) => i % Math.ceil(ticks.length / 6) === 0);
    return { at, back, ticks: ticks.map((t) => by * t) };
  };

  // Lines [{ points: [[x, y]], look, name }], dots [{ x, y, look, title }], a marker that moves, and a target.
  function curve({ lines, dots = [], marker, target, xUnit, yUnit, xName, yName, label, moved, targeted, doubling, steps, ends }) {
    const width = 420, height = 250, left = 62, right = 12, top = 12, bottom = 40, all = [...lines.flatMap((l) => l.points), ...dots.map((d) => [d.x, d.y])].filter((p) => p.every((v) => Number.isFinite(v) && v > 0));
    if (!all.length) return h("p", { class: "pl-soft" }, "There is nothing to draw here.");
    const xs = all.map((p) => p[0]), ys = all.map((p) => p[1]), lowX = Math.min(...xs), highX = Math.max(...xs), lowY = Math.min(...ys), highY = Math.max(...ys), wide = (a, b) => b / a > 5;
    const X = scale(lowX, highX, left, width - right, wide(lowX, highX), xUnit), logY = wide(lowY, highY), Y = scale(logY ? lowY / 1.1 : Math.max(0, lowY - 0.12 * (highY - lowY) || lowY * 0.9), highY * (logY ? 1.1 : 1.03), height - bottom, top, logY, yUnit);
    const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, class: "pl-curve", role: "group", "aria-label": label });
    for (const t of Y.ticks) svg.append(s("line", { x1: left, x2: width - right, y1: Y.at(t), y2: Y.at(t), class: "pl-grid" }), s("text", { x: left - 5, y: Y.at(t) + 4, "text-anchor": "end" }, tick(t, yUnit)));
    const few = steps?.filter((_, i) => i % Math.ceil(steps.length / 5) === 0) ?? X.ticks;
    for (const t of few) svg.append(s("text", { x: X.at(t), y: height - bottom + 16, "text-anchor": X.at(t) > width - 40 ? "end" : X.at(t) < left + 20 ? "start" : "middle" }, tick(t, xUnit)));
    svg.append(s("line", { x1: left, x2: width - right, y1: height - bottom, y2: height - bottom, class: "pl-axis" }), s("text", { x: width - right, y: height - 6, "text-anchor": "end", class: "pl-name" }, xName), s("text", { x: 4, y: top - 1, class: "pl-name" }, yName));
    for (const d of dots) if (d.x > 0 && d.y > 0) svg.append(s("circle", { cx: X.at(d.x), cy: Y.at(d.y), r: 3, class: d.look }, s("title", {}, d.title)));
    // Where a hyperbola ends: no faster than the one, no cheaper than the other.
    if (ends) svg.append(s("line", { x1: X.at(ends[0]), x2: X.at(ends[0]), y1: top, y2: height - bottom, class: "pl-end" }), s("line", { x1: left, x2: width - right, y1: Y.at(ends[1]), y2: Y.at(ends[1]), class: "pl-end" }));
    for (const { points, look, isSteps } of lines) {
      let path = "", pen = "M";
      for (const [x, y] of points) { const ok = y > 0 && Number.isFinite(y); if (ok) path += `${pen}${X.at(x).toFixed(1)} ${Y.at(y).toFixed(1)}`; pen = ok ? "L" : "M"; if (ok && isSteps) svg.append(s("circle", { cx: X.at(x), cy: Y.at(y), r: 2.5, class: "pl-point" })); }
      if (path) svg.append(s("path", { d: path, class: `pl-stroke ${look ?? ""}` }));
    }
    const place = (event) => { const box = svg.getBoundingClientRect(); return [((event.clientX - box.left) * width) / box.width, ((event.clientY - box.top) * height) / box.height]; };
    const drag = (handle, move, end) => handle.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      svg.setPointerCapture(event.pointerId);
      const go = (e) => move(place(e)), stop = () => { svg.removeEventListener("pointermove", go); svg.removeEventListener("pointerup", stop); end(); };
      svg.addEventListener("pointermove", go);
      svg.addEventListener("pointerup", stop);
    });
    if (target) {
      const y = Y.at(Math.min(Math.max(target.value, Math.min(...ys)), Math.max(...ys)));
      const line = s("g", { class: "pl-target" }, s("line", { x1: left, x2: width - right, y1: y, y2: y }), s("rect", { x: left, y: y - 9, width: width - left - right, height: 18, class: "pl-grab" }), s("text", { x: left + 6, y: y - 5 }, `target ${show(target.value, yUnit, 3)}`));
      let now = target.value;
      drag(line, ([, py]) => { now = Y.back(Math.min(height - bottom, Math.max(top, py))); const at = Y.at(now); line.setAttribute("transform", `translate(0 ${at - y})`); line.lastChild.textContent = `target ${show(now, yUnit, 3)}`; }, () => targeted(now));
      svg.append(line);
    }
    if (marker && marker.y > 0) {
      const dot = s("circle", { cx: X.at(marker.x), cy: Y.at(marker.y), r: 8, class: "pl-marker", tabindex: 0, role: "slider", "aria-label": xName, "aria-valuenow": marker.x, "aria-valuemin": lowX, "aria-valuemax": highX, "aria-valuetext": `${show(marker.x, xUnit)}: ${show(marker.y, yUnit)}` },
        s("title", {}, "drag it, or press the arrow keys"));
      dot.addEventListener("keydown", (event) => {
        const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
        if (!way) return;
        event.preventDefault();
        const places = (doubling ?? steps ?? lines[0].points.map((p) => p[0])).filter((x) => (way > 0 ? x > marker.x * 1.0001 : x < marker.x / 1.0001));
        if (places.length) moved(way > 0 ? Math.min(...places) : Math.max(...places));
      });
      let now = marker.x;
      drag(dot, ([px]) => {
        now = X.back(Math.min(width - right, Math.max(left, px)));
        if (doubling) now = doubling.reduce((a, b) => (Math.abs(Math.log(b / now)) < Math.abs(Math.log(a / now)) ? b : a));
        dot.setAttribute("cx", X.at(now));
        const points = lines[0].points.filter((p) => p[1] > 0), i = Math.max(1, points.findIndex((p) => p[0] >= now));
        const [a, b] = [points[i - 1], points[i] ?? points[i - 1]];
        dot.setAttribute("cy", Y.at(a[0] === b[0] ? a[1] : a[1] + ((b[1] - a[1]) * (now - a[0])) / (b[0] - a[0])));
      }, () => moved(now));
      svg.append(dot);
    }
    return svg;
  }
  // Lines of two bars each, what one costs and how long it takes, with a name that can be chosen.
  function pairs(lines, heads) {
    const most = heads.map((_, i) => Math.max(...lines.map((x) => x.bars[i][0] ?? 0)));
    return h("table", { class: "pl-pairs" }, h("thead", {}, h("tr", {}, ["device", ...heads].map((x) => h("th", { scope: "col" }, x)))), h("tbody", {}, lines.map(({ name, said, isMe, go, bars }) => h("tr", { class: isMe ? "pl-me" : undefined },
      h("th", { scope: "row" }, h("button", { type: "button", class: "pl-link", title: said, "aria-pressed": String(isMe), onclick: go }, name)),
      bars.map(([x, text], i) => h("td", {}, h("i", { class: i ? "pl-long" : undefined, style: `width:${most[i] ? (100 * (x ?? 0)) / most[i] : 0}%` }), h("span", {}, text)))))));
  }
  return { bar, columns, curve, pairs };
}
