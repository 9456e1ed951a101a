#!/usr/bin/env bash
# onnx: shape inference and the reference make a scaled image one place smaller than the runtimes do
#
# Guess: the extent of a Resize is floor(extent * scale). Scales are float32, and 0.7 is a little less than 0.7 there. onnx's inference and
# its reference evaluator multiply in double, so 10 * 0.7 is 6.9999998 and becomes 6. ONNX Runtime and OpenVINO multiply in float32, which
# rounds to 7. So the shapes that inference writes into a file are not those that it has when it runs, and nothing is said.
#
#     findings/extents_of_scaled_images.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnx 1.23.2: 6, 28, 6 for 10 * 0.7, 100 * 0.29, 3 * 2.3333333; onnxruntime 1.31.1 and openvino 2026.4.1: 7, 29, 7.
# nxrt 0.1.0.dev6 computes as onnx does.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q openvino==2026.4.1 nxrt==0.1.0.dev6 onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, nxrt, onnx, onnxruntime as ort, openvino
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


for name in ("openvino", "nxrt", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))


def with_nxrt(made, feeds):
    onnx.save(made, "model.onnx")
    return [np.array(y) for y in nxrt.InferenceSession("model.onnx").run(None, feeds)]


text = """<ir_version: 9, opset_import: ["" : 19]>
g (float[1,1,1,%d] x) => (float[a,b,c,d] y) <float[4] s = {1,1,1,%s}> { y = Resize<mode="nearest">(x, "", s) }"""
for extent, scale, small in ((10, 0.7, 6), (100, 0.29, 28), (3, 2.3333333, 6)):
    made = model(text % (extent, scale))
    inferred = onnx.shape_inference.infer_shapes(made, strict_mode=True).graph.output[0].type.tensor_type.shape.dim[3].dim_value
    feeds = {"x": np.zeros((1, 1, 1, extent), np.float32)}
    seen = {way.__name__: way(made, feeds)[0].shape[3] for way in (reference, with_nxrt, run, with_openvino)}
    print(extent, "*", scale, "inferred:", inferred, seen)
    assert inferred == seen["reference"] == seen["with_nxrt"] == small and seen["run"] == seen["with_openvino"] == small + 1
PYTHON
