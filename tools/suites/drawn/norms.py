"""Families of normalizations and of elementwise ops, with a number for each channel."""
import numpy as np

from .cuts import fail
from .net import Misfit
from .windows import convolved


def divisor(net, channels, least=1):
    return net.pick([group for group in range(least, channels + 1) if channels % group == 0] or [channels])


def group_norm(net):
    """GroupNorm as exporters write it: Reshape, InstanceNormalization, Reshape, Mul, Add. Behind whatever made the value."""
    value = net.first(net.any(lambda v: v.space and v.size("C") > 1 and np.prod(v.shape[1:]) > 4))
    c = value.size("C")
    group = divisor(net, c)
    if np.prod(value.shape[1:]) // group < 2:
        raise Misfit
    opened = net.op("Reshape", [value, net.ints([0, group, -1])])
    ones, zeros = np.ones(group, net.kind), np.zeros(group, net.kind)
    normal = net.op("InstanceNormalization", [opened, net.constant(ones, True), net.constant(zeros, True)], epsilon=1e-5)
    made = net.shaped_as(normal, value)
    if not net.once_in(6):
        made = net.map("Mul", made, [net.floats([c] + [1] * len(value.space))])
        made = net.map("Add", made, [net.floats([c] + [1] * len(value.space), -0.5, 0.5)])
    made = net.keep(net.back(made))
    return convolved(net, made, simple=True) if net.once_in(2) else made


def group_normalization(net):
    """The op of opset 21, with a scale for each channel. The checker has no older one."""
    net.since(21)
    value = net.first(net.any(lambda v: v.space and v.size("C") > 1))
    c = value.size("C")
    group = divisor(net, c)
    if np.prod(value.shape[1:]) // group < 2:
        raise Misfit
    name = net.op("GroupNormalization", [value, net.floats([c]), net.floats([c], -0.5, 0.5)], num_groups=group)
    return net.keep(net.back(net.like(name, value)))


def batch_norm(net):
    value = net.first(net.any())
    c = value.size("C")
    numbers = [net.floats([c]), net.floats([c], -0.5, 0.5), net.floats([c], -0.5, 0.5), net.floats([c], 0.5, 2)]
    name = net.op("BatchNormalization", [value, *numbers])
    return net.keep(net.back(net.like(name, value)))


def instance_norm(net):
    value = net.first(net.any(lambda v: np.prod([v.size(s) for s in v.space]) > 2))
    c = value.size("C")
    name = net.op("InstanceNormalization", [value, net.floats([c]), net.floats([c], -0.5, 0.5)])
    return net.keep(net.back(net.like(name, value)))


def layer_norm(net):
    """The op of opset 17, or as exporters write it; over the channels where they lie last, else over what does."""
    value = net.any()
    value = value if net.once_in(3) else net.final(value)
    letter = value.axes[-1]
    if value.size(letter) < 3 or letter in value.free or letter == "N":
        raise Misfit
    count = value.size(letter)
    if net.opset >= 17 and net.once_in(2):
        inputs = [value, net.floats([count])] + ([net.floats([count], -0.5, 0.5)] if net.once_in(2) else [])
        return net.keep(net.map("LayerNormalization", value, inputs[1:], axis=-1))
    mean = net.reduced("ReduceMean", value, letter)
    centred = net.map("Sub", value, [mean])
    squares = net.map("Pow", centred, [net.constant(np.asarray(2, net.kind), True)]) if net.once_in(2) else net.map("Mul", centred, [centred])
    variance = net.reduced("ReduceMean", squares, letter)
    deviation = net.map("Sqrt", net.map("Add", variance, [net.constant(np.asarray(1e-2, net.kind), True)]))
    made = net.map("Mul", net.map("Div", centred, [deviation]), [net.floats([count])])
    return net.keep(net.map("Add", made, [net.floats([count], -0.5, 0.5)]))


UNARY = ["Relu", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "Abs", "Neg", "Softplus", "Identity", "HardSigmoid", "Selu", "Clip", "Erf",
         "HardSwish", "Mish", "Gelu", "Swish", "Dropout", "Cast", "Softsign", "Floor", "Exp"]
FROM = {"Erf": 9, "HardSwish": 14, "Mish": 18, "Gelu": 20, "Swish": 24}


def unary(net, value=None):
    """An activation, or an op that changes nothing."""
    value = value or net.any()
    kind = net.pick(UNARY)
    net.since(FROM.get(kind, 7))
    if kind == "Clip":
        return net.keep(clip(net, value))
    if kind == "Dropout":
        return net.keep(net.map("Dropout", value, ratio=0.5 if net.opset < 12 else None))
    if kind == "Cast":
        wide = net.map("Cast", value, to=11)
        return net.keep(net.map("Cast", wide, to=1 if net.kind == np.float32 else 10))
    if kind == "Exp":
        return net.keep(net.map("Exp", net.map("Tanh", value)))
    if kind == "Floor":
        return net.keep(net.map("Mul", value, [net.map("Floor", net.map("Sigmoid", value))])) if net.once_in(4) else fail()
    return net.keep(net.map(kind, value))


def clip(net, value):
    if net.opset < 11:
        return net.map("Clip", value, min=-1.0, max=2.0)
    return net.map("Clip", value, [net.constant(np.asarray(-1, net.kind), True), net.constant(np.asarray(2, net.kind), True)])


def prelu(net):
    value = net.first(net.any())
    slopes = net.floats(net.pick([[value.size("C")] + [1] * len(value.space), [1], [1] * len(value.shape)]), 0.1, 0.5)
    return net.keep(net.back(net.map("PRelu", value, [slopes])))


def per_channel(net):
    """One or two of Mul, Add, Sub, Div, Min, Max with a number for each channel, or for each index of another letter."""
    value = net.any()
    for _ in range(net.pick([1, 1, 2])):
        letters = ["C", "C", "C"] + [s for s in value.axes if s not in value.free]
        shape = net.along(value, net.pick(letters), net.pick([0, 1]))
        if net.once_in(8):
            shape = []
        kind = net.pick(["Mul", "Mul", "Add", "Add", "Sub", "Div", "Max", "Min"])
        numbers = net.floats(shape)
        if net.once_in(4) and kind != "Div" and len(shape) <= len(value.axes):
            value = net.like(net.op(kind, [numbers, value]), value)
        elif kind in ("Max", "Min") and net.opset < 8:
            raise Misfit
        else:
            value = net.map(kind, value, [numbers])
        if net.once_in(4):
            value = net.keep(value)
    return net.keep(value)


def residual(net):
    """Two values that fit each other, or what convolutions make of one; also in other orders of their axes."""
    value = net.any()
    alike = [other for other in net.pool if sorted(zip(other.axes, other.shape)) == sorted(zip(value.axes, value.shape))
             and other.free == value.free and other is not value]
    if alike and not net.once_in(3):
        other = net.pick(alike)
    elif value.space:
        other = convolved(net, value, out=value.size("C"), group=1, simple=True)
    else:
        raise Misfit
    other = net.turn(other, value.axes)
    kind = net.pick(["Add", "Add", "Add", "Sub", "Mul", "Max", "Where"])
    if kind == "Mul":
        return net.keep(net.map("Mul", value, [net.map("Sigmoid", other)]))
    if kind == "Where":
        net.since(9)
        bigger = net.op("Greater", [value, other])
        return net.keep(net.like(net.op("Where", [bigger, value, other]), value))
    if kind == "Max" and net.opset < 8:
        raise Misfit
    return net.keep(net.map(kind, value, [other]))


def squeeze_and_excite(net):
    """A mean over the image, two convolutions or Gemms, a Sigmoid, and a product."""
    value = net.first(net.any(lambda v: v.space))
    c = value.size("C")
    few = max(1, c // net.pick([2, 3, 4]))
    if net.once_in(2):
        mean = net.fixed(net.op("GlobalAveragePool", [value]), value, **dict.fromkeys(value.space, 1))
    else:
        mean = net.reduced("ReduceMean", value, value.space)
    if net.once_in(3):
        flat = net.reshape(mean, "NC", ["N", "C" + value.space])
        small = net.op("Relu", [net.op("Gemm", [flat, net.weights([c, few], c), net.floats([few], -0.5, 0.5)])])
        big = net.op("Sigmoid", [net.op("Gemm", [small, net.weights([few, c], few), net.floats([c], -0.5, 0.5)])])
        shape = [0, c] + [1] * len(value.space)
        gate = net.op("Reshape", [big, net.ints(shape)])
    else:
        ones = [1] * len(value.space)
        small = net.op("Relu", [net.op("Conv", [mean, net.weights([few, c, *ones], c), net.floats([few], -0.5, 0.5)])])
        gate = net.op("Sigmoid", [net.op("Conv", [small, net.weights([c, few, *ones], few), net.floats([c], -0.5, 0.5)])])
    return net.keep(net.back(net.map("Mul", value, [gate])))


def reduction(net):
    """A reduction over the image, over channels, or over one letter; with its axes kept or not."""
    value = net.any(lambda v: v.space)
    letters = net.pick([value.space, "C", net.pick(list(value.space))])
    kind = net.pick(["ReduceMean", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceL2"])
    if kind == "ReduceSum":
        value = net.map("Mul", value, [net.constant(np.asarray(0.3, net.kind), True)])
    if net.once_in(2) or letters == "C" or len(letters) != len(value.space):
        made = net.reduced(kind, value, letters)
        return net.keep(net.map("Sub", value, [made])) if net.once_in(2) else net.keep(made)
    made = net.reduced(kind, value, letters, keep=0)
    return net.keep(net.turn(made, "NC"))


def softmax(net):
    """Softmax over a letter, scaled so that its numbers stay of size one."""
    value = net.any()
    axis = net.dice.randrange(len(value.axes))
    if net.opset < 13:
        axis = len(value.axes) - 1 if net.once_in(2) else axis
    made = net.map(net.pick(["Softmax", "Softmax", "LogSoftmax"]), value, axis=axis)
    return net.keep(net.map("Mul", made, [net.constant(np.asarray(3, net.kind), True)]))


def lrn(net):
    value = net.first(net.any(lambda v: len(v.space) == 2 and v.size("C") > 4))
    return net.keep(net.back(net.map("LRN", value, size=net.pick([3, 5]), alpha=0.1)))
