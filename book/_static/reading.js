// What every page owes a reader without a mouse, and one with paper.
(() => {
  // What is wider than its place is scrolled by the arrow keys too.
  const SCROLLS = ".sb-table, .sb-sections, figure.sb-figure > div, div.cell_output, .table-container, div.math";
  const start = () => {
    const boxes = document.querySelectorAll(`article :is(${SCROLLS})`);
    const look = (box) => {
      const wide = box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;
      const scrolls = wide && /auto|scroll/.test(getComputedStyle(box).overflowX);
      if (!scrolls) {
        if (box.dataset.scrolls) for (const x of ["tabindex", "role", "aria-label", "data-scrolls"]) box.removeAttribute(x);
        return;
      }
      const said = box.querySelector("caption, figcaption, thead th")?.textContent.trim() || "wide content";
      for (const [x, value] of Object.entries({ tabindex: "0", role: "group", "aria-label": `${said.slice(0, 80)}, scrolls`, "data-scrolls": "yes" })) box.setAttribute(x, value);
    };
    const seen = new ResizeObserver((all) => all.forEach(({ target }) => look(target)));
    boxes.forEach((box) => seen.observe(box));
  };
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", start);
  else start();

  // A page that is dark on the screen is light on paper.
  const root = document.documentElement, paper = matchMedia("print");
  let theme = "";
  const light = () => { if (root.dataset.theme === "dark") [theme, root.dataset.theme] = ["dark", "light"]; };
  const back = () => { if (theme) [root.dataset.theme, theme] = [theme, ""]; };
  addEventListener("beforeprint", light);
  addEventListener("afterprint", back);
  paper.addEventListener("change", () => (paper.matches ? light : back)());
})();
