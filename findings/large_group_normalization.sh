#!/usr/bin/env bash
# ONNX Runtime: GroupNormalization over large groups loses ten bits
#
# The function of GroupNormalization reduces all elements of a group at once, in float32. At 448 x 448 pixels and 8 channels per group its
# result for positive numbers has an error of more than 2^-15, and the same sums formed per channel first have a quarter of it.
#
#     findings/large_group_normalization.sh        exit status 1 if the behaviour is another one
#
# Seen: onnxruntime 1.31.1, x86-64: root mean square of about 1000 units of 2^-24.
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
g (float[1,32,448,448] x, float[32] s, float[32] b) => (float[1,32,448,448] y) { y = GroupNormalization<num_groups=4>(x, s, b) }"""
x = np.random.default_rng(0).random((1, 32, 448, 448)).astype(np.float32)
feeds = {"x": x, "s": np.ones(32, np.float32), "b": np.zeros(32, np.float32)}
groups = x.astype(np.float64).reshape(1, 4, -1)
exact = ((groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + 1e-5)).reshape(x.shape)
error = float(np.sqrt(((run(model(text), feeds)[0] - exact) ** 2).mean()) * 2**24)
print(f"{error:.0f} units of 2^-24")
assert error > 300
PYTHON
