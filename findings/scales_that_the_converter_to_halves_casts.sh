#!/usr/bin/env bash
# ONNX Runtime's converter to float16 leaves the Cast of a Resize's scales behind the Resize: onnx refuses the file, ONNX Runtime loads it
#
# Guess: scales have to be float32. Where they are the result of a Constant node, the converter makes that node float16 and adds a Cast back, at
# the end of the list of nodes, and does not sort them. Where the same scales are an initializer it leaves them alone.
#
#     findings/scales_that_the_converter_to_halves_casts.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-30: onnxruntime 1.31.1 and onnx 1.23.2.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6

cat >show.py <<'PYTHON'
import sys

import numpy as np, onnx, onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.transformers.float16 import convert_float_to_float16


def made(as_node):
    scales = numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales")
    nodes = [helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="nearest"), helper.make_node("Relu", ["y"], ["z"])]
    if as_node:
        nodes.insert(0, helper.make_node("Constant", [], ["scales"], value=scales))
    x, z = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2, side, side]) for name, side in (("x", 4), ("z", 8)))
    graph = helper.make_graph(nodes, "g", [x], [z], [] if as_node else [scales])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


seen = []
for as_node in (False, True):
    halves = convert_float_to_float16(made(as_node))
    try:
        onnx.checker.check_model(halves)
        valid = True
    except onnx.checker.ValidationError as error:
        valid = False
        print("onnx:", " ".join(str(error).split())[:130])
    session = ort.InferenceSession(halves.SerializeToString(), providers=["CPUExecutionProvider"])
    shape = session.run(None, {"x": np.ones((1, 2, 4, 4), np.float16)})[0].shape
    order = [node.op_type for node in halves.graph.node]
    print(f"scales as {'a Constant node' if as_node else 'an initializer'}: {order}, valid: {valid}, ONNX Runtime leaves {shape}")
    seen.append((order, valid, shape))

print("onnxruntime", ort.__version__, "onnx", onnx.__version__)
expected = [(["Resize", "Relu"], True, (1, 2, 8, 8)), (["Constant", "Resize", "Relu", "Cast"], False, (1, 2, 8, 8))]
sys.exit(seen != expected)
PYTHON
venv/bin/python show.py
