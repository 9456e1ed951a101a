#!/usr/bin/env bash
# ONNX Runtime: MultiHeadAttention takes a scale of 0 for no scale
#
# The attribute `scale` of com.microsoft.MultiHeadAttention replaces 1 / sqrt(head size). 0.0 is a number like any other, and would make all
# weights equal; the kernel takes it as "not set" and scales by 1 / sqrt(head size).
#
#     findings/attention_scale_of_zero.sh        exit status 1 if the behaviour is another one
#
# Seen: onnxruntime 1.31.1: scale=0.0 gives the same bits as no attribute, and not the mean of the values, which 1e-30 gives.
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

text = """<ir_version: 10, opset_import: ["" : 17, "com.microsoft" : 1]>
g (float[1,4,8] q, float[1,4,8] k, float[1,4,8] v) => (float[1,4,8] y) { y = com.microsoft.MultiHeadAttention<num_heads=2%s>(q, k, v) }"""
feeds = {name: np.random.default_rng(i).standard_normal((1, 4, 8)).astype(np.float32) for i, name in enumerate("qkv")}
none, zero, tiny = (run(model(text % scale), feeds)[0] for scale in ("", ", scale=0.0", ", scale=1e-30"))
mean = np.broadcast_to(feeds["v"].mean(1, keepdims=True), none.shape)
print("0.0 as none:", bool((none == zero).all()), "1e-30 as mean:", bool(np.allclose(tiny, mean, atol=1e-6)))
assert (none == zero).all() and np.allclose(tiny, mean, atol=1e-6) and not np.allclose(zero, mean, atol=1e-2)
PYTHON
