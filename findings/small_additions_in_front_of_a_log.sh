#!/usr/bin/env bash
# onnxscript's optimizer takes 1e-8 for zero: a Log of an addition becomes minus infinity
#
# Guess: an addition goes if what is added is zero. onnxscript drops what numpy's isclose calls equal to zero: up to 1e-8 of either sign,
# whatever the other operand is. But such a constant is there for operands near zero: Log(x + 1e-10) of 0 is -23.03, and without the
# addition it is minus infinity; the Reciprocal of the same sum is 1e10, and then infinity. 1e-7 stays. In the same way a product with
# 1.0000001 goes, which is the next float but one above 1.
#
#     findings/small_additions_in_front_of_a_log.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-29: onnxscript 0.7.2, onnxruntime 1.31.1 and onnx 1.23.2.
# 1e-10 Log ['Log'] -23.025850296020508 -> -inf
# 1e-10 Reciprocal ['Reciprocal'] 10000000000.0 -> inf
# 1e-08 Log ['Log'] -18.42068099975586 -> -inf
# 1e-07 Log ['Add', 'Log'] -16.11809539794922 -> -16.11809539794922
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxscript==0.7.2 onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnxruntime as ort
from onnx import parser
from onnxscript import optimizer


def run(made):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = ort.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return float(session.run(None, {"x": np.zeros(1, np.float32)})[0][0])


for name in ("onnxscript", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))

text = '<ir_version: 10, opset_import: ["": 20]> g (float[1] x) => (float[1] y) <float e = {%s}> { s = Add(x, e) y = %s(s) }'
for added, op in (("1e-10", "Log"), ("1e-10", "Reciprocal"), ("1e-08", "Log"), ("1e-07", "Log")):
    made = parser.parse_model(text % (added, op))
    optimized = optimizer.optimize(parser.parse_model(text % (added, op)))
    ops, before, after = [node.op_type for node in optimized.graph.node], run(made), run(optimized)
    print(added, op, ops, before, "->", after)
    assert np.isfinite(before)
    if added == "1e-07":
        assert ops == ["Add", op] and after == before
    else:
        assert ops == [op] and np.isinf(after)
made = parser.parse_model(
    '<ir_version: 10, opset_import: ["": 20]> g (float[1] x) => (float[1] y) <float e = {1.0000001}> { y = Mul(x, e) }'
)
left = [node.op_type for node in optimizer.optimize(made).graph.node]
print("Mul 1.0000001", left)
assert np.float32(1.0000001) != 1 and left == ["Identity"]
PYTHON
