// Set equations: node typeset.js, with a JSON list of [TeX, display] on its input, and on its output a list of
// [HTML, null], or of [null, what is wrong].
import { readFileSync } from "node:fs";
import katex from "katex";

const options = { throwOnError: true, strict: false, trust: ({ command }) => command === "\\htmlData" };
const set = ([tex, displayMode]) => {
  try {
    // Tall brackets of rounding are drawn by KaTeX with one M too many.
    return [katex.renderToString(tex, { ...options, displayMode }).replaceAll("\nMM", "\nM"), null];
  } catch (error) { return [null, error.message]; }
};
process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(set)));
