#!/usr/bin/env bash
# OpenVINO and OpenCV: a MaxPool with ceil_mode has a window with nothing in it
#
# Guess: MaxPool of opset 22 says that windows which would start behind the image, in the padding at the end, are ignored. OpenVINO and
# OpenCV keep such a window: the result is a row and a column larger than what onnx infers, and they hold the smallest float, -3.4e38. What
# follows, a sum or a convolution, overflows.
#
#     findings/windows_behind_the_image.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: openvino 2026.4.1 and opencv-python-headless 5.0.0.93: (1, 1, 3, 3) where onnx 1.23.2 infers (1, 1, 2, 2), which
# onnxruntime 1.31.1, tract 0.23.9 and the reference make.
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


made = model("""<ir_version: 10, opset_import: ["" : 22]> g (float[1,1,5,5] x) => (float[a,b,c,d] y) {
  y = MaxPool<kernel_shape=[2,2], strides=[3,3], pads=[0,0,1,1], ceil_mode=1>(x)
}""")
inferred = onnx.shape_inference.infer_shapes(made, strict_mode=True).graph.output[0].type.tensor_type.shape.dim
inferred = tuple(dim.dim_value for dim in inferred)
feeds = {"x": np.ones((1, 1, 5, 5), np.float32)}
ways = {"onnxruntime": run, "reference": reference, "tract": with_tract, "openvino": with_openvino, "opencv": with_opencv}
for name, way in ways.items():
    y = way(made, feeds)[0]
    print(name, y.shape, "inferred:", inferred, "smallest:", float(y.min()))
    assert y.shape == (inferred if not name.startswith("open") else (1, 1, 3, 3))
    assert (y.min() < -1e38) == name.startswith("open")
PYTHON
