#!/usr/bin/env bash
# ONNX Runtime: a mean over an image rounds eight times worse where channels stand last, or in blocks
#
# ReduceMean over the two inner axes adds eight sums side by side. Over an image whose channels stand last, and in the blocked
# GlobalAveragePool of its internal domain, every channel adds place after place. For positive numbers the error grows with the number of
# places: three bits between the two orders of the same op.
#
#     findings/mean_of_an_image.sh        exit status 1 if the behaviour is another one
#
# Seen: onnxruntime 1.31.1, x86-64: at 224 x 224, in units of 2^-24 of the mean, about 8 (channels first) and about 50 (channels last).
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

text = """<ir_version: 8, opset_import: ["" : 17]> g (float[%s] x) => (float[a,b,c,d] y) { y = ReduceMean<axes=[%s], keepdims=1>(x) }"""
first, last = model(text % ("1,16,224,224", "2,3")), model(text % ("1,224,224,16", "1,2"))
rng, squares = np.random.default_rng(0), [0.0, 0.0]
for _ in range(8):
    x = rng.random((1, 16, 224, 224)).astype(np.float32)
    exact = x.astype(np.float64).mean((2, 3)).ravel()
    for at, (data, image) in enumerate(((first, x), (last, np.ascontiguousarray(x.transpose(0, 2, 3, 1))))):
        squares[at] += float((((run(data, {"x": image})[0].ravel() - exact) / exact * 2**24) ** 2).mean()) / 8
a, b = (value**0.5 for value in squares)
print(f"channels first {a:.1f}, channels last {b:.1f} units of 2^-24")
assert b > 4 * a
PYTHON
