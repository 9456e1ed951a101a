#!/usr/bin/env python3
"""Check that `relayout audit` finds in ONNX Runtime's own files the moves that `relayout optimize` takes away.

    python tools/audits.py [--corpus FOLDER] [--work FOLDER] [--bin target/release/relayout] [--target ort-cpu]
                             [--models a,b | --core]

The folder of the corpus, testdata/corpus, holds manifest.json, the models and hydrate.py, which fills in their weights. For each model ONNX Runtime saves what it
makes of the original and of our output at ORT_ENABLE_ALL, and the moves of both files (Transposes and reorders) are counted; their
difference is what we take away. The audit of the former must name at least as many that go. Printed per model: the moves of both
files, those that the audit counts, those of them that go, and what is left after `optimize` by its account. Exit status 1 where
fewer are named. A file that ONNX Runtime saves and then does not load itself has no audit; it is told, and counts neither way.
Needs numpy, onnx, onnxruntime.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx
import onnxruntime as ort

from on_load import CORPUS, WORK, hydrated, hydrater

MOVES = {"Transpose", "ReorderInput", "ReorderOutput"}


def session(path, **options):
    made = ort.SessionOptions()
    made.log_severity_level = 4
    for name, option in options.items():
        setattr(made, name, option)
    return ort.InferenceSession(str(path), made, providers=["CPUExecutionProvider"])


def saved(path, to):
    """What the runtime makes of a file at its highest level: how many moves it has."""
    level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    session(path, graph_optimization_level=level, optimized_model_filepath=str(to))
    count, todo = 0, [onnx.load(to, load_external_data=False).graph.node]
    while todo:
        for node in todo.pop():
            count += node.op_type in MOVES
            todo += [g.node for a in node.attribute for g in ([a.g] if a.type == a.GRAPH else a.graphs)]
    return count


def refused(path):
    """Whether the runtime does not load a file that it saved."""
    try:
        session(path, graph_optimization_level=ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
    except Exception:  # pylint: disable=broad-except  # the runtime's errors have no common class of their own
        return True
    return False


def check(args, path, folder):
    """A line on a model, and whether the audit named enough; None where the runtime does not load what it saved."""
    theirs, ours, output = (Path(folder) / name for name in ("theirs.onnx", "ours.onnx", "output.onnx"))
    before = saved(path, theirs)
    subprocess.run([args.bin, "optimize", path, "--target", args.target, "-o", output], check=True, capture_output=True)
    after = saved(output, ours)
    run = subprocess.run([args.bin, "audit", theirs, "--target", args.target, "--json"], capture_output=True, text=True)
    if run.returncode:
        return f"{before:4d} {after:4d}  {run.stderr.strip().splitlines()[-1]}", None if refused(theirs) else False
    audit = json.loads(run.stdout)[0]["audit"]
    goes = sum(move["fate"] in ("goes", "rewritten") for move in audit["list"])
    line = f"{before:4d} {after:4d}  audit {audit['moves']['nodes']:4d} go {goes:4d} left {audit['optimized']['nodes']:4d}"
    return line, goes >= before - after


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    parser.add_argument("--work", type=Path, default=WORK)
    parser.add_argument("--bin", default="target/release/relayout")
    parser.add_argument("--target", default="ort-cpu")
    parser.add_argument("--models")
    parser.add_argument("--core", action="store_true")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    entries = json.loads((args.corpus / "manifest.json").read_text())["models"]
    wanted = set(args.models.split(",")) if args.models else None
    entries = [e for e in entries if (e["name"] in wanted if wanted else e["core"] or not args.core)]
    module, outcomes = hydrater(args.corpus), []
    for entry in entries:
        with tempfile.TemporaryDirectory() as folder:
            line, fine = check(args, hydrated(module, args.corpus, entry, args.work), folder)
        told = {True: "", False: "   FEWER", None: "   NOT LOADED BY ITS OWN RUNTIME"}[fine]
        print(f"{entry['name']:28s} {line}{told}", flush=True)
        outcomes.append(fine)
    named, fewer = outcomes.count(True), outcomes.count(False)
    print(f"{named} named as many moves as are taken away, {fewer} fewer, {outcomes.count(None)} not loaded by ONNX Runtime")
    sys.exit(1 if fewer or not named else 0)


if __name__ == "__main__":
    main()
