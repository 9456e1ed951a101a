#!/usr/bin/env bash
# OpenVINO and OpenCV: slopes of a PRelu are taken for channels, though they belong to the last axis
#
# Guess: the slopes of PRelu are broadcast to the input as numpy does it, from the last axis on, so a list of n slopes belongs to the last
# axis. OpenVINO and OpenCV take a list of slopes for one per channel, that is along axis 1, if it has as many entries. So a PRelu of
# channels last is wrong where both axes have the same extent, and nothing is said. With slopes of shape [1, 1, n] OpenVINO is right, and
# OpenCV still wrong.
#
#     findings/slopes_of_a_prelu.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: openvino 2026.4.1, opencv-python-headless 5.0.0.93 against onnxruntime 1.31.1, tract 0.23.9 and the reference of onnx
# 1.23.2.
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


text = """<ir_version: 8, opset_import: ["" : 16]>
g (float[1,3,3] x) => (float[1,3,3] y) <float[%s] s = {1,2,3}> { y = PRelu(x, s) }"""
feeds = {"x": np.full((1, 3, 3), -1, np.float32)}
ways = {"onnxruntime": run, "reference": reference, "tract": with_tract, "openvino": with_openvino, "opencv": with_opencv}
wrong = [("openvino", "3"), ("opencv", "3"), ("opencv", "1,1,3")]
for shape in ("3", "1,1,3"):
    seen = {name: way(model(text % shape), feeds)[0][0].tolist() for name, way in ways.items()}
    rows = [[-1, -2, -3]] * 3
    print(shape, {name: y[0] for name, y in seen.items()})
    for name, y in seen.items():
        assert y == ([[-1] * 3, [-2] * 3, [-3] * 3] if (name, shape) in wrong else rows), name
PYTHON
