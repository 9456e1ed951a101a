#!/usr/bin/env bash
# onnx: its reference evaluator computes Softmax of opset 12 as that of opset 13
#
# Guess: before opset 13 Softmax, LogSoftmax and Hardmax see a matrix whose columns are all axes from `axis` on, so a sum is 1 over several
# axes. Since opset 13 they work along one axis. onnx's reference evaluator has the second rule for all opsets, so results of exported
# models of opset 12 and before seem to be wrong in ONNX Runtime. OpenVINO has the second rule for Softmax of three axes and the first one
# for LogSoftmax. The version converter of onnx is right for Softmax and LogSoftmax, and forgets Hardmax.
#
#     findings/softmax_of_opset_12_in_the_reference.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnx 1.23.2, onnxruntime 1.31.1, openvino 2026.4.1: sums over [3, 4] with axis=1 are 1 in ONNX Runtime, and 4 in the
# reference and in OpenVINO. Hardmax has 1 one per row before onnx.version_converter (11 to 13) and 3 afterwards.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q openvino==2026.4.1 onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnx, onnxruntime as ort, openvino
from onnx import parser, version_converter
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


def reference(made, feeds):
    return ReferenceEvaluator(made).run(None, feeds)


for name in ("openvino", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))

text = """<ir_version: 7, opset_import: ["" : 12]> g (float[2,3,4] x) => (float[2,3,4] y) { y = %s<axis=1>(x) }"""
feeds = {"x": np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)}
sums = {}
for op in ("Softmax", "LogSoftmax", "Hardmax"):
    for name, way in (("onnxruntime", run), ("reference", reference), ("openvino", with_openvino)):
        y = way(model(text % op), feeds)[0]
        sums[op, name] = round(float((np.exp(y) if op == "LogSoftmax" else y)[0].sum()), 4)
    converted = version_converter.convert_version(model(text % op), 13)
    y = run(converted, feeds)[0]
    sums[op, "converted to 13"] = round(float((np.exp(y) if op == "LogSoftmax" else y)[0].sum()), 4)
for key, value in sums.items():
    print(*key, value)
assert all(sums[op, "onnxruntime"] == 1 for op in ("Softmax", "LogSoftmax", "Hardmax"))
assert all(sums[op, "reference"] in (3, 4) for op in ("Softmax", "LogSoftmax", "Hardmax"))
assert sums["Softmax", "openvino"] == 4 and sums["LogSoftmax", "openvino"] == 1
assert sums["Softmax", "converted to 13"] == 1 and sums["Hardmax", "converted to 13"] != 1
PYTHON
