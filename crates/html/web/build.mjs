// Builds the page's script and style into crates/html/assets, with the licences of what is in it.
//
//     node build.mjs            writes ../assets
//     node build.mjs --check    fails if ../assets is not what would be written

import { build } from "esbuild";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const read = (path) => readFileSync(join(here, path), "utf8");

const SHIPPED = [
  { name: "cytoscape", licence: "LICENSE", terms: "MIT", what: "draws the graph" },
  { name: "@dagrejs/dagre", licence: "LICENSE", terms: "MIT", what: "lays the graph out" },
  { name: "@dagrejs/graphlib", licence: "LICENSE", terms: "MIT", what: "holds the graph that is laid out" },
];

const common = { absWorkingDir: here, bundle: true, minify: true, write: false, legalComments: "none", logLevel: "warning", target: "es2022" };
const inline = { ...common, format: "iife", charset: "ascii" };

/** `worker:NAME` is the text of a worker's whole script. */
const worker = {
  name: "worker",
  setup(builder) {
    builder.onResolve({ filter: /^worker:/ }, ({ path }) => ({ path: path.replace("worker:", "src/"), namespace: "worker" }));
    builder.onLoad({ filter: /.*/, namespace: "worker" }, async ({ path }) => {
      const made = await build({ ...inline, entryPoints: [path] });
      return { contents: made.outputFiles[0].text, loader: "text" };
    });
  },
};

const script = await build({ ...inline, entryPoints: ["src/main.js"], plugins: [worker] });
const style = await build({ ...common, entryPoints: ["src/style.css"] });

const licences = SHIPPED.map(({ name, licence, terms, what }) => {
  const { version } = JSON.parse(read(`node_modules/${name}/package.json`));
  return `${name} ${version} (${terms}) ${what}.\n\n${read(`node_modules/${name}/${licence}`).trim()}\n`;
}).join("\n" + "-".repeat(100) + "\n\n");
// It stands in an element of the page.
const escaped = licences.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

const made = {
  "report.js": script.outputFiles[0].text,
  "report.css": style.outputFiles[0].text,
  "licences.txt": escaped,
  "template.html": read("src/template.html"),
};

const check = process.argv.includes("--check");
for (const [name, text] of Object.entries(made)) {
  const path = join(here, "../assets", name);
  if (!check) writeFileSync(path, text);
  else if (readFileSync(path, "utf8") !== text) {
    console.error(`crates/html/assets/${name} is not what crates/html/web makes; run tools/html --build`);
    process.exitCode = 1;
  }
}
