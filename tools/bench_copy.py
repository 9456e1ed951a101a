#!/usr/bin/env python3
"""Time `relayout optimize` on a model beside `cp` of the same file, interleaved, and its peak memory.

    python tools/bench_copy.py MODEL... [--bin target/release/relayout] [--rounds 9] [--target onnx]

Each round copies and optimizes the file to fresh paths in its own folder, with a warm cache. Printed: median seconds of both,
the median of the per-round ratios, peak memory over the file's size. Needs nothing but Python.
"""
import argparse
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path


def timed(command):
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed")
    return time.perf_counter() - start, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--bin", default="target/release/relayout")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--target", default="onnx")
    args = parser.parse_args()
    for model in args.models:
        size, rows, peak = model.stat().st_size, [], 0
        with tempfile.TemporaryDirectory(dir=model.parent) as folder:
            for i in range(args.rounds + 1):
                copy, ours = Path(folder) / f"copy{i}", Path(folder) / f"ours{i}"
                a, _ = timed(["cp", model, copy])
                b, rss = timed([args.bin, "optimize", model, "-o", ours, "--target", args.target])
                if i:
                    rows.append((a, b))
                peak = max(peak, rss)
                copy.unlink()
                ours.unlink()
        cp, us = (statistics.median(r[k] for r in rows) for k in (0, 1))
        ratio = statistics.median(b / a for a, b in rows)
        print(f"{model.name:28} {size / 1e6:7.1f} MB  cp {cp:.3f} s  optimize {us:.3f} s  ratio {ratio:.2f}  peak {peak / size:.2f} of the file")


if __name__ == "__main__":
    main()
