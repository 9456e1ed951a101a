// Lays graphs out with ELK, in a worker that is made of the page's own text.

import ELK from "elkjs/lib/elk-api.js";
import source from "elkjs/lib/elk-worker.min.js";

const OPTIONS = {
  "elk.algorithm": "layered",
  "elk.direction": "DOWN",
  "elk.layered.spacing.nodeNodeBetweenLayers": "34",
  "elk.spacing.nodeNode": "22",
  "elk.layered.nodePlacement.strategy": "BRANDES_KOEPF",
  "elk.layered.thoroughness": "1",
  "elk.edgeRouting": "ORTHOGONAL",
  "elk.separateConnectedComponents": "true",
  "elk.spacing.componentComponent": "40",
};

/** A worker that lays graphs out. It takes a while to start, so it is made before it is needed. */
export function layouter() {
  return new ELK({ workerFactory: () => new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" }))) });
}

/**
 * Places of nodes, by id: their centres; and the bends of edges. `nodes` have id, width and height; `edges` have id, source and
 * target.
 */
export async function place(elk, nodes, edges) {
  const graph = {
    id: "root",
    layoutOptions: OPTIONS,
    children: nodes.map(({ id, width, height }) => ({ id, width, height })),
    edges: edges.map(({ id, source: from, target }) => ({ id, sources: [from], targets: [target] })),
  };
  const laid = await elk.layout(graph);
  const places = new Map(laid.children.map((n) => [n.id, { x: n.x + n.width / 2, y: n.y + n.height / 2 }]));
  const bends = new Map(laid.edges.map((e) => [e.id, e.sections?.[0]?.bendPoints ?? []]));
  return { places, bends };
}
