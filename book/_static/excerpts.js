// What the search shows of a page it reads from the page: of an equation the letters that are seen, not its MathML too.
const textOf = Search.htmlToText;
Search.htmlToText = (page, anchor) => textOf(page.replace(/<span class="katex-mathml">.*?<\/math><\/span>/gs, ""), anchor);
