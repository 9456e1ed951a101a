// Fills the page from its data.

import { el, prose } from "./dom.js";
import { first } from "./first.js";
import { Graphs } from "./graphs.js";
import { layouter } from "./layout.js";
import { Report } from "./model.js";
import { changesTable, movesTable } from "./table.js";
import { theme } from "./theme.js";

const KINDS = { optimize: "Result for", explain: "What can be done for", audit: "Audit of", diff: "Difference of" };

function facts(report) {
  if (!report.facts.length) return null;
  return el("section", { id: "facts", "aria-labelledby": "facts-title" },
    el("h2", { id: "facts-title", text: "How it was decided" }), el("ul", {}, report.facts.map((text) => el("li", {}, prose(text)))));
}

async function start() {
  const worker = layouter();
  const report = new Report(JSON.parse(document.getElementById("data").textContent));
  const graphs = new Graphs(report, worker);
  document.getElementById("kind").textContent = KINDS[report.kind];
  document.getElementById("name").textContent = report.name + (report.target ? `, target ${report.target}` : "");
  document.getElementById("made").textContent = `Made by relayout ${report.version}. This file loads nothing.`;
  const table = report.kind === "diff" ? changesTable(report) : movesTable(report, graphs.choose);
  document.getElementById("main").append(...[first(report, graphs.choose), graphs.box, table, facts(report)].filter(Boolean));
  const parts = [["first", "Summary"], ["graph", "Graph"], ["moves", report.kind === "diff" ? "Changes" : "Moves"]];
  if (report.facts.length) parts.push(["facts", "Decision"]);
  document.getElementById("parts").append(...parts.map(([id, text]) => el("a", { href: `#${id}`, text })));
  const paper = theme(document.getElementById("theme"), () => graphs.repaint());
  document.getElementById("print").addEventListener("click", () => {
    paper();
    // The pictures are drawn anew in the next frame.
    requestAnimationFrame(() => requestAnimationFrame(() => window.print()));
  });
  document.documentElement.dataset.filled = String(Math.round(performance.now()));
  // The text is there before the pictures are.
  await new Promise((done) => setTimeout(done));
  await graphs.draw();
  document.documentElement.dataset.drawn = String(Math.round(performance.now()));
}

start();
