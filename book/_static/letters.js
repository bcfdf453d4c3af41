// What a letter under pointer or finger means, or all in focus.
(() => {
  const LETTER = ".katex [data-l]", root = () => document.documentElement.dataset.content_root;
  let notation, tip, leaving, of, turn = 0;

  // Fetched when the first letter is asked for; a script, since a page read from a folder may load no data.
  const fetched = () => notation ??= new Promise((resolve) => {
    const script = document.createElement("script");
    script.src = `${root()}_static/letters-data.js`;
    script.onload = () => resolve(globalThis.scalebook_letters);
    document.head.append(script);
  });

  const line = (name, [meaning, unit]) => {
    const item = document.createElement("li"), word = document.createElement("a");
    word.href = `${root()}book/reference/notation.html#letter-${name}`;
    word.innerHTML = "<code></code>";
    word.firstChild.textContent = name;
    item.append(word, ` ${meaning}${unit ? `, in ${unit}` : ""}`);
    return item;
  };

  function hide() {
    of?.removeAttribute("aria-describedby");
    tip?.remove();
    of = tip = undefined;
    turn++;
  }

  async function show(place, letters) {
    clearTimeout(leaving);
    if (of === place) return;
    hide();
    of = place;
    const mine = turn, all = await fetched();
    const names = [...new Set(letters.map((x) => x.dataset.l))].filter((x) => all[x]);
    if (turn !== mine || !names.length) return;
    tip = document.createElement("ul");
    tip.className = "sb-letter-tip";
    tip.id = "sb-letter-tip";
    tip.role = "tooltip";
    tip.append(...names.map((x) => line(x, all[x])));
    tip.addEventListener("pointerenter", () => clearTimeout(leaving));
    tip.addEventListener("pointerleave", later);
    document.body.append(tip);
    if (place.matches(".sb-display")) place.setAttribute("aria-describedby", tip.id);
    const at = place.getBoundingClientRect(), wide = document.body.clientWidth;
    const below = (place.closest(".sb-display") ?? place).getBoundingClientRect().bottom;
    tip.style.left = `${scrollX + Math.max(8, Math.min(at.left, wide - tip.offsetWidth - 8))}px`;
    tip.style.top = `${scrollY + below + 2}px`;
  }

  const later = () => { clearTimeout(leaving); leaving = setTimeout(hide, 400); };
  const letter = (event) => event.target.closest?.(LETTER);
  document.addEventListener("pointerover", (event) => {
    const found = letter(event);
    if (found) show(found, [found]);
    else if (of && !of.matches(":focus") && !tip?.contains(event.target)) later();
  });
  document.addEventListener("click", (event) => {
    const found = letter(event);
    if (found) show(found, [found]);
    else if (!tip?.contains(event.target)) hide();
  });
  document.addEventListener("focusin", ({ target }) => {
    if (target.matches?.(".sb-display:focus-visible")) show(target, [...target.querySelectorAll(LETTER)]);
    else if (!tip?.contains(target)) hide();
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
})();
