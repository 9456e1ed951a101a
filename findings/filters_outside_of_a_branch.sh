#!/usr/bin/env bash
# ONNX Runtime blocks no convolution in a branch whose filters are constants of the graph around it
#
# Guess: its blocked convolutions (NCHWc) need filters and bias that it finds as initializers, and it looks for them in the graph of the
# node only. Exporters keep all initializers in the main graph. So convolutions in an If or a Loop run by the plain kernel, though the
# same network with its filters in the branch runs in blocks. Results are the same.
#
#     findings/filters_outside_of_a_branch.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-29: onnxruntime 1.31.1, onnx 1.23.2, blocks of 8. Outside: Conv and Relu became FusedConv; inside: ReorderInput, blocked
# Conv, ReorderOutput.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnx, onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

for name in ("onnxruntime", "onnx", "numpy"):
    print(name, version(name))

filters = numpy_helper.from_array(np.random.default_rng(0).normal(0, 0.1, (32, 32, 3, 3)).astype(np.float32), "w")


def branch(name, inside):
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["r"])]
    if name == "other":
        nodes = [helper.make_node("Neg", ["x"], ["r"])]
    result = helper.make_tensor_value_info("r", TensorProto.FLOAT, [1, 32, 16, 16])
    return helper.make_graph(nodes, name, [], [result], [filters] if inside and name == "then" else [])


def model(inside):
    node = helper.make_node("If", ["flag"], ["y"], then_branch=branch("then", inside), else_branch=branch("other", inside))
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info("flag", TensorProto.BOOL, []),
         helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 32, 16, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 32, 16, 16])],
        [] if inside else [filters])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    return made


def loaded(made):
    options = ort.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.optimized_model_filepath = "loaded.onnx"
    session = ort.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = {"flag": np.array(True), "x": np.random.default_rng(1).normal(size=(1, 32, 16, 16)).astype(np.float32)}
    branches = {a.name: a.g for n in onnx.load("loaded.onnx").graph.node for a in n.attribute if a.HasField("g")}
    return [(n.domain, n.op_type) for n in branches["then_branch"].node], session.run(None, feeds)[0]


(outside, a), (inside, b) = loaded(model(False)), loaded(model(True))
print("filters outside:", outside)
print("filters inside:", inside)
assert not any("nchwc" in domain for domain, _ in outside)
assert any(domain.endswith("nchwc") and op == "Conv" for domain, op in inside)
assert np.abs(a - b).max() <= 1e-4
PYTHON
