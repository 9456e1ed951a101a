// The graphs side by side, with a legend, a search and what is known about the chosen node.

import { Canvas, sketch } from "./canvas.js";
import { Details } from "./details.js";
import { el, fill } from "./dom.js";
import { interesting } from "./fold.js";
import { Tree } from "./tree.js";
import { count, plural } from "./words.js";

/** Nodes that are drawn at first, of all graphs together. Those of small regions come on top: at most 160 in all of two graphs. */
const AT_FIRST = 120;
/** Names that a search lists. */
const FOUND = 30;

export class Graphs {
  /** `layouter` lays the graphs out. */
  constructor(report, layouter) {
    this.report = report;
    this.layouter = layouter;
    const most = Math.floor(AT_FIRST / report.graphs.length);
    this.sketches = report.graphs.map((graph) => {
      const shown = interesting(report, graph, most);
      return { shown, made: sketch(report, graph, shown, layouter) };
    });
    this.choose = (graph, node) => this.chosen(graph, node, true);
    this.details = new Details(report, this.choose);
    this.panes = report.graphs.map((graph) => this.#pane(graph));
    this.results = el("ul", { id: "results" });
    this.said = el("p", { id: "said", role: "status" });
    this.box = el("section", { id: "graph", "aria-labelledby": "graph-title" },
      el("h2", { id: "graph-title", text: report.graphs.length > 1 ? (report.kind === "optimize" || report.kind === "explain" ? "The graph before and after" : "Both graphs") : "The graph" }),
      el("div", { class: "tools" }, this.#search(), this.#legend()),
      this.said, this.results,
      el("div", { class: `panes of-${report.graphs.length}` }, this.panes.map((pane) => pane.box), this.details.box));
  }

  #pane(graph) {
    const says = el("p", { class: "counts soft", role: "status" });
    const picture = el("div", { class: "canvas", role: "img", "aria-label": `Picture of “${graph.title}”. The list below it says the same.` });
    const canvas = () => pane.canvas;
    const button = (text, label, act) => el("button", { type: "button", title: label, "aria-label": `${label}: ${graph.title}`, onclick: act }, text);
    const buttons = el("div", { class: "zoom" },
      button("+", "Larger", () => canvas()?.zoom(1.3)),
      button("−", "Smaller", () => canvas()?.zoom(1 / 1.3)),
      button("Fit", "Fit all into the picture", () => canvas()?.fit()),
      button("More", "More nodes in the picture", () => this.#more(pane)));
    const tree = new Tree(this.report, graph, this.choose, () => canvas()?.folded);
    const box = el("div", { class: "pane" }, el("div", { class: "title" }, el("h3", { text: graph.title }), buttons), picture, says, tree.box);
    const pane = { graph, picture, says, tree, box, canvas: null };
    return pane;
  }

  /** Draws what is wanted at first. To be called once the page has its size. */
  async draw() {
    for (const pane of this.panes) {
      const { shown } = this.sketches[pane.graph.number];
      pane.canvas = new Canvas(pane.picture, this.report, pane.graph, shown, this.layouter, (node) => this.chosen(pane.graph, node, false));
      pane.canvas.cy.on("layoutstop render", () => this.#count(pane));
    }
    await Promise.all(this.panes.map((pane) => pane.canvas.show(this.sketches[pane.graph.number].made).then(() => this.#drawn(pane), (error) => this.#failed(pane, error))));
  }

  #drawn(pane) {
    this.#count(pane);
    document.documentElement.dataset.first ??= String(Math.round(performance.now()));
  }

  /** Where a page is shown that may start no worker, the lists and the tables are there still. */
  #failed(pane, error) {
    pane.failed = true;
    pane.tree.update();
    pane.says.textContent = `The picture cannot be drawn here: ${error.message}. The list below says the same.`;
  }

  /** Opens the largest region that is folded. */
  async #more(pane) {
    const regions = pane.canvas?.folded?.regions ?? [];
    if (!regions.length || pane.failed) return;
    await pane.canvas.open(regions.reduce((best, region, at) => (region.length > regions[best].length ? at : best), 0));
    this.#count(pane);
  }

  #count(pane) {
    if (pane.failed) return;
    const { drawn, folded, regions } = pane.canvas.counts();
    const all = count(pane.graph.nodes.length);
    const text = folded ? `${count(drawn)} of ${all} nodes are drawn, ${count(folded)} are folded into ${plural(regions, "region")}. Click on a region to open it.` : `All ${all} nodes are drawn.`;
    if (pane.says.textContent !== text) pane.says.textContent = text;
    pane.tree.update();
  }

  chosen(graph, node, reveal) {
    this.details.show(graph, node);
    for (const pane of this.panes) {
      const here = pane.graph === graph ? node : node && this.report.twin(graph, node);
      if (!pane.canvas || pane.failed) continue;
      if (reveal && here && pane.graph === graph) pane.canvas.reveal(here).then(() => this.#count(pane));
      else pane.canvas.select(here);
    }
    if (reveal) {
      this.box.scrollIntoView({ block: "start" });
      this.details.box.focus({ preventScroll: true });
    }
  }

  repaint() {
    this.panes.forEach((pane) => pane.canvas?.repaint());
  }

  #search() {
    const input = el("input", { type: "search", id: "search", autocomplete: "off", spellcheck: "false", oninput: () => this.find(input.value) });
    return el("p", { class: "search" }, el("label", { for: "search", text: "Find a node or value " }), input);
  }

  /** Lists the nodes in whose name, op or results a text occurs. */
  find(text) {
    const wanted = text.trim().toLowerCase();
    const fits = (graph, node) => [node.name, node.op, ...node.outs.filter((v) => v !== null).map((v) => graph.values[v].name)].some((t) => t.toLowerCase().includes(wanted));
    const found = wanted ? this.report.graphs.flatMap((graph) => graph.nodes.filter((node) => fits(graph, node)).map((node) => ({ graph, node }))) : [];
    this.said.textContent = wanted ? `${plural(found.length, "node")} found${found.length > FOUND ? `, of which ${FOUND} are listed` : ""}.` : "";
    fill(this.results, found.slice(0, FOUND).map(({ graph, node }) => el("li", {},
      el("button", { type: "button", class: "link", onclick: () => this.choose(graph, node) },
        el("b", { text: node.op }), " ", el("span", { class: "mono", text: node.name }),
        this.report.graphs.length > 1 ? el("span", { class: "soft", text: ` ${graph.title}` }) : null))));
  }

  #legend() {
    const chips = [...this.report.colours].slice(0, 12).map(([text, colour]) => el("li", {}, el("span", { class: "chip", "data-colour": colour }, text)));
    const more = this.report.colours.size - chips.length;
    return el("ul", { class: "legend", "aria-label": "Legend" },
      el("li", {}, el("span", { class: "chip", "data-colour": 0 }, "as declared")), chips,
      more > 0 ? el("li", { class: "soft", text: `and ${more} more` }) : null,
      el("li", {}, el("span", { class: "pill stays", text: "move that is left" })),
      this.report.moves.some((m) => m.fate !== "stays") ? el("li", {}, el("span", { class: "pill goes", text: "move that goes" })) : null);
  }
}
