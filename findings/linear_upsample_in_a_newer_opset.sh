#!/usr/bin/env bash
# onnx: its version converter changes what a linear Upsample or Resize computes
#
# Guess: ONNX Runtime, OpenVINO and tract take the place x / scale of the input for place x in Upsample of opset 9 and Resize of opset 10.
# Resize of opset 11 has the attribute coordinate_transformation_mode, whose default is half_pixel: (x + 0.5) / scale - 0.5. A converter
# must write "asymmetric". onnx's own one leaves the attribute out, so all places move by half a pixel, and nothing is said.
#
#     findings/linear_upsample_in_a_newer_opset.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnx 1.23.2, run by onnxruntime 1.31.1 without rewrites: 0, 0.5, 1, 1 before (openvino 2026.4.1 too), and 0, 0.25,
# 0.75, 1 after onnx.version_converter, to opset 11, 13 and 19.
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


for name in ("openvino", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))

text = """<ir_version: 5, opset_import: ["" : %d]>
g (float[1,1,1,2] x) => (float[a,b,c,d] y) <float[4] s = {1,1,1,2}> { y = %s<mode="linear">(x, s) }"""
feeds = {"x": np.array([0, 1], np.float32).reshape(1, 1, 1, 2)}
for opset, op in ((9, "Upsample"), (10, "Resize")):
    before, other = (way(model(text % (opset, op)), feeds)[0].ravel().tolist() for way in (run, with_openvino))
    print(op, before, "OpenVINO:", other)
    assert before == other == [0, 0.5, 1, 1]
    for target in (11, 13, 19):
        after = run(version_converter.convert_version(model(text % (opset, op)), target), feeds)[0].ravel().tolist()
        print("  to opset", target, after)
        assert after == [0, 0.25, 0.75, 1]
PYTHON
