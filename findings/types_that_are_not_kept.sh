#!/usr/bin/env bash
# onnxconverter-common: with keep_io_types outputs become halves, and plain models do not load any more
#
# Guess: convert_float_to_float16 with keep_io_types=True leaves inputs and outputs as they are, floats. An output of an op that it keeps
# in floats, such as Resize, CumSum or TopK, becomes float16 all the same. A value that two nodes without names read gets two Casts of one
# name. And a Cast of integers to floats stays one to float32 among halves. The last two do not load.
#
#     findings/types_that_are_not_kept.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnxconverter-common 1.16.0 with onnx 1.23.2, onnxruntime 1.31.1.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxconverter-common==1.16.0 onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnx, onnxruntime as ort
from onnx import parser
from onnxconverter_common import float16


def model(text):
    return parser.parse_model(text)


def session(made, level):
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    return ort.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])


def refused(work):
    try:
        work()
    except Exception as error:
        return " ".join(str(error).split())
    return None


for name in ("onnxconverter-common", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))

head = '<ir_version: 8, opset_import: ["" : 13]> g (float[4] x) => (float[4] y) '


def halves(text, names):
    made = model(head + text)
    for i, node in enumerate(made.graph.node):
        node.name = f"n{i}" if names else ""
    session(made, "ORT_DISABLE_ALL")
    onnx.checker.check_model(made, full_check=True)
    return float16.convert_float_to_float16(made, keep_io_types=True)


kept = halves("<int64 axis = {0}> { y = CumSum(x, axis) }", True)
kind = session(kept, "ORT_DISABLE_ALL").get_outputs()[0].type
print("output of CumSum:", kind)
assert kind == "tensor(float16)"
plain = halves("{ a = Neg(x) b = Abs(x) y = Add(a, b) }", True)
assert session(plain, "ORT_DISABLE_ALL").get_outputs()[0].type == "tensor(float)"
for text, names in (("{ a = Neg(x) b = Abs(x) y = Add(a, b) }", False), ("{ i = Cast<to=7>(x) f = Cast<to=1>(i) y = Add(x, f) }", True)):
    why = refused(lambda: session(halves(text, names), "ORT_DISABLE_ALL"))
    print(text, "named" if names else "without names", "|", why and why[:150])
    assert why
PYTHON
