#!/usr/bin/env bash
# A model that ONNX Runtime saved after its optimizations needs that release or a newer one, and nothing in the file says so
#
# Guess: since 1.30 convolutions take HardSwish in. A file with optimizations saved by 1.31 (MobileNetV3 and its like) has that as an attribute
# of a convolution. Operator sets and IR version are what they were, so 1.29 reads the file, and its kernel then refuses the attribute in
# words that name neither node nor operator nor version. The model itself loads in both. Without HardSwish the saved file loads in both.
#
#     findings/saved_models_that_older_releases_refuse.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-30: onnxruntime 1.31.1 and 1.32.0 save, 1.24.4 to 1.29.0 refuse, 1.30.0 loads, on x86-64. Here: 1.31.1, 1.29.0 and 1.30.0.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for release in 1.29.0 1.30.0 1.31.1; do python3 -m venv "$work/venv-$release"; done
"$work/venv-1.29.0/bin/pip" install -q onnxruntime==1.29.0 onnx==1.23.2 numpy==2.4.6
"$work/venv-1.30.0/bin/pip" install -q onnxruntime==1.30.0 onnx==1.23.2 numpy==2.4.6
"$work/venv-1.31.1/bin/pip" install -q onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6

cat >save.py <<'PYTHON'
import numpy as np, onnx, onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

print("onnxruntime", ort.__version__, "saves")
for activation in ("Relu", "HardSwish"):
    weights = [numpy_helper.from_array(np.full((16, 16, 3, 3), 0.01, np.float32), name) for name in ("v", "w")]
    nodes = [helper.make_node("Conv", ["x", "v"], ["a"]), helper.make_node(activation, ["a"], ["b"]), helper.make_node("Conv", ["b", "w"], ["y"])]
    ports = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 16, side, side])] for name, side in (("x", 8), ("y", 4))]
    made = helper.make_model(helper.make_graph(nodes, "g", *ports, weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    onnx.save(made, f"{activation}.onnx")
    options = ort.SessionOptions()
    options.optimized_model_filepath, options.log_severity_level = f"{activation}.saved.onnx", 4
    ort.InferenceSession(f"{activation}.onnx", options, providers=["CPUExecutionProvider"])
    saved = onnx.load(f"{activation}.saved.onnx")
    print(" ", activation, "is saved with ops", [node.op_type for node in saved.graph.node], "IR version", saved.ir_version)
PYTHON

cat >load.py <<'PYTHON'
import sys

import onnxruntime as ort

options = ort.SessionOptions()
options.log_severity_level = 4
print("onnxruntime", ort.__version__, "loads")
expected = dict(word.split("=") for word in sys.argv[1:])
for name, wanted in expected.items():
    try:
        ort.InferenceSession(f"{name}.onnx", options, providers=["CPUExecutionProvider"])
        got, why = "loads", ""
    except Exception as error:
        text = str(error)
        got, why = "refused", text[text.find("GetFused"):].strip()
    print(" ", name, got, why)
    if got != wanted:
        sys.exit(f"  {name} should be {wanted}")
PYTHON

"$work/venv-1.31.1/bin/python" save.py
"$work/venv-1.29.0/bin/python" load.py Relu=loads HardSwish=loads Relu.saved=loads HardSwish.saved=refused
"$work/venv-1.30.0/bin/python" load.py Relu=loads HardSwish=loads Relu.saved=loads HardSwish.saved=loads
