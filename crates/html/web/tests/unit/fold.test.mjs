// Folding: what is hidden stays reachable, and regions make no cycle.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fold, interesting } from "../../src/fold.js";
import { Graph, Report } from "../../src/model.js";

/** A graph of `n` nodes, each reading the results of the nodes that `reads` gives. */
function graph(n, reads, states = () => "same") {
  const strings = ["Relu", ""];
  const names = Array.from({ length: n }, (_, i) => strings.push(`v${i}`) - 1);
  const values = names.map((name) => ({ name, type: 1, layout: null, bytes: 4 }));
  const nodes = names.map((name, i) => ({ op: 0, name, path: 1, state: states(i), ins: reads(i), outs: [i], attrs: [] }));
  return { part: { title: "g", nodes, values, layouts: [] }, strings };
}

/** The edges that are drawn, between shown nodes and regions. */
function drawn(made, { visible, regionOf }) {
  const at = (n) => (visible.has(n) ? `n${n}` : `r${regionOf[n]}`);
  return made.nodes.flatMap((node) => node.after.map((next) => [at(node.id), at(next)])).filter(([a, b]) => a !== b);
}

function isAcyclic(edges) {
  const after = new Map();
  for (const [a, b] of edges) after.set(a, [...(after.get(a) ?? []), b]);
  const state = new Map();
  const visit = (n) => {
    if (state.get(n) === 1) return false;
    if (state.get(n) === 2) return true;
    state.set(n, 1);
    const fine = (after.get(n) ?? []).every(visit);
    state.set(n, 2);
    return fine;
  };
  return [...after.keys()].every(visit);
}

/** Numbers that look random and are the same each time. */
function random(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state % below;
  };
}

test("a chain folds around what is shown", () => {
  const { part, strings } = graph(20, (i) => (i ? [i - 1] : []));
  const made = fold(new Graph(part, strings, 0), new Set([10]));
  assert.deepEqual(made.regions.map((r) => r.length), [10, 9]);
  assert.deepEqual([...made.visible], [10]);
});

test("a few hidden nodes are shown instead", () => {
  const { part, strings } = graph(5, (i) => (i ? [i - 1] : []));
  const made = fold(new Graph(part, strings, 0), new Set([2]));
  assert.deepEqual([made.regions.length, made.visible.size], [0, 5]);
});

test("every node is in one place and no fold makes a cycle", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const next = random(seed);
    const n = 5 + next(60);
    const { part, strings } = graph(n, (i) => (i ? Array.from({ length: 1 + next(3) }, () => next(i)) : []));
    const made = new Graph(part, strings, 0);
    const shown = new Set(Array.from({ length: next(n) }, () => next(n)));
    const folded = fold(made, shown);
    const all = [...folded.visible, ...folded.regions.flat()].sort((a, b) => a - b);
    assert.deepEqual(all, made.nodes.map((node) => node.id), `seed ${seed}`);
    assert.ok(isAcyclic(drawn(made, folded)), `seed ${seed}`);
  }
});

test("moves come first, then what changed, and never more than asked", () => {
  const { part, strings } = graph(500, (i) => (i ? [i - 1] : []), (i) => (i % 2 ? "changed" : "same"));
  part.nodes[400].moved = 0;
  const page = { graphs: [part], strings, moves: [{ graph: 0, node: 400, bytes: 8, fate: "stays" }] };
  const report = new Report(page);
  const shown = interesting(report, report.graphs[0], 40);
  assert.equal(shown.size, 40);
  assert.ok(shown.has(400));
  assert.ok([...shown].filter((n) => n !== 400).every((n) => n % 2));
});

test("a graph in which nothing happens shows its beginning", () => {
  const { part, strings } = graph(50, (i) => (i ? [i - 1] : []));
  const report = new Report({ graphs: [part], strings, moves: [] });
  assert.deepEqual([...interesting(report, report.graphs[0], 3)], [0, 1, 2]);
});
