// Whether a page's icons are drawn, and whether its widgets, if it has any, are live and say something.
document.documentElement.classList.contains("fontawesome-i2svg-complete")
  && (!document.querySelector("script[type='application/vnd.jupyter.widget-view+json']")
    || (document.documentElement.dataset.widgets === "live"
      && [...document.querySelectorAll(".sb-value")].every((x) => x.textContent.trim())))
