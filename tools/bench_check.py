#!/usr/bin/env python3
"""Time `relayout optimize`, which checks its result, beside itself with `--unproved allow`, which does not, in turns (tools/timing.py).

    python tools/bench_check.py [MODEL...] [--bin target/release/relayout] [--rounds 3] [--targets onnx,ort-cpu,ort-nhwc,nhwc]

Without models it takes those of target/corpus. A round has two turns of each, with a warm cache. Printed for each target: the median and
the largest of the models' ratios, the same of turns without the check beside each other, and the largest ones with the seconds of both.
Needs nothing but Python.
"""
import argparse
import statistics
import subprocess
import tempfile
from pathlib import Path

import timing

SHOWN = 5


def measured(args, model, target, to):
    def optimized(unproved):
        subprocess.run(
            [args.bin, "optimize", model, "-o", to, "--force", "--quiet", "--target", target, "--unproved", unproved], check=True)

    return timing.beside({each: lambda each=each: optimized(each) for each in ("allow", "loud")}, args.rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--bin", default="target/release/relayout")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--targets", default="onnx,ort-cpu,ort-nhwc,nhwc")
    args = parser.parse_args()
    models = args.models or sorted(Path("target/corpus").glob("*.onnx"))
    if not models:
        raise SystemExit("tools/bench_check.py: no models in target/corpus; testdata/corpus/hydrate.py --all target/corpus makes them")
    for target in args.targets.split(","):
        with tempfile.TemporaryDirectory(dir=models[0].parent) as folder:
            found = {model.name: measured(args, model, target, Path(folder) / "out.onnx") for model in models}
        ratios = {name: one.over("loud").median for name, one in found.items()}
        controls = [one.control().median for one in found.values()]
        print(f"{target}: {len(models)} models, median {statistics.median(ratios.values()):.2f}, largest {max(ratios.values()):.2f}; without "
              f"the check beside itself {statistics.median(controls):.2f}, largest {max(controls):.2f}", flush=True)
        for name in sorted(ratios, key=ratios.get, reverse=True)[:SHOWN]:
            one = found[name]
            print(f"    {name:32} {one.median('allow'):.3f} s  {one.median('loud'):.3f} s  {one.over('loud')}", flush=True)


if __name__ == "__main__":
    main()
