#!/usr/bin/env bash
# ONNX Runtime: an output may be declared with a shape that it never has
#
# A graph output that is declared as float[2,3] and computed as float[2,4] is a contradiction that onnx's strict inference refuses. The
# runtime loads the file, calls the extent unknown when it is asked for the output's type, and gives what was computed.
#
#     findings/contradicting_output_shape.sh        exit status 1 if the behaviour is another one
#
# Seen: onnxruntime 1.31.1: the session declares [2, None], the result is (2, 4).
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

text = """<ir_version: 8, opset_import: ["" : 17]> g (float[2,4] x) => (float[2,3] y) { y = Relu(x) }"""
strict = refused(lambda: onnx.shape_inference.infer_shapes(parser.parse_model(text), strict_mode=True))
loaded = session(model(text), "ORT_DISABLE_ALL")
result = loaded.run(None, {"x": np.zeros((2, 4), np.float32)})[0].shape
print("strict inference:", strict and strict[:80], "declared:", loaded.get_outputs()[0].shape, "made:", result)
assert strict and loaded.get_outputs()[0].shape == [2, None] and result == (2, 4)
PYTHON
