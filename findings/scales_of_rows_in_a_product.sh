#!/usr/bin/env bash
# ONNX Runtime: in a product of two dequantized matrices the scales of rows are taken for those of columns
#
# DequantizeLinear has a scale for each place of the axis that it names. One guesses that a MatMul of two dequantized matrices computes the
# same with the runtime's rewrites as without. With them the three nodes become one op, which knows a scale for each column only. Where the
# second matrix has a scale for each row, and as many rows as columns, these scales are taken for the columns. Nothing is said. It is right
# where the first matrix is in floats, and with scales of columns.
#
#     findings/scales_of_rows_in_a_product.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-29: onnxruntime 1.31.1: off by more than a third of the largest number with ORT_ENABLE_ALL, and by 1e-7 without.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import numpy as np, onnx, onnxruntime as ort
from onnx import helper, numpy_helper

print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
rng = np.random.default_rng(1)
x = rng.integers(0, 256, (3, 8), dtype=np.uint8)
weights = rng.integers(-40, 40, (8, 8), dtype=np.int8)


def off(axis):
    """How far the product with rewrites is from the one without, as a part of its largest number."""
    nodes = [helper.make_node("DequantizeLinear", ["x", "s", "z"], ["a"]), helper.make_node("DequantizeLinear", ["w", "r"], ["b"], axis=axis),
             helper.make_node("MatMul", ["a", "b"], ["y"])]
    held = [numpy_helper.from_array(np.asarray(array), name) for name, array in
            {"s": np.float32(0.02), "z": np.uint8(128), "w": weights, "r": np.linspace(0.1, 0.9, 8, dtype=np.float32)}.items()]
    ports = [helper.make_tensor_value_info("x", 2, [3, 8]), helper.make_tensor_value_info("y", 1, [3, 8])]
    model = helper.make_model(helper.make_graph(nodes, "g", ports[:1], ports[1:], held), opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    found = []
    for level in (ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_ALL):
        options = ort.SessionOptions()
        options.graph_optimization_level, options.log_severity_level = level, 4
        found += ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    wanted = (x.astype(np.float32) - 128) * np.float32(0.02) @ (weights * np.linspace(0.1, 0.9, 8, dtype=np.float32).reshape([(8, 1), (1, 8)][axis]))
    assert np.abs(found[0] - wanted).max() < 1e-4 * np.abs(wanted).max()
    return float(np.abs(found[1] - found[0]).max() / np.abs(found[0]).max())


rows, columns = off(0), off(1)
print(f"scales of rows: off by {rows:.3f}; of columns: off by {columns:.3f}")
assert rows > 0.3 and columns < 1e-4
PYTHON
