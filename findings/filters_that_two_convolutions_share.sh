#!/usr/bin/env bash
# OpenCV: a normalization behind one convolution also scales the other ones that share its filters
#
# Two convolutions may have one constant as their filters, as layers with tied weights do. One guesses that a BatchNormalization behind the
# first one is the first one's alone. OpenCV 5 multiplies the filters by its scales, and the second convolution reads the same filters: its
# numbers are off by the scale. With two constants of the same numbers both are right. Nothing is said.
#
#     findings/filters_that_two_convolutions_share.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-29: opencv-python-headless 5.0.0.93: with scales of 2 the result is off by more than a third of its largest number.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q opencv-python-headless==5.0.0.93 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import cv2, numpy as np, onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

print("opencv", cv2.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
rng = np.random.default_rng(1)
filters = rng.standard_normal((8, 8, 1, 1)).astype(np.float32)
x = rng.standard_normal((1, 8, 6, 6)).astype(np.float32)


def off(second):
    """How far the result is off, as a part of its largest number; `second` names the filters of the second convolution."""
    nodes = [helper.make_node("Conv", ["x", "v"], ["a"]),
             helper.make_node("BatchNormalization", ["a", "scale", "shift", "mean", "variance"], ["b"]),
             helper.make_node("Conv", ["b", second], ["y"])]
    numbers = {"scale": 2, "shift": 0.5, "mean": 0, "variance": 1}
    held = [numpy_helper.from_array(np.full(8, number, np.float32), name) for name, number in numbers.items()]
    held += [numpy_helper.from_array(filters, name) for name in {"v", second}]
    ports = [helper.make_tensor_value_info(name, 1, x.shape) for name in "xy"]
    model = helper.make_model(helper.make_graph(nodes, "g", ports[:1], ports[1:], held), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, "model.onnx")
    net = cv2.dnn.readNetFromONNX("model.onnx", engine=cv2.dnn.ENGINE_NEW)
    net.setInput(x)
    wanted = ReferenceEvaluator(model).run(None, {"x": x})[0]
    return float(np.abs(net.forward() - wanted).max() / np.abs(wanted).max())


shared, apart = off("v"), off("w")
print(f"one constant: off by {shared:.4f}; two constants: off by {apart:.1e}")
assert shared > 0.3 and apart < 1e-5
PYTHON
