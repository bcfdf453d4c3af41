// One switch in a page's header opens the code of all its cells, and is remembered; solutions stay folded.
(() => {
  const KEY = "scalebook-code";
  const folds = () => document.querySelectorAll("details.above-input");
  // A browser may forbid a page to remember anything: then the switch works for the page alone.
  const remembered = () => { try { return localStorage.getItem(KEY) === "shown"; } catch { return false; } };
  const remember = (shown) => { try { localStorage.setItem(KEY, shown ? "shown" : "folded"); } catch { /* see above */ } };

  const start = () => {
    const header = document.querySelector(".article-header-buttons");
    if (!header || !folds().length) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "btn btn-sm sb-code-switch";
    button.title = "Open the code of all cells of this page, on every page until it is pressed again";
    button.innerHTML = '<span aria-hidden="true">&lt;/&gt;</span> <span class="sb-code-words">Show code</span>';
    const set = (shown) => {
      button.setAttribute("aria-pressed", String(shown));
      for (const fold of folds()) fold.open = shown;
    };
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") !== "true";
      set(shown);
      remember(shown);
    });
    button.setAttribute("aria-pressed", "false");
    if (remembered()) set(true); // else a link into a folded cell, which opens it, stays open
    header.prepend(button);
  };
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", start);
  else start();
})();
