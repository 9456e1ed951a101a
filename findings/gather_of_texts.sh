#!/usr/bin/env bash
# ONNX Runtime: Gather of strings along an axis that is not the last copies one string per slice
#
# ONNX's Gather takes whole slices along its axis, for any element type. ONNX Runtime's CPU kernel copies each slice of fixed-size elements
# with all that is in it; of strings it copies the first of each slice only, and the rest of the result is empty.
#
#     findings/gather_of_texts.sh        exit status 1 if the behaviour is another one
#
# Seen: onnxruntime 1.31.1: [['a', ''], ['e', '']] for rows 0 and 2 of [['a','b'],['c','d'],['e','f']]; int64 in the same graph is right.
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
g (%s[3,2] x, int64[2] i) => (%s[2,2] y) { y = Gather<axis=0>(x, i) }"""
rows = np.array([0, 2])
words = run(model(text % ("string", "string")), {"x": np.array([["a", "b"], ["c", "d"], ["e", "f"]], object), "i": rows})[0]
numbers = run(model(text % ("int64", "int64")), {"x": np.arange(6).reshape(3, 2), "i": rows})[0]
print(words.tolist(), numbers.tolist())
assert numbers.tolist() == [[0, 1], [4, 5]]
assert words.tolist() == [["a", ""], ["e", ""]], words
PYTHON
