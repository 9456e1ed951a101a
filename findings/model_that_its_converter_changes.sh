#!/usr/bin/env bash
# onnx2tf: converting a model writes over the model's own file, and weights that only branches read are gone from it
#
# A converter reads one file and writes another. This one also writes what it simplified over the file that it was given, says nothing, and
# ends with status 0. Constants that only the branches of an If read do not come through that: the file, valid before, is no model any
# more. The result for TensorFlow Lite is made all the same. Give it a copy.
#
#     findings/model_that_its_converter_changes.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-29: onnx2tf 2.6.9 with onnx 1.20.1: "constants before: ['limit', 'v', 'w'], after: ['limit']; valid before: True, after:
# False". Needs Python 3.12 and 1.5 GB.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.12 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check onnx2tf==2.6.9
cd "$work"
cat >make.py <<'PYTHON'
import numpy as np, onnx
from onnx import helper, numpy_helper


def branch(name, weights):
    made = helper.make_node("MatMul", ["x", weights], [f"{name}_y"])
    return helper.make_graph([made], name, [], [helper.make_tensor_value_info(f"{name}_y", 1, [1, 4])])


nodes = [helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0), helper.make_node("Greater", ["m", "limit"], ["large"]),
         helper.make_node("If", ["large"], ["y"], then_branch=branch("then", "w"), else_branch=branch("other", "v"))]
held = [numpy_helper.from_array(np.full((8, 4), each, np.float32), name) for name, each in (("w", 0.5), ("v", 0.25))]
held.append(numpy_helper.from_array(np.float32(1), "limit"))
ports = [helper.make_tensor_value_info("x", 1, [1, 8]), helper.make_tensor_value_info("y", 1, [1, 4])]
model = helper.make_model(helper.make_graph(nodes, "g", ports[:1], ports[1:], held), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model, full_check=True)
onnx.save(model, "model.onnx")
PYTHON
venv/bin/python make.py
cp model.onnx kept.onnx
venv/bin/onnx2tf -i model.onnx -o out -n >said.txt 2>&1 || { tail -3 said.txt; exit 1; }
venv/bin/python - <<'PYTHON'
import importlib.metadata, onnx


def looked(path):
    """The constants of a file, and whether it is a model."""
    model = onnx.load(path)
    try:
        onnx.checker.check_model(model, full_check=True)
    except onnx.checker.ValidationError:
        return sorted(held.name for held in model.graph.initializer), False
    return sorted(held.name for held in model.graph.initializer), True


before, after = looked("kept.onnx"), looked("model.onnx")
print("onnx2tf", importlib.metadata.version("onnx2tf"), "onnx", onnx.__version__)
print(f"constants before: {before[0]}, after: {after[0]}; valid before: {before[1]}, after: {after[1]}")
assert before[1] and not after[1] and after[0] == ["limit"]
PYTHON
