#!/usr/bin/env python3
"""Counts what execution providers run of models as exported and of what target `ort-nhwc` makes of them, beside the predictions.

    tools/providers/setup
    python tools/providers/compare.py [--corpus FOLDER] [--work FOLDER] [--providers qnn,webgpu] [--models a,b | --core] [--json FILE]
                                      [--bin target/release/relayout] [--level ORT_ENABLE_ALL] [--timeout SECONDS] [--resume]
                                      [--rounds 5] [--allow com.microsoft] [--loaded]

The folder of the corpus, testdata/corpus, holds manifest.json, the models and hydrate.py, which fills in their weights. A line for each model and provider: device graphs,
nodes that fell back to the CPU, Transposes and the elements that they write, as exported and ours, both counted and predicted
(`relayout audit --provider`). A model fails if ours has more of any of these four, if it does not load where the original does, or, with
webgpu, if a result is farther than 1e-4 from the unoptimized CPU provider's (relative to the largest value) and farther than the
original's. What did not load as exported has nothing to compare. Exit status 1 if a model failed.
With `--rounds`, files that changed are also timed on webgpu, original and ours in turns with ours beside itself as a control. A
model is slower, and fails, if the upper end of the 95 % interval is under 1 (of fewer than six rounds: if all are).
`--allow` is that of the program, for providers that have ops of the domain.
`--loaded` counts what webgpu loads, without bodies, and runs nothing: a count takes seconds, and no results are compared.
`--timeout` is for one count: a file that takes longer is named with a note. The file of `--json` is written after each model. With
`--resume` the rows that it has are kept, and only the other models are counted.
Needs numpy, onnx, onnxruntime for the corpus; the providers have environments of their own, which tools/providers/setup makes.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import timing  # noqa: E402
from count import LEVELS, asked  # noqa: E402
from on_load import CORPUS, WORK, hydrated, hydrater  # noqa: E402

HOME = ROOT / ".relayout" / "providers"
DRIVER = "/usr/lib/chromium/vk_swiftshader_icd.json"
# Of results of WebGPU.
FAR = 1e-4
# As which version the environment of a provider is told to the program, where the newest one differs from it.
VERSIONS = {"webgpu": "webgpu@1.27"}


def predicted(program, model, provider, more):
    """Transposes and elements, of the file and of ours, and the option of the sessions that ours is for."""
    command = [program, "audit", str(model), "--provider", VERSIONS.get(provider, provider), "--json", *more]
    said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    moves = [{"transposes": said[k]["transposes"], "moved": said[k]["elements"]} for k in ("file", "optimized")]
    return moves, said.get("session")


def optimized(program, model, provider, folder, more):
    out = Path(folder, model.name)
    named = VERSIONS.get(provider, provider)
    command = [program, "optimize", str(model), "-o", str(out), "--target", "ort-nhwc", "--provider", named, "-q", *more]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return out


def fell(row):
    return sum(row.get("cpu", {}).values())


def failures(before, after):
    """What is worse than before."""
    if "note" in before:
        return []
    if "note" in after:
        return [f"does not load: {after['note']}"]
    wrong = [f"more {what}" for what in ("parts", "transposes", "moved") if after[what] > before[what]]
    wrong += ["more nodes on the CPU"] if fell(after) > fell(before) else []
    far = after.get("error", 0.0)
    wrong += [f"results differ by {far:.1e}"] if far > max(FAR, before.get("error", 0.0)) else []
    return wrong


def slower(race):
    return "ratio" in race and race["ratio"][2] < 1


def near(guess, there):
    return abs(guess["transposes"] - there["transposes"]) <= max(2, 0.1 * there["transposes"])


def sign(a, b):
    return (a["transposes"] > b["transposes"]) - (a["transposes"] < b["transposes"])


def line(name, provider, row):
    old, new = row["before"], row["after"]
    pair = lambda what: f"{old.get(what, 0):>10}{new.get(what, 0):>10}"
    guess = f"{row['predicted'][0]['transposes']:>6}{row['predicted'][1]['transposes']:>6}"
    parts = f"{old.get('parts', 0):>4}{new.get('parts', 0):>4}{fell(old):>5}{fell(new):>5}"
    count = f"{old.get('transposes', 0):>6}{new.get('transposes', 0):>6}"
    said = "; ".join(row["failed"]) or (f"as exported: {old['note'][:60]}" if "note" in old else "ok")
    race = row.get("race", {})
    times = "{1:.2f} ({0:.2f} to {2:.2f}), control {4:.2f}  ".format(*race["ratio"], *race["control"]) if "ratio" in race else ""
    return f"{name:28}{provider:8}{parts} {count} {guess} {pair('moved')}  {times}{said}"


def summary(rows):
    """What holds of all models of a provider that load."""
    loaded = [r for r in rows if "note" not in r["before"] and "note" not in r["after"]]
    total = lambda side, what: sum(r[side][what] for r in loaded)
    text = []
    for what in ("transposes", "moved"):
        old, new = total("before", what), total("after", what)
        text.append(f"{what} {old} -> {new} ({100 * new / max(1, old):.0f} %)")
    guesses = [(guess, r[side]) for r in loaded for guess, side in zip(r["predicted"], ("before", "after"), strict=True)]
    exact = sum(g["transposes"] == c["transposes"] for g, c in guesses)
    close = sum(near(g, c) for g, c in guesses)
    ordered = sum(sign(*r["predicted"]) == sign(r["before"], r["after"]) for r in loaded)
    most = max(1, len(guesses))
    text.append(f"predicted exactly {100 * exact / most:.0f} %, within max(2, 10 %) {100 * close / most:.0f} %")
    text.append(f"original and ours in the right order on {ordered} of {len(loaded)}")
    races = [r["race"]["ratio"] for r in rows if "ratio" in r.get("race", {})]
    if races:
        mean = math.exp(sum(math.log(median) for _, median, _ in races) / len(races))
        text.append(f"{len(races)} timed: original / ours {mean:.3f}, least {min(m for _, m, _ in races):.2f}")
    return ", ".join(text)


def looked_at(args, model, provider):
    python = HOME / provider / "bin" / "python"
    if not python.exists():
        sys.exit(f"compare.py: {python} is not there; run tools/providers/setup {provider}")
    count = lambda path, session=None: asked(python, provider, [path], args.level, args.timeout, session=session, only_loaded=args.loaded)
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        allowed = ["--allow", args.allow] if args.allow else []
        ours = optimized(args.bin, model, provider, folder, [*allowed, *(["--free-io"] if args.free_io else [])])
        guesses, session = predicted(args.bin, model, provider, allowed)
        # A file that gains nothing is as it was, and names no session.
        row = {"before": count(model), "after": count(ours, session), "predicted": guesses, "session": session}
        ran = "note" not in row["before"] and "note" not in row["after"]
        if args.rounds and provider == "webgpu" and ran and not timing.identical(model, ours):
            most = 3 * (args.rounds + 1) * args.timeout
            row["race"] = asked(python, provider, [model, ours], args.level, most, args.rounds)
    late = ["slower"] if slower(row.get("race", {})) else []
    return row | {"failed": failures(row["before"], row["after"]) + late}


def written(path, rows):
    """Writes the file whole or not at all: a run that is stopped leaves what `--resume` can read."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(rows, indent=1) + "\n")
    part.replace(path)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    parser.add_argument("--work", type=Path, default=WORK)
    parser.add_argument("--bin", default="target/release/relayout")
    parser.add_argument("--providers", default="qnn")
    parser.add_argument("--models")
    parser.add_argument("--core", action="store_true")
    parser.add_argument("--free-io", action="store_true")
    parser.add_argument("--allow")
    parser.add_argument("--level", choices=LEVELS, default="ORT_ENABLE_ALL")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--loaded", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--resume", action="store_true", help="keep the rows that the file of --json has")
    args = parser.parse_args()
    if args.loaded and (args.rounds or args.providers != "webgpu"):
        parser.error("--loaded is for webgpu, without --rounds")
    if args.resume and not args.json:
        parser.error("--resume needs --json")
    return parser, args


def main():
    parser, args = arguments()
    args.work = args.work.resolve()
    args.work.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("VK_ICD_FILENAMES", DRIVER)
    wanted = set(args.models.split(",")) if args.models else None
    manifest = json.loads((args.corpus / "manifest.json").read_text())["models"]
    unknown = (wanted or set()) - {entry["name"] for entry in manifest}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    module = hydrater(args.corpus)
    all_rows = json.loads(args.json.read_text()) if args.resume and args.json.exists() else {}
    print(f"{'model':28}{'provider':8}{'graphs':>8}{'on CPU':>10} {'transposes':>12} {'predicted':>12} {'elements':>20}")
    for entry in manifest:
        if (wanted is not None and entry["name"] not in wanted) or (args.core and not entry["core"]):
            continue
        for provider in args.providers.split(","):
            rows = all_rows.setdefault(provider, {})
            if entry["name"] not in rows:
                model = hydrated(module, args.corpus, entry, args.work)
                rows[entry["name"]] = looked_at(args, Path(model).resolve(), provider)
                if args.json:
                    written(args.json, all_rows)
            print(line(entry["name"], provider, rows[entry["name"]]), flush=True)
    for provider, rows in all_rows.items():
        print(f"{provider}: {summary(rows.values())}")
    bad = sum(bool(row["failed"]) for rows in all_rows.values() for row in rows.values())
    seen = sum(len(rows) for rows in all_rows.values())
    print(f"{seen - bad} passed, {bad} failed")
    return 1 if bad or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
