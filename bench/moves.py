#!/usr/bin/env python3
"""What target `onnx` moves beside what ONNX Runtime's own optimizer, and other tools, leave in standard ONNX.

    python bench/moves.py [--core | --models a,b] [--peers ort_basic,onnxslim,onnxsim,onnxoptimizer] [--time]

Each tool runs as its users call it, in a process. Counted is what really moves with every optimization of the runtime off: Transposes
and the bytes that they write; nodes that copy count for what they write beyond the original.

A model passes if ours computes the same, passes the checker of onnx, keeps inputs and outputs, brings in no operator outside of the
standard, and moves no more bytes than the original and than ORT_ENABLE_BASIC leaves. With --time, no result may take more than 1.03 times
as long as its original, every optimization off. Exit status 1 if a model failed.
"""
import argparse
import json
import sys
import tempfile
from pathlib import Path

import onnx

import runs
import timing

SLOWER = 1.03
PEERS = {
    "ort_basic": "import sys, onnxruntime as ort\noptions = ort.SessionOptions()\noptions.log_severity_level = 3\n"
                 "options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC\n"
                 "options.optimized_model_filepath = sys.argv[2]\n"
                 "ort.InferenceSession(sys.argv[1], options, providers=['CPUExecutionProvider'])",
    "onnxslim": "import sys, onnxslim\nonnxslim.slim(sys.argv[1], sys.argv[2])",
    "onnxsim": "import sys, onnx, onnxsim\nonnx.save(onnxsim.simplify(onnx.load(sys.argv[1]))[0], sys.argv[2])",
    "onnxoptimizer": "import sys, onnx, onnxoptimizer\nonnx.save(onnxoptimizer.optimize(onnx.load(sys.argv[1])), sys.argv[2])",
}


def foreign(path):
    """Operators of a file that the standard does not have."""
    model = onnx.load(str(path), load_external_data=False)
    found, todo = set(), [model.graph.node, *(function.node for function in model.functions)]
    while todo:
        for node in todo.pop():
            if node.domain not in ("", "ai.onnx"):
                found.add((node.domain, node.op_type))
            todo += [graph.node for a in node.attribute for graph in ([a.g] if a.type == a.GRAPH else a.graphs)]
    return found


def slowness(model, result, feeds):
    """How many times as long the result takes as its original, every optimization off."""
    sessions = {name: runs.session(path, runs.NONE) for name, path in (("original", model), ("ours", result))}
    calls = {name: lambda made=made: made.run(None, feeds) for name, made in sessions.items()}
    return timing.beside(calls, 6).over("ours").median


class Looked:
    """A model, and what it moves as it is."""

    def __init__(self, path, feeds):
        self.path, self.feeds = path, feeds
        self.original = runs.moved(path, runs.NONE, 2, feeds)
        self.expected = self.original.results
        self.noise = runs.apart(self.expected, runs.session(path, runs.BASIC, 2).run(None, feeds))
        self.limit = self.original.written

    def result(self, command, out):
        """What a tool made: nodes, bytes, seconds, and what is wrong with it."""
        status, said, seconds = runs.process([*command, self.path, *out])
        file = Path(out[-1])
        row = {"seconds": round(seconds, 3), "nodes": 0, "bytes": 0}
        if status or not file.exists():
            return row | {"wrong": said.splitlines()[-1][:200] if said else f"exit status {status}"}
        left = runs.moved(file, runs.NONE, 2, self.feeds)
        row |= {"nodes": left.nodes, "bytes": left.beside(self.original)}
        error = runs.apart(self.expected, left.results)
        return row | {"wrong": None if runs.is_near(error, self.noise) else f"results differ: {error[0]:.1e}, {error[1]:.1e}"}

    def fault(self, row, file, time):
        """What is wrong with ours beyond its results."""
        if row["wrong"]:
            return row["wrong"]
        known = foreign(self.path)
        onnx.checker.check_model(str(file), full_check=not known)
        if new := foreign(file) - known:
            return f"new operators: {sorted(new)}"
        if runs.ports(self.path) != runs.ports(file):
            return "inputs or outputs differ"
        if row["bytes"] > self.limit + runs.SLACK:
            return f"it moves {row['bytes']} bytes, more than {self.limit}"
        if time:
            row["times"] = round(slowness(self.path, file, self.feeds), 3)
            if row["times"] > SLOWER:
                return f"it takes {row['times']} of the time"
        return None


def row_of(looked, args, folder):
    row = {"original": {"nodes": looked.original.nodes, "bytes": looked.original.written}}
    for name in args.peers:
        row[name] = looked.result([sys.executable, "-c", PEERS[name]], [Path(folder, f"{name}.onnx")])
        if name == "ort_basic" and not row[name]["wrong"]:
            looked.limit = min(looked.limit, row[name]["bytes"])
    ours = Path(folder, "ours.onnx")
    row["ours"] = looked.result([args.bin, "optimize", "--target", "onnx", "-q"], ["-o", ours])
    row["ours"]["wrong"] = looked.fault(row["ours"], ours, args.time)
    return row


def main():
    parser = runs.options(argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter))
    parser.add_argument("--peers", default="ort_basic", help=", ".join(PEERS))
    parser.add_argument("--time", action="store_true")
    args = parser.parse_args()
    args.peers = [name for name in args.peers.split(",") if name]
    rows = {}
    print(runs.heading(args.bin), flush=True)
    for name, path, feeds in runs.models(args):
        with tempfile.TemporaryDirectory() as folder:
            rows[name] = row_of(Looked(path, feeds()), args, folder)
        cells = [f"{kind} {cell['nodes']:4} {cell['bytes'] / 1e6:7.2f} MB" + (f" FAILED {cell['wrong']}" if cell.get("wrong") else "")
                 for kind, cell in rows[name].items()]
        print(f"{name:26} {' | '.join(cells)}", flush=True)
    print(f"\n| {len(rows)} models | moves | MB per inference | seconds |\n|---|---|---|---|")
    for kind in ["original", *args.peers, "ours"]:
        fine = [row[kind] for row in rows.values() if not row[kind].get("wrong")]
        total = lambda what, of=fine: sum(cell.get(what, 0) for cell in of)  # noqa: E731
        print(f"| {kind} | {total('nodes')} | {total('bytes') / 1e6:.1f} | {total('seconds'):.1f} |")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    bad = sum(bool(row["ours"]["wrong"]) for row in rows.values())
    print(f"{len(rows) - bad} passed, {bad} failed")
    return 1 if bad or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
