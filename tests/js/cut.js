(box) => [...box.querySelectorAll("*")].filter((x) => x.clientWidth && x.scrollWidth > x.clientWidth + 1
  && !x.closest("svg, select, input, .katex")
  && getComputedStyle(x).overflowX === "hidden").map((x) => x.className)
