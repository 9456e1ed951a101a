#!/usr/bin/env bash
# tract and OpenCV: a ConvTranspose with output_shape is cut at the wrong end, or not at all
#
# Guess: `output_shape` of ConvTranspose fixes the extents, and the padding follows. The standard takes the larger half of an odd padding
# in front, but for SAME_UPPER. ONNX Runtime and OpenVINO do. tract takes it behind, so the image is shifted by one pixel. OpenCV makes
# another shape than asked for. The reference evaluator fails.
#
#     findings/asked_shapes_of_a_transposed_convolution.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: tract 0.23.9, opencv-python-headless 5.0.0.93, onnx 1.23.2 against onnxruntime 1.31.1 and openvino 2026.4.1: the
# first number is 1 in tract and 5 in the others; OpenCV makes (1, 1, 8, 8) for [6, 6].
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


def refused(work):
    try:
        work()
    except Exception as error:
        return " ".join(str(error).split())
    return None


for name in ("openvino", "opencv-python-headless", "tract", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))


def with_opencv(made, feeds):
    net = cv2.dnn.readNetFromONNX(np.frombuffer(made.SerializeToString(), np.uint8))
    net.setInput(feeds["x"], "x")
    return [np.array(net.forward("y"))]


made = model("""<ir_version: 8, opset_import: ["" : 17]>
g (float[1,1,3,3] x) => (float[1,1,6,6] y) <float[1,1,3,3] w = {1,2,3,4,5,6,7,8,9}> {
  y = ConvTranspose<strides=[2,2], output_shape=[6,6]>(x, w)
}""")
onnx.checker.check_model(made, full_check=True)
feeds = {"x": np.ones((1, 1, 3, 3), np.float32)}
right, also, shifted, other = (way(made, feeds)[0] for way in (run, with_openvino, with_tract, with_opencv))
why = refused(lambda: reference(made, feeds))
print("ONNX Runtime:", right[0, 0, 0].tolist(), "OpenVINO:", also[0, 0, 0].tolist(), "tract:", shifted[0, 0, 0].tolist())
print("OpenCV:", other.shape, "| reference:", why and why[:100])
assert np.allclose(right, also) and right[0, 0, 0, 0] == 5 and shifted[0, 0, 0, 0] == 1
assert np.allclose(right[0, 0, :-1, :-1], shifted[0, 0, 1:, 1:]) and other.shape != (1, 1, 6, 6) and why
PYTHON
