#!/usr/bin/env bash
# ONNX Runtime: MaxPool with SAME padding and dilations gives fewer elements than the standard says
#
# ONNX's SAME_UPPER keeps an axis of n elements at ceil(n / stride), whatever the dilation. The runtime forms the padding from the kernel as
# if it were not dilated, so the result is shorter. onnx's own inference says 5 for the graph below.
#
#     findings/same_padding_of_dilated_pools.sh        exit status 1 if the behaviour is another one
#
# Seen: onnxruntime 1.31.1, onnx 1.23.2: 7 places by inference, 5 by the runtime, for 7 places, a kernel of 3 and dilations of 2.
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

text = """<ir_version: 8, opset_import: ["" : 13]>
g (float[1,1,7] x) => (float[1,1,n] y) { y = MaxPool<kernel_shape=[3], dilations=[2], auto_pad="SAME_UPPER">(x) }"""
inferred = onnx.shape_inference.infer_shapes(parser.parse_model(text)).graph.output[0].type.tensor_type.shape.dim[2]
made = run(model(text), {"x": np.zeros((1, 1, 7), np.float32)})[0].shape
print("inferred", inferred.dim_value or inferred.dim_param, "made", made)
assert made == (1, 1, 5), made
PYTHON
