#!/usr/bin/env bash
# ONNX Runtime: a Cast of a float to int8 cuts, and one to int4 rounds
#
# Guess: a Cast of 1.9 to an integer gives 1, for each type of integer. ONNX Runtime gives 1 for int8 and 2 for int4, and the same of the
# unsigned types. The reference evaluator gives 1 for both. So a Cast to int4 is not the Cast to int8 with fewer bits, and a tool that
# folds it with numpy writes another number than the runtime makes. OpenVINO rounds too, and keeps numbers that no int4 can hold: 100 stays
# 100.
#
#     findings/casts_to_four_bits.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnxruntime 1.31.1, openvino 2026.4.1 and the reference of onnx 1.23.2.
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

text = """<ir_version: 10, opset_import: ["" : 21]> g (%s[3] x) => (%s[3] y) { q = Cast<to=%d>(x) y = Cast<to=%d>(q) }"""
kinds = {"int8": onnx.TensorProto.INT8, "uint8": onnx.TensorProto.UINT8, "int4": onnx.TensorProto.INT4, "uint4": onnx.TensorProto.UINT4}
ways = {"onnxruntime": run, "reference": reference, "openvino": with_openvino}
for name, kind in kinds.items():
    feeds = {"x": np.array([1.9, 2.6, 6.5], np.float32)}
    made = model(text % ("float", "float", kind, onnx.TensorProto.FLOAT))
    seen = {way: ways[way](made, feeds)[0].tolist() for way in ways}
    print(name, seen)
    rounded = name.endswith("int4")
    assert seen["reference"] == [1, 2, 6]
    assert seen["onnxruntime"] == seen["openvino"] == ([2, 3, 7] if rounded else [1, 2, 6])
feeds = {"x": np.array([100, 9, -1], np.int32)}
made = model(text % ("int32", "int32", onnx.TensorProto.INT4, onnx.TensorProto.INT32))
seen = {way: ways[way](made, feeds)[0].tolist() for way in ways}
print("int32 to int4", seen)
assert seen["onnxruntime"] == seen["reference"] == [4, -7, -1] and seen["openvino"] == [100, 9, -1]
PYTHON
