#!/usr/bin/env bash
# RoiAlign: the largest interpolated number of an image of ones is 0.6
#
# Guess: RoiAlign takes the largest of a few interpolated numbers per cell with mode="max". The standard's text says that each is computed
# by bilinear interpolation, so in an image of ones each is 1. The reference evaluator of onnx, ONNX Runtime and OpenCV take the largest of
# the four weighted neighbours, not of their sums. ONNX Runtime's warning says that 1.13 will mend it. OpenVINO interpolates first. With
# mode="avg" all agree.
#
#     findings/largest_of_an_image_of_ones.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnx 1.23.2, onnxruntime 1.31.1 and opencv-python-headless 5.0.0.93: 0.61 and 0.76. openvino 2026.4.1: 1.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q openvino==2026.4.1 opencv-python-headless==5.0.0.93 onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import cv2, numpy as np, onnx, onnxruntime as ort, openvino
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


def reference(made, feeds):
    return ReferenceEvaluator(made).run(None, feeds)


for name in ("openvino", "opencv-python-headless", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))


def with_opencv(made, feeds):
    net = cv2.dnn.readNetFromONNX(np.frombuffer(made.SerializeToString(), np.uint8))
    for name, value in feeds.items():
        net.setInput(value, name)
    return [np.array(net.forward("y"))]


text = """<ir_version: 8, opset_import: ["" : 16]> g (float[1,1,6,6] x, float[1,4] r, int64[1] b) => (float[1,1,2,2] y) {
  y = RoiAlign<mode="%s", output_height=2, output_width=2, sampling_ratio=2>(x, r, b)
}"""
feeds = {"x": np.ones((1, 1, 6, 6), np.float32), "r": np.array([[0.5, 1, 4.2, 5]], np.float32), "b": np.array([0])}
ways = {"reference": reference, "onnxruntime": run, "opencv": with_opencv, "openvino": with_openvino}
for mode in ("avg", "max"):
    seen = {name: way(model(text % mode), feeds)[0].ravel() for name, way in ways.items()}
    print(mode, {name: y.round(4).tolist() for name, y in seen.items()})
    for name, y in seen.items():
        assert np.allclose(y, 1) if mode == "avg" or name == "openvino" else y.max() < 0.8
PYTHON
