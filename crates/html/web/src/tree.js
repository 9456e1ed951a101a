// The graph as a list that opens: the same nodes and the same folded regions as the picture.

import { chip } from "./chips.js";
import { el, fill, name } from "./dom.js";
import { bytes, plural } from "./words.js";

/** Entries that are made at once. */
const PAGE = 150;

export class Tree {
  /** `folded` gives what the picture shows now: the drawn nodes and the regions. */
  constructor(report, graph, choose, folded) {
    Object.assign(this, { report, graph, choose, folded, listed: null });
    this.list = el("ul");
    this.box = el("details", { class: "tree" }, el("summary", { text: `“${graph.title}” as a list` }), this.list);
    this.box.addEventListener("toggle", () => this.update());
  }

  /** Lists what the picture shows, if the list is open. */
  update() {
    const folded = this.folded();
    if (!this.box.open || !folded || folded === this.listed) return;
    const top = this.list.scrollTop;
    this.listed = folded;
    fill(this.list);
    grow(this.list, entries(this.graph, folded), (one) => this.#entry(one));
    this.list.scrollTop = top;
  }

  #entry(one) {
    if (!Array.isArray(one)) return line(this.report, this.graph, one, this.choose);
    const inner = el("ul");
    const same = this.report.graphs.length > 1 && one.every((node) => node.state === "same");
    const box = el("details", {}, el("summary", { text: `${plural(one.length, "node")}${same ? ", the same in both" : ""}` }), inner);
    box.addEventListener("toggle", () => {
      if (box.open && !inner.children.length) grow(inner, one, (node) => line(this.report, this.graph, node, this.choose));
    });
    return el("li", {}, box);
  }
}

/** Drawn nodes one by one, and each region as a list of its nodes, in the order in which they can run. */
function entries(graph, { visible, regions }) {
  const drawn = [...visible].map((id) => graph.nodes[id]);
  const hidden = regions.map((region) => region.map((id) => graph.nodes[id]));
  const first = (one) => (Array.isArray(one) ? one[0].id : one.id);
  return [...drawn, ...hidden].sort((a, b) => first(a) - first(b));
}

function grow(list, items, make) {
  const rest = items.slice(PAGE);
  list.append(...items.slice(0, PAGE).map(make));
  if (!rest.length) return;
  const more = el("li", {}, el("button", { type: "button", onclick: () => {
    more.remove();
    grow(list, rest, make);
    list.children[list.children.length - Math.min(rest.length, PAGE)]?.querySelector("button, summary")?.focus();
  } }, `Show ${plural(rest.length, "more entry", "more entries")}`));
  list.append(more);
}

const STATES = { same: "", changed: "changed", gone: "gone after", new: "new" };
const FATES = { goes: "goes", folds: "goes", rewritten: "goes", stays: "stays" };

function line(report, graph, node, choose) {
  const move = report.moveOf(node);
  const outs = node.outs.filter((v) => v !== null).slice(0, 4).map((v) => chip(report, graph.layoutOf(graph.values[v])));
  return el("li", {},
    el("button", { type: "button", class: "link", onclick: () => choose(graph, node) }, el("b", { text: node.op }), " ", el("span", { class: "mono" }, name(node.name))),
    " ", outs, " ",
    move ? el("b", { class: `fate ${move.fate}`, text: `move of ${bytes(move.bytes)}, ${FATES[move.fate]}` }) : el("span", { class: "soft", text: STATES[node.state] }));
}
