#!/usr/bin/env python3
"""What `relayout prove A B` decides, without a proof, about files that other tools make of a model.

    python -m venv VENV && VENV/bin/pip install onnxruntime==1.32.0 onnxslim==0.1.98 onnxsim==0.8.1 onnxscript==0.7.2 onnxoptimizer==0.4.2
    VENV/bin/python tools/suites/proves.py --bin target/release/relayout --work FOLDER MODEL... [--tools basic,onnxslim] [--tsv FILE]

Each tool runs in a process of its own, with its defaults, and makes `WORK/TOOL/MODEL.onnx`; a file that is there is not made again. A tool
that does not write a model, or takes longer than --patience, is counted as not made. A line for each pair: verdict, seconds, and where it
stops. With --tidy the file of a pair that is proved is taken away. With --cut what is not proved is written to WORK/TOOL/MODEL.pieces as two
small models, and the line has how many nodes they have. With --drawn the models are random networks (drawn), and with --shuffle every value and node of what a tool made gets another name
and place, so that names say nothing: the tool `itself` makes nothing else.

What is not proved is looked at once more: a file that onnx's checker refuses, of a model that it takes, is INVALID; one that computes
something else on zeros or on random inputs, in ONNX Runtime without rewrites, is DIFFERENT, with the largest difference. Last a table of the
tools: how many files, how many were PROVED, hold WITH LEMMAS, are DIFFERENT, INVALID and UNDECIDED, and the time.
"""
import argparse
import collections
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

LEVELS = {"basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED", "all": "ORT_ENABLE_ALL"}
TOOLS = (*LEVELS, "onnxslim", "onnxsim", "onnxscript", "onnxoptimizer")
# No tool: the model as it is, for --shuffle.
ITSELF = "itself"
PROVED, LEMMAS, DIFFERENT, INVALID, UNDECIDED = "PROVED", "WITH LEMMAS", "DIFFERENT", "INVALID", "UNDECIDED"
# Sizes of dims without one: the first with which a model runs.
SIZES = (1, 2, 32, 64, 512, 16000)
# A difference of this share of the largest number of an output is none of rounding.
FAR = 1e-2


def make(tool, source, path):
    """Runs a tool. This is what the process of its own does."""
    import onnx

    if tool in LEVELS:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, LEVELS[tool])
        options.optimized_model_filepath, options.log_severity_level = path, 4
        onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    elif tool == "onnxslim":
        import onnxslim

        onnxslim.slim(source, path)
    elif tool == "onnxsim":
        import onnxsim

        model, _ = onnxsim.simplify(onnx.load(source))
        onnx.save(model, path)
    elif tool == "onnxscript":
        import onnxscript.optimizer

        onnx.save(onnxscript.optimizer.optimize(onnx.load(source)), path)
    else:
        import onnxoptimizer

        onnx.save(onnxoptimizer.optimize(onnx.load(source)), path)


def made(tool, source, path, patience):
    """The file of a tool, or why there is none."""
    if path.exists():
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    if tool == ITSELF:
        shutil.copyfile(source, path)
        return None
    draft = path.with_suffix(".draft.onnx")
    command = [sys.executable, __file__, "--make", tool, str(source), str(draft)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience, check=False)
    except subprocess.TimeoutExpired:
        return f"it takes longer than {patience} s"
    if done.returncode or not draft.exists():
        return (done.stderr.strip().splitlines() or ["it writes nothing"])[-1][:200]
    draft.rename(path)
    return None


def shuffled(path, seed):
    """The file beside it in which values and nodes have other names, and nodes another order that runs."""
    import onnx

    model, rng = onnx.load(path), random.Random(seed)
    graph = model.graph
    ends = {value.name for value in [*graph.input, *graph.output]}
    names = [*(t.name for t in graph.initializer), *(t.values.name for t in graph.sparse_initializer), *(name for node in graph.node for name in node.output)]
    inner = [name for name in dict.fromkeys(names) if name and name not in ends]
    fresh = dict(zip(inner, rng.sample([f"s{at}" for at in range(len(inner))], len(inner))))
    renamed(graph, fresh)
    for tensor in graph.initializer:
        tensor.name = fresh.get(tensor.name, tensor.name)
    for tensor in graph.sparse_initializer:
        tensor.values.name = fresh.get(tensor.values.name, tensor.values.name)
    del graph.value_info[:]
    known = {"", *(value.name for value in graph.input), *(t.name for t in graph.initializer), *(t.values.name for t in graph.sparse_initializer)}
    waiting, order = list(graph.node), []
    while waiting:
        ready = [node for node in waiting if known.issuperset(reads(node))]
        node = rng.choice(ready)
        waiting.remove(node)
        order.append(node)
        known.update(node.output)
    for at, node in enumerate(order):
        node.name = f"n{at}"
    del graph.node[:]
    graph.node.extend(order)
    made = path.with_suffix(".shuffled.onnx")
    onnx.save(model, made)
    return made


def bodies(node):
    return [a.g for a in node.attribute if a.HasField("g")] + [g for a in node.attribute for g in a.graphs]


def reads(node):
    """What a node reads of the graph around it, and what its bodies do."""
    inner = set(node.input)
    for body in bodies(node):
        own = {value.name for value in body.input} | {t.name for t in body.initializer} | {o for n in body.node for o in n.output}
        inner |= {name for n in body.node for name in reads(n)} | {value.name for value in body.output}
        inner -= own
    return inner


def renamed(graph, fresh):
    """Writes other names of values into nodes, and into bodies, which see them too. Names of bodies stay."""
    for node in graph.node:
        node.input[:] = [fresh.get(name, name) for name in node.input]
        node.output[:] = [fresh.get(name, name) for name in node.output]
        for body in bodies(node):
            own = {value.name for value in body.input} | {t.name for t in body.initializer} | {o for n in body.node for o in n.output}
            seen = {name: new for name, new in fresh.items() if name not in own}
            renamed(body, seen)
            for value in body.output:
                value.name = seen.get(value.name, value.name)


def drawn(count, seed, folder):
    """Random networks, one for each seed that draws one."""
    import onnx
    from drawn import draw

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    while len(paths) < count:
        path = folder / f"{seed}.onnx"
        try:
            if not path.exists():
                onnx.save(draw.network(seed, "")[0], path)
            paths.append(path)
        except draw.Rejected:
            pass
        seed += 1
    return paths


def decided(binary, source, path, patience, cut=False):
    """The verdict about a pair, in one of five words, and what stands in the way."""
    pieces = path.with_suffix(".pieces")
    shutil.rmtree(pieces, ignore_errors=True)
    command = [binary, "prove", str(source), str(path), *(["--pieces", str(pieces)] if cut else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience, check=False)
    except subprocess.TimeoutExpired:
        return UNDECIDED, f"it takes longer than {patience} s"
    said = (done.stdout + done.stderr).strip()
    if said.startswith("PROVED"):
        return (LEMMAS if "LEMMAS" in said else PROVED), ""
    differs = said.startswith(DIFFERENT)
    if cut:
        said = f"{sizes(pieces)}; {said}"
    if differs:
        return DIFFERENT, said[:2000]
    fault = invalid(path)
    if fault and not invalid(source):
        return INVALID, fault
    apart = differs(source, path)
    return (DIFFERENT, f"{apart}; {said[:2000]}") if apart else (UNDECIDED, said[:2000])


def sizes(pieces):
    """How many nodes both pieces have, those of bodies too, without the Identities that name what both compute."""
    import onnx

    def nodes(graph):
        own = [node for node in graph.node if not any(name.startswith("given.") for name in node.input)]
        return sum(1 + sum(map(nodes, bodies(node))) for node in own)

    files = [pieces / f"{name}.onnx" for name in ("input", "result")]
    return "cut to {} and {} nodes".format(*(nodes(onnx.load(f).graph) for f in files)) if all(f.exists() for f in files) else "not cut"


def invalid(path):
    """Why a file is no valid model, in one line."""
    import onnx

    try:
        onnx.checker.check_model(str(path))
    except onnx.checker.ValidationError as error:
        return str(error).strip().splitlines()[0]
    return None


def differs(source, path):
    """How far two files are apart on zeros or on random inputs, if that is more than rounding; none if one of them does not run."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        sessions = [onnxruntime.InferenceSession(str(at), options, providers=["CPUExecutionProvider"]) for at in (source, path)]
    except Exception:  # noqa: BLE001 - what does not load computes nothing
        return None
    types = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16, "tensor(int64)": np.int64, "tensor(int32)": np.int32}
    if any(port.type not in types for port in sessions[0].get_inputs()):
        return None
    for size in SIZES:
        shapes = {p.name: [dim if isinstance(dim, int) and dim > 0 else size for dim in p.shape] for p in sessions[0].get_inputs()}
        found = None
        for kind in ("zeros", "random inputs"):
            rng = np.random.default_rng(1)
            draw = np.zeros if kind == "zeros" else rng.standard_normal
            feeds = {p.name: np.asarray(draw(shapes[p.name]), types[p.type]) for p in sessions[0].get_inputs()}
            try:
                results = [session.run(None, feeds) for session in sessions]
            except Exception:  # noqa: BLE001 - another size may fit
                break
            found = found or apart(*results, kind)
        else:
            return found
    return None


def apart(ours, theirs, kind):
    """The first output that differs by more than rounding, and by how much."""
    import numpy as np

    for at, (a, b) in enumerate(zip(ours, theirs)):
        if a.dtype.kind != "f" or a.shape != b.shape or not a.size:
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        odd = int((np.isnan(a) != np.isnan(b)).sum())
        far = float(np.nanmax(np.abs(a - b), initial=0))
        if odd or far > FAR * max(1.0, float(np.nanmax(np.abs(a), initial=0))):
            return f"on {kind} output {at} differs by {far:.2g}" + (f", and {odd} elements are no number in one alone" if odd else "")
    return None


def table(rows, out):
    """Counts for each tool."""
    heads = [PROVED, LEMMAS, DIFFERENT, INVALID, UNDECIDED]
    print("tool", "files", *heads, "decided", "seconds", "longest", sep="\t", file=out)
    for tool in dict.fromkeys(row[0] for row in rows):
        mine = [row for row in rows if row[0] == tool]
        count = collections.Counter(row[2] for row in mine)
        files = sum(count[head] for head in heads)
        share = f"{100 * (files - count[UNDECIDED]) / max(files, 1):.0f}%"
        times = [row[3] for row in mine]
        print(tool, files, *(count[h] for h in heads), share, f"{sum(times):.0f}", f"{max(times):.1f}", sep="\t", file=out)


def main():
    if sys.argv[1:2] == ["--make"]:
        return make(*sys.argv[2:])
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("models", nargs="*", type=Path)
    options.add_argument("--bin", default="target/release/relayout")
    options.add_argument("--work", type=Path, required=True)
    options.add_argument("--tools", default=",".join(TOOLS))
    options.add_argument("--patience", type=int, default=300, help="seconds for a tool, and for a verdict")
    options.add_argument("--drawn", type=int, default=0, help="also so many random networks")
    options.add_argument("--seed", type=int, default=0, help="of the first random network")
    options.add_argument("--shuffle", action="store_true", help="names and places of what a tool made are drawn")
    options.add_argument("--tidy", action="store_true", help="takes away what a tool made where it is proved")
    options.add_argument("--cut", action="store_true", help="writes what is not proved as two small models")
    options.add_argument("--tsv", type=Path, help="also writes each pair there")
    args = options.parse_args()
    rows = []
    models = args.models + drawn(args.drawn, args.seed, args.work / "drawn")
    for tool in args.tools.split(","):
        for model in models:
            path = args.work / tool / model.name
            why = made(tool, model, path, args.patience)
            if why:
                print(f"{tool} {model.stem}: not made: {why}", flush=True)
                continue
            path = shuffled(path, model.stem) if args.shuffle else path
            begin = time.monotonic()
            word, why = decided(args.bin, model, path, args.patience, args.cut)
            rows.append((tool, model.stem, word, time.monotonic() - begin, " ".join(why.split())))
            if args.tidy and word in (PROVED, LEMMAS):
                path.unlink()
            print(f"{tool} {model.stem}: {word} {rows[-1][3]:.1f} s {rows[-1][4][:300]}", flush=True)
    if args.tsv:
        args.tsv.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    table(rows, sys.stdout)
    return None


if __name__ == "__main__":
    sys.exit(main())
