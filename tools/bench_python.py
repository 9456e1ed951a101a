#!/usr/bin/env python3
"""Time the Python package beside the program and beside `cp`, interleaved.

    python tools/bench_python.py MODEL... [--bin target/release/relayout] [--rounds 15]

Run it with a Python that has the package, as a wheel of release, and onnx. Each round, with a warm cache and to fresh paths: `cp` of the
file; the program; `relayout.optimize(path, output)`; and `relayout.optimize(proto).model` of an `onnx.ModelProto` that is in memory.
Printed: medians, and medians of the ratios of each round. Then the time of `import relayout`, in processes of its own.
"""
import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import onnx

import relayout


def timed(work):
    start = time.perf_counter()
    kept = work()
    taken = time.perf_counter() - start
    del kept
    return taken


def program(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def rounds(model, binary, count):
    proto = onnx.load(model)
    with tempfile.TemporaryDirectory(dir=model.parent) as folder:
        for i in range(count + 1):
            out = [Path(folder) / f"{name}{i}.onnx" for name in ("copy", "program", "path")]
            row = (
                timed(lambda: program("cp", model, out[0])),
                timed(lambda: program(binary, "optimize", model, "-o", out[1])),
                timed(lambda: relayout.optimize(str(model), out[2])),
                timed(lambda: relayout.optimize(proto).model),
            )
            for path in out:
                path.unlink()
            if i:
                yield row


def imported():
    """Seconds that `import relayout` takes in a new process."""
    script = "import time; t = time.perf_counter(); import relayout; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--bin", default="target/release/relayout")
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    for model in args.models:
        rows = list(rounds(model, args.bin, args.rounds))
        cp, command, path, proto = (statistics.median(column) for column in zip(*rows))
        of_path = statistics.median(row[2] / row[1] for row in rows)
        of_proto = statistics.median(row[3] / row[0] for row in rows)
        print(f"{model.name}: cp {cp:.3f} s, program {command:.3f} s")
        print(f"  from a path {path:.3f} s, {of_path:.2f} of the program; from a ModelProto {proto:.3f} s, {of_proto:.2f} of cp")
    print(f"import {statistics.median(imported() for _ in range(args.rounds)) * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
