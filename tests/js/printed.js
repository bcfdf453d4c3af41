// What a sheet of paper shows of a chapter.
() => {
  const seen = (x) => x.getClientRects().length > 0;
  return { code: [...document.querySelectorAll("div.cell_input")].filter(seen).length,
    folds: [...document.querySelectorAll("details:is(.above-input, .hide) > summary")].filter(seen).length,
    controls: [...document.querySelectorAll(".sb-buttons, .sb-code-switch")].filter(seen).length,
    figures: [...document.querySelectorAll("svg.sb-plot")].filter(seen).length,
    answers: [...document.querySelectorAll(".sb-first .sb-value")].filter(seen).map((x) => x.textContent),
    paper: getComputedStyle(document.body).backgroundColor }; }
