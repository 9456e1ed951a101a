#!/usr/bin/env python3
"""Time the Python package beside the program and beside `cp`, in turns (tools/timing.py).

    python tools/bench_python.py MODEL... [--bin target/release/relayout] [--rounds 15]

Run it with a Python that has the package, as a wheel of release, and onnx. With a warm cache and to fresh paths: the program; `cp` of the
file; `relayout.optimize(path, output)`; and `relayout.optimize(proto).model` of an `onnx.ModelProto` that is in memory. Printed: medians,
ratios with their intervals of 95 %, and the program beside itself. Then the time of `import relayout`, in processes of its own.
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
import timing


def program(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def measured(model, binary, rounds):
    """The times of all four."""
    proto = onnx.load(model)
    with tempfile.TemporaryDirectory(dir=model.parent) as folder:
        to = Path(folder) / "out.onnx"

        def to_a_path(work):
            start = time.perf_counter()
            work()
            taken = time.perf_counter() - start
            to.unlink()
            return taken

        runs = {
            "program": lambda: to_a_path(lambda: program(binary, "optimize", model, "-o", to)),
            "cp": lambda: to_a_path(lambda: program("cp", model, to)),
            "path": lambda: to_a_path(lambda: relayout.optimize(str(model), to)),
            "proto": lambda: relayout.optimize(proto).model,
        }
        return timing.beside(runs, rounds)


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
        found = measured(model, args.bin, args.rounds)
        cp, command, path, proto = (found.median(name) for name in ("cp", "program", "path", "proto"))
        print(f"{model.name}: cp {cp:.3f} s, program {command:.3f} s; the program beside itself {found.control()}")
        print(f"  from a path {path:.3f} s, {found.over('path')} of the program; from a ModelProto {proto:.3f} s, {found.over('proto', 'cp')} of cp")
    print(f"import {statistics.median(imported() for _ in range(args.rounds)) * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
