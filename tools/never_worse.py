#!/usr/bin/env python3
"""Is a result of target `ort-cpu` or `onnx` slower than its model anywhere? Two whole runs at several numbers of threads.

    python tools/never_worse.py [--bin target/release/relayout] [--targets ort-cpu] [--threads 1,2,0] [--rounds 31] [--runs 2]
                                [--runtime onnxruntime] [--machine KIND] [--models a,b | --core] [--released] [--fetched FOLDER] [--files a.onnx ..]
                                [--tune] [--json FILE]

Models are those of the corpus, with --released also the timed ones of tools/suites/released.tsv, and files: those that
tools/suites/families.py makes lie in target/suites/families. Each is optimized for so many threads (0 is all cores of this machine), in
blocks of this host, and runs in the default session beside its model, in turns (tools/timing.py). With --tune it is tuned for these threads
first, for the seconds of --tune-seconds.

One run says little: what is slower with 95 % confidence in one of 60 comparisons may be so by chance. Each run has sessions of its own, and
what counts is what is slower with 95 % confidence in all of them. Prints a line for each model and run, geometric means, and the list; exit
status 1 if there is one.
"""
import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("bench", "tools/suites")]

import numpy as np  # noqa: E402
import onnx  # noqa: E402

import released  # noqa: E402
import runs  # noqa: E402
import timing  # noqa: E402
from layouts import mean  # noqa: E402

# Seconds that a turn takes at least, by calls that are repeated: in less an interrupt counts.
TURN = 0.01


def subjects(args):
    """Name, file and inputs of each model that is asked for."""
    for name, path, feeds in runs.models(args):
        yield name, path, feeds()
    if args.released:
        kept = args.fetched or runs.ROOT / "target/suites/released"
        kept.mkdir(parents=True, exist_ok=True)
        for row in released.rows():
            if row["timed"]:
                path = released.fetched(row, kept)
                yield row["name"], path, released.drawn(onnx.load(path), released.sizes_of(row)[0], row["kind"], 1)
    for path in args.files:
        yield path.stem, path, drawn(path)


def drawn(path):
    """Inputs of a file whose sizes are all known, or 1."""
    source = np.random.default_rng(1)
    types = {onnx.TensorProto.FLOAT: np.float32, onnx.TensorProto.FLOAT16: np.float16}
    inputs, _ = runs.ports(path)
    of = lambda shape: [dim if isinstance(dim, int) and dim > 0 else 1 for dim in shape]  # noqa: E731
    unknown = [name for name, kind, _ in inputs if kind not in types]
    if unknown:
        sys.exit(f"never_worse.py: {path}: input `{unknown[0]}` is of a type that it can't draw; it takes float32 and float16")
    return {name: source.standard_normal(of(shape)).astype(types[kind]) for name, kind, shape in inputs}


def compared(path, ours, feeds, threads, rounds):
    """How many times as long the model takes as the result, and as itself."""
    sessions = {name: runs.session(file, runs.ALL, threads) for name, file in (("model", path), ("ours", ours))}
    once = min(timing.timed(lambda: sessions["model"].run(None, feeds)) for _ in range(3))
    times = max(1, round(TURN / once))

    def turn(made):
        for _ in range(times):
            made.run(None, feeds)

    taken = timing.beside({name: lambda made=made: turn(made) for name, made in sessions.items()}, rounds)
    return taken.over("model", "ours"), taken.control()


def main():
    parser = runs.options(argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, conflict_handler="resolve"))
    parser.add_argument("--threads", default="1,2,0", help="numbers of threads, with commas; 0 is all cores")
    parser.add_argument("--targets", default="ort-cpu", help="with commas")
    parser.add_argument("--runtime", help="of `optimize`, for target onnx: onnxruntime")
    parser.add_argument("--machine", help="of `optimize`, for target ort-cpu")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--released", action="store_true")
    parser.add_argument("--fetched", type=Path, help="folder with the released models, if they are there already")
    parser.add_argument("--files", type=Path, nargs="+", default=[])
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--tune-seconds", type=int, default=60)
    args = parser.parse_args()
    print(runs.heading(args.bin), flush=True)
    counts = sorted({int(count) or os.cpu_count() for count in args.threads.split(",")})
    kinds = [(target, threads) for target in args.targets.split(",") for threads in counts]
    found = {kind: {} for kind in kinds}
    with tempfile.TemporaryDirectory() as folder:
        models = [(name, path, feeds) for name, path, feeds in subjects(args)]
        for turn in range(args.runs):
            for name, path, feeds in models:
                for target, threads in kinds:
                    ours = Path(folder) / f"{name}.{target}.{threads}.onnx"
                    if not ours.exists():
                        command = [args.bin, "optimize", path, "-o", ours, "--target", target, "--quiet"]
                        # Target `onnx` is one file for all, unless it is tuned.
                        priced = args.runtime and target == "onnx"
                        command += ["--threads", threads] if target == "ort-cpu" or args.tune or priced else []
                        command += ["--runtime", args.runtime] if priced else []
                        command += ["--machine", args.machine] if args.machine and target == "ort-cpu" else []
                        command += ["--tune", "--tune-seconds", args.tune_seconds] if args.tune else []
                        status, said, _ = runs.process(command, 3600)
                        if status:
                            sys.exit(f"never_worse.py: {name} for {target}: {said[-300:]}")
                    if timing.identical(path, ours):
                        continue
                    ratio, control = compared(path, ours, feeds, threads, args.rounds)
                    found[target, threads].setdefault(name, []).append(ratio)
                    print(f"{target}, threads {threads}, run {turn + 1}: {name} {ratio}, the model beside itself {control}", flush=True)
    slow = []
    for (target, threads), of in found.items():
        if of:
            means = [f"{mean([ratios[turn].median for ratios in of.values()]):.3f}" for turn in range(args.runs)]
            print(f"{target}, threads {threads}: geometric means {', '.join(means)} over {len(of)} results that are not the model")
        slow += [f"{name} for {target}, threads {threads}: {ratios[0]}" for name, ratios in of.items() if all(ratio.high < 1 for ratio in ratios)]
    print("\n".join(slow))
    print(f"{len(slow)} slower with 95 % confidence in each of {args.runs} runs")
    if args.json:
        text = {f"{target}, {threads}": {name: [vars(r) for r in ratios] for name, ratios in of.items()} for (target, threads), of in found.items()}
        args.json.write_text(json.dumps(text, indent=1))
    return bool(slow)


if __name__ == "__main__":
    sys.exit(main())
