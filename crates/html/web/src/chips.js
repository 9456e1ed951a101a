// Small parts that several views share: layouts as chips, buttons that lead to a node.

import { el, name, prose } from "./dom.js";
import { bytes, signed, time } from "./words.js";

/** A layout with its colour. */
export function chip(report, layout) {
  if (!layout) return el("span", { class: "chip", text: "unknown" });
  return el("span", { class: "chip", "data-colour": report.colour(layout) }, layout.text);
}

/** A layout by its text, as moves have it. */
export function chipOf(report, text) {
  const colour = report.colours.get(text) ?? 0;
  return el("span", { class: "chip", "data-colour": colour }, text);
}

/** A button that chooses a node. */
export function link(label, graph, node, choose) {
  if (!node) return el("span", { class: "mono" }, name(label));
  return el("button", { type: "button", class: "link mono", onclick: () => choose(graph, node) }, name(label));
}

/** A price: time and bytes beyond what is now. */
export function price(ns, moved) {
  if (ns === null || ns === undefined) return "no price";
  return `${signed(time, ns)}, ${signed(bytes, moved ?? 0)} moved`;
}

/** A way to be rid of a move, in words. */
export function way(one) {
  const cost = price(one.more_ns, one.more_bytes);
  if (one.missing === null) {
    const kind = (one.more_bytes ?? -1) >= 0 ? "Instead, with other moves" : "Can go";
    return { kind, text: `${one.what}: ${cost}` };
  }
  if (one.more_ns !== null) return { kind: "Can’t go", text: `${one.missing}; without that: ${cost}` };
  return { kind: "Can’t go", text: `${one.what}: ${one.missing}` };
}

/** What it would take for a move to go. */
export function ways(list) {
  const items = list.map((one) => {
    const { kind, text } = way(one);
    return el("li", {}, el("b", { text: `${kind}: ` }), prose(text));
  });
  return [el("p", { class: "take", text: "What it would take for it to go:" }), el("ul", { class: "ways" }, items)];
}
