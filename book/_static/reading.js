// What every page owes a reader without a mouse, one with a narrow screen, and one with paper.
(() => {
  // What is wider than its place is scrolled by the arrow keys too, fades on the sides where there is more of it, and
  // keeps in view the column that names the rows, where that leaves room for others (custom.css).
  const SCROLLS = ".sb-table, .sb-sections, .pst-scrollable-table-container, figure.sb-figure > div, div.cell_output, div.output, div.math, .sb-display, .highlight pre";
  const TAKEN = "[tabindex]:not([data-scrolls])"; // the build or the theme have named it already
  const start = () => {
    // All that is asked of the browser is asked before anything is told it: the page is laid out once.
    const asked = (box) => {
      const { scrollWidth, scrollHeight, clientWidth, clientHeight, scrollLeft, scrollTop } = box;
      const { overflowX, overflowY } = getComputedStyle(box), by = (room, how) => (/auto|scroll/.test(how) && room > 1 ? room : 0);
      const right = by(scrollWidth - clientWidth, overflowX), below = by(scrollHeight - clientHeight, overflowY), scrolls = right + below > 0;
      const more = !scrolls ? [] : [scrollLeft > 1 && "left", scrollLeft < right - 1 && "right", scrollTop < below - 1 && "below"].filter(Boolean);
      const first = right && box.querySelector("tbody > tr > :first-child");
      return { box, scrolls, more: more.join(" "), sticks: Boolean(first) && first.offsetWidth < 0.5 * clientWidth };
    };
    const told = ({ box, scrolls, more, sticks }) => {
      if (more !== (box.dataset.more ?? "")) more ? box.dataset.more = more : delete box.dataset.more;
      if (sticks !== "sticks" in box.dataset) box.toggleAttribute("data-sticks", sticks);
      if (box.matches(TAKEN) || scrolls === "scrolls" in box.dataset) return;
      if (!scrolls) return ["tabindex", "role", "aria-label", "data-scrolls"].forEach((x) => box.removeAttribute(x));
      const said = box.querySelector("caption, figcaption, thead th")?.textContent.trim() || "wide content";
      for (const [x, value] of Object.entries({ tabindex: "0", role: "group", "aria-label": `${said.slice(0, 80)}, scrolls`, "data-scrolls": "yes" })) box.setAttribute(x, value);
    };
    const look = (boxes) => boxes.map(asked).forEach(told);
    const seen = new ResizeObserver((all) => look(all.map((x) => x.target)));
    for (const box of document.querySelectorAll(`article :is(${SCROLLS})`)) {
      seen.observe(box);
      box.addEventListener("scroll", () => look([box]), { passive: true });
    }
  };
  // The theme puts its boxes around tables when the page is read.
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", () => setTimeout(start));
  else setTimeout(start);

  // A page that is dark on the screen is light on paper.
  const root = document.documentElement, paper = matchMedia("print");
  let theme = "";
  const light = () => { if (root.dataset.theme === "dark") [theme, root.dataset.theme] = ["dark", "light"]; };
  const back = () => { if (theme) [root.dataset.theme, theme] = [theme, ""]; };
  addEventListener("beforeprint", light);
  addEventListener("afterprint", back);
  paper.addEventListener("change", () => (paper.matches ? light : back)());
})();
