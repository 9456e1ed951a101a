#!/usr/bin/env bash
# ONNX Runtime: a Squeeze in front of a quantization to floats of 8 bits keeps the model from loading, a Reshape does not
#
# With its rewrites the runtime moves a QuantizeLinear in front of the views that it follows. One guesses that it asks whether it has a kernel
# of the view for the narrow type. It does not: behind a Squeeze, an Unsqueeze, a Slice or a MaxPool a quantization to floats of 8 bits makes a
# node that has none, and the model does not load. Behind a Reshape or a Transpose it runs, and without rewrites all of them run.
#
#     findings/squeezes_of_narrow_floats.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-29: onnxruntime 1.31.1: "Failed to find kernel for Squeeze(21)" with ORT_ENABLE_ALL.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6 ml_dtypes==0.6.0
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import numpy as np, onnx, onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
VIEWS = {"Squeeze": (["axes"], [4, 6]), "Unsqueeze": (["axes"], [1, 1, 4, 6]), "Reshape": (["shape"], [4, 6]), "Transpose": ([], [6, 4, 1])}


def said(view, level):
    """What the runtime says to a view in front of a quantization; nothing if it runs."""
    more, shape = VIEWS[view]
    nodes = [helper.make_node(view, ["x", *more], ["v"]), helper.make_node("QuantizeLinear", ["v", "s", "z"], ["q"]),
             helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"])]
    held = [numpy_helper.from_array(np.float32(0.5), "s"), helper.make_tensor("z", TensorProto.FLOAT8E4M3FN, [], [0]),
            numpy_helper.from_array(np.array([0]), "axes"), numpy_helper.from_array(np.array([4, 6]), "shape")]
    ports = [helper.make_tensor_value_info("x", 1, [1, 4, 6]), helper.make_tensor_value_info("y", 1, shape)]
    model = helper.make_model(helper.make_graph(nodes, "g", ports[:1], ports[1:], held), opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    options = ort.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = level, 4
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        session.run(None, {"x": np.ones((1, 4, 6), np.float32)})
    except Exception as error:
        return " ".join(str(error).split())[:120]
    return ""


levels = ort.GraphOptimizationLevel
for view in VIEWS:
    plain, rewritten = said(view, levels.ORT_DISABLE_ALL), said(view, levels.ORT_ENABLE_ALL)
    print(f"{view}: {rewritten or 'runs'}")
    assert not plain and ("Failed to find kernel" in rewritten) == ("queeze" in view)
PYTHON
