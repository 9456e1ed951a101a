#!/usr/bin/env python3
"""Verdicts about every result of a corpus, how long checking takes beside optimizing, and how large proofs are.

    python tools/proofs.py --bin target/release/relayout [--corpus CORPUS] [--work DIR] [--targets onnx,nhwc] [--numerics exact]

CORPUS, testdata/corpus by default, holds manifest.json, the graphs and hydrate.py, which fills in their weights; DIR keeps the filled models between runs. Each
model is optimized and its result is proved, one right after the other, --runs times; times are medians of processor time. A proof may
have 5 % of the bytes of the result, or 2 MB, and checking may take three times as long as optimizing.

Exit status 1 if a result is refused, a proof is too large, or a check takes too long.
"""

import argparse
import collections
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

import digests

SHARE, LEAST, TIMES = 0.05, 2_000_000, 3.0


def timed(command):
    """Seconds of all processors: those of a clock depend on what else the machine does."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, ran


def measured(binary, checker, path, target, more, runs, folder):
    """Seconds of both, the verdict in words, and the bytes of the proof and of the result."""
    result, proof = folder / "result.onnx", folder / "proof.json"
    optimizing, checking, said = [], [], ""
    for _ in range(runs):
        call = [binary, "optimize", path, "--target", target, "-o", result, "--proof", proof, *more]
        took, ran = timed(call)
        if ran.returncode != 0:
            raise SystemExit(f"{path.stem} for {target}: {ran.stderr.strip()}")
        optimizing.append(took)
        took, ran = timed([checker, "prove", path, result, "--proof", proof])
        checking.append(took)
        said = (ran.stdout + ran.stderr).strip()
    sizes = proof.stat().st_size, sum(f.stat().st_size for f in folder.glob("result.onnx*"))
    for written in folder.iterdir():
        written.unlink()
    return statistics.median(optimizing), statistics.median(checking), said, *sizes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="the program")
    parser.add_argument("--checker", type=pathlib.Path, help="the program that proves, if it is another one")
    parser.add_argument("--corpus", type=pathlib.Path, default=pathlib.Path("testdata/corpus"))
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("target/corpus"), help="where the filled models are")
    parser.add_argument("--targets", default="onnx,nhwc,ort-nhwc,ort-cpu")
    parser.add_argument("--numerics", default="default", help="as `optimize` takes it")
    parser.add_argument("--only", nargs="*", help="these models")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("-o", "--output", type=pathlib.Path, help="a JSON file for all figures")
    a = parser.parse_args()
    more = [] if a.numerics == "default" else ["--numerics", a.numerics]
    wrong, rows = False, []
    a.work.mkdir(parents=True, exist_ok=True)
    models = list(digests.models(a.corpus, a.work, a.only, False))
    for target in a.targets.split(","):
        verdicts, ratios, shares, largest = collections.Counter(), [], [], 0
        for name, path in models:
            with tempfile.TemporaryDirectory() as folder:
                optimize, check, said, proof, result = measured(a.bin, a.checker or a.bin, path, target, more, a.runs, pathlib.Path(folder))
            kind = "NOT PROVED" if "NOT PROVED" in said else said.split(":")[0].split(" (")[0].replace(" FOR SIZES", "")
            bad = not kind.startswith("PROVED") or proof > max(SHARE * result, LEAST) or check > TIMES * optimize
            times = {"optimize_s": optimize, "check_s": check}
            rows.append({"model": name, "target": target, "said": said, "proof": proof, "result": result, **times})
            verdicts[kind] += 1
            ratios.append(check / optimize)
            shares.append(proof / result)
            largest, wrong = max(largest, proof), wrong or bad
            if bad:
                ratio = f"{check / optimize:.2f} of the time"
                print(f"    {name}: {ratio}, {proof} of {result} bytes: {said[:300]}", flush=True)
        mine = [row for row in rows if row["target"] == target]
        total = sum(row["check_s"] for row in mine) / sum(row["optimize_s"] for row in mine)
        found = ", ".join(f"{count} {kind}" for kind, count in sorted(verdicts.items()))
        print(
            f"{target}: {found}; checking takes {statistics.median(ratios):.2f} of the time of optimizing (median), at most"
            f" {max(ratios):.2f}, and {total:.2f} for all together; the largest proof has {largest / 1000:.0f} kB,"
            f" {100 * max(shares):.2f} % of its result at most",
            flush=True,
        )
    if a.output:
        a.output.write_text(json.dumps(rows, indent=1) + "\n")
    sys.exit(wrong)


if __name__ == "__main__":
    main()
