// What tools/book.py runs in a page of the built site: it leaves the article alone, as paper or an e-book shows it.
(() => {
  const all = (selector, at = document) => [...at.querySelectorAll(selector)];
  const DROPPED = ".tag_hide-input details.above-input, p.expanded, .headerlink, .sb-filter, .toctree-wrapper, script, noscript, button, dialog, [hidden], .sb-letter-tip, .pl-layout, .pl-grid, .sb-away";
  const BOXES = ".sb-display, .math, .sb-table, .pst-scrollable-table-container, .sb-sections, pre, .cell_output, .output, figure.sb-figure > div";

  // Leave the article, with its folds open, its code folds gone, menus as text, and under each calculator where it is live.
  const prepare = (live) => {
    const article = document.querySelector("article");
    document.documentElement.dataset.theme = "light";
    document.body.replaceChildren(article);
    const boxes = all(".sb-calculator, #sb-planner").filter((x) => !x.parentElement.closest(".sb-calculator"));
    for (const box of boxes) {
      all("details", box).forEach((x) => x.remove());
      const at = live + "#" + (box.closest("section[id]")?.id ?? "");
      const said = Object.assign(document.createElement("p"), { className: "sb-live-at" });
      said.append("Live at ", Object.assign(document.createElement("a"), { href: at, textContent: at.replace("https://", "") }));
      box.after(said);
    }
    all(DROPPED).filter((x) => !x.closest(".sb-calculator")).forEach((x) => x.remove());
    if (location.pathname.includes("/reference/")) all("details:has(pre)").forEach((x) => x.remove()); // pages of calls to type
    for (const menu of all("select").filter((x) => !x.closest(".sb-calculator")))
      menu.replaceWith(Object.assign(document.createElement("b"), { textContent: menu.selectedOptions[0]?.textContent ?? "" }));
    for (const x of all('a[href*="planner.html#"]')) x.href = new URL(x.getAttribute("href"), live).href; // a run that the planner opens
    all("details").forEach((x) => { x.open = true; });
    for (const x of all("[data-more], [data-sticks]")) ["data-more", "data-sticks"].forEach((name) => x.removeAttribute(name));
    return document.querySelector("h1")?.firstChild.textContent.trim() ?? document.title;
  };

  // A table of many columns and few rows is turned, so that it fits.
  const turn = (table) => {
    const rows = [...table.rows].map((x) => [...x.cells]), turned = table.cloneNode();
    rows[0].forEach((_, i) => turned.insertRow().append(...rows.map((x) => x[i]).filter(Boolean)));
    table.replaceWith(turned);
  };

  // Make what is wider than the column as small as it takes; return what would still be cut.
  const fit = () => {
    const wide = (x) => x.scrollWidth > 1.8 * document.body.clientWidth && x.rows[0].cells.length > x.rows.length;
    all("table").filter(wide).forEach(turn);
    for (const box of all(BOXES)) {
      const share = box.clientWidth / box.scrollWidth;
      if (share < 0.998 && box.clientWidth) box.style.zoom = Math.max(0.4, share);
    }
    return all(BOXES).filter((x) => x.scrollWidth > x.clientWidth + 2).map((x) => x.textContent.slice(0, 80));
  };

  // The article as XHTML without scripts: equations as MathML, drawings with their colours, calculators as pictures.
  const xhtml = (local, base, pictures) => {
    const colours = ["fill", "stroke", "color", "stop-color"];
    for (const drawing of all("article svg")) {
      for (const x of all("*", drawing)) {
        const style = getComputedStyle(x);
        for (const name of colours) if (x.style[name] || x.hasAttribute(name) || x.hasAttribute("class")) x.style.setProperty(name, style.getPropertyValue(name));
      }
      all("style", drawing).forEach((x) => x.remove());
    }
    all(".sb-calculator").filter((x) => !x.parentElement.closest(".sb-calculator")).forEach((x, i) => {
      const picture = Object.assign(document.createElement("img"), { alt: "a calculator", className: "sb-picture" });
      picture.setAttribute("src", pictures[i]);
      x.replaceWith(picture);
    });
    for (const x of all(".katex")) x.replaceWith(x.querySelector("math"));
    all("annotation, style, input, .sb-key").forEach((x) => x.remove());
    all("summary > p").forEach((x) => x.replaceWith(...x.childNodes)); // a summary is a line of text
    all("msub > mo:nth-child(3), msup > mo:nth-child(3), msubsup > mo:nth-child(4)").forEach((x) => x.remove()); // KaTeX's "apply", one child too many
    for (const x of all("article *")) {
      for (const { name } of [...x.attributes]) if (/^(data-|aria-|on|tabindex|role|contenteditable|open)|[^\w:-]/.test(name)) x.removeAttribute(name);
    }
    for (const x of all("article a[href]")) {
      const url = new URL(x.getAttribute("href"), location.href), path = url.href.startsWith(base) ? url.pathname.slice(new URL(base).pathname.length) : null;
      if (path === null || url.hash && path === location.pathname.slice(new URL(base).pathname.length)) continue;
      x.setAttribute("href", local[path] ? local[path] + url.hash : local[""] + path + url.hash);
    }
    const images = all("article img:not(.sb-picture)").map((x) => x.getAttribute("src")).filter((x) => !x.startsWith("data:"));
    return [new XMLSerializer().serializeToString(document.querySelector("article")), images];
  };
  globalThis.book = { prepare, fit, xhtml };
})();
