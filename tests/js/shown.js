// Whether a page's widgets are live, if it has any, and say something.
!document.querySelector("script[type='application/vnd.jupyter.widget-view+json']")
  || (document.documentElement.dataset.widgets === "live"
    && [...document.querySelectorAll(".sb-value")].every((x) => x.textContent.trim()))
