// The worker that lays graphs out, with dagre.

import { Graph, layout } from "@dagrejs/dagre";

const OPTIONS = { rankdir: "TB", nodesep: 22, edgesep: 14, ranksep: 34, ranker: "tight-tree" };

/** Places of nodes, by id: their centres; and the bends of edges, by id. */
function placed({ nodes, edges }) {
  const graph = new Graph().setGraph({ ...OPTIONS }).setDefaultEdgeLabel(() => ({}));
  for (const { id, width, height } of nodes) graph.setNode(id, { width, height });
  for (const { source, target } of edges) graph.setEdge(source, target, {});
  layout(graph);
  const places = new Map(nodes.map(({ id }) => [id, at(graph.node(id))]));
  // The first and the last point lie on the borders of nodes, where the drawing ends edges by itself.
  const bends = new Map(edges.map(({ id, source, target }) => [id, graph.edge(source, target).points.slice(1, -1).map(at)]));
  return { places, bends };
}

function at({ x, y }) {
  return { x, y };
}

onmessage = ({ data }) => {
  try {
    postMessage(placed(data));
  } catch (error) {
    postMessage({ error: String(error) });
  }
};
