[...document.querySelectorAll(".sb-table :is(td, th), .sb-calculator :is(label, select, .sb-value)")]
  .filter((x) => x.getClientRects().length && !x.closest(".sb-message"))
  .map((x) => getComputedStyle(x).color.match(/[\d.]+/g).slice(0, 3).reduce((a, b) => a + b / 765, 0))
