// The filter of the page of claims: by article, verdict and words, kept in the address so that a choice can be linked to.
addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector(".sb-filter");
  const claims = [...document.querySelectorAll(".sb-claim")];
  const said = form.querySelector("output");
  const sections = [...document.querySelectorAll("article section section")].filter((x) => x.querySelector(".sb-claim"));
  const texts = new Map(claims.map((x) => [x, x.textContent.toLowerCase()]));

  // A choice as the address has it, without what is left open.
  const chosen = () => new URLSearchParams([...new FormData(form)].filter(([, value]) => value.trim()));

  function show() {
    const { article, verdict, words } = form.elements;
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const claim of claims)
      claim.hidden = !((!article.value || claim.dataset.article === article.value)
        && (!verdict.value || claim.dataset.verdict === verdict.value)
        && wanted.every((word) => texts.get(claim).includes(word)));
    for (const section of sections) section.hidden = !section.querySelector(".sb-claim:not([hidden])");
    const shown = claims.filter((x) => !x.hidden).length;
    said.textContent = shown ? `${shown} of ${claims.length} claims` : `none of ${claims.length} claims; try fewer words`;
  }

  // An address may hold a choice, or the name of one claim, which must then be there to be seen.
  function read() {
    const hash = location.hash.slice(1);
    const choice = new URLSearchParams(hash.includes("=") ? hash : "");
    const place = document.getElementById(hash);
    if (place || hash.includes("=")) for (const { name } of form.elements) if (name) form.elements[name].value = choice.get(name) ?? "";
    show();
    if (place) place.scrollIntoView();
    else if (hash.includes("=")) form.scrollIntoView();
  }

  form.addEventListener("input", () => {
    show();
    history.replaceState(null, "", `#${chosen()}`);
  });
  form.addEventListener("reset", () => setTimeout(() => {
    show();
    history.replaceState(null, "", location.pathname + location.search);
  }));
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", read);
  form.hidden = false;
  read();
});
