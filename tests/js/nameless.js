// Controls without a name for who cannot see them, and texts cut off with no way to reach the rest.
(box) => [...box.querySelectorAll("input, select, button, textarea, [role=img]")].filter((x) => !(
  x.labels?.length || x.getAttribute("aria-label") || x.textContent.trim())).map((x) => x.outerHTML)
