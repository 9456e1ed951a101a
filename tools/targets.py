#!/usr/bin/env python3
"""Check what the targets of domain `relayout` and target `ort-nhwc` make of a corpus, in a stock ONNX Runtime, which inlines functions.

    python tools/targets.py [--corpus FOLDER] [--work FOLDER] [--bin target/release/relayout] [--targets nhwc,..] [--models a,b | --core]

The folder of the corpus, testdata/corpus, holds manifest.json, the models and hydrate.py, which fills in their weights. For each model and target:
  results    inputs and outputs are declared as in the original; loaded with every optimization off, and with all on, it
             computes what the original does with all off, for two seeds: as near as the runtime's own optimizations
             come to it, within rounding (rms 2e-5 or 4 times theirs, largest error 2e-4 or 8 times theirs; results of
             float16 are as coarse as a step of theirs: 1e-4 and 1e-3; four times that for `ort-nhwc`, because the CPU provider
             computes halves in float32 and rounds before each Transpose, which the original does not have)
  layouts    for `nhwc` every 2-D convolution is a call whose features lie in NHWC
  moves      for `nhwc` a network from one image of floats to classes, without products of activations and normalizations
             across channels, moves it in once and out once at most, and with --free-io never
  files      the same input twice gives the same bytes; the output again comes out unchanged; for another target it is
             refused, unless nothing was changed, with exit status 1 and a line that names both targets
Columns: 2-D convolutions in the layout of the target, convolutions with operands in ONNX's layout on one side (the first
ones of blocked targets), standard ones left; moves (of them standard Transposes); moves with --free-io where they were
looked at; largest distance by rms. Outputs are deleted when they were looked at. Exit status 1 if anything failed.
Needs numpy, onnx, onnxruntime.
"""
import argparse
import collections
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

from on_load import CORPUS, WORK, hydrated, hydrater

TARGETS = ["nhwc", "ort-nhwc", "cuda-tensorcore", "x86-avx512", "x86-avx2", "arm-neon", "cuda-dp4a"]
LEVELS = ["ORT_DISABLE_ALL", "ORT_ENABLE_ALL"]
SEEDS = (0, 1)
# Operand that is the filters.
CONVOLUTIONS = {"Conv": 1, "ConvTranspose": 1, "QLinearConv": 3, "ConvInteger": 1}
DOMAIN = "relayout"
NORMS = {"InstanceNormalization", "GroupNormalization", "LayerNormalization"}


def run(path, level, feeds):
    """Outputs for each of the feeds."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return [session.run(None, feed) for feed in feeds]


def distance(want, got):
    """The worst output's rms error over its rms, and largest error over its largest value; infinite where they do not compare."""
    worst = (0.0, 0.0)
    for a, b in zip(want, got, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            return np.inf, np.inf
        if a.dtype.kind in "OUS":
            if a.tolist() != b.tolist():
                return np.inf, np.inf
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        finite = np.isfinite(a)
        # What is not finite has to be the same: an infinity of the same sign, or no number.
        if (finite != np.isfinite(b)).any() or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
            return np.inf, np.inf
        if not finite.any():
            continue
        error, size = np.abs(a - b)[finite], np.abs(a[finite])
        scale = [float(f(size)) or 1.0 for f in (lambda v: np.sqrt(np.mean(v * v)), np.max)]
        here = float(np.sqrt(np.mean(error * error))) / scale[0], float(error.max()) / scale[1]
        worst = tuple(map(max, worst, here))
    return worst


def furthest(wanted, results):
    """The largest distance over all feeds."""
    pairs = [distance(want, got) for want, got in zip(wanted, results, strict=True)]
    return tuple(map(max, zip(*pairs)))


def ends(path):
    """Inputs and outputs that a caller sees: name, type and dims."""
    graph = onnx.load(str(path), load_external_data=False).graph
    inner = {t.name for t in graph.initializer}
    said = lambda v: (v.name, v.type.tensor_type.elem_type, [d.dim_value or d.dim_param for d in v.type.tensor_type.shape.dim])
    return [said(v) for v in graph.input if v.name not in inner], [said(v)[:2] for v in graph.output]


def graphs(graph):
    """A graph and its bodies, each with the ranks that are known in it."""
    todo, ranks = [graph], {}
    while todo:
        graph = todo.pop()
        for value in [*graph.input, *graph.output, *graph.value_info]:
            if value.type.tensor_type.HasField("shape"):
                ranks[value.name] = len(value.type.tensor_type.shape.dim)
        ranks.update({t.name: len(t.dims) for t in graph.initializer})
        for node in graph.node:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                ranks[node.output[0]] = len(node.attribute[0].t.dims)
            todo += [g.g for g in node.attribute if g.type == onnx.AttributeProto.GRAPH]
            todo += [g for a in node.attribute for g in a.graphs]
        yield graph, ranks


def spatial(node, ranks):
    """Spatial axes of a standard convolution; None if nothing says them."""
    for a in node.attribute:
        if a.name in ("kernel_shape", "strides", "dilations") and a.ints:
            return len(a.ints)
        if a.name == "pads" and a.ints:
            return len(a.ints) // 2
    known = [ranks[name] for name in (node.input[0], node.input[CONVOLUTIONS[node.op_type]], node.output[0]) if name in ranks]
    return known[0] - 2 if known else None


def called(op):
    """Operator, spatial axes and layouts of features in and out of a call such as `Conv2d_NCHW_W_OIHW16o_Y_NCHW16c`."""
    parts = op.split("_")
    name = re.fullmatch(r"([A-Za-z]+?)(?:(\d)d)?", parts[0])
    out = [parts[i + 1] for i, part in enumerate(parts[:-1]) if part in ("Y", "y") and i > 1]
    return name[1], int(name[2] or 0), parts[1], (out or [parts[1]])[0]


def census(path):
    """How many 2-D convolutions lie how, moves, standard Transposes among them, and calls of functions."""
    counts = collections.Counter()
    model = onnx.load(str(path), load_external_data=False)
    for graph, ranks in graphs(model.graph):
        for node in graph.node:
            if node.domain == DOMAIN:
                counts["calls"] += 1
                if node.op_type.split("_")[0] == "Relayout":
                    counts["moves"] += 1
                    continue
                op, axes, given, made = called(node.op_type)
                if op in CONVOLUTIONS and axes == 2:
                    plain = {given, made} & {"NCHW"}
                    counts["half" if plain else "blocked"] += 1
                    counts["nhwc"] += given == made == "NHWC"
            elif node.domain in ("", "ai.onnx"):
                counts["moves"] += node.op_type == "Transpose"
                counts["standard"] += node.op_type == "Transpose"
                if node.op_type in CONVOLUTIONS:
                    axes = spatial(node, ranks)
                    counts["left"] += axes == 2
                    counts["unknown"] += axes is None
    return counts


def is_pure(path, entry):
    """A convolutional network from an image to classes, of floats: convolutions, one input, no body, results of two axes, and nothing
    beside convolutions that asks for an order (products of activations, normalizations over several channels, Transposes of
    other ranks than an image's)."""
    model = onnx.load(str(path), load_external_data=False)
    nodes = list(model.graph.node)
    known = {t.name for t in model.graph.initializer} | {n.output[0] for n in nodes if n.op_type == "Constant"}
    bodies = any(a.type == onnx.AttributeProto.GRAPH for n in nodes for a in n.attribute)
    ranks = [len(a.ints) for n in nodes if n.op_type == "Transpose" for a in n.attribute]
    weighted = all(n.input[1] in known for n in nodes if n.op_type in ("MatMul", "Gemm"))
    bound = any("Linear" in n.op_type or n.op_type in NORMS for n in nodes)
    classes = all(len(o["shape"]) == 2 for o in entry["outputs"])
    image = [len(i["shape"]) for i in entry["inputs"]] == [4]
    return entry["convs"] > 0 and image and classes and weighted and not bound and not bodies and all(rank == 4 for rank in ranks)


class Optimizer:
    """The program, and what it writes to a folder."""

    def __init__(self, program, folder):
        self.program, self.folder = program, Path(folder)

    def run(self, source, out, target, *more):
        """The file; raises what the program says if it fails."""
        out = self.folder / out
        done = self.start(source, out, target, *more)
        if done.returncode:
            raise RuntimeError(f"optimize: exit status {done.returncode}: {done.stderr.strip()[-300:]}")
        return out

    def start(self, source, out, target, *more):
        command = [self.program, "optimize", source, "-o", out, "--target", target, *more]
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def same(a, b):
    return a.read_bytes() == b.read_bytes()


def is_made_for_a_target(path):
    """Whether the file says so; one without a change does not."""
    return any(p.key == "relayout.target" for p in onnx.load(str(path), load_external_data=False).metadata_props)


def files(optimizer, source, ours, target):
    """What is wrong with files that are written again."""
    wrong = []
    if not same(ours, optimizer.run(source, "twice.onnx", target)):
        wrong.append("the same input gives other bytes")
    if not same(ours, optimizer.run(ours, "again.onnx", target)):
        wrong.append("optimized again, the output changes")
    other, out = TARGETS[TARGETS.index(target) - 1], optimizer.folder / "other.onnx"
    done = optimizer.start(ours, out, other)
    said = done.stderr.strip().splitlines()
    if not is_made_for_a_target(ours):
        wrong += [f"as it was, it is refused for {other}: {said}"] if done.returncode else []
    elif done.returncode != 1 or out.exists() or len(said) != 1 or not all(f"`{name}`" in said[0] for name in (target, other)):
        wrong.append(f"for {other}: exit status {done.returncode}, {said}")
    out.unlink(missing_ok=True)
    return wrong


class Original:
    """A model, what it computes, and how near the runtime's own optimizations come to that."""

    def __init__(self, path, entry, feeds):
        self.path, self.entry, self.feeds = path, entry, feeds
        self.ends, self.pure = ends(path), is_pure(path, entry)
        self.results = run(path, "ORT_DISABLE_ALL", feeds)
        peer = furthest(self.results, run(path, "ORT_ENABLE_ALL", feeds))
        half = any(np.asarray(a).dtype == np.float16 for result in self.results for a in result)
        least = (1e-4, 1e-3) if half else (2e-5, 2e-4)
        self.half = half
        self.bound = max(least[0], 4 * peer[0]), max(least[1], 8 * peer[1])


def layouts(optimizer, original, target, counts, row):
    """What is wrong with the layouts of a file for `nhwc`."""
    wrong = []
    convolutions = counts["half"] + counts["blocked"]
    if counts["left"] or counts["unknown"] or counts["nhwc"] != convolutions:
        wrong.append(f"{counts['nhwc']} convolutions in NHWC, {convolutions - counts['nhwc']} in others, "
                     f"{counts['left']} standard, {counts['unknown']} of unknown rank")
    if original.pure:
        if counts["moves"] > 2:
            wrong.append(f"{counts['moves']} moves")
        free = optimizer.run(original.path, "free.onnx", target, "--free-io")
        row["free"] = census(free)["moves"]
        if row["free"]:
            wrong.append(f"{row['free']} moves with --free-io")
    return wrong


def checked(optimizer, original, target):
    """What the columns say, and what is wrong."""
    ours = optimizer.run(original.path, "ours.onnx", target)
    counts = census(ours)
    row, wrong = {"counts": counts, "distance": (0.0, 0.0)}, []
    if ends(ours) != original.ends:
        wrong.append("inputs or outputs differ")
    more = 4 if target == "ort-nhwc" and original.half else 1
    bound = [more * least for least in original.bound]
    for level in LEVELS:
        try:
            here = furthest(original.results, run(ours, level, original.feeds))
        except Exception as e:  # whatever a runtime says to a file that it does not take
            wrong.append(f"{level}: {str(e).splitlines()[0][:300]}")
            continue
        row["distance"] = tuple(map(max, row["distance"], here))
        if here[0] > bound[0] or here[1] > bound[1]:
            wrong.append(f"{level}: rms {here[0]:.1e}, largest {here[1]:.1e}; bounds {bound[0]:.1e}, {bound[1]:.1e}")
    if target == "nhwc":
        wrong += layouts(optimizer, original, target, counts, row)
    return row, wrong + files(optimizer, original.path, ours, target)


def line(name, target, row, wrong):
    c = row.get("counts", collections.Counter())
    free = row.get("free", "")
    return (f"{name:28}{target:16}{c['blocked']:7}{c['half']:6}{c['left']:6}{c['moves']:7} ({c['standard']}){free!s:>6}"
            f"{row.get('distance', (np.nan,))[0]:10.1e}  {'FAILED ' + '; '.join(wrong) if wrong else 'ok'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    parser.add_argument("--work", type=Path, default=WORK)
    parser.add_argument("--bin", default="target/release/relayout")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--models")
    parser.add_argument("--core", action="store_true")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    targets, wanted = args.targets.split(","), set(args.models.split(",")) if args.models else None
    unknown = set(targets) - set(TARGETS)
    manifest = json.loads((args.corpus / "manifest.json").read_text())["models"]
    unknown |= (wanted or set()) - {entry["name"] for entry in manifest}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    module, seen, bad, pure = hydrater(args.corpus), 0, 0, 0
    print(f"{'model':28}{'target':16}{'layout':>7}{'half':>6}{'left':>6}{'moves':>7}{'free':>10}{'rms':>10}", flush=True)
    for entry in manifest:
        if (wanted and entry["name"] not in wanted) or (args.core and not entry["core"]):
            continue
        source = hydrated(module, args.corpus, entry, args.work)
        original = Original(source, entry, [module.feeds(entry, seed) for seed in SEEDS])
        pure += original.pure
        for target in targets:
            with tempfile.TemporaryDirectory(dir=args.work) as folder:
                try:
                    row, wrong = checked(Optimizer(args.bin, folder), original, target)
                except RuntimeError as e:  # the program failed: nothing else can be looked at
                    row, wrong = {}, [str(e)]
            seen, bad = seen + 1, bad + bool(wrong)
            print(line(entry["name"], target, row, wrong), flush=True)
    print(f"{pure} convolutional networks among the models")
    print(f"{seen - bad} passed, {bad} failed")
    return 1 if bad or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
