// Lays graphs out in a worker that is made of the page's own text.

import source from "worker:place.js";

/** Starts a worker that lays graphs out, one after the other. It is to be made before it is needed, because it takes a while to start. */
export function layouter() {
  const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  const waiting = [];
  worker.onmessage = ({ data }) => {
    const { done, failed } = waiting.shift();
    if (data.error) failed(new Error(data.error));
    else done(data);
  };
  worker.onerror = (event) => {
    event.preventDefault();
    for (const { failed } of waiting.splice(0)) failed(new Error(event.message || "the worker did not start"));
  };
  return {
    /**
     * Places of nodes, by id: their centres; and the bends of edges. `nodes` have id, width and height; `edges` have id, source and
     * target.
     */
    place(nodes, edges) {
      return new Promise((done, failed) => {
        waiting.push({ done, failed });
        worker.postMessage({
          nodes: nodes.map(({ id, width, height }) => ({ id, width, height })),
          edges: edges.map(({ id, source: from, target }) => ({ id, source: from, target })),
        });
      });
    },
  };
}
