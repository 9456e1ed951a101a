#!/usr/bin/env python3
"""Writes a small network of units that split, convolve and shuffle channels, as PyTorch exports a ShuffleNet.

    python tools/browser/network.py OUT.onnx [UNITS]

Weights are random and the same each time. Needs numpy and onnx.
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIDE, CHANNELS, CLASSES = 32, 16, 10


class Network:
    """Nodes and constants as they are added."""

    def __init__(self):
        self.nodes, self.constants, self.draw = [], [], np.random.default_rng(0)

    def add(self, op, operands, count=1, **attributes):
        names = [f"{op.lower()}{len(self.nodes)}_{at}" for at in range(count)]
        self.nodes.append(helper.make_node(op, operands, names, **attributes))
        return names[0] if count == 1 else names

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def conv(self, x, read, written, side, group=1, stride=1):
        fan = read // group * side * side
        weights = self.draw.standard_normal((written, read // group, side, side)) / np.sqrt(fan)
        bias = self.draw.standard_normal(written) / 10
        operands = [x, *(self.constant(a.astype(np.float32)) for a in (weights, bias))]
        return self.add("Conv", operands, group=group, strides=[stride] * 2, pads=[side // 2] * 4, kernel_shape=[side] * 2)

    def relu(self, x):
        return self.add("Relu", [x])

    def reshape(self, x, *shape):
        return self.add("Reshape", [x, self.constant(np.array(shape, np.int64))])

    def unit(self, x, side):
        """Half of the channels go through three convolutions; then the two halves are interleaved."""
        half = CHANNELS // 2
        kept, x = self.add("Split", [x, self.constant(np.array([half, half], np.int64))], 2, axis=1)
        x = self.relu(self.conv(x, half, half, 1))
        x = self.conv(x, half, half, 3, group=half)
        x = self.relu(self.conv(x, half, half, 1))
        x = self.add("Concat", [kept, x], axis=1)
        x = self.add("Transpose", [self.reshape(x, 1, 2, half, side, side)], perm=[0, 2, 1, 3, 4])
        return self.reshape(x, 1, CHANNELS, side, side)


def network(units):
    net = Network()
    x = net.relu(net.conv("image", 3, CHANNELS, 3, stride=2))
    for _ in range(units):
        x = net.unit(x, SIDE // 2)
    x = net.add("Flatten", [net.add("GlobalAveragePool", [net.relu(net.conv(x, CHANNELS, 2 * CHANNELS, 1))])])
    weights = net.draw.standard_normal((2 * CHANNELS, CLASSES)).astype(np.float32)
    net.nodes.append(helper.make_node("Gemm", [x, net.constant(weights)], ["classes"]))
    tensor = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph(net.nodes, "shuffle", [tensor("image", [1, 3, SIDE, SIDE])], [tensor("classes", [1, CLASSES])], net.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    onnx.save(network(int(sys.argv[2]) if len(sys.argv) == 3 else 4), sys.argv[1])


if __name__ == "__main__":
    main()
