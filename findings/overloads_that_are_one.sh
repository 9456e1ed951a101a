#!/usr/bin/env bash
# onnxslim: of functions that differ by their overload one is kept
#
# Since IR version 10 a model may have several functions of one name and domain, told apart by `overload`, and a call says which it means.
# One guesses that a simplifier that keeps functions keeps these. onnxslim keeps one of them, and the calls of the others mean nothing.
# The tool says nothing.
#
#     findings/overloads_that_are_one.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-28: onnxslim 0.1.98 with onnx 1.23.2: exp(exp(1)) where the model computes exp(-1).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxslim==0.1.98 onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import numpy as np, onnx, onnxruntime as ort, onnxslim
from onnx import helper

print("onnxslim", onnxslim.__version__, "onnx", onnx.__version__, "onnxruntime", ort.__version__)
opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]


def function(overload, op):
    made = helper.make_function("mine", "turn", ["a"], ["b"], [helper.make_node(op, ["a"], ["b"])], opsets[:1])
    made.overload = overload
    return made


def call(overload, x, y):
    node = helper.make_node("turn", [x], [y], domain="mine")
    node.overload = overload
    return node


ports = [helper.make_tensor_value_info(name, 1, [2, 3]) for name in "xy"]
graph = helper.make_graph([call("first", "x", "t"), call("second", "t", "y")], "g", ports[:1], ports[1:])
functions = [function("first", "Neg"), function("second", "Exp")]
model = helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=10)
onnx.checker.check_model(model)


def run(model):
    x = np.ones((2, 3), np.float32)
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


ort.set_default_logger_severity(4)
print("before:", [f.overload for f in model.functions], float(run(model)[0, 0]))
slim = onnxslim.slim(model)
kept = [f.overload for f in slim.functions]
try:
    after = f"{float(run(slim)[0, 0]):.4f}"
except Exception as error:
    after = " ".join(str(error).split())[:160]
print("after:", kept, "calls", [(n.op_type, n.overload) for n in slim.graph.node], after)
assert len(kept) < 2 and after != f"{np.exp(-1):.4f}"
PYTHON
