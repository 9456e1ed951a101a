#!/usr/bin/env bash
# onnx: pools with auto_pad=VALID and ceil_mode have three numbers of windows
#
# Guess: for VALID with ceil_mode the standard writes ceil((extent - window + 1) / stride), which is what floor gives without ceil_mode: no
# window reaches beyond the image. onnx's reference evaluator does that. onnx's inference, ONNX Runtime and OpenVINO compute VALID as pads
# of 0, so there is one window more at the end. With windows of one place inference and OpenVINO count a further one that ONNX Runtime has
# not.
#
#     findings/windows_of_valid_pools.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnx 1.23.2, onnxruntime 1.31.1, openvino 2026.4.1, MaxPool of opset 12 to 21. 7 places, windows of 3, stride 3:
# standard and reference 2, inference, ONNX Runtime and OpenVINO 3. 8 places, windows of 1, stride 2: standard, reference and ONNX Runtime
# 4, inference and OpenVINO 5.
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

text = """<ir_version: 10, opset_import: ["" : 19]> g (float[1,1,%d] x) => (float[a,b,c] y) {
  y = MaxPool<kernel_shape=[%d], strides=[%d], auto_pad="VALID", ceil_mode=1>(x)
}"""
found = []
for extent, window, stride in ((7, 3, 3), (8, 1, 2)):
    made = model(text % (extent, window, stride))
    inferred = onnx.shape_inference.infer_shapes(made, strict_mode=True).graph.output[0].type.tensor_type.shape.dim[2].dim_value
    standard = -(-(extent - window + 1) // stride)
    feeds = {"x": np.ones((1, 1, extent), np.float32)}
    seen = [way(made, feeds)[0].shape[2] for way in (reference, run, with_openvino)]
    print(f"{extent} places: standard {standard}, inferred {inferred}, reference, ONNX Runtime and OpenVINO {seen}")
    found.append([standard, inferred, *seen])
assert found == [[2, 3, 2, 3, 3], [4, 5, 4, 4, 5]]
PYTHON
