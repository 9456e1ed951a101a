// Draws one graph: nodes, folded regions, and edges coloured by the layout of what flows.

import cytoscape from "cytoscape";
import { colours } from "./colours.js";
import { fold, opened } from "./fold.js";
import { bytes, count, short } from "./words.js";

/** How many nodes of a region are shown when it is opened. */
const OPENED = 60;
/** Below this zoom no label can be read. */
const READABLE = 0.8;
/** Nodes of regions too small to be folded that are drawn at most. */
const SMALL = 20;

/** What is drawn of a graph, and the promise of its places: the worker lays it out while the page goes on. */
export function sketch(report, graph, shown, layouter) {
  const folded = fold(graph, shown, shown.size + SMALL);
  const nodes = [...folded.visible].sort((a, b) => a - b).map((id) => drawn(report, graph, graph.nodes[id]));
  folded.regions.forEach((region, number) => nodes.push(foldedNode(graph, region, number)));
  const edges = edgesOf(report, graph, folded);
  const placed = layouter.place(nodes, edges);
  // Who waits for it is told; that may be later.
  placed.catch(() => {});
  return { folded, nodes, edges, placed };
}

export class Canvas {
  /** `told` is called with a node, or with `null`, when something is chosen. */
  constructor(box, report, graph, shown, layouter, told) {
    Object.assign(this, { box, report, graph, shown, layouter, told, ready: Promise.resolve() });
    this.cy = cytoscape({
      container: box,
      autoungrabify: true,
      boxSelectionEnabled: false,
      selectionType: "single",
      minZoom: 0.05,
      maxZoom: 2.5,
      style: sheet(colours()),
    });
    this.cy.on("tap", "node", (event) => this.#tapped(event.target));
    this.cy.on("tap", (event) => event.target === this.cy && told(null));
  }

  #tapped(element) {
    const region = element.data("region");
    if (region === undefined) this.told(this.graph.nodes[element.data("node")]);
    else this.open(region);
  }

  /** Shows what is wanted, laid out anew unless its sketch is there. */
  show(made = sketch(this.report, this.graph, this.shown, this.layouter)) {
    this.ready = this.#draw(made);
    return this.ready;
  }

  async #draw({ folded, nodes, edges, placed }) {
    this.folded = folded;
    const { places, bends } = await placed;
    for (const edge of edges) Object.assign(edge, bent(places.get(edge.source), places.get(edge.target), bends.get(edge.id)));
    this.cy.batch(() => {
      this.cy.elements().remove();
      this.cy.add([
        ...nodes.map((data) => ({ group: "nodes", data, position: places.get(data.id), classes: data.classes })),
        ...edges.map((data) => ({ group: "edges", data, classes: `${data.classes} ${data.weights ? "bent" : ""}` })),
      ]);
    });
    const painted = new Promise((done) => this.cy.one("render", done));
    this.cy.resize();
    this.overview(nodes, places);
    await painted;
  }

  /** Opens a folded region: a part of it, if it is large. */
  open(region) {
    for (const n of opened(this.folded.regions[region], OPENED)) this.shown.add(n);
    return this.show();
  }

  /** Shows a node with its neighbours, if it is not there yet, and brings it into the middle. */
  async reveal(node) {
    await this.ready;
    if (!this.folded.visible.has(node.id)) {
      for (const n of [node.id, ...node.before.slice(0, 8), ...node.after.slice(0, 8)]) this.shown.add(n);
      await this.show();
    }
    this.select(node);
    const found = this.cy.getElementById(`n${node.id}`);
    if (this.cy.zoom() < 0.6) this.cy.zoom(0.9);
    this.cy.center(found);
  }

  select(node) {
    this.cy.elements(".chosen").removeClass("chosen");
    if (node) this.cy.getElementById(`n${node.id}`).addClass("chosen");
  }

  /** All of the graph, if it can be read then; else its upper part, around the first move. */
  overview(nodes, places) {
    const [width, height] = [this.cy.width(), this.cy.height()];
    const box = around(nodes, places);
    const zoom = Math.max(READABLE, Math.min(1, (width - 48) / box.w, (height - 48) / box.h));
    const moves = nodes.filter((node) => node.move);
    const top = (moves.length ? moves : nodes).map(({ id }) => places.get(id)).reduce((a, b) => (b.y < a.y ? b : a));
    const x = box.w * zoom <= width ? width / 2 - (box.x + box.w / 2) * zoom : width / 2 - top.x * zoom;
    const highest = 24 - box.y * zoom;
    const y = box.h * zoom <= height ? height / 2 - (box.y + box.h / 2) * zoom : Math.min(highest, height / 4 - top.y * zoom);
    this.cy.viewport({ zoom, pan: { x, y } });
  }

  fit() {
    this.cy.fit(undefined, 24);
  }

  zoom(factor) {
    this.cy.zoom({ level: this.cy.zoom() * factor, renderedPosition: { x: this.cy.width() / 2, y: this.cy.height() / 2 } });
  }

  repaint() {
    this.cy.style(sheet(colours()));
  }

  /** How many nodes are drawn, and how many are folded into regions. */
  counts() {
    const drawn = this.folded?.visible.size ?? 0;
    return { drawn, folded: this.graph.nodes.length - drawn, regions: this.folded?.regions.length ?? 0 };
  }
}

/** The edges that are drawn, between nodes and regions, each once. */
function edgesOf(report, graph, { visible, regionOf }) {
  const at = (n) => (visible.has(n) ? `n${n}` : `r${regionOf[n]}`);
  const edges = new Map();
  for (const node of graph.nodes) {
    for (const next of node.after) {
      const [source, target] = [at(node.id), at(next)];
      const id = `${source}-${target}`;
      if (source === target || edges.has(id)) continue;
      edges.set(id, { id, source, target, classes: flow(report, graph, node, next) });
    }
  }
  return [...edges.values()];
}

/** The colour of what flows between two nodes, and whether it is moved. */
function flow(report, graph, node, next) {
  const [value] = graph.between(node.id, next);
  const layout = value ? graph.layoutOf(value) : null;
  const moves = report.moveOf(node) ?? report.moveOf(graph.nodes[next]);
  return `c${report.colour(layout)} ${moves ? `moving ${moves.fate}` : ""}`;
}

/** What is drawn of a node: a pill with bytes for a move, else the op. */
function drawn(report, graph, node) {
  const move = report.moveOf(node);
  const out = node.outs.length && node.outs[0] !== null ? graph.values[node.outs[0]] : null;
  const label = move ? `${bytes(move.bytes)}\n${short(`${move.from} → ${move.to}`, 26)}` : short(node.op === "input" ? node.name : node.op.split("::").pop(), 22);
  const colour = report.colour(out ? graph.layoutOf(out) : null);
  const classes = [`c${colour}`, move ? `move ${move.fate}` : "", node.op === "input" || out?.output ? "end" : "", node.state].join(" ");
  const wide = Math.max(...label.split("\n").map((line) => line.length));
  return {
    id: `n${node.id}`,
    node: node.id,
    label,
    move: Boolean(move),
    width: Math.max(58, wide * 7.6 + (move ? 34 : 20)),
    height: move ? 40 : 28,
    classes,
  };
}

/** The bends of an edge as parts of the straight line between its ends, and as distances from it. */
function bent(from, to, bends) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = Math.hypot(dx, dy);
  if (!bends?.length || length < 1) return {};
  const weights = bends.map((p) => ((p.x - from.x) * dx + (p.y - from.y) * dy) / length ** 2);
  const distances = bends.map((p) => ((p.y - from.y) * dx - (p.x - from.x) * dy) / length);
  return { weights, distances };
}

/** The rectangle around all nodes. */
function around(nodes, places) {
  const box = { x: Infinity, y: Infinity, right: -Infinity, bottom: -Infinity };
  for (const { id, width, height } of nodes) {
    const at = places.get(id);
    box.x = Math.min(box.x, at.x - width / 2);
    box.y = Math.min(box.y, at.y - height / 2);
    box.right = Math.max(box.right, at.x + width / 2);
    box.bottom = Math.max(box.bottom, at.y + height / 2);
  }
  return { ...box, w: box.right - box.x, h: box.bottom - box.y };
}

function foldedNode(graph, region, number) {
  const same = region.every((n) => graph.nodes[n].state === "same");
  const label = `${count(region.length)} nodes${same && graph.nodes.length ? "" : " more"}`;
  return { id: `r${number}`, region: number, label, width: Math.max(84, label.length * 7.4 + 22), height: 28, classes: "fold" };
}

function sheet(c) {
  // Classes and not functions: elements with the same classes share what they are drawn with.
  const borders = c.layouts.map((colour, n) => ({ selector: `node.c${n}`, style: { "border-color": colour, "border-width": n ? 2.5 : 1.2 } }));
  const lines = c.layouts.map((colour, n) => ({ selector: `edge.c${n}`, style: { "line-color": colour, "target-arrow-color": colour, width: n ? 2.6 : 1.3 } }));
  return [
    {
      selector: "node",
      style: {
        shape: "round-rectangle",
        width: "data(width)",
        height: "data(height)",
        label: "data(label)",
        "text-wrap": "wrap",
        "text-valign": "center",
        "text-halign": "center",
        "font-family": "Inter, system-ui, sans-serif",
        "font-size": 12,
        "line-height": 1.2,
        color: c.ink,
        "background-color": c.card,
      },
    },
    ...borders,
    { selector: "node.changed, node.new", style: { "font-weight": 600 } },
    { selector: "node.gone", style: { "border-style": "dashed", color: c.soft } },
    { selector: "node.end", style: { shape: "round-tag", "background-color": c.fold } },
    { selector: "node.fold", style: { shape: "round-rectangle", "border-style": "dotted", "border-width": 1.5, "border-color": c.soft, "background-color": c.fold, color: c.soft } },
    { selector: "node.move", style: { "background-color": c.move, "border-color": c.move, color: c.moveInk, "font-weight": 600, "border-width": 1, "corner-radius": 20 } },
    { selector: "node.move.goes, node.move.folds, node.move.rewritten", style: { "background-color": c.card, "border-color": c.gone, "border-width": 2, "border-style": "dashed", color: c.gone } },
    { selector: "node.chosen", style: { "outline-width": 3, "outline-color": c.accent, "outline-offset": 3 } },
    {
      selector: "edge",
      style: {
        "target-arrow-shape": "triangle",
        "arrow-scale": 0.8,
        "curve-style": "straight",
      },
    },
    {
      selector: "edge.bent",
      style: {
        "curve-style": "round-segments",
        "segment-weights": "data(weights)",
        "segment-distances": "data(distances)",
        "segment-radii": 10,
        "edge-distances": "node-position",
      },
    },
    ...lines,
    { selector: "edge.moving.stays", style: { width: 3.5, "line-color": c.move, "target-arrow-color": c.move } },
    { selector: "edge.moving.goes, edge.moving.folds, edge.moving.rewritten", style: { width: 2, "line-color": c.gone, "target-arrow-color": c.gone, "line-style": "dashed" } },
  ];
}
