// Texts whose contrast with the colour behind them is under 3 to 1 (a large text's minimum in WCAG 2); of a page of
// formulas, whose entries are all alike, those that the browser has drawn.
() => {
  const kept = (f, found = new Map()) => (x) => found.get(x) ?? found.set(x, f(x)).get(x);
  const parts = kept((colour) => colour.match(/[\d.]+/g).map(Number));
  const linear = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = kept(([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b));
  const behind = kept((e) => {
    const colour = e ? parts(getComputedStyle(e).backgroundColor) : [255, 255, 255];
    return !e || (colour[3] ?? 1) > 0.5 ? colour : behind(e.parentElement);
  });
  const texts = [...document.querySelectorAll("article :is(p, td, th, .sb-widget *, .cell_output *)")].filter(
    (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())
      && !e.closest(".katex-mathml") // which is heard, and not seen
      && e.checkVisibility({ contentVisibilityAuto: true }) && e.getClientRects().length);
  return texts.filter((e) => {
    const [dark, bright] = [light(parts(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => x - y);
    return (bright + 0.05) / (dark + 0.05) < 3;
  }).map((e) => e.textContent.trim().slice(0, 40));
}
