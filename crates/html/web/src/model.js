// The page's data with what follows from it: who makes and reads each value, neighbours, colours of layouts.

/** Colours of layouts that are not the declared order, as numbers of CSS variables `--layout-1`, and so on. */
export const COLOURS = 8;

/** One graph of the page. Nodes are known by their number. */
export class Graph {
  constructor(part, strings, number) {
    this.number = number;
    this.title = part.title;
    this.values = part.values.map((v) => ({ ...v, name: strings[v.name], type: strings[v.type], readers: [], maker: -1 }));
    this.layouts = part.layouts.map(([text, plain]) => ({ text, plain }));
    this.nodes = part.nodes.map((n, id) => ({
      ...n,
      id,
      op: strings[n.op],
      name: strings[n.name],
      path: strings[n.path],
      attrs: n.attrs.map(([name, value]) => [strings[name], strings[value]]),
      opaque: n.opaque === undefined ? null : strings[n.opaque],
    }));
    for (const node of this.nodes) {
      for (const v of node.outs) if (v !== null) this.values[v].maker = node.id;
    }
    for (const node of this.nodes) {
      for (const v of node.ins) if (v !== null) this.values[v].readers.push(node.id);
    }
    for (const node of this.nodes) {
      node.before = this.#near(node.ins, (value) => (value.maker < 0 ? [] : [value.maker]), node.id);
      node.after = this.#near(node.outs, (value) => value.readers, node.id);
    }
  }

  #near(slots, of, self) {
    const found = new Set();
    for (const v of slots) if (v !== null) for (const n of of(this.values[v])) if (n !== self) found.add(n);
    return [...found];
  }

  /** The values between two nodes. */
  between(from, to) {
    const read = new Set(this.nodes[to].ins);
    return this.nodes[from].outs.filter((v) => v !== null && read.has(v)).map((v) => this.values[v]);
  }

  layoutOf(value) {
    return value.layout === null ? null : this.layouts[value.layout];
  }
}

/** All of the page's data. */
export class Report {
  constructor(page) {
    Object.assign(this, page);
    this.graphs = page.graphs.map((part, number) => new Graph(part, page.strings, number));
    this.colours = this.#colours();
  }

  /** Layouts other than the declared order, the most frequent first, each with the number of its colour. */
  #colours() {
    const seen = new Map();
    for (const graph of this.graphs) {
      for (const value of graph.values) {
        const layout = value.constant ? null : graph.layoutOf(value);
        if (layout && !layout.plain) seen.set(layout.text, (seen.get(layout.text) ?? 0) + 1);
      }
    }
    const order = [...seen].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
    return new Map(order.map(([text], at) => [text, Math.min(at + 1, COLOURS)]));
  }

  /** The number of a layout's colour; 0 for the declared order. */
  colour(layout) {
    return layout && !layout.plain ? (this.colours.get(layout.text) ?? COLOURS) : 0;
  }

  /** Moves that are left, the dearest first. Of a model and its result those of the result count. */
  left() {
    const result = this.kind === "audit" ? null : this.graphs.length - 1;
    const stays = this.moves.filter((m) => m.fate === "stays" && (result === null || m.graph === result));
    return stays.sort((a, b) => (b.cost_ns ?? 0) - (a.cost_ns ?? 0) || b.bytes - a.bytes);
  }

  moveOf(node) {
    return node.moved === undefined ? null : this.moves[node.moved];
  }

  /** The node of the other graph that makes the same value. */
  twin(graph, node) {
    const other = this.graphs[1 - graph.number];
    if (!other || node.outs.length === 0 || node.outs[0] === null) return null;
    const name = graph.values[node.outs[0]].name;
    return other.nodes.find((n) => n.path === node.path && n.outs[0] !== null && n.outs.length > 0 && other.values[n.outs[0]].name === name) ?? null;
  }
}
