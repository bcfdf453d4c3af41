// Bundle the scripts of the site: node build.js OUTPUT_FOLDER
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

await build({
  absWorkingDir: fileURLToPath(new URL(".", import.meta.url)),
  entryPoints: ["widgets.js", "icons.js", "landing.js"],
  outdir: process.argv[2],
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  legalComments: "linked",
  logLevel: "warning",
});
