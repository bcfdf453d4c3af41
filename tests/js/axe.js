// Equations are left out: they are the typesetter's, and one image or one piece of MathML to who listens.  Each is one
// text as wide, code that nobody sees is plain, and of the rows of a table, which are all alike, the first twelve are
// enough: axe-core walks through tens of thousands of elements else.
async (theirs) => {
  const rows = [...document.querySelectorAll("article tbody")].flatMap((x) => [...x.rows].slice(12));
  rows.forEach((x) => x.remove());
  document.querySelectorAll("details:not([open]) pre").forEach((x) => { x.textContent = x.textContent; });
  const set = [...document.querySelectorAll(".katex:has(*)")].map((x) => [x, x.getBoundingClientRect(), x.textContent]);
  for (const [x, { width, height }, text] of set) {
    x.textContent = text;
    x.style.cssText = `display: inline-block; overflow: hidden; width: ${width}px; height: ${height}px`;
  }
  const found = await axe.run(
    { include: [["html"]], exclude: [["mjx-container"], [".katex"], ["math"]] }, { resultTypes: ["violations"] });
  const said = [];
  for (const { id, impact, nodes } of found.violations) {
    if (!["critical", "serious", "moderate"].includes(impact)) continue;
    const vendor = Object.keys(theirs[id] ?? {});
    for (const { target, html, failureSummary } of nodes) {
      const place = document.querySelector(target.join(" "));
      if (vendor.some((x) => place?.matches(x))) continue;
      const short = (text) => text.replace(/\s+/g, " ").slice(0, 200);
      said.push(`${impact} ${id}: ${short(html)}; ${short(failureSummary)}`);
    }
  }
  return [...new Set(said)].slice(0, 12);
}
