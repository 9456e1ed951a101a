"""Random networks in quantized units as exporters of TensorFlow write them: values lie channels last, each convolution stands between two
Transposes, and a QuantizeLinear and a DequantizeLinear are behind each op. Units have bytes, signed or not, a pyramid of images and heads of
rows."""
import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, shape_inference

FIRST, LAST = [0, 3, 1, 2], [0, 2, 3, 1]


class Drawn:
    """What a network has so far."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants = [], []
        self.integers = self.pick([np.int8, np.int8, np.uint8])
        zero = 0 if self.integers is np.int8 else 128
        self.step = self.constant(np.float32(2.0 ** -self.random.integers(3, 6)))
        self.zero = self.constant(self.integers(zero))

    def pick(self, choices):
        return choices[self.random.integers(len(choices))]

    def constant(self, value):
        self.constants.append(numpy_helper.from_array(np.array(value), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def node(self, op, *inputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [f"v{len(self.nodes)}"], f"n{len(self.nodes)}", **attributes))
        return self.nodes[-1].output[0]

    def units(self, x):
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, self.step, self.zero), self.step, self.zero)

    def weights(self, shape):
        drawn = self.random.integers(-90, 90, shape).astype(np.int8)
        zeros = self.constant(np.zeros(shape[0], np.int8))
        return self.node("DequantizeLinear", self.constant(drawn), self.constant(np.full(shape[0], 0.01, np.float32)), zeros, axis=0)

    def channels_first(self, x, make):
        return self.node("Transpose", make(self.node("Transpose", x, perm=FIRST)), perm=LAST)

    def convolution(self, x, ends, size=1, stride=1, groups=1, bounded=False):
        told = dict(kernel_shape=[size] * 2, strides=[stride] * 2, pads=[size // 2] * 4, group=groups)
        filters = self.weights((ends[1], ends[0] // groups, size, size))
        y = self.channels_first(x, lambda x: self.node("Conv", x, filters, **told))
        bounds = [self.constant(np.float32(bound)) for bound in (0, 6)]
        return self.units(self.node("Clip", y, *bounds) if bounded else y)

    def block(self, x, channels):
        """A convolution into more channels, one of each, and one back, beside their operand."""
        wide, bounded = channels * 2, self.pick([False, True])
        y = self.convolution(x, (channels, wide), bounded=bounded)
        y = self.convolution(y, (wide, wide), 3, groups=wide, bounded=bounded)
        return self.units(self.node("Add", x, self.convolution(y, (wide, channels))))

    def larger(self, x):
        scales = self.constant(np.array([1, 1, 2, 2], np.float32))
        told = dict(mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        return self.units(self.channels_first(x, lambda x: self.node("Resize", x, "", scales, **told)))


def network(seed):
    """The network of a seed."""
    net = Drawn(seed)
    channels, side = net.pick([8, 12, 16]), 32
    x = net.convolution(net.units("x"), (3, channels), 3, 2)
    levels = []
    for level in range(net.random.integers(2, 4)):
        for _ in range(net.random.integers(0, 3)):
            x = net.block(x, channels)
        levels.append((x, channels))
        if level < 3:
            x = net.convolution(x, (channels, channels * 2), 3, 2)
            channels *= 2
    width = net.pick([16, 24])
    top, rows = None, []
    for x, channels in reversed(levels):
        side_way = net.convolution(x, (channels, width))
        top = side_way if top is None else net.units(net.node("Add", net.larger(top), side_way))
        head = net.convolution(top, (width, 4 * net.pick([2, 3])), net.pick([1, 3]))
        rows.append(net.node("Reshape", head, net.constant(np.array([1, -1, 4], np.int64))))
    net.nodes.append(helper.make_node("Concat", rows, ["y"], "rows", axis=1))
    ports = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, side, side, 3])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(net.nodes, "pyramid", *ports, net.constants)
    model = shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8))
    checker.check_model(model, full_check=True)
    return model
