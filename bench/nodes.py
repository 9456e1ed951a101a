#!/usr/bin/env python3
"""Every node test of the onnx package through the optimizer, as it is and between Transposes.

    python bench/nodes.py --bin target/release/relayout [--targets onnx,ort-cpu,nhwc] [--seed 1] [--stride 1] [--only NAME] [--verify]

The package has a model of one node with inputs for each of its tests. Between Transposes means: each input of rank 2 and more is given in
a random order of axes and turned back by a Transpose, and each such output is turned by another. A result has to compute in ONNX
Runtime, at its default level, what the model computes without optimizations or at the default level; NaNs count as equal, integers have
to be the same. What the runtime itself does not run at both levels is counted apart, but for models of operator sets that it does not
load: they and their results run in the reference of the onnx package.

With `--verify` each result that computes the same and is another file is given to `relayout verify` as well: a difference that it sees is
a false alarm, and fails. What it can't compare is counted.

The last line says how many passed. Exit status 1 if one failed.
"""
import argparse
import json
import random
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper
from onnx.reference import ReferenceEvaluator

import runs

warnings.filterwarnings("ignore")
# What it can't run is counted.
onnxruntime.set_default_logger_severity(4)
# Relative and absolute error, the latter over the largest number: of halves and of all others.
NEAR = {np.dtype(np.float16): (2e-2, 2e-3), None: (1e-4, 1e-5)}


# The last operator set that the runtime loads.
RUNS = 26
# What the reference says to a call that leaves an attribute of its function out (findings/attributes_that_a_call_leaves_out.sh).
LEFT_OUT = "'OpFunction' object has no attribute"
NOT_RUN = "not run by the reference"


def is_newer(model):
    return any(each.version > RUNS for each in model.opset_import if each.domain in ("", "ai.onnx"))


def in_reference(model, feeds):
    return ReferenceEvaluator(model).run(None, feeds)


def cases(args):
    from onnx.backend.test.case import node

    found = sorted((case for case in node.collect_testcases(None) if case.model is not None), key=lambda case: case.name)
    return [case for case in found[:: args.stride] if args.only in case.name]


def order_of(port, rng):
    """A random order of the axes of a tensor; `None` where it has fewer than two, or no shape."""
    kind = port.type
    if not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape") or len(kind.tensor_type.shape.dim) < 2:
        return None
    return rng.sample(range(len(kind.tensor_type.shape.dim)), len(kind.tensor_type.shape.dim))


def turn(port, order):
    dims = port.type.tensor_type.shape.dim
    turned = [onnx.TensorShapeProto.Dimension.FromString(dims[axis].SerializeToString()) for axis in order]
    del dims[:]
    dims.extend(turned)


def between(model, rng):
    """The model between Transposes, and the order of each input that has another one."""
    made = onnx.ModelProto.FromString(model.SerializeToString())
    graph, orders, before, after, names = made.graph, {}, [], [], {}
    for port in graph.input:
        if (order := order_of(port, rng)) is not None:
            orders[port.name], names[port.name] = order, f"{port.name}.back"
            turn(port, order)
            before.append(helper.make_node("Transpose", [port.name], [names[port.name]], perm=[order.index(axis) for axis in range(len(order))]))
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
    for port in graph.output:
        if port.name not in orders and (order := order_of(port, rng)) is not None:
            after.append(helper.make_node("Transpose", [port.name], [f"{port.name}.turned"], perm=order))
            turn(port, order)
            port.name = f"{port.name}.turned"
    nodes = [*before, *graph.node, *after]
    del graph.node[:]
    graph.node.extend(nodes)
    return made, orders if before or after else None


def fed(case, orders):
    feeds = {}
    for port, value in zip(case.model.graph.input, case.data_sets[0][0], strict=False):
        array = onnx.numpy_helper.to_array(value) if hasattr(value, "SerializeToString") else value
        feeds[port.name] = np.ascontiguousarray(np.transpose(array, orders[port.name])) if port.name in orders else array
    return feeds


def is_same(a, b):
    if isinstance(a, list) or a is None:
        return type(a) is type(b) and (a is None or len(a) == len(b) and all(map(is_same, a, b)))
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind not in "fc":
        # A NaN of 8 bits is no other number than itself either.
        return a.tobytes() == b.tobytes() or bool((a == b).all())
    relative, absolute = NEAR.get(a.dtype, NEAR[None])
    size = np.abs(np.where(np.isfinite(a), a, 0)).max(initial=1e-6)
    return np.allclose(a.astype(complex), b.astype(complex), rtol=relative, atol=absolute * size, equal_nan=True)


class Suite:
    """What was found so far."""

    def __init__(self, args):
        self.args, self.count, self.failures, self.left, self.verified = args, Counter(), [], Counter(), Counter()
        self.source, self.result = args.work / "in.onnx", args.work / "out.onnx"

    def fault(self, target, feeds, expected):
        """What is wrong with the result for a target."""
        self.result.unlink(missing_ok=True)
        status, said, _ = runs.process([self.args.bin, "optimize", self.source, "-o", self.result, "--target", target], 120)
        if status:
            # What the runtime does not run may be refused, in so many words.
            return None if expected is None and status in (1, 2) else f"exit status {status}: {said[:200]}"
        if expected is None:
            return None
        try:
            made = onnx.load(self.result)
            if is_newer(made) and any(each.domain.startswith("com.microsoft") for each in made.opset_import):
                # Nobody runs ops of the runtime alone in an operator set that it does not load.
                return None
            got = in_reference(made, feeds) if is_newer(made) else runs.session(self.result, runs.ALL).run(None, feeds)
        except Exception as error:  # noqa: BLE001  # whatever the runtime says
            if is_newer(made) and LEFT_OUT in str(error):
                return NOT_RUN
            return f"does not run: {' '.join(str(error).split())[:200]}"
        self.left[target] += sum(node.op_type == "Transpose" for node in onnx.load(self.result).graph.node)
        if not any(all(map(is_same, right, got)) for right in expected):
            return "another result"
        return self.alarm() if self.args.verify and not is_newer(made) else None

    def alarm(self):
        """What `verify` says against a result that is right."""
        if self.source.read_bytes() == self.result.read_bytes():
            return None
        status, said, _ = runs.process([self.args.bin, "verify", self.source, self.result], 300)
        differs = status == 3 and "not everything could be compared" not in said
        self.verified["the same" if status == 0 else "false alarms" if differs else "not compared" if status == 3 else "not run"] += 1
        return f"false alarm: {said[:300]}" if differs else None

    def look(self, case, turned):
        model, orders = between(case.model, random.Random(f"{self.args.seed} {case.name}")) if turned else (case.model, {})
        if orders is None:
            return
        onnx.save(model, self.source)
        try:
            feeds = fed(case, orders)
            newer = is_newer(model)
            expected = [in_reference(model, feeds)] if newer else [runs.session(self.source, level).run(None, feeds) for level in (runs.NONE, runs.ALL)]
        except Exception:  # noqa: BLE001  # whatever the runtime lacks
            feeds = expected = None
        for target in self.args.targets.split(","):
            why = self.fault(target, feeds, expected)
            said = NOT_RUN if why == NOT_RUN else "failed" if why else "not run by ONNX Runtime" if expected is None else "passed"
            self.count[said] += 1
            if said == "failed":
                self.failures.append({"case": case.name, "turned": turned, "target": target, "why": why})
                print(f"FAILED {case.name}{' between Transposes' if turned else ''}, {target}: {why}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=runs.ROOT / "target/release/relayout")
    parser.add_argument("--targets", default="onnx,ort-cpu,nhwc")
    parser.add_argument("--work", type=Path, default=runs.ROOT / "target/suites/nodes")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--stride", type=int, default=1, help="only every so many")
    parser.add_argument("--only", default="", help="only tests with this in their name")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    suite = Suite(args)
    for case in cases(args):
        for turned in (False, True):
            suite.look(case, turned)
    if args.json:
        args.json.write_text(json.dumps({"count": suite.count, "failures": suite.failures, "left": suite.left}, indent=1) + "\n")
    not_run = {name: suite.count[name] for name in ("not run by ONNX Runtime", NOT_RUN)}
    print(f"Transposes left: {dict(suite.left)}; {', '.join(f'{name}: {count}' for name, count in not_run.items())}")
    if args.verify:
        print(f"verify: {dict(suite.verified)}")
    print(f"{suite.count['passed']} passed, {suite.count['failed']} failed")
    compared = not args.verify or suite.verified["the same"] > 0
    return int(suite.count["failed"] > 0 or suite.count["passed"] == 0 or not compared)


if __name__ == "__main__":
    sys.exit(main())
