#!/usr/bin/env bash
# onnxconverter-common has constants from 1e4 on as 1e4 in halves, which hold up to 65504
#
# Guess: a constant becomes the nearest half, and what no half can hold becomes the largest, or infinity. convert_float_to_float16 cuts all
# constants to magnitudes from 1e-7 to 1e4, unless its caller says otherwise (`min_positive_val`, `max_finite_val`; it warns). So 20000
# becomes 10000 though it is a half itself, and a model that multiplies by it and divides afterwards is off by a factor of two.
# 6e-8, the least half above zero, becomes 1.2e-7, the next one. What a mask adds is -1e4 in the place of the least float.
#
#     findings/constants_that_halves_would_hold.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-29: onnxconverter-common 1.16.0, onnxruntime 1.31.1 and onnx 1.23.2.
# 20000 -> 10000, nearest half 20000
# product with 20000 of 0.5: 10000.0 -> 5000.0
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxconverter-common==1.16.0 onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnxruntime as ort
from onnx import numpy_helper, parser
from onnxconverter_common import float16


def run(made, kind):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = ort.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return float(session.run(None, {"x": np.full(1, 0.5, kind)})[0][0])


def product(factor):
    return parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 20]> g (float[1] x) => (float[1] y) <float e = {{{factor}}}> {{ y = Mul(x, e) }}'
    )


for name in ("onnxconverter-common", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))

tiny = np.float16(6e-8)
for text, expected in (("20000", 1e4), ("60000", 1e4), ("-3.4e38", -1e4), ("9984", 9984), ("5.9604645e-08", 1e-7), ("0", 0)):
    halves = float16.convert_float_to_float16(product(text))
    seen = numpy_helper.to_array(halves.graph.initializer[0])
    print(text, "->", f"{float(seen):g}, nearest half {float(np.float32(text).astype(np.float16)):g}")
    assert seen.dtype == np.float16 and seen == np.float16(expected)
assert np.float16(1e-7) == 2 * tiny > tiny > 0
before, after = run(product("20000"), np.float32), run(float16.convert_float_to_float16(product("20000")), np.float16)
print("product with 20000 of 0.5:", before, "->", after)
assert (before, after) == (10000, 5000)
PYTHON
