// Tables of the reference: a head sorts its column, a filter keeps the rows that have its words, a table is had as CSV.
addEventListener("DOMContentLoaded", () => {
  // An address of the old single page of formulas goes on to the formula's own entry.
  const follow = () => {
    const named = location.hash.startsWith("#formula-") ? document.getElementById(location.hash.slice(1)) : null;
    if (named?.matches("tr")) location.replace(named.querySelector("a").href);
  };
  addEventListener("hashchange", follow);
  follow();

  for (const form of document.querySelectorAll(".sb-filter[data-rows]")) {
    const rows = [...document.querySelectorAll(form.dataset.rows)], said = form.querySelector("output");
    const texts = rows.map((row) => row.textContent.toLowerCase().replaceAll("_", " "));
    const show = () => {
      const wanted = form.elements.words.value.toLowerCase().replaceAll("_", " ").split(/\s+/).filter(Boolean);
      rows.forEach((row, i) => { row.hidden = !wanted.every((word) => texts[i].includes(word)); });
      const shown = rows.filter((row) => !row.hidden).length;
      said.textContent = wanted.length ? `${shown || "none"} of ${rows.length}` : "";
    };
    form.addEventListener("input", show);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
    show();
  }

  for (const table of document.querySelectorAll(".sb-facts table")) {
    const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
    const value = (row, column) => {
      const cell = row.cells[column], number = parseFloat(cell.dataset.value);
      return column ? (Number.isNaN(number) ? -Infinity : number) : cell.textContent;
    };
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = column ? head.ariaSort !== "descending" : head.ariaSort === "ascending";
        heads.forEach((x) => x.removeAttribute("aria-sort"));
        head.ariaSort = down ? "descending" : "ascending";
        const order = (a, b) => (value(a, column) > value(b, column) ? 1 : value(a, column) < value(b, column) ? -1 : 0);
        body.append(...[...body.rows].sort((a, b) => (down ? -order(a, b) : order(a, b))));
      });
    });
    // In SI units, as the package holds it.
    const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const link = document.createElement("a");
    link.className = "sb-csv";
    link.textContent = "CSV, in SI units";
    link.download = `${document.querySelector("h1").firstChild.textContent.trim().toLowerCase()}.csv`;
    link.href = "#";
    link.addEventListener("click", () => {
      const names = heads.map((x) => x.textContent.replaceAll(" ", "_"));
      const lines = [...body.rows].map((row) => [row.cells[0].querySelector("code").textContent, ...[...row.cells].slice(1).map((x) => x.dataset.value ?? "")]);
      const text = [names, ...lines].map((line) => line.map(quoted).join(",")).join("\n");
      link.href = URL.createObjectURL(new Blob([text + "\n"], { type: "text/csv" }));
    });
    table.parentElement.before(link);
  }
});
