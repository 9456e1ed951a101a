#!/usr/bin/env bash
# onnxscript: two Slices become one Split that stands behind its readers, and has an attribute of a newer operator set
#
# The optimizer of onnxscript makes one Split of two Slices that cut a value into halves. Guess: the Split stands where the first Slice
# stood, and is one of the model's operator set. It stands where the Slice of the first half was, also if the other half is read before,
# and it has `num_outputs`, which Split has since operator set 18. onnx.checker refuses the result; ONNX Runtime runs that of operator
# set 18, since it takes nodes in any order, and does not load that of 17.
#
#     findings/slices_that_become_a_split.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-30: onnxscript 0.7.2 with onnx 1.23.2, run by onnxruntime 1.32.0. A released network for fingerprints is written so.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxscript==0.7.2 onnx-ir==1.1.0 onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnx, onnxruntime as ort, onnxscript.optimizer
from onnx import parser

BODY = """g (float[4] x) => (float[4] y) <int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}>
{ last = Slice(x, two, four, zero) less = Neg(last) first = Slice(x, zero, two, zero) y = Concat<axis = 0>(first, less) }"""


def run(model):
    options = ort.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as why:  # the class is not public
        return str(why)
    return session.run(None, {"x": np.arange(4, dtype=np.float32)})[0].tolist()


def checked(model):
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as why:
        return str(why).splitlines()[0]
    return "valid"


for name in ("onnxscript", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))
for opset in (17, 18):
    text = f'<ir_version: 8, opset_import: ["" : {opset}]> {BODY}'
    before = parser.parse_model(text)
    onnx.checker.check_model(before, full_check=True)
    after = onnxscript.optimizer.optimize(parser.parse_model(text))
    order, said, ran = [node.op_type for node in after.graph.node], checked(after), run(after)
    told = [attribute.name for node in after.graph.node if node.op_type == "Split" for attribute in node.attribute]
    print(f"operator set {opset}: {order}, Split has {told}; onnx.checker: {said}")
    print("  before", run(before), "after", ran)
    assert order == ["Neg", "Split", "Concat"] and "num_outputs" in told and "topologically sorted" in said
    assert run(before) == [0, 1, -2, -3]
    assert ran == [0, 1, -2, -3] if opset == 18 else "num_outputs" in ran
PYTHON
