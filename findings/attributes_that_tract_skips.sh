#!/usr/bin/env bash
# tract: the activations of an RNN and the alpha of Celu are not those of the model, and GlobalLpPool is a mean
#
# Guess: an attribute that a runtime does not know is refused. tract takes Tanh for each activation of an RNN, and computes Celu without
# the factor alpha in front of its exponential. Both are right with the default values. GlobalLpPool is the root of a mean in place of that
# of a sum, and with p=3 it also forgets to take magnitudes. Nothing is said.
#
#     findings/attributes_that_tract_skips.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: tract 0.23.9 against onnxruntime 1.31.1.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q tract==0.23.9 onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnx, onnxruntime as ort, tract
from onnx import parser


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


for name in ("tract", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))

head = '<ir_version: 8, opset_import: ["" : 14]> g '
rnn = """(float[2,1,2] x, float[1,2,2] w, float[1,2,2] r) => (float[2,1,1,2] y) { y = RNN<hidden_size=2%s>(x, w, r) }"""
celu = "(float[1,1,4] x) => (float[1,1,4] y) { y = Celu%s(x) }"
pool = "(float[1,1,4] x) => (float[1,1,1] y) { y = GlobalLpPool%s(x) }"
rng = np.random.default_rng(0)
recurrent = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in (("x", (2, 1, 2)), ("w", (1, 2, 2)), ("r", (1, 2, 2)))}
line = {"x": np.array([[[-1, 2, -3, 0.5]]], np.float32)}
cases = [
    (rnn, "", True, recurrent),
    (rnn, ', activations=["Relu"]', False, recurrent),
    (celu, "", True, line),
    (celu, "<alpha=2.0>", False, line),
    (pool, "", False, line),
    (pool, "<p=3>", False, line),
]
for text, attribute, agrees, feeds in cases:
    made = model(head + text % attribute)
    right, seen = run(made, feeds)[0], with_tract(made, feeds)[0]
    print((text % attribute)[text.index("{") :], "right:", right.ravel().tolist(), "tract:", seen.ravel().tolist())
    assert np.allclose(seen, right, atol=1e-5) == agrees
PYTHON
