#!/usr/bin/env bash
# ONNX Runtime: a Transpose in front of a DequantizeLinear with blocks and one behind it cancel, and the scales stay
#
# DequantizeLinear of opset 21 may have a scale for each block along an axis. With its rewrites the runtime moves a Transpose in front of it
# behind it, where another one undoes it, but leaves the scales in their order, which then belong to other elements. Nothing is said.
#
#     findings/dequantize_in_blocks.sh        exit status 1 if the behaviour is another one
#
# Seen: onnxruntime 1.31.1: right with ORT_DISABLE_ALL, off by more than a tenth from ORT_ENABLE_BASIC on.
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

text = """<ir_version: 10, opset_import: ["" : 21]>
g (int8[2,8,2] x) => (float[2,8,2] y) <float[2,2,2] s = {0.5,1,2,3,4,5,6,7}> {
  t = Transpose<perm=[0,2,1]>(x)
  d = DequantizeLinear<axis=2, block_size=4>(t, s)
  y = Transpose<perm=[0,2,1]>(d)
}"""
x = np.arange(-16, 16, dtype=np.int8).reshape(2, 8, 2)
scales = np.array([0.5, 1, 2, 3, 4, 5, 6, 7], np.float32).reshape(2, 2, 2).repeat(4, 2)
right = (x.transpose(0, 2, 1) * scales).transpose(0, 2, 1)
far = {}
for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_ALL"):
    try:
        made = run(model(text), {"x": x}, level)[0]
        far[level] = round(float(np.sqrt(((made - right) ** 2).mean() / (right**2).mean())), 3)
    except Exception as error:
        far[level] = " ".join(str(error).split())[:120]
print("relative error:", far)
assert far["ORT_DISABLE_ALL"] == 0 and all(isinstance(d, float) and d > 0.1 for d in list(far.values())[1:])
PYTHON
