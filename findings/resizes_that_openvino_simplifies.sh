#!/usr/bin/env bash
# OpenVINO: a Resize loses antialias, exclude_outside and keep_aspect_ratio_policy when it is read
#
# Guess: attributes of Resize that a runtime does not have are refused, as OpenVINO does with half_pixel_symmetric. These three it drops:
# an image is made smaller without the filter, a cubic one counts pixels outside, and with a policy for sizes the result even has another
# shape than ONNX's shape inference says. No error and no warning.
#
#     findings/resizes_that_openvino_simplifies.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: openvino 2026.4.1 against onnxruntime 1.31.1 and the reference of onnx 1.23.2: the same bits as without the
# attribute.
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

text = """<ir_version: 9, opset_import: ["" : 19]>
g (float[1,1,4,4] x) => (float[a,b,c,d] y) <float[4] scales = {1,1,0.6,0.6}, int64[2] sizes = {7,6}> { y = Resize<%s>(x, "", %s) }"""
feeds = {"x": np.random.default_rng(0).standard_normal((1, 1, 4, 4)).astype(np.float32)}
cases = [
    ('mode="linear"', ", antialias=1", "scales"),
    ('mode="cubic"', ", exclude_outside=1", "scales"),
    ('mode="linear", axes=[2,3]', ', keep_aspect_ratio_policy="not_larger"', '"", sizes'),
]
for mode, attribute, lists in cases:
    made, without = model(text % (mode + attribute, lists)), model(text % (mode, lists))
    right, also, theirs = (way(made, feeds)[0] for way in (run, reference, with_openvino))
    plain = with_openvino(without, feeds)[0]
    gap = abs(theirs - right).max() if theirs.shape == right.shape else f"shape {theirs.shape} for {right.shape}"
    print(mode + attribute, "OpenVINO off by", gap, "as without:", bool((theirs == plain).all()))
    assert np.allclose(right, also, atol=1e-4) and (theirs == plain).all()
    assert theirs.shape != right.shape or gap > 0.02
PYTHON
