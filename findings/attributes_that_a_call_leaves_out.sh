#!/usr/bin/env bash
# onnx's reference evaluator: a function whose call leaves an attribute out does not run
#
# A node in a function may take an attribute from the call. Where the call does not have it, the node does not have it either and its
# default holds: so the standard says, and ONNX Runtime does. The reference evaluator ends with an AttributeError instead, for ops whose
# attribute has a default.
#
#     findings/attributes_that_a_call_leaves_out.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-28: onnx 1.23.2: 'OpFunction' object has no attribute 'axis'; onnxruntime 1.31.1 computes the Softmax of the last axis.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import numpy as np, onnx, onnxruntime as ort
from onnx import parser
from onnx.reference import ReferenceEvaluator

print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
text = """<ir_version: 9, opset_import: ["" : 17, "mine" : 1]>
g (float[2,3] x) => (float[2,3] y) { y = mine.soft(x) }
<domain: "mine", opset_import: ["" : 17]>
soft <axis> (x) => (y) { y = Softmax<axis: int = @axis>(x) }"""
model = parser.parse_model(text)
onnx.checker.check_model(model)
x = np.arange(6, dtype=np.float32).reshape(2, 3)
made = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
wanted = np.exp(x) / np.exp(x).sum(1, keepdims=True)
print("onnxruntime: off by", float(np.abs(made - wanted).max()))
assert np.allclose(made, wanted)
try:
    ReferenceEvaluator(model).run(None, {"x": x})
    said = None
except Exception as error:
    said = " ".join(str(error).split())
print("onnx's reference evaluator:", said)
assert said is not None and "has no attribute" in said
PYTHON
