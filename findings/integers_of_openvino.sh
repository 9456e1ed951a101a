#!/usr/bin/env bash
# OpenVINO: bytes saturate where they are shifted, and 64 bits are 32
#
# Guess: BitShift moves the bits of a byte to the left, and those that leave are lost: 255 becomes 254, 128 becomes 0. OpenVINO gives 255
# for both. Sums and products of bytes saturate as well, where all others wrap. int64 is computed in 32 bits: 2^40 + 1 is 1, and a Cast of
# 3e9 to int64 is the smallest int32. No warning. Hashes, masks and codes that a model packs into integers come out as other ones.
#
#     findings/integers_of_openvino.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: openvino 2026.4.1 (CPU plugin) against onnxruntime 1.31.1 and the reference of onnx 1.23.2.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q openvino==2026.4.1 onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnx, onnxruntime as ort, openvino
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


for name in ("openvino", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))

head = '<ir_version: 8, opset_import: ["" : 14]> g '
cases = [
    ('(uint8[2] a, uint8[2] b) => (uint8[2] y) { y = BitShift<direction="LEFT">(a, b) }', np.uint8, [[255, 128], [1, 1]], [255, 255]),
    ("(uint8[2] a, uint8[2] b) => (uint8[2] y) { y = Add(a, b) }", np.uint8, [[255, 200], [1, 100]], [255, 255]),
    ("(int64[2] a, int64[2] b) => (int64[2] y) { y = Add(a, b) }", np.int64, [[2**40, 2**31], [1, 0]], [1, -(2**31)]),
    ("(float[1] a) => (int64[1] y) { y = Cast<to=7>(a) }", np.float32, [[3e9]], [-(2**31)]),
]
for text, kind, numbers, theirs in cases:
    feeds = dict(zip("ab", (np.array(list_, kind) for list_ in numbers)))
    right, also, seen = (way(model(head + text), feeds)[0].tolist() for way in (run, reference, with_openvino))
    print(text[text.index("{") :], numbers, "right:", right, "OpenVINO:", seen)
    assert right == also and seen == theirs and seen != right
PYTHON
