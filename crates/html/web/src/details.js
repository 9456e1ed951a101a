// What is known about one node: attributes, operands and results, the layouts that each could have and what they would cost.

import { chip, chipOf, link, price, ways } from "./chips.js";
import { el, fill, name, prose } from "./dom.js";
import { bytes, time } from "./words.js";

const STATES = { same: "the same in both", changed: "changed", gone: "gone after", new: "new" };
const FATES = { goes: "It goes.", folds: "It goes: what it moves is a constant.", rewritten: "It goes, because nodes are rewritten.", stays: "It stays." };

export class Details {
  constructor(report, choose) {
    Object.assign(this, { report, choose });
    this.box = el("aside", { id: "details", "aria-label": "About the chosen node", "aria-live": "polite", tabindex: "-1" });
    this.show(null, null);
  }

  show(graph, node) {
    if (!node) {
      fill(this.box, el("h3", { text: "Nothing chosen" }), el("p", { class: "empty", text: "Choose a node in the picture, in the tree or in the table to see its attributes, the layouts it could have, and what each would cost." }));
      return;
    }
    const { report } = this;
    const move = report.moveOf(node);
    fill(this.box,
      el("h3", {}, el("span", { class: "op", text: node.op }), " ", el("span", { class: "mono" }, name(node.name))),
      el("p", { class: "soft" }, [report.graphs.length > 1 ? `${graph.title}: ${STATES[node.state]}` : null, node.path ? `in ${node.path}` : null].filter(Boolean).join(" · ")),
      move ? this.#move(move) : null,
      node.opaque ? el("p", {}, el("b", { text: "No layout passes through it: " }), node.opaque) : null,
      this.#attributes(node),
      this.#values("Operands", graph, node.ins, true),
      this.#values("Results", graph, node.outs, false),
      this.#twin(graph, node),
      node.outs.filter((v) => v !== null).map((v) => this.#why(graph.values[v])));
  }

  #move(move) {
    return el("section", { class: "moved" },
      el("h4", { text: "This is a move" }),
      el("p", {}, chipOf(this.report, move.from), " → ", chipOf(this.report, move.to), ` ${bytes(move.bytes)}`, move.cost_ns === null ? "" : `, ${time(move.cost_ns)}`, ". ", FATES[move.fate]),
      el("p", {}, el("b", { text: "Why: " }), prose(move.why)),
      move.ways.length ? ways(move.ways) : null);
  }

  #attributes(node) {
    if (!node.attrs.length) return null;
    return el("section", {}, el("h4", { text: "Attributes" }),
      el("dl", { class: "pairs" }, node.attrs.flatMap(([key, value]) => [el("dt", { text: key }), el("dd", { class: "mono", text: value })])));
  }

  #values(title, graph, slots, made) {
    const there = slots.filter((v) => v !== null).map((v) => graph.values[v]);
    if (!there.length) return null;
    return el("section", {}, el("h4", { text: title }), el("ul", { class: "values" }, there.map((value) => {
      const maker = made && value.maker >= 0 ? graph.nodes[value.maker] : null;
      return el("li", {}, maker ? link(value.name, graph, maker, this.choose) : el("span", { class: "mono" }, name(value.name)),
        el("span", { class: "soft mono", text: ` ${value.type} ` }), chip(this.report, graph.layoutOf(value)),
        el("span", { class: "soft", text: ` ${bytes(value.bytes)}${value.constant ? ", constant" : ""}` }));
    })));
  }

  #twin(graph, node) {
    const twin = this.report.twin(graph, node);
    if (!twin) return null;
    const other = this.report.graphs[1 - graph.number];
    return el("p", {}, link(`The same value in “${other.title}”`, other, twin, this.choose));
  }

  #why(value) {
    const why = value.why === undefined ? null : this.report.whys[value.why];
    if (!why) return null;
    const side = (one, verb) => el("li", {}, `${verb} as `, chipOf(this.report, one.layout), " by ", prose(one.node), one.offers.length ? el("span", { class: "soft", text: `; it could as ${one.offers.join(", ")}` }) : null);
    return el("section", {}, el("h4", {}, "Layouts of ", el("span", { class: "mono" }, name(value.name))),
      el("ul", { class: "values" }, side(why.producer, "left"), why.readers.slice(0, 12).map((one) => side(one, "read"))),
      el("p", {}, el("b", { text: "Made so because " }), prose(why.why_made), ". ", el("b", { text: "Wanted so because " }), prose(why.why_wanted), "."),
      this.#alternatives(why),
      why.cheapest ? el("p", { text: `Cheapest without a move of this value: ${why.cheapest}.` }) : null);
  }

  #alternatives(why) {
    if (!why.alternatives.length) return null;
    const priced = why.alternatives.some((a) => a.only_ns !== null || a.left_ns !== null);
    const row = (a) => el("tr", {},
      el("th", { scope: "row" }, chipOf(this.report, a.layout), a.taken ? " taken" : ""),
      el("td", {}, a.only_ns !== null ? price(a.only_ns, a.only_bytes) : prose(a.missing.join("; ") || "–")),
      el("td", { text: a.left_ns !== null ? price(a.left_ns, a.left_bytes) : "–" }));
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Candidates and their costs" },
      el("table", {}, el("caption", { text: priced ? "Candidates, against what was decided, everything else decided again" : `Candidates. relayout explain --why '${why.value}' prices them` }),
        el("thead", {}, el("tr", {}, ["Layout", "In no other", "Left so, copied for others"].map((text) => el("th", { scope: "col", text })))),
        el("tbody", {}, why.alternatives.map(row))));
  }
}
