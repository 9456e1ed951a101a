#!/usr/bin/env bash
# OpenVINO, OpenCV and nxrt: an AveragePool with ceil_mode divides by places that are no padding
#
# Guess: count_include_pad counts the places that `pads` adds. With ceil_mode the last window may reach beyond these, and what lies there
# is neither pixel nor padding, as in PyTorch. So have it ONNX Runtime, tract and the reference. OpenCV and nxrt divide by the whole window
# at the end of each axis. OpenVINO does so if there are pads, and does not if there are none.
#
#     findings/averages_at_the_end.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: openvino 2026.4.1, opencv-python-headless 5.0.0.93, nxrt 0.1.0.dev6 against onnxruntime 1.31.1, tract 0.23.9 and the
# reference of onnx 1.23.2: the last average of ones is 1, or 0.25 (0.444 with a window of 3).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q openvino==2026.4.1 opencv-python-headless==5.0.0.93 nxrt==0.1.0.dev6 tract==0.23.9 \
    onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import cv2, numpy as np, nxrt, onnx, onnxruntime as ort, openvino, tract
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


for name in ("openvino", "opencv-python-headless", "nxrt", "tract", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))


def with_opencv(made, feeds):
    net = cv2.dnn.readNetFromONNX(np.frombuffer(made.SerializeToString(), np.uint8))
    net.setInput(feeds["x"], "x")
    return [np.array(net.forward("y"))]


def with_nxrt(made, feeds):
    onnx.save(made, "model.onnx")
    return [np.array(y) for y in nxrt.InferenceSession("model.onnx").run(None, feeds)]


text = """<ir_version: 9, opset_import: ["" : 19]> g (float[1,1,5,5] x) => (float[a,b,c,d] y) {
  y = AveragePool<kernel_shape=[%d,%d], strides=[2,2], pads=[%d,%d,0,0], ceil_mode=1, count_include_pad=1>(x)
}"""
feeds = {"x": np.ones((1, 1, 5, 5), np.float32)}
ways = {"onnxruntime": run, "reference": reference, "tract": with_tract}
ways.update({"openvino": with_openvino, "opencv": with_opencv, "nxrt": with_nxrt})
for window, pad in ((2, 0), (3, 1)):
    seen = {name: round(float(way(model(text % (window, window, pad, pad)), feeds)[0][0, 0, -1, -1]), 3) for name, way in ways.items()}
    print(f"window {window}, pads {pad} in front:", seen)
    wrong = {"opencv", "nxrt"} | ({"openvino"} if pad else set())
    assert {name for name, y in seen.items() if y != 1} == wrong
PYTHON
