#!/usr/bin/env bash
# ONNX Runtime: a graph output becomes quantized because a Transpose and a QuantizeLinear read it
#
# With its rewrites the runtime puts a QuantizeLinear and DequantizeLinear also in front of a Transpose, where nothing else reads what the
# Transpose reads. An output of the graph is no reader to it, so the output leaves rounded to steps of the quantization.
#
#     findings/output_in_front_of_a_quantization.sh        exit status 1 if the behaviour is another one
#
# Seen: onnxruntime 1.31.1: y = Neg(x) is exact with ORT_DISABLE_ALL, and up to half a step of 0.1 off from ORT_ENABLE_BASIC on.
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

text = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1,4,3,2] x) => (float[1,4,3,2] y, float[1,3,2,4] d) <float s = {0.1}, uint8 z = {128}> {
  y = Neg(x)
  t = Transpose<perm=[0,2,3,1]>(y)
  q = QuantizeLinear(t, s, z)
  d = DequantizeLinear(q, s, z)
}"""
x = np.random.default_rng(0).standard_normal((1, 4, 3, 2)).astype(np.float32)
off = {level: float(abs(run(model(text), {"x": x}, level)[0] + x).max()) for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC")}
print("y is off by", off)
assert off["ORT_DISABLE_ALL"] == 0 and 0.02 < off["ORT_ENABLE_BASIC"] < 0.051
PYTHON
