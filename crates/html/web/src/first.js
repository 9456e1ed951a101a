// The first screen: what was gained, and the dearest moves that are left.

import { chipOf, link, ways } from "./chips.js";
import { el, prose } from "./dom.js";
import { bytes, change, figure, plural, time } from "./words.js";

/** How many of the moves that are left the first screen lists. */
const LISTED = 4;

const ASKED = {
  optimize: "What was gained",
  explain: "What can be gained",
  audit: "What the moves cost",
  diff: "What changed",
};

export function first(report, choose) {
  const section = el("section", { id: "first", "aria-labelledby": "gained" });
  section.append(el("h1", { id: "gained", text: ASKED[report.kind] }), el("p", { class: "summary", text: sentence(report.summary) }));
  if (report.figures.length) section.append(el("dl", { class: "figures" }, report.figures.map((one) => card(report, one))));
  if (report.kind !== "diff") section.append(dearest(report, choose));
  return section;
}

function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function card(report, one) {
  const two = report.graphs.length > 1 || (one.after !== null && one.before !== null && one.after !== one.before);
  const pair = two && one.after !== null;
  const less = pair ? change(one.before, one.after) : "";
  const good = less.endsWith("less");
  return el("div", { class: "card" },
    el("dt", { text: one.name }),
    el("dd", {},
      pair ? el("span", { class: "was" }, figure(one.unit, one.before), el("span", { class: "hidden", text: " before," })) : null,
      pair ? el("span", { class: "to", "aria-hidden": "true", text: "→" }) : null,
      el("span", { class: "is" }, figure(one.unit, pair ? one.after : one.before), pair ? el("span", { class: "hidden", text: " after" }) : null),
      less ? el("span", { class: `change ${good ? "good" : "bad"}`, text: less }) : null),
    el("dd", { class: "note" }, el("span", {}, prose(one.note))));
}

function dearest(report, choose) {
  // Of a model that was made for the target before, nothing was decided: what its moves are is not known here.
  if (!report.figures.length) return el("p", { class: "empty" }, "Nothing was decided about it. ", el("code", { text: "relayout audit" }), " lists the moves of such a file.");
  const left = report.left();
  const box = el("section", { class: "left", "aria-labelledby": "left-title" });
  box.append(el("h2", { id: "left-title", text: left.length ? "The dearest moves that are left" : "No move is left" }));
  if (!left.length) {
    box.append(el("p", { class: "empty", text: report.moves.length ? "Every move of this model could go." : "Nothing moves data in this model." }));
    return box;
  }
  box.append(el("ol", { class: "dearest" }, left.slice(0, LISTED).map((move) => entry(report, move, choose))));
  const more = left.length - LISTED;
  if (more > 0) box.append(el("p", {}, `${plural(more, "more move is", "more moves are")} left: `, el("a", { href: "#moves", text: "see the table" })));
  return box;
}

function entry(report, move, choose) {
  const graph = report.graphs[move.graph];
  const node = move.node === null ? null : graph.nodes[move.node];
  return el("li", { class: "card" },
    el("p", { class: "head" },
      link(move.value, graph, node, choose),
      el("span", { class: "fromto" }, chipOf(report, move.from), el("span", { text: " → " }), chipOf(report, move.to)),
      el("b", { text: bytes(move.bytes) }),
      move.cost_ns === null ? null : el("b", { text: time(move.cost_ns) })),
    el("p", { class: "why" }, el("b", { text: "Why: " }), prose(move.why)),
    move.ways.length ? ways(move.ways) : null);
}
