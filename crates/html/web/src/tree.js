// The graph as a list that opens: the same nodes and the same folded regions as the picture.

import { chip } from "./chips.js";
import { el, name } from "./dom.js";
import { bytes, plural } from "./words.js";

/** Fewer unchanged nodes than this in a row are listed one by one. */
const LEAST = 3;
/** Entries that are made at once. */
const PAGE = 150;

export function tree(report, graph, choose) {
  const box = el("details", { class: "tree" });
  const list = el("ul");
  box.append(el("summary", { text: `“${graph.title}” as a list` }), list);
  box.addEventListener("toggle", () => {
    if (box.open && !list.children.length) grow(list, runs(report, graph), (run) => entry(report, graph, run, choose));
  });
  return box;
}

/** Nodes one by one, and unchanged ones in rows. */
function runs(report, graph) {
  const found = [];
  let same = [];
  const close = () => {
    if (same.length < LEAST) found.push(...same);
    else found.push(same);
    same = [];
  };
  for (const node of graph.nodes) {
    if (node.state === "same" && !report.moveOf(node)) {
      same.push(node);
    } else {
      close();
      found.push(node);
    }
  }
  close();
  return found;
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

function entry(report, graph, run, choose) {
  if (!Array.isArray(run)) return line(report, graph, run, choose);
  const inner = el("ul");
  const box = el("details", {}, el("summary", { text: `${plural(run.length, "node")}${report.graphs.length > 1 ? ", the same in both" : ""}` }), inner);
  box.addEventListener("toggle", () => {
    if (box.open && !inner.children.length) grow(inner, run, (node) => line(report, graph, node, choose));
  });
  return el("li", {}, box);
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
