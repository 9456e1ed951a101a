#!/usr/bin/env bash
# onnx: extract_model and add_prefix forget what only the body of an If reads
#
# Guess: a body may read any value of the graph around it by name, without an operand of the If. onnx.utils.extract_model follows operands
# only, so the node that makes such a value is left out. onnx.compose.add_prefix renames initializers and leaves their readers in bodies as
# they are. Both then fail on a valid model ("topologically sorted"), which says nothing of the reason; with check_model=False the former
# writes the broken file.
#
#     findings/names_that_bodies_read.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnx 1.23.2; onnxruntime 1.31.1 runs the model that both are given.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnx, onnxruntime as ort
from onnx import compose, parser, utils


def model(text):
    return parser.parse_model(text)


def session(made, level):
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    return ort.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(made, feeds, level="ORT_DISABLE_ALL"):
    return session(made, level).run(None, feeds)


def refused(work):
    try:
        work()
    except Exception as error:
        return " ".join(str(error).split())
    return None


for name in ("onnxruntime", "onnx", "numpy"):
    print(name, version(name))

text = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x, bool c) => (float[2] y) <float[2] w = {3,4}> {
  t = Neg(x)
  u = Abs(t)
  y = If(c) <then_branch = a () => (float[2] p) { p = Mul(u, w) }, else_branch = b () => (float[2] q) { q = Exp(t) }>
}"""
feeds = {"x": np.array([1, 2], np.float32), "c": np.array(True)}
onnx.checker.check_model(model(text), full_check=True)
print("runs:", run(model(text), feeds)[0].tolist())
onnx.save(model(text), "whole.onnx")
why = refused(lambda: utils.extract_model("whole.onnx", "part.onnx", ["x", "c"], ["y"]))
print("extract_model:", why and why[:100])
utils.extract_model("whole.onnx", "part.onnx", ["x", "c"], ["y"], check_model=False)
part = onnx.load("part.onnx")
print("nodes:", [node.op_type for node in part.graph.node], "initializers:", [w.name for w in part.graph.initializer])
assert "sorted" in why and [node.op_type for node in part.graph.node] == ["If"] and not part.graph.initializer
prefixed = compose.add_prefix(model(text), "my_")
why = refused(lambda: onnx.checker.check_model(prefixed))
read = [name for attribute in prefixed.graph.node[2].attribute for node in attribute.g.node for name in node.input]
print("add_prefix:", [w.name for w in prefixed.graph.initializer], "read by bodies:", read, "|", why and why[:100])
assert why and prefixed.graph.initializer[0].name == "my_w" and "w" in read
PYTHON
