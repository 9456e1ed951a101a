#!/usr/bin/env bash
# onnxsim, onnxslim, onnxoptimizer and tract: a function named like an op of ONNX is taken for that op
#
# Guess: an op is its domain and its name, so my.Identity is whatever the model's own function of that name computes. Three optimizers look
# at the name only: a call of my.Identity is removed, and one of my.Transpose joined or removed, whatever the functions say. tract computes
# my.Relu as Relu. onnxscript, ONNX Runtime and the reference evaluator look at the domain as well. Who writes functions for layouts had
# better not name them like ops.
#
#     findings/functions_named_like_ops.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnxsim 0.8.1, onnxslim 0.1.98, onnxoptimizer 0.4.2, run by onnxruntime 1.31.1: my.Identity, which is Exp, is gone.
# tract 0.23.9: my.Relu, which is Neg, gives [0, 2] for [-1, 2].
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxsim==0.8.1 onnxslim==0.1.98 onnxoptimizer==0.4.2 tract==0.23.9 onnxruntime==1.31.1 onnx==1.23.2 \
    numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnx, onnxoptimizer, onnxruntime as ort, onnxsim, onnxslim, tract
from onnx import parser
from onnx.reference import ReferenceEvaluator


def model(text):
    return parser.parse_model(text)


def session(made, level):
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    return ort.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(made, feeds, level="ORT_DISABLE_ALL"):
    return session(made, level).run(None, feeds)


def with_tract(made, feeds):
    onnx.save(made, "model.onnx")
    read = tract.onnx().load("model.onnx")
    for i, value in enumerate(feeds.values()):
        read.set_input_fact(i, ",".join(map(str, value.shape)) + ",f32")
    return [result.to_numpy() for result in read.into_model().into_runnable().run(list(feeds.values()))]


def reference(made, feeds):
    return ReferenceEvaluator(made).run(None, feeds)


for name in ("onnxsim", "onnxslim", "onnxoptimizer", "tract", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))

text = """<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
g (float[2] x) => (float[2] y) { t = Neg(x) y = my.%s(t) }
<domain: "my", opset_import: ["" : 17]>
%s (a) => (b) { b = %s(a) }"""
feeds = {"x": np.array([1, -2], np.float32)}
made = model(text % ("Identity", "Identity", "Exp"))
onnx.checker.check_model(made, full_check=True)
right = np.exp(-feeds["x"])
assert np.allclose(run(made, feeds)[0], right) and np.allclose(reference(made, feeds)[0], right)
tools = {
    "onnxsim": lambda made: onnxsim.simplify(made)[0],
    "onnxslim": onnxslim.slim,
    "onnxoptimizer": lambda made: onnxoptimizer.optimize(made, onnxoptimizer.get_fuse_and_elimination_passes()),
}
for name, tool in tools.items():
    other = tool(model(text % ("Identity", "Identity", "Exp")))
    y = run(other, feeds)[0].tolist()
    print(name, [f"{node.domain}.{node.op_type}" for node in other.graph.node], y, "right:", right.round(3).tolist())
    assert y == [-1, 2]
relu = model(text % ("Relu", "Relu", "Neg"))
y, right = with_tract(relu, feeds)[0].tolist(), run(relu, feeds)[0].tolist()
print("tract", y, "right:", right)
assert right == [1, -2] and y == [0, 2]
PYTHON
