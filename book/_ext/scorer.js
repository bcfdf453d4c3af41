// How search orders what it finds: Sphinx's own numbers, and before others a page whose title has a word that is asked for,
// of those a chapter, and an appendix last.
const asked = (new URLSearchParams(location.search).get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
var Scorer = {
  score: ([page, title, , , score]) => score + 10 * asked.filter((word) => title.toLowerCase().includes(word)).length
    + (page.startsWith("notebooks/appendix/") ? -5 : page.startsWith("notebooks/") ? 5 : 0),
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
