#!/usr/bin/env python3
"""Times of released models in ONNX Runtime: as exported beside target `onnx` and target `ort-cpu`.

    python bench/timed.py [--rounds 61] [--only NAME,..] [--fetched FOLDER] [--targets onnx,ort-cpu]

Takes the models of tools/suites/released.tsv whose column `timed` says `moves`, where data is moved, and `control`, where hardly any is.
All load in the default session, ORT_ENABLE_ALL, with one thread, at the first size of their row. Both take turns (tools/timing.py).
Printed are how many times as long the original takes, with the interval that holds the median with 95 %, and the original beside itself.
Exit status 1 if a result is slower with that confidence.
"""
import argparse
import sys
import tempfile
from pathlib import Path

import onnx

import runs
import timing
from layouts import mean

sys.path.insert(0, str(runs.ROOT / "tools/suites"))

import released  # noqa: E402

# Seconds that a turn takes at least, by calls that are repeated: in less an interrupt counts.
TURN = 0.01


def repeated(made, feeds, times):
    def turn():
        for _ in range(times):
            made.run(None, feeds)
    return turn


def row_of(row, path, targets, args, folder):
    """Ratios for each target, of files that are not the original's; the control of the original."""
    feeds = released.drawn(onnx.load(path), released.sizes_of(row)[0], row["kind"], 1)
    files = {"original": path}
    for target in targets:
        files[target] = folder / f"{row['name']}.{target}.onnx"
        status, said, _ = runs.process([args.bin, "optimize", path, "-o", files[target], "--target", target, "--quiet", "--force"])
        if status:
            sys.exit(f"timed.py: {row['name']} for {target}: {said[-300:]}")
    files = {name: file for name, file in files.items() if name == "original" or not timing.identical(path, file)}
    sessions = {name: runs.session(file, runs.ALL) for name, file in files.items()}
    once = min(timing.timed(repeated(sessions["original"], feeds, 1)) for _ in range(3))
    times = max(1, round(TURN / once))
    taken = timing.beside({name: repeated(made, feeds, times) for name, made in sessions.items()}, args.rounds)
    return once, {name: taken.over("original", name) for name in files if name != "original"}, taken.control()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=runs.ROOT / "target/release/relayout")
    parser.add_argument("--rounds", type=int, default=61)
    parser.add_argument("--targets", default="onnx,ort-cpu")
    parser.add_argument("--only", default="")
    parser.add_argument("--fetched", type=Path, help="folder with the models, if they are there already")
    args = parser.parse_args()
    print(runs.heading(args.bin), flush=True)
    only, targets = [name for name in args.only.split(",") if name], args.targets.split(",")
    kept = args.fetched or runs.ROOT / "target/suites/released"
    kept.mkdir(parents=True, exist_ok=True)
    gained, slow = {target: [] for target in targets}, []
    print(f"| model | original, ms | {' | '.join(f'`{target}`' for target in targets)} | original beside itself |")
    print("|---" * (len(targets) + 3) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for row in released.rows():
            if not row["timed"] or (only and row["name"] not in only):
                continue
            once, ratios, control = row_of(row, released.fetched(row, kept), targets, args, Path(folder))
            cells = " | ".join(str(ratios.get(target, "the same file")) for target in targets)
            print(f"| {row['name']}{' (control)' * (row['timed'] == 'control')} | {once * 1e3:.2f} | {cells} | {control} |", flush=True)
            slow += [f"{row['name']} for {target}" for target, ratio in ratios.items() if ratio.high < 1]
            if row["timed"] == "moves":
                for target in targets:
                    gained[target].append(ratios[target].median if target in ratios else 1.0)
    for target, found in gained.items():
        if found:
            print(f"{target}: geometric mean {mean(found):.3f} over {len(found)} models in which data is moved")
    print(f"slower with 95 % confidence: {', '.join(slow) or 'none'}")
    return bool(slow)


if __name__ == "__main__":
    sys.exit(main())
