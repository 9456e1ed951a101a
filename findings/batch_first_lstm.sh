#!/usr/bin/env bash
# OpenVINO and OpenCV: an LSTM whose batch is the first axis is computed as if time were
#
# Guess: `layout=1` of LSTM, GRU and RNN says that X is [batch, time, input] and Y [batch, time, directions, hidden]. OpenVINO reads such a
# model without an error and computes layout 0: sequences of the batch are taken for steps of time, and even the result's shape is that of
# layout 0. OpenCV gives the right shape and other numbers. The reference evaluator and tract are right, ONNX Runtime refuses the
# attribute.
#
#     findings/batch_first_lstm.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: openvino 2026.4.1, opencv-python-headless 5.0.0.93, tract 0.23.9, onnx 1.23.2: OpenVINO (2, 1, 3, 3), the same bits
# as without the attribute; OpenCV (2, 3, 1, 3), off by more than 0.1 of at most 1.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q openvino==2026.4.1 opencv-python-headless==5.0.0.93 tract==0.23.9 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import cv2, numpy as np, onnx, openvino, tract
from onnx import parser
from onnx.reference import ReferenceEvaluator


def model(text):
    return parser.parse_model(text)


def with_openvino(made, feeds):
    onnx.save(made, "model.onnx")
    core = openvino.Core()
    compiled = core.compile_model(core.read_model("model.onnx"), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled(feeds)
    return [np.array(results[i]) for i in range(len(made.graph.output))]


def reference(made, feeds):
    return ReferenceEvaluator(made).run(None, feeds)


def with_tract(made, feeds):
    onnx.save(made, "model.onnx")
    read = tract.onnx().load("model.onnx")
    for i, value in enumerate(feeds.values()):
        read.set_input_fact(i, ",".join(map(str, value.shape)) + ",f32")
    return [result.to_numpy() for result in read.into_model().into_runnable().run(list(feeds.values()))]


for name in ("openvino", "opencv-python-headless", "tract", "onnx", "numpy"):
    print(name, version(name))


def with_opencv(made, feeds):
    net = cv2.dnn.readNetFromONNX(np.frombuffer(made.SerializeToString(), np.uint8))
    net.setInput(feeds["x"], "x")
    return [np.array(net.forward("y"))]


rng = np.random.default_rng(0)
w, r = (np.round(rng.standard_normal((1, 12, n)), 2) for n in (4, 3))
text = """<ir_version: 8, opset_import: ["" : 14]>
g (float[2,3,4] x) => (float[a,b,c,d] y) <float[1,12,4] w = {%s}, float[1,12,3] r = {%s}> { y = LSTM<hidden_size=3%s>(x, w, r) }"""
made = [model(text % (*(",".join(map(str, t.ravel())) for t in (w, r)), layout)) for layout in (", layout=1", "")]
feeds = {"x": rng.standard_normal((2, 3, 4)).astype(np.float32)}
right, theirs, opencv = reference(made[0], feeds)[0], with_openvino(made[0], feeds)[0], with_opencv(made[0], feeds)[0]
also, without = with_tract(made[0], feeds)[0], with_openvino(made[1], feeds)[0]
print("reference:", right.shape, "tract:", also.shape, "OpenVINO:", theirs.shape, "OpenCV:", opencv.shape)
print(f"tract off by {abs(also - right).max():.0e}, OpenCV by {abs(opencv - right).max():.2f}")
print("OpenVINO as without the attribute:", bool((theirs == without).all()))
assert right.shape == (2, 3, 1, 3) and abs(also - right).max() < 1e-5
assert theirs.shape == (2, 1, 3, 3) and (theirs == without).all()
assert opencv.shape == right.shape and abs(opencv - right).max() > 0.1
PYTHON
