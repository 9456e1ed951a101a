// How long reports take to open in headless Chromium: node time.mjs MODEL...
//
// RELAYOUT names the program that makes them. Each report is opened RUNS times in a new tab, the reports in turns. Medians are printed, and
// a report that takes longer than MOST_MS until both of its pictures are on the screen fails.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { basename, join } from "node:path";
import { open, start } from "./browser/browser.mjs";

const RUNS = 7;
const MOST_MS = 3000;

/** A report and what its openings took. */
function report(folder, model, number) {
  const path = join(folder, `${number}.html`);
  execFileSync(process.env.RELAYOUT, ["explain", model, "--html", path], { stdio: ["ignore", "ignore", "inherit"] });
  return { name: basename(model), path, bytes: statSync(path).size, taken: [] };
}

async function once(browser, { path, taken }) {
  const { page, context, problems, ms } = await open(browser, path);
  if (problems.length) throw new Error(`${path}: ${problems.join("; ")}`);
  const seen = await page.evaluate(() => ({
    ...document.documentElement.dataset,
    nodes: JSON.parse(document.getElementById("data").textContent).graphs.map((graph) => graph.nodes.length),
    drawn_nodes: [...document.querySelectorAll(".canvas")].map((box) => box._cyreg.cy.nodes("[node]").length),
  }));
  await context.close();
  taken.push({ filled: +seen.filled, first: +seen.first, drawn: +seen.drawn, tab: ms, nodes: seen.nodes, drawn_nodes: seen.drawn_nodes });
}

function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return Math.round(sorted[sorted.length >> 1]);
}

function say({ name, bytes, taken }) {
  const of = (key) => median(taken.map((one) => one[key]));
  const [{ nodes, drawn_nodes: drawn }] = taken;
  console.log(`${name}: ${(bytes / 1e6).toFixed(2)} MB, ${nodes.join(" and ")} nodes, ${drawn.join(" and ")} drawn; text after ${of("filled")} ms, first picture after ${of("first")} ms, both after ${of("drawn")} ms, ${of("tab")} ms with the start of the tab`);
  return of("tab");
}

const folder = mkdtempSync(join(tmpdir(), "relayout-time-"));
const browser = await start();
try {
  const reports = process.argv.slice(2).map((model, number) => report(folder, model, number));
  for (let run = 0; run < RUNS; run++) for (const one of reports) await once(browser, one);
  const slow = reports.filter((one) => say(one) >= MOST_MS);
  console.log(`medians of ${RUNS}; load of the machine ${loadavg()[0].toFixed(1)}`);
  if (slow.length) {
    console.error(`slower than ${MOST_MS} ms: ${slow.map(({ name }) => name).join(", ")}`);
    process.exitCode = 1;
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}
