#!/usr/bin/env bash
# ONNX Runtime and OpenVINO: what is too large for a float of 8 bits becomes neither of what the standard says
#
# Guess: with saturate=1, the default, a number that is too large becomes the largest one, and with saturate=0 NaN (E4M3FN) or infinity
# (E5M2). ONNX Runtime gives 448 for 480 with saturate=0, and NaN for what lies below 480 or above 496; of E5M2 it gives NaN from 61440 on,
# and infinity further out. OpenVINO does not read the attribute: its Cast never saturates, not by default either, and its QuantizeLinear
# always does.
#
#     findings/floats_of_8_bits_that_overflow.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnxruntime 1.31.1, openvino 2026.4.1 and the reference of onnx 1.23.2, which is right.
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

cast = """<ir_version: 9, opset_import: ["" : 19]>
g (float[4] x) => (float[4] y) { q = Cast<to=%d, saturate=%d>(x) y = Cast<to=1>(q) }"""
quantize = """<ir_version: 9, opset_import: ["" : 19]> g (float[4] x) => (float[4] y) <float s = {1}, float8e4m3fn z = {0}> {
  q = QuantizeLinear<saturate=0>(x, s, z)
  y = DequantizeLinear(q, s, z)
}"""
ways = {"reference": reference, "onnxruntime": run, "openvino": with_openvino}


def seen(text, numbers):
    made = {name: way(model(text), {"x": np.array(numbers, np.float32)})[0].tolist() for name, way in ways.items()}
    print(made)
    return [[repr(number) for number in y] for y in made.values()]


e4m3, e5m2 = onnx.TensorProto.FLOAT8E4M3FN, onnx.TensorProto.FLOAT8E5M2
right, ours, theirs = seen(cast % (e4m3, 0), [440, 470, 480, 500])
assert right == ["448.0", "nan", "nan", "nan"] and ours == ["448.0", "nan", "448.0", "nan"] and theirs == right
right, ours, theirs = seen(cast % (e4m3, 1), [440, 470, 480, 500])
assert right == ours == ["448.0"] * 4 and theirs == ["448.0", "nan", "nan", "nan"]
right, ours, theirs = seen(cast % (e5m2, 0), [57344, 61440, 63000, 1e6])
assert right == ["57344.0", "inf", "inf", "inf"] and ours == ["57344.0", "nan", "nan", "inf"]
right, ours, theirs = seen(quantize, [440, 470, 480, 500])
assert right == ["448.0", "nan", "nan", "nan"] and ours == ["448.0", "nan", "448.0", "nan"] and theirs == ["448.0"] * 4
PYTHON
