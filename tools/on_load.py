#!/usr/bin/env python3
"""Check that ONNX Runtime fuses in our output what it fuses in the original.

    python tools/on_load.py [--corpus FOLDER] [--work FOLDER] [--bin target/release/relayout] [--target onnx] [--runtime onnxruntime]
                              [--models a,b | --core | --files a.onnx b.onnx] [--drawn COUNT [--seed 0]]

The folder of the corpus, testdata/corpus, holds manifest.json, the models and hydrate.py, which fills in their weights. For each model
ONNX Runtime optimizes the original and our output, at ORT_ENABLE_EXTENDED and ORT_ENABLE_ALL, and saves what it made; every operator that
it put in (its own domains, LayerNormalization, Gelu) must occur at least as often in ours, or be inside of a larger one that our output
has more often: an attention is two products, and the last line but one says how many went into attentions. A normalization that was
written across channels, to have no moves around it, is none any more; the report says how many those are. Exit status 1 if one does not.
Of a target's own operators there may be fewer where it has joined some or runs in blocks what the runtime would have fused plain, so
targets other than `onnx` tell something of quantized models only. With --drawn so many random networks in quantized units are looked at as well
(suites/pyramids.py).

With `--target ort-cpu` it counts instead what convolutions take in on load: sums, and each activation. A kind is lost if they take it in
less often in our output, and more nodes of it run by themselves. Needs numpy, onnx, onnxruntime.
"""
import argparse
import collections
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx
import onnxruntime as ort

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools/suites"))
import pyramids  # noqa: E402

# Graphs without weights, and where they are kept with them.
CORPUS, WORK = ROOT / "testdata/corpus", ROOT / "target/corpus"
LEVELS = ["ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL"]
# Standard operators that are also what a fusion makes.
STANDARD = {"LayerNormalization", "Gelu", "SimplifiedLayerNormalization"}
UNREAD = {"session.disable_prepacking": "1", "session.optimized_model_external_initializers_file_name": "saved.data",
          "session.optimized_model_external_initializers_min_size_in_bytes": "1024"}
# What an operator that our output has more often than the original stands for, at most.
STANDS_FOR = {"MultiHeadAttention": {"FusedMatMul": 2}}
# The same of files that were decided for the runtime: what it fused plain in the original it runs in blocks in ours.
IN_BLOCKS = {"Conv": {"FusedConv": 1}}
# What a normalization is to the runtime, and the rewrite that writes one with other operators.
NORMS, ACROSS = ("LayerNormalization", "SkipLayerNormalization"), "normalize_across"
# What runs by itself where no convolution takes it in, by what a convolution calls it.
ALONE = {"sum": ("Add", "Sum")}
# Reorders and Transposes are moves, counted elsewhere.
MOVES = {"ReorderInput", "ReorderOutput"}


def hydrater(corpus):
    spec = importlib.util.spec_from_file_location("hydrate", corpus / "hydrate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hydrated(module, corpus, entry, work):
    path = work / f"{entry['name']}.onnx"
    if not path.exists():
        model = module.load(str(corpus / entry["file"]))
        module.hydrate(model)
        part = path.with_suffix(".part")
        module.save(model, str(part))
        part.rename(path)
    return path


def loaded(path, level, folder):
    """Every node of the model as the runtime runs it."""
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    saved = str(Path(folder) / "saved.onnx")
    options.optimized_model_filepath = saved
    # Only the graph is looked at: weights are not packed for kernels, and are written beside it.
    for key, told in UNREAD.items():
        options.add_session_config_entry(key, told)
    ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    nodes, todo = [], [onnx.load(saved, load_external_data=False).graph.node]
    while todo:
        for node in todo.pop():
            nodes.append(node)
            todo += [g.node for a in node.attribute for g in ([a.g] if a.type == a.GRAPH else a.graphs)]
    return nodes


def fused(nodes):
    """How often each operator occurs that the runtime may have put in."""
    own = lambda node: node.domain not in ("", "ai.onnx") or node.op_type in STANDARD
    return collections.Counter(node.op_type for node in nodes if node.op_type not in MOVES and own(node))


def taken_in(nodes):
    """How often convolutions took in a sum and each activation."""
    counts = collections.Counter()
    for node in nodes:
        if node.op_type in ("Conv", "FusedConv"):
            counts.update(a.s.decode() for a in node.attribute if a.name == "activation" and a.s)
            counts["sum"] += len(node.input) > 3 and bool(node.input[3])
    return counts


def let_go(before, after):
    """What convolutions took in of the original and not of ours, where more of it runs by itself: kind, how often in both."""
    taken, ours = taken_in(before), taken_in(after)
    alone = lambda nodes, kind: sum(node.op_type in ALONE.get(kind, (kind,)) for node in nodes)
    fewer = [kind for kind in taken if ours[kind] < taken[kind] and alone(after, kind) > alone(before, kind)]
    return [f"{kind} taken in {taken[kind]} -> {ours[kind]}, by itself {alone(before, kind)} -> {alone(after, kind)}" for kind in fewer]


def inside(before, after, stands_for):
    """How many of each operator of the original may be inside of larger ones that ours has more often."""
    room = collections.Counter()
    for larger, parts in stands_for.items():
        for op, n in parts.items():
            room[op] += n * max(0, after[larger] - before[larger])
    return room


def lost(before, after, across, stands_for=STANDS_FOR):
    """What the runtime put into the original and not into ours: operators, how often in both, and how many went into larger ones.

    So many normalizations were written across channels.
    """
    room = inside(before, after, stands_for)
    norms = sum(max(0, before[op] - after[op]) for op in NORMS)
    chosen = NORMS if norms <= across else ()
    return [(op, n, after[op], room[op]) for op, n in before.items() if after[op] + room[op] < n and op not in chosen]


def models(args):
    """Names and places of the models that are asked for."""
    if args.files:
        yield from ((path.stem, path) for path in args.files)
        return
    args.work.mkdir(parents=True, exist_ok=True)
    wanted = set(args.models.split(",")) if args.models else None
    module = hydrater(args.corpus)
    for entry in json.loads((args.corpus / "manifest.json").read_text())["models"]:
        if not (wanted and entry["name"] not in wanted) and not (args.core and not entry["core"]):
            yield entry["name"], hydrated(module, args.corpus, entry, args.work)


def drawn(args, folder):
    """Names and places of random networks."""
    for seed in range(args.seed, args.seed + args.drawn):
        path = Path(folder) / f"pyramid{seed}.onnx"
        onnx.save(pyramids.network(seed), path)
        yield path.stem, path


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    parser.add_argument("--work", type=Path, default=WORK)
    parser.add_argument("--bin", default="target/release/relayout")
    parser.add_argument("--target", default="onnx")
    parser.add_argument("--runtime", help="of `optimize`: onnxruntime")
    parser.add_argument("--models")
    parser.add_argument("--core", action="store_true")
    parser.add_argument("--files", type=Path, nargs="+", default=[])
    parser.add_argument("--drawn", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    stands_for = STANDS_FOR | (IN_BLOCKS if args.runtime else {})
    seen, bad, written = 0, 0, 0
    total, larger = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name, source in [*models(args), *drawn(args, folder)]:
            ours, report = Path(folder) / "ours.onnx", Path(folder) / "report.json"
            command = [args.bin, "optimize", source, "-o", ours, "--target", args.target, "--report", report]
            command += ["--runtime", args.runtime] if args.runtime else []
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            across = json.loads(report.read_text())["rewrites"].get(ACROSS, 0)
            written += across
            gone = []
            for level in LEVELS:
                originals, results = loaded(source, level, folder), loaded(ours, level, folder)
                before, after = fused(originals), fused(results)
                total += before
                room = inside(before, after, stands_for)
                for op, n in before.items():
                    larger[op] += min(max(0, n - after[op]), room[op])
                for op, n, m, most in lost(before, after, across, stands_for) if args.target != "ort-cpu" else ():
                    gone.append(f"{op} {n} -> {m}, {most} at most inside of others, at {level}")
            if args.target == "ort-cpu":
                gone += let_go(originals, results)
            seen += 1
            bad += bool(gone)
            if gone:
                print(f"{name}: {', '.join(sorted(gone))}", flush=True)
    print(f"{sum(total.values())} fused operators in the originals, both levels together")
    print(f"{sum(larger.values())} of them inside of larger operators in ours")
    print(f"{written} normalizations written across channels")
    print(f"{seen - bad} passed, {bad} failed")
    return 1 if bad or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
