#!/usr/bin/env bash
# onnx and ONNX Runtime: two nodes of one name pass the checker and do not load
#
# Names of nodes are optional in ONNX, and onnx.checker accepts two nodes of one name, also with full_check. ONNX Runtime calls such a
# file invalid, at every level of its rewrites.
#
#     findings/nodes_of_one_name.sh        exit status 1 if the behaviour is another one
#
# Seen: onnx 1.23.2 accepts; onnxruntime 1.31.1: "two nodes with same node name".
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

text = """<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) { a = Relu(x) y = Neg(a) }"""
graph = parser.parse_model(text)
for node in graph.graph.node:
    node.name = "same"
onnx.checker.check_model(graph, full_check=True)
said = {level: refused(lambda: session(graph.SerializeToString(), level)) for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_ALL")}
print(said)
assert all(why and "same node name" in why for why in said.values())
PYTHON
