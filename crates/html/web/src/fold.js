// Which nodes are drawn, and into which regions the others are folded.

/** Fewer hidden nodes than this side by side are drawn and not folded. */
const LEAST = 3;

/** How much a node is wanted in the picture: moves first, then what changed, then what stands beside either. */
function weight(report, node) {
  const move = report.moveOf(node);
  if (move) return move.fate === "stays" ? 4 : 3;
  if (node.state === "changed" || node.state === "gone" || node.state === "new") return 2;
  return 0;
}

/** The nodes that are drawn at first: at most `most`. */
export function interesting(report, graph, most) {
  const wanted = graph.nodes.filter((node) => weight(report, node) > 0);
  wanted.sort((a, b) => weight(report, b) - weight(report, a) || bytesOf(report, graph, b) - bytesOf(report, graph, a) || a.id - b.id);
  const shown = new Set(wanted.slice(0, most).map((node) => node.id));
  for (const id of [...shown].sort((a, b) => a - b)) {
    for (const near of [...graph.nodes[id].before, ...graph.nodes[id].after]) {
      if (shown.size >= most) return shown;
      shown.add(near);
    }
  }
  if (shown.size === 0) for (const node of graph.nodes.slice(0, most)) shown.add(node.id);
  return shown;
}

/** Bytes that a node moves, or makes: of two that changed alike the larger one says more. */
function bytesOf(report, graph, node) {
  const made = node.outs.map((v) => (v === null ? 0 : graph.values[v].bytes));
  return report.moveOf(node)?.bytes ?? Math.max(0, ...made);
}

/**
 * Folds what is not shown. Hidden nodes are in one region if edges among hidden nodes join them and the same number of shown nodes
 * stands before them on the longest path. So regions and shown nodes make no cycle. Nodes of small regions are shown.
 *
 * Gives the regions as lists of nodes, and for each node the number of its region, -1 if it is shown.
 */
export function fold(graph, shown, most = Infinity) {
  const depth = depths(graph, shown);
  const parent = graph.nodes.map((node) => node.id);
  const root = (n) => {
    while (parent[n] !== n) n = parent[n] = parent[parent[n]];
    return n;
  };
  for (const node of graph.nodes) {
    if (shown.has(node.id)) continue;
    for (const next of node.after) {
      if (!shown.has(next) && depth[next] === depth[node.id]) parent[root(next)] = root(node.id);
    }
  }
  const groups = new Map();
  for (const node of graph.nodes) {
    if (shown.has(node.id)) continue;
    const at = root(node.id);
    if (!groups.has(at)) groups.set(at, []);
    groups.get(at).push(node.id);
  }
  const visible = new Set(shown);
  const regions = [];
  const regionOf = new Int32Array(graph.nodes.length).fill(-1);
  for (const group of [...groups.values()].sort((a, b) => a[0] - b[0])) {
    if (group.length < LEAST && visible.size + group.length <= most) {
      group.forEach((n) => visible.add(n));
    } else {
      group.forEach((n) => (regionOf[n] = regions.length));
      regions.push(group);
    }
  }
  return { visible, regions, regionOf };
}

/** How many shown nodes stand before each node on the longest path. Nodes are in an order in which they can run. */
function depths(graph, shown) {
  const depth = new Int32Array(graph.nodes.length);
  for (const node of graph.nodes) {
    const own = depth[node.id] + (shown.has(node.id) ? 1 : 0);
    for (const next of node.after) if (next > node.id && depth[next] < own) depth[next] = own;
  }
  return depth;
}

/** The nodes next to a region, or a node, to be shown on demand: its first `most` in their order. */
export function opened(region, most) {
  return region.slice(0, most);
}
