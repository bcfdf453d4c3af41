// Of each figure: the height of its smallest letters in pixels, and the colours that fill what stands on it.
() => [...document.querySelectorAll("svg.sb-plot")].map((figure) => {
  const scale = figure.getScreenCTM().a;
  const heights = [...figure.querySelectorAll("text")].map((x) => parseFloat(getComputedStyle(x).fontSize) * scale);
  const face = (x) => getComputedStyle(x).fontFamily;
  const fills = [...figure.querySelectorAll("path, text")].map((x) => getComputedStyle(x).fill);
  return { least: Math.min(...heights), width: figure.parentElement.clientWidth, fills: [...new Set(fills)],
           words: face(figure.querySelector("text")) === face(document.body) };
})
