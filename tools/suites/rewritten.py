#!/usr/bin/env python3
"""Models of the corpus as other tools leave them: optimized, executed, and what ONNX Runtime still has to put in blocks of the results.

    tools/suites/setup
    .relayout/nnsmith/bin/python tools/suites/rewritten.py [--corpus FOLDER] [--kinds saved,halves] [--models unet] [--core]
    .relayout/nnsmith/bin/python tools/suites/rewritten.py --time

`saved` is what ONNX Runtime writes at ORT_ENABLE_EXTENDED: convolutions that took in activations, and other ops of its own. `halves` is
what the converter of onnxconverter-common writes: halves between floats, with Casts at the ends and around ops such as Resize. A model
that such a tool does not write, or that does not load then, is named and left out; so is what is quantized, where each rounding is a step.

A result is right if it is that of the model in ONNX Runtime, with rewrites off or on, within rounding: four times what these two differ by,
if that is more than the rounding of halves or floats. For ort-cpu, ONNX Runtime must also find no reorder to add when it loads the result,
unless it adds as many to the model itself. A line for each model: reorders and Casts that run of it, as it is and as ours for ort-cpu. Last
line: `N passed, M failed`; exit status 1 if any failed.
"""
import collections
import json
import sys
import tempfile
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime as ort  # noqa: E402
from onnxconverter_common import float16  # noqa: E402

from judge import HALVES, OFF, ON, judge, parser, timed  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from on_load import CORPUS, hydrated, hydrater  # noqa: E402

KINDS = ("saved", "halves")


def saved(source, path, level=ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED):
    """What ONNX Runtime makes of a file."""
    options = ort.SessionOptions()
    options.graph_optimization_level, options.optimized_model_filepath = level, str(path)
    ort.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def halves(source, path):
    """The file in halves, fed and giving floats."""
    onnx.save(float16.convert_float_to_float16(onnx.load(source), keep_io_types=True), path)


def ops(graph):
    """How often each op occurs, in bodies too."""
    count = collections.Counter(node.op_type for node in graph.node)
    for node in graph.node:
        for attribute in node.attribute:
            for body in [attribute.g, *attribute.graphs]:
                count.update(ops(body))
    return count


def moved(path, level):
    """Reorders and Casts of what ONNX Runtime runs of a file."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.onnx"
        saved(path, made, level)
        count = ops(onnx.load(made, load_external_data=False).graph)
    return count["ReorderInput"] + count["ReorderOutput"], count["Cast"]


def rounding(off, on, least):
    """What results may differ by, in parts of the largest number: more than `least` where rewrites of the runtime differ by more."""
    floats = [(np.asarray(a), np.asarray(b)) for a, b in zip(off, on, strict=True) if np.asarray(a).dtype.kind == "f"]
    apart = [np.abs(a - b).max(initial=0) / np.abs(a).max(initial=1e-6) for a, b in floats if np.isfinite(a).all()]
    return max([least, *(4 * float(far) for far in apart)])


def held(judged, name, kind, path, feeds):
    """Holds a file against itself for each target."""
    wanted = judged.wanted(str(path), feeds)
    if wanted is None:
        judged.count["not run"] += 1
        print(f"{name}: not run, as ONNX Runtime does not load it", flush=True)
        return
    shown, least = "", rounding(*wanted, HALVES if kind == "halves" else 1e-4)
    for target in judged.targets:
        why = judged.found(path, feeds, wanted, target, least)
        if target == "ort-cpu" and not why:
            ours = path.with_suffix(".ours.onnx")
            why = judged.optimized(path, ours, target)
            if not why:
                before, stands, runs = moved(path, ON), moved(ours, OFF), moved(ours, ON)
                shown = "; reorders and Casts {} {}, ours {} {}".format(*before, *runs)
                if runs[0] > max(stands[0], before[0]):
                    why = f"ONNX Runtime adds {runs[0] - stands[0]} reorders on load"
        judged.note(name, target, why, feeds)
    print(f"{name}: held{shown}", flush=True)


def main():
    options = parser(__doc__, "rewritten")
    options.add_argument("--corpus", type=Path, default=CORPUS, help="folder with manifest.json, models and hydrate.py")
    options.add_argument("--kinds", default=",".join(KINDS))
    options.add_argument("--models", help="with commas; all by default")
    options.add_argument("--core", action="store_true", help="only the smaller selection")
    options.add_argument("--time", action="store_true", help="also time them")
    options.add_argument("--rounds", type=int, default=15)
    args = options.parse_args()
    kinds = args.kinds.split(",")
    if set(kinds) - set(KINDS):
        options.error(f"kinds are {', '.join(KINDS)}")
    args.targets = args.targets or "onnx,ort-cpu"
    judged, module, entries = judge(args), hydrater(args.corpus), []
    makes = {"saved": saved, "halves": halves}
    for entry in json.loads((args.corpus / "manifest.json").read_text())["models"]:
        if args.models and entry["name"] not in args.models.split(",") or args.core and not entry["core"]:
            continue
        source = hydrated(module, args.corpus, entry, judged.work)
        quantized = any("Quantize" in op for op in ops(onnx.load(source).graph))
        for kind in kinds:
            name = f"{entry['name']}.{kind}"
            path = judged.work / f"{name}.onnx"
            try:
                if quantized:
                    raise ValueError("it is quantized")
                makes[kind](source, path)
            except Exception as error:  # noqa: BLE001  # whatever that tool says
                judged.count["not run"] += 1
                print(f"{name}: not run: {' '.join(str(error).split())[:200]}", flush=True)
                continue
            held(judged, name, kind, path, module.feeds(entry))
            entries.append({**entry, "name": name, "file": path.name})
    status = timed(judged.work, entries, args) if args.time else 0
    return judged.end(args.json) or status


if __name__ == "__main__":
    sys.exit(main())
