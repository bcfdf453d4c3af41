// The theme of a page, its width, what is left undrawn or unsaid in it or printed wider than its box, and texts that can hardly be read.
() => {
  const root = document.documentElement, wrong = ".katex-error, i[class*=fa-], span[class*=fa-], .jupyter-widgets-error-widget";
  ENDED;
  const silent = [...document.querySelectorAll(".sb-verdict")].filter((x) => !x.textContent.trim()); // a colour alone
  const printed = [...document.querySelectorAll(".cell_output pre, pre:has(> .gp)")].filter((x) => x.scrollWidth > x.clientWidth + 1);
  return [root.dataset.theme, Math.max(root.scrollWidth, document.body.scrollWidth),
    [...document.querySelectorAll(wrong), ...silent, ...printed].map((x) => x.outerHTML.slice(0, 80)), (FAINT)()];
}
