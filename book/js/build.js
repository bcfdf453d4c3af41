// Bundle the scripts of the site: node build.js ANYWIDGET_INDEX_JS OUTPUT_FOLDER
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const [anywidget, folder] = process.argv.slice(2);

const replace = {
  name: "replace",
  setup(at) {
    // The controls typeset with MathJax 2; ours speaks MathJax 3.
    at.onResolve({ filter: /^\.\/utils$/ }, ({ importer }) =>
      importer.includes("@jupyter-widgets/controls") ? { path: fileURLToPath(new URL("utils.js", import.meta.url)) } : null);
    // anywidget's Python package ships its front end as an AMD module: give it the `define` it calls.
    at.onResolve({ filter: /^anywidget$/ }, () => ({ path: anywidget, namespace: "amd" }));
    at.onLoad({ filter: /.*/, namespace: "amd" }, ({ path }) => ({
      resolveDir: fileURLToPath(new URL(".", import.meta.url)),
      contents: `import * as base from "@jupyter-widgets/base";
        let made; const define = (_, make) => { made = make(base); };
        ${readFileSync(path, "utf8")}
        export default made;`,
    }));
  },
};

await build({
  absWorkingDir: fileURLToPath(new URL(".", import.meta.url)),
  entryPoints: ["widgets.js", "icons.js", "landing.js"],
  outdir: folder,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  legalComments: "linked",
  logLevel: "warning",
  plugins: [replace],
});
