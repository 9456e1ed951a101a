#!/usr/bin/env bash
# ONNX Runtime: a Squeeze whose list of axes is there and empty removes every axis of extent 1
#
# Of a Squeeze without the operand `axes` the standard says that all axes of extent 1 go. With an empty list none is named, and the reference
# implementation and shape inference of onnx keep all of them. The runtime takes an empty list for an absent one.
#
#     findings/squeezes_of_an_empty_list.sh        exit status 1 if the behaviour is another one
#
# Seen: onnxruntime 1.31.1, onnx 1.23.2: of a [1,4,1,4] value inference and reference make [1,4,1,4], the runtime [4,4], with and without rewrites.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import numpy as np, onnx, onnxruntime as ort
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
axes = numpy_helper.from_array(np.zeros(0, np.int64), "axes")
x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 4, 1, 4])
y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
graph = helper.make_graph([helper.make_node("Squeeze", ["x", "axes"], ["y"])], "g", [x], [y], [axes])
model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
feeds = {"x": np.ones((1, 4, 1, 4), np.float32)}

inferred = onnx.shape_inference.infer_shapes(model).graph.output[0].type.tensor_type.shape.dim
seen = {"inference": [dim.dim_value for dim in inferred], "reference": list(ReferenceEvaluator(model).run(None, feeds)[0].shape)}
for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_ALL"):
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    seen[level] = list(session.run(None, feeds)[0].shape)
print(seen)
whole, short = [1, 4, 1, 4], [4, 4]
assert seen == {"inference": whole, "reference": whole, "ORT_DISABLE_ALL": short, "ORT_ENABLE_ALL": short}
PYTHON
