#!/usr/bin/env python3
"""Does what target `onnx` writes run in every runtime, with the same results, and how fast beside the original?

    tools/runtimes/setup
    python tools/runtimes [--corpus FOLDER] [--work FOLDER] [--runtimes onnxruntime,openvino] [--models a,b | --core | --groups a,b]
                          [--bin target/release/relayout] [--seconds 6] [--longest SECONDS] [--no-times]
                          [--json FILE]

The folder of the corpus, testdata/corpus, holds manifest.json, the models and hydrate.py, which fills in their weights. Original and ours are loaded by each runtime in a
process each, one thread, and take turns (tools/timing.py); the ratio is the time of the original over that of ours, and the control is the
original beside itself. A file that comes out as it was has nothing to compare.

A model fails in a runtime if ours does not load where the original does, or if its results differ from the original's there by more than
1e-3 of the largest number, unless they are as near to ONNX Runtime's without optimizations as the original's. Models that a runtime
cannot load as exported are counted apart, and so are those whose original it computes wrong (by 1e-2) where ours differs from that. A model
is slower if the upper end of the interval of its ratio is below 1, also in a second run in new processes, whose figures then count: a
process may be slow for all its life, and web's may take twice as long. With --json, rows of an earlier run in that file are kept and not
measured again.

Prints a line for each model and runtime and, at the end, tables in Markdown: one with a row for each group of models. Exit status 1 if a model
failed. Needs numpy, onnx, onnxruntime; the other runtimes have environments of their own, which tools/runtimes/setup makes.
"""
import argparse
import contextlib
import json
import math
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT / "tools"), str(HERE)]

import numpy as np  # noqa: E402

import tensors  # noqa: E402
import timing  # noqa: E402
from on_load import CORPUS, WORK, hydrated, hydrater  # noqa: E402

HOME = ROOT / ".relayout" / "runtimes"
PYTHONS = ["openvino", "opencv", "ncnn", "mnn", "tvm", "iree", "nxrt", "ggml", "litert"]
PROGRAMS = ["tract", "rten"]
RUNTIMES = {"onnxruntime": [sys.executable, HERE / "worker.py", "onnxruntime"],
            # With the optimizing compiler from the first call on: it would come later, and not to both models at the same time.
            "web": ["node", "--no-liftoff", HERE / "web.mjs"]}
RUNTIMES |= {name: [ROOT / f"target/{name}/release/relayout-{name}"] for name in PROGRAMS}
RUNTIMES |= {name: [HOME / name / "bin/python", HERE / "worker.py", name] for name in PYTHONS}
TITLES = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "opencv": "OpenCV", "web": "onnxruntime-web, wasm", "tract": "tract", "rten": "rten",
          "ncnn": "ncnn", "mnn": "MNN", "tvm": "TVM", "iree": "IREE", "nxrt": "nxrt", "litert": "LiteRT",
          "ggml": "ONNX Runtime, ggml plugin"}
# Groups of models by the family that the manifest says.
GROUPS = {"convolutions": {"cnn", "mobile", "dense", "superres", "video", "functions", "dynamic", "fp16", "detection", "diffusion"},
          "TensorFlow": {"tf"}, "transformers": {"nlp", "hybrid", "transformer", "audio", "simplified"}, "quantized": {"quantized"},
          "control flow": {"control"}}
# Of a result, over the largest number.
FAR = 1e-3
# The same of the original: what is farther is no result to compare with.
WRONG = 1e-2
# A turn takes at least so long, so that small models are not lost in what a call costs.
TURN_S = 0.03
ROUNDS = (6, 15)


class Failed(Exception):
    """Why a runtime does not run a model."""


class Worker:
    """A process with a model in a runtime."""

    def __init__(self, command, model, inputs, results, wait):
        self.wait, self.said = wait, queue.Queue()
        self.process = subprocess.Popen([*map(str, command), str(model), str(inputs), str(results)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace",
                                        start_new_session=True, env=os.environ | {"RAYON_NUM_THREADS": "1"})
        self.listener = threading.Thread(target=self.listen, daemon=True)
        self.listener.start()
        self.times = 1
        try:
            answer = self.answer()
            if answer != "ready":
                raise Failed(answer.removeprefix("note "))
        except Failed:
            self.close()
            raise

    def listen(self):
        for line in self.process.stdout:
            if line.startswith("@"):
                self.said.put(line[1:].strip())
        self.said.put(None)

    def answer(self):
        try:
            answer = self.said.get(timeout=self.wait)
        except queue.Empty:
            raise Failed(f"no end after {self.wait:.0f} s") from None
        if answer is None:
            raise Failed(f"the process ends with {self.process.wait()}")
        return answer

    def run(self):
        """Seconds of an inference."""
        try:
            self.process.stdin.write(f"{self.times}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(f"the process ends with {self.process.wait()}") from None
        return float(self.answer())

    def close(self):
        # Converters that the worker started end with it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.listener.join()
        self.process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def far(found, right):
    """The largest distance of two numbers, over the largest. Results are held together in their order: not every runtime keeps names."""
    most = 0.0
    if len(found) != len(right):
        return math.inf
    by_name = set(found) == set(right)
    for at, (name, want) in enumerate(right.items()):
        have = found[name] if by_name else list(found.values())[at]
        if have.size != want.size:
            return math.inf
        if not want.size:
            continue
        have, want = have.astype(np.float64).ravel(), want.astype(np.float64).ravel()
        same = (have == want) | (np.isnan(have) & np.isnan(want))
        with np.errstate(invalid="ignore"):
            apart = np.where(same, 0.0, np.abs(have - want))
        largest = np.abs(want[np.isfinite(want)]).max(initial=1e-6)
        most = max(most, math.inf if np.isnan(apart).any() else float(apart.max() / largest))
    return most


def reference(model, inputs):
    """What ONNX Runtime computes without optimizations."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL, 4
    session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs), strict=True))


def timed(original, ours, args):
    """The ratio and the control; as many rounds as fit into the time, six at least. Nothing if an inference takes too long."""
    once = original.run()
    if once > args.longest:
        return {}
    original.times = ours.times = max(1, math.ceil(TURN_S / max(once, 1e-6)))
    rounds = min(ROUNDS[1], max(ROUNDS[0], int(args.seconds / (2 * timing.TURNS * once * original.times))))
    found = timing.beside({"original": original.run, "ours": ours.run}, rounds)
    ratio, control = found.over("ours").inverse(), found.control().inverse()
    spread = lambda r: [r.low, r.median, r.high]
    return {"rounds": rounds, "original_ms": 1e3 * found.median("original"), "ours_ms": 1e3 * found.median("ours"),
            "ratio": spread(ratio), "control": spread(control)}


def looked_at(command, model, ours, inputs, right, args):
    """One model in one runtime."""
    with tempfile.TemporaryDirectory(dir=args.work) as folder, contextlib.ExitStack() as open_ones:
        start = lambda path, results: open_ones.enter_context(Worker(command, path, inputs, Path(folder, results), args.timeout))
        read = lambda results: tensors.read(Path(folder, results))
        try:
            first = start(model, "original")
        except Failed as why:
            row = {"original": str(why)}
            with contextlib.suppress(Failed):
                start(ours, "ours")
                row["ours_error"] = far(read("ours"), right)
            return row
        row = {"original_error": far(read("original"), right)}
        try:
            second = start(ours, "ours")
            row |= {"ours_error": far(read("ours"), right), "difference": far(read("ours"), read("original"))}
            return row | (timed(first, second, args) if args.times else {})
        except Failed as why:
            return row | {"ours": str(why)}


def verdict(row):
    """`not loaded` by the runtime as exported, `wrong` as exported, `failed`, `slower` or `right`."""
    if "original" in row:
        return "not loaded"
    if "ours" in row:
        return "failed"
    if row["difference"] > FAR and row["ours_error"] > max(FAR, row["original_error"]):
        return "wrong" if row["original_error"] > WRONG else "failed"
    return "slower" if "ratio" in row and row["ratio"][2] < 1 else "right"


def again_if_slower(look):
    """What a call finds; where that is slower, what a second one does, in processes of its own."""
    row = look()
    return look() if verdict(row) == "slower" else row


def line(name, runtime, row):
    said = verdict(row)
    if said == "not loaded":
        why = f"as exported: {row['original'][:70]}" + ("; ours loads" if "ours_error" in row else "")
        return f"{name:28}{runtime:12} not loaded {why}"
    if "ours" in row:
        return f"{name:28}{runtime:12} failed     ours: {row['ours'][:90]}"
    times = f"as exported: {row['original_error']:.0e} from the right result, ours {row['ours_error']:.0e}" if said == "wrong" else ""
    if "ratio" in row:
        ratio, control = (timing.Ratio(*row[key]) for key in ("ratio", "control"))
        times = f"{row['original_ms']:9.2f} {row['ours_ms']:9.2f} ms  {ratio}  control {control}"
    return f"{name:28}{runtime:12} {said:10} {row['difference']:.0e} {times}"


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def tables(rows, groups, runtimes):
    """Markdown: a row for each runtime and group, and one for each model that is slower or failed."""
    yield "| runtime | models | changed | not loaded as exported | wrong as exported | results agree | timed | original / ours | control | slower |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for runtime in runtimes:
        for group in [*GROUPS, "all"]:
            of = [row[runtime] for name, row in rows.items() if group in ("all", groups[name]) and runtime in row]
            changed = [row for row in of if row is not None]
            if not changed:
                continue
            wrong = sum(verdict(row) == "wrong" for row in changed)
            loaded = [row for row in changed if verdict(row) not in ("not loaded", "wrong")]
            fine = [row for row in loaded if verdict(row) != "failed"]
            timed_ones = [row for row in fine if "ratio" in row]
            ratios, controls = ([row[key][1] for row in timed_ones] for key in ("ratio", "control"))
            spread = lambda found: f"{mean(found):.2f} ({min(found):.2f} to {max(found):.2f})" if found else ""
            slower = sum(verdict(row) == "slower" for row in timed_ones)
            times = [str(len(ratios)), spread(ratios), spread(controls), str(slower) if ratios else ""]
            more = sum("ours_error" in row for row in changed if "original" in row)
            missing = f"{len(changed) - len(loaded) - wrong}" + (f" ({more} load as ours)" if more else "")
            cells = [TITLES[runtime], group, f"{len(changed)} of {len(of)}", missing, str(wrong), f"{len(fine)} of {len(loaded)}", *times]
            yield f"| {' | '.join(cells)} |"
    for runtime in runtimes:
        for name, row in rows.items():
            if row.get(runtime) and verdict(row[runtime]) in ("slower", "failed"):
                yield line(name, runtime, row[runtime])


def group_of(entry):
    return next((group for group, families in GROUPS.items() if entry["family"] in families), "convolutions")


def chosen(args, parser):
    """Entries of the manifest that were asked for."""
    manifest = json.loads((args.corpus / "manifest.json").read_text())["models"]
    wanted, groups = (set(text.split(",")) if text else None for text in (args.models, args.groups))
    unknown = ((wanted or set()) - {entry["name"] for entry in manifest}) | ((groups or set()) - set(GROUPS))
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    return [entry for entry in manifest if (wanted is None or entry["name"] in wanted) and (not args.core or entry["core"])
            and (groups is None or group_of(entry) in groups)]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    parser.add_argument("--work", type=Path, default=WORK)
    parser.add_argument("--bin", type=Path, default=ROOT / "target/release/relayout")
    parser.add_argument("--runtimes", default="onnxruntime,openvino,web,tract")
    parser.add_argument("--models")
    parser.add_argument("--groups", help=", ".join(GROUPS))
    parser.add_argument("--core", action="store_true")
    parser.add_argument("--no-times", dest="times", action="store_false")
    parser.add_argument("--seconds", type=float, default=6, help="of a model in a runtime")
    parser.add_argument("--longest", type=float, default=math.inf, help="models whose inference takes so many seconds are not timed")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    args.runtimes = args.runtimes.split(",")
    for name in args.runtimes:
        if name not in RUNTIMES:
            parser.error(f"there is no runtime {name}; there are {', '.join(RUNTIMES)}")
        if name != "web" and not Path(RUNTIMES[name][0]).exists():
            sys.exit(f"runtimes: {name} is not installed; run tools/runtimes/setup {name}")
    args.work = args.work.resolve()
    args.work.mkdir(parents=True, exist_ok=True)
    return args, chosen(args, parser)


def measured(args, entry, module, old, kept):
    """A row: what was found in each runtime, None where the file comes out as it was. Calls `kept` whenever there is more."""
    model = hydrated(module, args.corpus, entry, args.work)
    row, todo = dict(old), [name for name in args.runtimes if name not in old]
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        ours, inputs = Path(folder, "ours.onnx"), Path(folder, "inputs")
        subprocess.run([args.bin, "optimize", model, "-o", ours, "--target", "onnx", "-q"], check=True, stdout=subprocess.DEVNULL)
        if timing.identical(model, ours):
            print(f"{entry['name']:28}unchanged", flush=True)
            return row | dict.fromkeys(todo)
        feeds = module.feeds(entry)
        tensors.write(inputs, feeds)
        right = reference(model, feeds)
        for runtime in todo:
            row[runtime] = again_if_slower(lambda name=runtime: looked_at(RUNTIMES[name], model, ours, inputs, right, args))
            print(line(entry["name"], runtime, row[runtime]), flush=True)
            kept(row)
    return row


def main():
    args, entries = arguments()
    rows = json.loads(args.json.read_text()) if args.json and args.json.exists() else {}
    module = hydrater(args.corpus)
    for entry in entries:
        def kept(row, name=entry["name"]):
            rows[name] = row
            if args.json:
                args.json.write_text(json.dumps(rows, indent=1) + "\n")

        if any(name not in rows.get(entry["name"], {}) for name in args.runtimes):
            kept(measured(args, entry, module, rows.get(entry["name"], {}), kept))
    looked = {entry["name"]: rows[entry["name"]] for entry in entries}
    print("\n".join(tables(looked, {entry["name"]: group_of(entry) for entry in entries}, args.runtimes)))
    verdicts = [verdict(row[name]) for row in looked.values() for name in args.runtimes if row.get(name)]
    bad = verdicts.count("failed")
    apart = verdicts.count("not loaded") + verdicts.count("wrong")
    print(f"{len(verdicts) - bad - apart} passed, {bad} failed")
    return 1 if bad or not verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
