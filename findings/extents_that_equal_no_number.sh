#!/usr/bin/env bash
# onnxslim: an extent that only the run knows is taken to be equal to no number
#
# A crop by a border is a Slice that ends at minus the border. A border of 0 would leave nothing, so exporters write a case for it: where the
# border equals 0 the end is 2147483647. Guess: that case stays, since the border is known only when the model runs. onnxslim computes
# with extents by their names, has False for the Equal of an expression with a name and of a number, and writes that as a constant.
#
#     findings/extents_that_equal_no_number.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-30: onnxslim 0.1.98 with onnx 1.23.2, run by onnxruntime 1.32.0 without rewrites. Of [1, 2, 3, 4] the model, whose border
# is n - 4, makes [1, 2, 3, 4], the result of onnxslim nothing, with a Where and with products of truth values. Of six numbers both make the
# first four. A released network for fingerprints crops so.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxslim==0.1.98 onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnx, onnxruntime as ort, onnxslim
from onnx import parser

HEAD = """<ir_version: 8, opset_import: ["" : 17]>
g (float[n] x) => (float[m] y) <int64[1] zero = {0}, int64[1] four = {4}, int64[1] all = {2147483647}>
{ extent = Shape(x) border = Sub(extent, four) none = Equal(border, zero)"""
ENDS = {
    "a Where": "cut = Neg(border) end = Where(none, all, cut)",
    "products": """some = Not(none) is_none = Cast<to = 7>(none) is_some = Cast<to = 7>(some) less = Neg(is_some)
                   cut = Mul(border, less) whole = Mul(all, is_none) end = Add(cut, whole)""",
}


def run(model, count):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.arange(1, count + 1, dtype=np.float32)})[0].tolist()


for name in ("onnxslim", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))
for name, end in ENDS.items():
    text = f"{HEAD} {end} y = Slice(x, zero, end, zero) }}"
    before = parser.parse_model(text)
    onnx.checker.check_model(before, full_check=True)
    after = onnxslim.slim(parser.parse_model(text))
    onnx.checker.check_model(after, full_check=True)
    print(f"the end by {name}:", [node.op_type for node in after.graph.node])
    for count in (6, 4):
        print(f"  of {count} numbers", run(before, count), "becomes", run(after, count))
    assert run(before, 6) == run(after, 6) == run(before, 4) == [1, 2, 3, 4]
    assert run(after, 4) == []
PYTHON
