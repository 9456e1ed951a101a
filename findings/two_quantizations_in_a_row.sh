#!/usr/bin/env bash
# ONNX Runtime: two quantizations in a row become one, with a scale that no node of the model has
#
# Guess: QuantizeLinear, DequantizeLinear, QuantizeLinear, DequantizeLinear with two zero points round twice and clip twice. From
# ORT_ENABLE_BASIC on the runtime makes one pair of them, for the range that both can hold, with a new scale: nearly all numbers are other
# ones, by up to a step, and lie on another grid than the model's last node says. With equal zero points and scales nothing changes. Two
# such pairs also come to stand in a row where a tool takes away what was between them, such as a Transpose.
#
#     findings/two_quantizations_in_a_row.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnxruntime 1.31.1: scale 0.1 with zero points 128 and 100 gives steps of 0.0890196, and -3.2937 in place of -3.2;
# scales 0.1 and 0.5 give 16.2 in place of 16.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnx, onnxruntime as ort
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


def reference(made, feeds):
    return ReferenceEvaluator(made).run(None, feeds)


for name in ("onnxruntime", "onnx", "numpy"):
    print(name, version(name))

text = """<ir_version: 9, opset_import: ["" : 19]>
g (float[2401] x) => (float[2401] y) <float s = {%s}, uint8 z = {%d}, float t = {%s}, uint8 w = {%d}> {
  a = QuantizeLinear(x, s, z)
  b = DequantizeLinear(a, s, z)
  c = QuantizeLinear(b, t, w)
  y = DequantizeLinear(c, t, w)
}"""
feeds = {"x": np.linspace(-20, 40, 2401).astype(np.float32)}
for units, changes in (((0.1, 128, 0.1, 128), False), ((0.1, 128, 0.1, 100), True), ((0.1, 0, 0.5, 0), True)):
    made = model(text % units)
    plain, also = run(made, feeds)[0], reference(made, feeds)[0]
    basic = run(made, feeds, "ORT_ENABLE_BASIC")[0]
    far, step = abs(basic - plain), np.diff(np.unique(basic))[1]
    worst = far.argmax()
    print(units, f"{(far > 1e-4).mean():.0%} differ, steps of {step:.5f}, {plain[worst]:.4f} becomes {basic[worst]:.4f}")
    assert np.allclose(plain, also, atol=1e-4) and bool(far.max() > 0.05) == changes
PYTHON
