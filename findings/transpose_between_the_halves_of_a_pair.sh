#!/usr/bin/env bash
# A Transpose of signed bytes between QuantizeLinear and DequantizeLinear lets ONNX Runtime run the convolution before it on floats
#
# Guess: on load QuantizeLinear and DequantizeLinear of signed bytes that are neighbours become ones of unsigned bytes. With a Transpose between
# the two at its end, a convolution reads unsigned bytes and leaves signed ones; such a unit is no QLinearConv, so it stays a Conv of floats
# between a DequantizeLinear and a QuantizeLinear. The same Transpose one place further on, behind the DequantizeLinear, leaves all of them
# QLinearConv, although four times as many bytes are moved then. Unsigned bytes have no such difference.
#
#     findings/transpose_between_the_halves_of_a_pair.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-30: onnxruntime 1.31.1 on x86-64.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6

cat >show.py <<'PYTHON'
import collections
import sys

import numpy as np, onnx, onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper


def made(integers, inside):
    """Two convolutions in quantized units, and a Transpose inside of the last pair or behind it."""
    zero = numpy_helper.from_array(np.array(0 if integers is np.int8 else 128, integers), "zero")
    numbers = {"step": np.float32(0.05), "scale": np.float32(0.01)}
    constants = [zero] + [numpy_helper.from_array(np.array(number), name) for name, number in numbers.items()]
    nodes = []
    for source, name in (("x", "a"), ("a", "b")):
        constants.append(numpy_helper.from_array((np.arange(8 * 8) % 11 - 5).astype(np.int8).reshape(8, 8, 1, 1), f"{name}_w"))
        nodes += [
            helper.make_node("QuantizeLinear", [source, "step", "zero"], [f"{name}_q"]),
            helper.make_node("DequantizeLinear", [f"{name}_q", "step", "zero"], [f"{name}_d"]),
            helper.make_node("DequantizeLinear", [f"{name}_w", "scale"], [f"{name}_f"]),
            helper.make_node("Conv", [f"{name}_d", f"{name}_f"], [name]),
        ]
    turned = dict(perm=[0, 2, 3, 1])
    nodes.append(helper.make_node("QuantizeLinear", ["b", "step", "zero"], ["q"]))
    if inside:
        nodes += [helper.make_node("Transpose", ["q"], ["t"], **turned), helper.make_node("DequantizeLinear", ["t", "step", "zero"], ["y"])]
    else:
        nodes += [helper.make_node("DequantizeLinear", ["q", "step", "zero"], ["d"]), helper.make_node("Transpose", ["d"], ["y"], **turned)]
    ports = [[helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 6, 6])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 6, 6, 8])]]
    model = helper.make_model(helper.make_graph(nodes, "g", *ports, constants), opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


print("onnxruntime", ort.__version__)
x = np.linspace(-3, 3, 8 * 36, dtype=np.float32).reshape(1, 8, 6, 6)
counts, results = {}, {}
for integers in (np.int8, np.uint8):
    for inside in (False, True):
        options = ort.SessionOptions()
        options.optimized_model_filepath, options.log_severity_level = "loaded.onnx", 4
        session = ort.InferenceSession(made(integers, inside).SerializeToString(), options, providers=["CPUExecutionProvider"])
        ops = collections.Counter(node.op_type for node in onnx.load("loaded.onnx").graph.node)
        where = "inside of the pair" if inside else "behind it"
        key = integers.__name__, inside
        counts[key], results[key] = (ops["QLinearConv"], ops["Conv"]), session.run(None, {"x": x})[0]
        print(f"  {integers.__name__}, Transpose {where}: {counts[key][0]} QLinearConv, {counts[key][1]} Conv of floats")
same = all(np.abs(results[kind, True] - results[kind, False]).max() <= 0.0501 for kind in ("int8", "uint8"))
expected = {("int8", False): (2, 0), ("int8", True): (1, 1), ("uint8", False): (2, 0), ("uint8", True): (2, 0)}
sys.exit(0 if same and counts == expected else f"this is another behaviour: {counts}, results within a step: {same}")
PYTHON
venv/bin/python show.py
