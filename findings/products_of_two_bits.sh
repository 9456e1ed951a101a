#!/usr/bin/env bash
# ONNX Runtime: products with dequantized numbers of 2 bits are wrong where the columns are no fours
#
# DequantizeLinear takes numbers of 2 bits since operator set 25. One guesses that a product with them computes what it computes with bytes
# of the same numbers. With its rewrites the runtime makes one op of the two, and where the weights have 6 or 7 columns it reads other
# numbers. With 8 columns, and without rewrites, it is right. Nothing is said.
#
#     findings/products_of_two_bits.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-28: onnxruntime 1.31.1: off by 0.5 to 1.6 of the largest number with ORT_ENABLE_ALL and 6 or 7 columns.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6 ml_dtypes==0.6.0
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import ml_dtypes, numpy as np, onnx, onnxruntime as ort
from onnx import helper, numpy_helper

print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)


def run(model, x, level):
    options = ort.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = level, 4
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def off(columns, level):
    """How far the product is off, as a part of its largest number."""
    rng = np.random.default_rng(0)
    weights = rng.integers(-2, 2, (8, columns))
    nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["d"]), helper.make_node("MatMul", ["x", "d"], ["y"])]
    ports = [helper.make_tensor_value_info(name, 1, [3, size]) for name, size in (("x", 8), ("y", columns))]
    held = [numpy_helper.from_array(weights.astype(ml_dtypes.int2), "w"), numpy_helper.from_array(np.float32(0.5), "s")]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
    onnx.checker.check_model(model)
    x = rng.standard_normal((3, 8)).astype(np.float32)
    wanted = x @ (weights * 0.5).astype(np.float32)
    return float(np.abs(run(model, x, level) - wanted).max() / np.abs(wanted).max())


for columns in (6, 7, 8):
    plain, joined = (off(columns, level) for level in (ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_ALL))
    print(f"{columns} columns: off by {plain:.4f} without rewrites, by {joined:.4f} with them")
    assert plain < 1e-6 and (joined > 0.3) == (columns % 4 != 0)
PYTHON
