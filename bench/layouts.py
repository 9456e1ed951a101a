#!/usr/bin/env python3
"""What a target gains beside ONNX Runtime's own layout optimizer, and beside OpenVINO: moves, bytes, times, results.

    python bench/layouts.py [--target ort-cpu] [--threads 1] [--rounds 15] [--core | --models a,b] [--openvino] [--no-times]

The original runs at ORT_ENABLE_ALL, the default of the runtime; ours is loaded with the same default. Both take turns
(tools/timing.py), and the control is the original beside itself. Moves and bytes are those that really ran, from the runtime's profile,
with those that it adds on load.

A model passes if the results of ours, with and without optimizations and for two seeds, are as near to the original without
optimizations as those of ORT_ENABLE_ALL; if inputs and outputs are the same; and for target `ort-cpu`, if the runtime adds no reorder on
load, and ours moves no more bytes than it leaves or is 3 % faster. Exit status 1 if a model failed.
"""
import argparse
import json
import math
import sys

import runs
import timing

# What a model has to gain at least where more is moved.
FASTER = 1.03
# Rounds that are enough where time is short.
FEWEST = 5


def openvino(path, threads, feeds):
    """A call that runs a model in OpenVINO, and how many moves its graph has."""
    import openvino as ov

    asked = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": "1", "INFERENCE_PRECISION_HINT": "f32"}
    model = ov.Core().compile_model(str(path), "CPU", asked)
    request, tensors = model.create_infer_request(), [ov.Tensor(array) for array in feeds.values()]
    layers = [str(getattr(info["layerType"], "value", info["layerType"])) for op in model.get_runtime_model().get_ops()
              if "layerType" in (info := op.get_rt_info())]
    request.infer(tensors)
    return lambda: request.infer(tensors), sum("Reorder" in layer or "Transpose" in layer for layer in layers)


def fault(row, model, result, feeds, args):
    """Fills in what ours moves; what is wrong with it beyond its times."""
    of = lambda level: runs.moved(result, level, args.threads, feeds())  # noqa: E731
    on_load, as_written = of(runs.ALL), of(runs.NONE)
    row |= {"moves": on_load.nodes, "bytes": on_load.written}
    row["bytes"] += max(0, on_load.copied - row.pop("copied"))
    if runs.ports(model) != runs.ports(result):
        return "inputs or outputs differ"
    sessions = {name: runs.session(path, level, args.threads) for name, path, level in (
        ("exact", model, runs.NONE), ("runtime", model, runs.ALL), ("written", result, runs.NONE), ("loaded", result, runs.ALL))}
    worst = {name: (0.0, 0.0) for name in sessions}
    for seed in (0, 1):
        given = feeds(seed)
        exact = sessions["exact"].run(None, given)
        for name, made in sessions.items():
            worst[name] = tuple(map(max, worst[name], runs.apart(exact, made.run(None, given))))
    row["apart"] = max(worst["written"], worst["loaded"])
    if not all(runs.is_near(worst[name], worst["runtime"]) for name in ("written", "loaded")):
        return f"results differ: {row['apart'][0]:.1e}, {row['apart'][1]:.1e}"
    if args.target == "ort-cpu" and on_load.reorders > as_written.reorders:
        return f"the runtime adds {on_load.reorders - as_written.reorders} reorders on load"
    return None


def times(row, model, result, feeds, args):
    """Fills in how long each takes beside the others."""
    given = feeds()
    calls = {name: lambda made=runs.session(path, runs.ALL, args.threads): made.run(None, given)
             for name, path in (("original", model), ("ours", result))}
    if args.openvino:
        try:
            calls["openvino"], row["openvino_moves"] = openvino(model, args.threads, given)
        except Exception as error:  # noqa: BLE001  # whatever OpenVINO says of a model that it cannot read
            row["openvino"] = str(error).splitlines()[0][:200]
    once = sum(timing.timed(call) for call in calls.values()) * timing.TURNS
    rounds = max(FEWEST, min(args.rounds, int(args.budget / max(once, 1e-6))))
    taken = timing.beside(calls, rounds)
    row |= {"original_ms": taken.median("original") * 1e3, "ours_ms": taken.median("ours") * 1e3, "control": taken.control().median}
    gained = taken.over("original", "ours")
    row["gain"], row["interval"] = gained.median, [gained.low, gained.high]
    if "openvino" in calls:
        row["over_openvino"] = taken.over("openvino", "ours").median


def row_of(name, model, feeds, args):
    original = runs.moved(model, runs.ALL, args.threads, feeds())
    row = {"runtime_moves": original.nodes, "runtime_bytes": original.written, "copied": original.copied}
    result = args.work / f"{name}.{args.target}.onnx"
    result.unlink(missing_ok=True)
    status, said, row["optimize_s"] = runs.process([args.bin, "optimize", model, "-o", result, "--target", args.target, *args.extra.split()])
    if status or not result.exists():
        return row | {"wrong": said.splitlines()[-1][:300] if said else f"exit status {status}"}
    try:
        row["wrong"] = fault(row, model, result, feeds, args)
    except Exception as error:  # noqa: BLE001  # a file that the runtime refuses is a failure of ours
        return row | {"wrong": str(error).splitlines()[0][:300]}
    if args.times and not timing.identical(model, result):
        times(row, model, result, feeds, args)
    moves_more = row["bytes"] > row["runtime_bytes"] + runs.SLACK and row.get("gain", 0) < FASTER
    if not row["wrong"] and args.target == "ort-cpu" and moves_more:
        row["wrong"] = f"it moves {row['bytes']} bytes, more than {row['runtime_bytes']}"
    return row


def line(name, row):
    cells = [f"{name:28}", f"{row['runtime_moves']:5}, {row['runtime_bytes'] / 1e6:7.2f} MB"]
    if "moves" in row:
        cells.append(f"{row['moves']:5}, {row['bytes'] / 1e6:7.2f} MB")
    if "gain" in row:
        cells.append(f"{row['original_ms']:8.2f} ms {row['gain']:6.3f} ({row['interval'][0]:.3f} to {row['interval'][1]:.3f})")
    if "over_openvino" in row:
        cells.append(f"OpenVINO {row['openvino_moves']} moves {row['over_openvino']:.3f}")
    return " | ".join([*cells, f"FAILED {row['wrong']}" if row["wrong"] else "ok"])


def mean(numbers):
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def summary(rows):
    ran = [row for row in rows.values() if "moves" in row]
    total = lambda what: sum(row[what] for row in ran)  # noqa: E731
    yield f"\n| {len(ran)} models | moves | MB per inference |\n|---|---|---|"
    yield f"| ONNX Runtime, {runs.ALL} | {total('runtime_moves')} | {total('runtime_bytes') / 1e6:.1f} |"
    yield f"| relayout | {total('moves')} | {total('bytes') / 1e6:.1f} |\n"
    for title, what in (("gain over ONNX Runtime", "gain"), ("OpenVINO's time over ours", "over_openvino")):
        found = [row[what] for row in ran if what in row]
        if found:
            yield f"{title}: geometric mean {mean(found):.3f}, {min(found):.3f} to {max(found):.3f}, on {len(found)} models"
    slow = [name for name, row in rows.items() if row.get("interval", [9, 9])[1] < 1]
    controls = [row["control"] for row in ran if "control" in row]
    if controls:
        yield f"slower with 95 % confidence: {', '.join(slow) or 'none'}; the original beside itself: {min(controls):.3f} to {max(controls):.3f}"


def main():
    parser = runs.options(argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter))
    parser.add_argument("--target", default="ort-cpu")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--budget", type=float, default=6, help="seconds of timing for each model, about")
    parser.add_argument("--extra", default="", help="more options for the optimizer")
    parser.add_argument("--openvino", action="store_true", help="also beside OpenVINO, which has to be installed")
    parser.add_argument("--no-times", dest="times", action="store_false")
    args = parser.parse_args()
    rows = {}
    print(runs.heading(args.bin), flush=True)
    for name, model, feeds in runs.models(args):
        rows[name] = row_of(name, model, feeds, args)
        print(line(name, rows[name]), flush=True)
        if args.json:
            args.json.write_text(json.dumps(rows, indent=1) + "\n")
    print("\n".join(summary(rows)))
    bad = sum(bool(row["wrong"]) for row in rows.values())
    print(f"{len(rows) - bad} passed, {bad} failed")
    return 1 if bad or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
