#!/usr/bin/env bash
# ONNX Runtime: a view behind a DequantizeLinear of int8 makes a model of opset 21 that does not load
#
# With its rewrites the runtime puts a QuantizeLinear and a DequantizeLinear behind a Transpose or Reshape of dequantized values. The new
# QuantizeLinear says that its result is int8 and has a zero point of uint8, which shape inference of opset 21 refuses.
#
#     findings/signed_units_of_opset_21.sh        exit status 1 if the behaviour is another one
#
# Seen: onnxruntime 1.31.1: loads with ORT_DISABLE_ALL; with ORT_ENABLE_ALL "output_dtype INT8 does not match y_zero_point type UINT8".
# With opset 19 it loads.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import numpy as np, onnx, onnxruntime as ort
from onnx import parser


def model(text):
    return parser.parse_model(text).SerializeToString()


def session(data, level):
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    return ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def run(data, feeds, level="ORT_DISABLE_ALL"):
    return session(data, level).run(None, feeds)


def refused(work):
    try:
        work()
    except Exception as error:
        return " ".join(str(error).split())
    return None


print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)

text = """<ir_version: 10, opset_import: ["" : %d]>
g (float[1,4,8,8] x) => (float[1,8,8,4] y) <float s = {0.05}, int8 z = {0}> {
  q = QuantizeLinear(x, s, z)
  d = DequantizeLinear(q, s, z)
  t = Transpose<perm=[0,2,3,1]>(d)
  y = Relu(t)
}"""
for opset, loads in ((19, True), (21, False)):
    session(model(text % opset), "ORT_DISABLE_ALL")
    why = refused(lambda: session(model(text % opset), "ORT_ENABLE_ALL"))
    print(opset, why)
    assert (why is None) == loads and (loads or "does not match y_zero_point type UINT8" in why)
PYTHON
