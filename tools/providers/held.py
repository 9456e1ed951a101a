#!/usr/bin/env python3
"""Holds predictions for the CUDA provider against what ran on an H100 (cuda_h100.json): networks as exported, float32, prefer_nhwc=1.

    python tools/providers/held.py [--models target/corpus] [--bin target/release/relayout]

A line for each network. Exit status 1 if one is farther than max(2, 10 %), or fewer than 6 are exact.
"""
import argparse
import json
import subprocess
import sys
from pathlib import Path

COUNTED = json.loads(Path(__file__).with_name("cuda_h100.json").read_text())


def predicted(program, model):
    command = [program, "audit", str(model), "--provider", "cuda", "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["file"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", type=Path, default=Path("target/corpus"))
    parser.add_argument("--bin", default="target/release/relayout")
    args = parser.parse_args()
    exact, far = 0, 0
    print(f"{COUNTED['device']}, {COUNTED['runtime']}, {COUNTED['date']}")
    for name, there in COUNTED["exported_prefer_nhwc"].items():
        guess = predicted(args.bin, args.models / f"{name}.onnx")
        off = abs(guess["transposes"] - there["transposes"])
        exact, far = exact + (off == 0), far + (off > max(2, 0.1 * there["transposes"]))
        written = guess["elements"] * 4 / 1e6
        print(f"{name:24} counted {there['transposes']:4} {there['mb']:6.2f} MB   predicted {guess['transposes']:4} {written:6.2f} MB")
    print(f"{exact} of {len(COUNTED['exported_prefer_nhwc'])} exact, {far} far")
    return 1 if far or exact < 6 else 0


if __name__ == "__main__":
    sys.exit(main())
