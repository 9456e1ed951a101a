"""What the suites share: a model between Transposes, a model in ONNX Runtime, and what each target makes of it.

A result is right if it is the one of the model with the runtime's rewrites off or with them on: rewrites that round otherwise are
not ours. Integers, texts and shapes have to be equal, floats within rounding, NaNs in the same places. Two models run in the reference
of the onnx package: one for which ONNX Runtime has no kernels, as for opset 6, and then its results as well; and one with halves, as
ONNX Runtime leaves out some of their rounding (docs/runtime-bugs.md), which an integer behind them tells.

A model is judged in a process of its own, as ONNX Runtime crashes on some. One on which it crashes as it is counts as such, and never
as passed.
"""
import argparse
import collections
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper
from onnx.reference import ReferenceEvaluator

ROOT = Path(__file__).resolve().parent.parent.parent
OFF, ON = ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_ALL
ort.set_default_logger_severity(4)
# Of the largest number of a result, and ten times that of each number.
HALVES = 2e-3
ROUNDING = {np.dtype(np.float16): HALVES}
LIMIT_S = 120


def session(model, level):
    """A file or bytes, loaded in ONNX Runtime."""
    options = ort.SessionOptions()
    options.graph_optimization_level, options.intra_op_num_threads = level, 1
    # Else it makes bytes of what it multiplies by dequantized weights, where nothing turns these (docs/runtime-bugs.md).
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run(model, feeds, level):
    """Outputs of a file or of bytes in ONNX Runtime."""
    return session(model, level).run(None, feeds)


def run_with_rewrites(path, feeds):
    return run(path, feeds, ON)


def run_in_reference(path, feeds):
    """Outputs of a file in the reference of the onnx package."""
    return ReferenceEvaluator(path).run(None, feeds)


def rounding(model):
    """The least rounding of a model's floats: that of halves where it has some, as ONNX Runtime may keep more of their digits."""
    graph = model.graph
    values = [*graph.input, *graph.output, *graph.value_info]
    kinds = {value.type.tensor_type.elem_type for value in values} | {tensor.data_type for tensor in graph.initializer}
    kinds |= {a.i for node in graph.node if node.op_type == "Cast" for a in node.attribute if a.name == "to"}
    return HALVES if onnx.TensorProto.FLOAT16 in kinds else 1e-5


def same(a, b, least=1e-5):
    """Whether two results are equal within rounding."""
    if isinstance(a, list) or a is None or b is None:
        alike = isinstance(a, list) and isinstance(b, list) and len(a) == len(b)
        return all(same(x, y, least) for x, y in zip(a, b, strict=True)) if alike else a is b
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind not in "fc":
        return bool((a == b).all())
    step = max(least, ROUNDING.get(a.dtype, least))
    size = np.abs(np.where(np.isfinite(a), a, 0)).max(initial=1e-6)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    return bool(np.allclose(a.astype(wide), b.astype(wide), rtol=10 * step, atol=step * size, equal_nan=True))


def shaped(value):
    """The dims of a tensor that has two or more; None for everything else."""
    tensor = value.type.tensor_type
    return tensor.shape.dim if value.type.HasField("tensor_type") and len(tensor.shape.dim) > 1 else None


def turned(dims, rng):
    """A random order of axes, after it was applied to the dims."""
    order = list(range(len(dims)))
    rng.shuffle(order)
    new = [onnx.TensorShapeProto.Dimension.FromString(dims[k].SerializeToString()) for k in order]
    del dims[:]
    dims.extend(new)
    return order


def wrapped(model, feeds, rng):
    """The model with inputs in other orders of axes, which Transposes put right, and results turned by more; and its feeds."""
    model, feeds = onnx.ModelProto.FromString(model.SerializeToString()), dict(feeds)
    graph, head, tail, now = model.graph, [], [], {}
    constants = {tensor.name for tensor in graph.initializer}
    for value in graph.input:
        if shaped(value) is None or value.name in constants or value.name not in feeds:
            continue
        order, now[value.name] = turned(shaped(value), rng), f"{value.name}__put"
        head.append(helper.make_node("Transpose", [value.name], [now[value.name]], perm=list(np.argsort(order))))
        feeds[value.name] = np.ascontiguousarray(np.transpose(feeds[value.name], order))
    for node in graph.node:
        node.input[:] = [now.get(name, name) for name in node.input]
    for value in graph.output:
        if shaped(value) is None or value.name in now:
            continue
        tail.append(helper.make_node("Transpose", [value.name], [f"{value.name}__turned"], perm=turned(shaped(value), rng)))
        value.name = tail[-1].output[0]
    nodes = [*head, *graph.node, *tail]
    del graph.node[:]
    graph.node.extend(nodes)
    return (model, feeds) if head or tail else (None, None)


def apart(work):
    """What a function without arguments gives in a process of its own, a fork of this one; None if a signal ended it."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with os.fdopen(writes, "wb") as out:
                pickle.dump(work(), out)
            status = 0
        except BaseException:  # noqa: BLE001  # this process must not go on as a second one of its parent
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    os.close(writes)
    with os.fdopen(reads, "rb") as found:
        data = found.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code > 0:
        raise RuntimeError("judging a model failed; the reason stands above")
    return pickle.loads(data) if code == 0 else None


class Judge:
    """Optimizes models for targets and holds the results against ONNX Runtime."""

    def __init__(self, binary, targets, work, jobs=1):
        self.binary, self.targets, self.work = Path(binary).resolve(), targets, Path(work)
        self.work.mkdir(parents=True, exist_ok=True)
        self.jobs, self.count, self.failures = jobs, collections.Counter(), []

    def optimized(self, source, result, target):
        """None, or why the program did not write a result."""
        command = [self.binary, "optimize", source, "-o", result, "--target", *target.split()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
        return f"exit {done.returncode}: {done.stderr.strip()[:300]}" if done.returncode else None

    def found(self, source, feeds, wanted, target, least, runs=run_with_rewrites):
        """None if a target's result is right where it runs by `runs`, else why not."""
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            result = Path(folder) / "out.onnx"
            why = self.optimized(source, result, target)
            if why:
                return why
            try:
                got = runs(str(result), feeds)
            except Exception as error:  # noqa: BLE001  # whatever the runtime says
                return "does not run: " + str(error).replace("\n", " ")[:300]
        return None if any(same(want, got, least) for want in wanted) else "another result"

    def wanted(self, model, feeds):
        """Results of the model itself: rewrites off and on; None if ONNX Runtime does not run it."""
        try:
            return [run(model, feeds, OFF), run(model, feeds, ON)]
        except Exception:  # noqa: BLE001  # whatever the runtime says
            return None

    def executed(self, source, feeds):
        """Results of the model itself, and what they and those of targets run in; None where nothing runs it."""
        wanted = self.wanted(source, feeds)
        if wanted is not None and rounding(onnx.load(source)) != HALVES:
            return wanted, run_with_rewrites
        try:
            reference = [run_in_reference(source, feeds)]
        except Exception:  # noqa: BLE001  # whatever the reference says
            return (wanted, run_with_rewrites) if wanted else None
        if wanted is not None:
            return wanted + reference, run_with_rewrites
        self.count["run in the reference of onnx"] += 1
        return reference, run_in_reference

    def judge(self, name, model, feeds, targets=None):
        """Holds a model against itself for each target. Failures are printed, counted, and kept in the work folder with feeds."""
        source, targets = self.work / f"{name}.onnx", targets or self.targets
        onnx.save(model, source)
        before = self.count, self.failures

        def judged():
            self.count, self.failures = collections.Counter(), []
            self.judge_here(name, model, source, feeds, targets)
            return self.count, self.failures

        found = apart(judged)
        if found is not None:
            self.count, self.failures = before[0] + found[0], before[1] + found[1]
        elif apart(lambda: self.executed(str(source), feeds) and 1) is None:
            self.count["crash ONNX Runtime"] += 1
            source.rename(source.with_suffix(".crash"))
            print(f"{name} crashes ONNX Runtime as it is", flush=True)
        else:
            for target in targets:
                self.fail(name, target, "a result for it or another target crashes ONNX Runtime", feeds)

    def judge_here(self, name, model, source, feeds, targets):
        """The same in this process."""
        executed = self.executed(str(source), feeds)
        if executed is None:
            self.count["not run"] += 1
            print(f"{name} is not run: neither ONNX Runtime nor the reference of onnx has all of its ops", flush=True)
        else:
            (wanted, runs), least = executed, rounding(model)
            with ThreadPoolExecutor(self.jobs) as pool:
                outcomes = list(pool.map(lambda target: self.found(source, feeds, wanted, target, least, runs), targets))
            bad = [(target, why) for target, why in zip(targets, outcomes, strict=True) if why]
            self.count["passed"] += len(targets) - len(bad)
            for target, why in bad:
                self.fail(name, target, why, feeds)
            if bad:
                return
        source.unlink()

    def note(self, name, target, why, feeds):
        """Counts a result: right, or what `why` says."""
        if why:
            self.fail(name, target, why, feeds)
        else:
            self.count["passed"] += 1

    def fail(self, name, target, why, feeds):
        """Notes a failure."""
        self.count["failed"] += 1
        self.failures.append({"model": name, "target": target, "why": why})
        np.savez(self.work / f"{name}.npz", **feeds)
        print(f"FAIL {name} {target}: {why}", flush=True)

    def end(self, path=None):
        """Prints the counts, writes them as JSON, and returns the exit status."""
        if path:
            Path(path).write_text(json.dumps({"count": self.count, "failures": self.failures}, indent=1) + "\n")
        others = ["run in the reference of onnx", "not run", "crash ONNX Runtime", "unsteady"]
        print(", ".join(f"{kind}: {self.count[kind]}" for kind in others))
        print(f"{self.count['passed']} passed, {self.count['failed']} failed")
        return int(self.count["failed"] > 0 or self.count["passed"] == 0)


def timed(work, entries, args, more=()):
    """Runs bench/layouts.py, for target ort-cpu if `more` names none, on a corpus of these entries; its exit status."""
    corpus = work / "corpus"
    corpus.mkdir(exist_ok=True)
    shutil.copy(ROOT / "testdata/corpus/hydrate.py", corpus)
    (corpus / "manifest.json").write_text(json.dumps({"models": entries}))
    command = [sys.executable, ROOT / "bench/layouts.py", "--corpus", corpus, "--work", work, "--bin", args.bin.resolve(),
               "--rounds", str(args.rounds), *more]
    return subprocess.run(command, check=False).returncode


def targets(binary):
    """The names of all targets of the program."""
    said = subprocess.run([binary, "targets"], capture_output=True, text=True, check=True).stdout
    return [line for line in said.splitlines() if line and not line[0].isspace()]


def parser(text, work):
    """The options that all suites have."""
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--bin", type=Path, default=ROOT / "target/release/relayout")
    made.add_argument("--targets", help="with commas; all of the program by default")
    made.add_argument("--work", type=Path, default=ROOT / "target/suites" / work, help="failures stay in it, with their feeds")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--jobs", type=int, default=1, help="targets side by side")
    made.add_argument("--json", type=Path, help="counts and failures")
    return made


def judge(args):
    """A judge as the options ask for one."""
    return Judge(args.bin, args.targets.split(",") if args.targets else targets(args.bin), args.work, args.jobs)
