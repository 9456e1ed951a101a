#!/usr/bin/env bash
# ONNX Runtime: a graph whose nodes are out of order loads, although the standard and onnx.checker refuse it
#
# The standard wants the nodes of a graph sorted: what a node reads is made by a node before it. onnx.checker says so. ONNX Runtime sorts
# them itself and computes the right result, so such files are around, and a program that reads a file front to back fails on them.
#
#     findings/unsorted_nodes.sh        exit status 1 if the behaviour is another one
#
# Seen: onnx 1.23.2 refuses ("Nodes in a graph must be topologically sorted"), onnxruntime 1.31.1 runs it.
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

text = """<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { a = Neg(x) y = Relu(a) }"""
graph = parser.parse_model(text)
first, second = graph.graph.node[0], graph.graph.node[1]
nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in (second, first)]
del graph.graph.node[:]
graph.graph.node.extend(nodes)
checked = refused(lambda: onnx.checker.check_model(graph))
result = run(graph.SerializeToString(), {"x": np.array([1, -2], np.float32)})[0].tolist()
print("checker:", checked and checked[:60], "runtime:", result)
assert checked and "topologically sorted" in checked and result == [0.0, 2.0]
PYTHON
