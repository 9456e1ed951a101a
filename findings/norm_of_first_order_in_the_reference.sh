#!/usr/bin/env bash
# onnx: its reference evaluator divides LpNormalization by the sum, not by the sum of magnitudes
#
# Guess: LpNormalization with p=1 divides by the sum of absolute values. The reference evaluator of onnx adds the numbers as they are.
# Where they have both signs the result is too large, and where they cancel it is 0 or infinite. LpPool has it right there.
#
#     findings/norm_of_first_order_in_the_reference.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnx 1.23.2: [0.5, -1, 1.5] for [1, -2, 3], and 0 for [1, -1]; onnxruntime 1.31.1, openvino 2026.4.1 and tract
# 0.23.9: a sixth, two sixths, three sixths, and a half.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q openvino==2026.4.1 tract==0.23.9 onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnx, onnxruntime as ort, openvino, tract
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


def with_openvino(made, feeds):
    onnx.save(made, "model.onnx")
    core = openvino.Core()
    compiled = core.compile_model(core.read_model("model.onnx"), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled(feeds)
    return [np.array(results[i]) for i in range(len(made.graph.output))]


def with_tract(made, feeds):
    onnx.save(made, "model.onnx")
    read = tract.onnx().load("model.onnx")
    for i, value in enumerate(feeds.values()):
        read.set_input_fact(i, ",".join(map(str, value.shape)) + ",f32")
    return [result.to_numpy() for result in read.into_model().into_runnable().run(list(feeds.values()))]


def reference(made, feeds):
    return ReferenceEvaluator(made).run(None, feeds)


for name in ("openvino", "tract", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))

text = """<ir_version: 8, opset_import: ["" : 17]> g (float[1,n] x) => (float[1,n] y) { y = LpNormalization<axis=1, p=1>(x) }"""
for numbers in ([1, -2, 3], [1, -1]):
    feeds = {"x": np.array([numbers], np.float32)}
    right = feeds["x"] / abs(feeds["x"]).sum()
    ways = {"reference": reference, "onnxruntime": run, "openvino": with_openvino, "tract": with_tract}
    seen = {name: way(model(text.replace("n]", f"{len(numbers)}]")), feeds)[0] for name, way in ways.items()}
    print({name: y[0].round(3).tolist() for name, y in seen.items()})
    assert all(np.allclose(y, right) == (name != "reference") for name, y in seen.items())
PYTHON
