#!/usr/bin/env bash
# OpenVINO and OpenCV: QuantizeLinear rounds behind the zero point, so halves go the other way where it is odd
#
# Guess: the standard rounds x / scale to the nearest even number and adds the zero point to that. OpenVINO and OpenCV add first and round
# then. That is the same for an even zero point. For an odd one each x that lies halfway comes out one step away from what all others
# compute. With scales that are powers of two such x are common.
#
#     findings/odd_zero_points.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: openvino 2026.4.1 and opencv-python-headless 5.0.0.93 against onnxruntime 1.31.1, tract 0.23.9 and the reference of
# onnx 1.23.2.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q openvino==2026.4.1 opencv-python-headless==5.0.0.93 tract==0.23.9 onnxruntime==1.31.1 onnx==1.23.2 \
    numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import cv2, numpy as np, onnx, onnxruntime as ort, openvino, tract
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


for name in ("openvino", "opencv-python-headless", "tract", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))


def with_opencv(made, feeds):
    net = cv2.dnn.readNetFromONNX(np.frombuffer(made.SerializeToString(), np.uint8))
    net.setInput(feeds["x"], "x")
    return [np.array(net.forward("y"))]


text = """<ir_version: 8, opset_import: ["" : 13]>
g (float[6] x) => (uint8[6] y) <float s = {1}, uint8 z = {%d}> { y = QuantizeLinear(x, s, z) }"""
feeds = {"x": np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], np.float32)}
ways = {"onnxruntime": run, "reference": reference, "tract": with_tract, "openvino": with_openvino, "opencv": with_opencv}
for zero in (4, 3):
    right = (np.rint(feeds["x"]) + zero).tolist()
    seen = {name: way(model(text % zero), feeds)[0].ravel().tolist() for name, way in ways.items()}
    print("zero point", zero, seen)
    for name, y in seen.items():
        assert (y == right) == (zero == 4 or not name.startswith("open")), name
PYTHON
