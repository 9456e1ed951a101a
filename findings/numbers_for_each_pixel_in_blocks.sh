#!/usr/bin/env bash
# OpenCV: an image of one channel subtracted from a convolution's result gives a result of five axes
#
# A difference of two images, one of them with a single channel, has the shape of the larger one: so a mean over channels is taken away that
# a convolution computes. One guesses that this holds behind a convolution as well. OpenCV 5 keeps what a convolution leaves in blocks of
# channels, and the difference of two such images comes out in blocks: [1, 1, 6, 6, 8] in place of [1, 8, 6, 6]. Where another
# convolution follows, the network ends with a message about the shape of filters. With an Identity in between it is the same, and with
# eight channels on both sides it is right.
#
#     findings/numbers_for_each_pixel_in_blocks.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-29: opencv-python-headless 5.0.0.93: shape (1, 1, 6, 6, 8), and (1, 8, 6, 6) with eight channels on both sides.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q opencv-python-headless==5.0.0.93 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import cv2, numpy as np, onnx
from onnx import helper, numpy_helper

print("opencv", cv2.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
rng = np.random.default_rng(1)
x = rng.standard_normal((1, 8, 6, 6)).astype(np.float32)


def shape(channels):
    """The shape of a convolution's result less one of so many channels."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"]), helper.make_node("Conv", ["a", "m"], ["b"]), helper.make_node("Sub", ["a", "b"], ["y"])]
    held = [numpy_helper.from_array(rng.standard_normal((count, 8, 1, 1)).astype(np.float32), name) for name, count in (("w", 8), ("m", channels))]
    ports = [helper.make_tensor_value_info(name, 1, x.shape) for name in "xy"]
    model = helper.make_model(helper.make_graph(nodes, "g", ports[:1], ports[1:], held), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, "model.onnx")
    net = cv2.dnn.readNetFromONNX("model.onnx", engine=cv2.dnn.ENGINE_NEW)
    net.setInput(x)
    return net.forward().shape


one, eight = shape(1), shape(8)
print(f"less one channel: {one}; less eight: {eight}")
assert one == (1, 1, 6, 6, 8) and eight == x.shape
PYTHON
