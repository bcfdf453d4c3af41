// Stands in for the controls' own utils: the same exports, with `typeset` for MathJax 3.
export { resolvePromisesDict, uuid } from "@jupyter-widgets/base";

const mathjax = new Promise((resolve) => {
  if (document.readyState === "complete") resolve();
  else addEventListener("load", resolve);
}).then(() => window.MathJax?.startup?.promise);

let ready = false;
mathjax.then(() => { ready = true; });

// Once MathJax is there typesetting is immediate, so a formula that follows a slider never shows its source.
export function typeset(element, text) {
  if (text !== undefined) element.textContent = text;
  if (!/\\\(|\\\[/.test(element.textContent)) return;
  element.classList.add("mathjax_process");
  const now = () => {
    window.MathJax?.typesetClear?.([element]);
    window.MathJax?.typeset?.([element]);
  };
  if (ready) now();
  else mathjax.then(now);
}

export function escape_html(text) {
  const box = document.createElement("div");
  box.textContent = text;
  return box.innerHTML;
}

export function reject(message, log) {
  return (error) => {
    if (log) console.error(new Error(message));
    throw error;
  };
}
