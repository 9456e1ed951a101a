#!/usr/bin/env python3
"""Time `relayout optimize` on a model beside `cp` of the same file, in turns (tools/timing.py), and its peak memory.

    python tools/bench_copy.py MODEL... [--bin target/release/relayout] [--rounds 9] [--target onnx]
                                [--unproved allow]

Each turn copies or optimizes the file to a fresh path in its own folder, with a warm cache. Printed: median seconds of both, their
ratio with its interval of 95 %, the ratio of `cp` beside itself, peak memory over the file's size. Needs nothing but Python.
"""
import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

import timing


def timed(command):
    """Seconds and the peak of memory, in bytes, of a process."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed")
    return time.perf_counter() - start, usage.ru_maxrss * 1024


def measured(args, model):
    """The times of both, and the optimizer's peak of memory in bytes."""
    peaks = []
    with tempfile.TemporaryDirectory(dir=model.parent) as folder:
        to = Path(folder) / "out.onnx"

        def turn(*command):
            seconds, peak = timed(command)
            to.unlink()
            return seconds, peak

        def optimized():
            seconds, peak = turn(args.bin, "optimize", model, "-o", to, "--target", args.target, *args.more)
            peaks.append(peak)
            return seconds

        return timing.beside({"cp": lambda: turn("cp", model, to)[0], "ours": optimized}, args.rounds), max(peaks)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--bin", default="target/release/relayout")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--target", default="onnx")
    parser.add_argument("--unproved", help="as `optimize` takes it: with `allow` results are not checked")
    args = parser.parse_args()
    args.more = ["--unproved", args.unproved] if args.unproved else []
    for model in args.models:
        size, (found, peak) = model.stat().st_size, measured(args, model)
        print(
            f"{model.name:28} {size / 1e6:7.1f} MB  cp {found.median('cp'):.3f} s  optimize {found.median('ours'):.3f} s  "
            f"ratio {found.over('ours')}  cp beside itself {found.control()}  peak {peak / size:.2f} of the file"
        )


if __name__ == "__main__":
    main()
