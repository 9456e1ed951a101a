"""Families of quantized ops: between QuantizeLinear and DequantizeLinear, of integers, and around ops of floats."""
import numpy as np

from .net import Misfit, Value
from .windows import attributes, groups


def scale(net, low=0.02, high=0.05, count=None):
    """A scale, or one for each of so many."""
    return net.constant(net.numbers.uniform(low, high, count or ()).astype(np.float32), True)


def zero(net, kind, count=None):
    """A zero point that is no zero most often."""
    middle = 128 if kind == np.uint8 else 0
    return net.constant((middle + net.numbers.integers(-9, 10, count or ())).astype(kind), True)


def quantized(net, value, kind):
    """A value in bytes, with the scale and the zero point."""
    net.since(10)
    if net.kind != np.float32:
        raise Misfit
    s, z = scale(net), zero(net, kind)
    return net.op("QuantizeLinear", [value, s, z]), s, z


def bytes_of(net, shape, kind):
    """Weights in bytes around the middle of what they hold."""
    middle = 128 if kind == np.uint8 else 0
    return net.constant((middle + net.numbers.integers(-60, 61, shape)).astype(kind), True)


def out_scale(net, terms):
    """The scale of a sum of so many products of numbers of size one and of weights of a third of their scale."""
    return scale(net, 0.03, 0.05)


def quantize(net):
    """A value to bytes and back: with one scale, with one for each index of an axis, and moved in between."""
    value = net.any()
    kind = net.pick([np.int8, np.uint8])
    if net.opset >= 13 and net.once_in(2) and net.kind == np.float32:
        letter = net.pick([s for s in value.axes if s not in value.free] or [value.axes[-1]])
        if letter in value.free:
            raise Misfit
        count = value.size(letter)
        s, z, axis = scale(net, count=count), zero(net, kind, count), value.at(letter)
        made = net.like(net.op("QuantizeLinear", [value, s, z], axis=axis), value)
    else:
        name, s, z = quantized(net, value, kind)
        letter, made = None, net.like(name, value)
    if net.once_in(2):
        letters = list(value.axes)
        net.dice.shuffle(letters)
        made = net.turn(made, "".join(letters))
    axis = made.at(letter) if letter else None
    made = net.like(net.op("DequantizeLinear", [made, s, z], axis=axis), made)
    return net.keep(made)


def windowed(net, value):
    """What a convolution of bytes has: (attributes, extents, groups, channels)."""
    found, extents = attributes(net, value)
    c = value.size("C")
    group = net.pick([1, 1, groups(net, c), c])
    out = group * max(1, net.channels() // group)
    if group > 1 or net.once_in(3):
        found["group"] = group
    return found, extents, group, out


def qlinear_conv(net):
    """QLinearConv: dense and of groups, with one scale or one for each channel, with a bias."""
    value = net.first(net.any(lambda v: len(v.space) == 2))
    kind = net.pick([np.uint8, np.uint8, np.int8])
    found, extents, group, out = windowed(net, value)
    name, s, z = quantized(net, value, kind)
    terms = value.size("C") // group * int(np.prod(found["kernel_shape"]))
    of_weights = np.int8 if net.once_in(2) or kind == np.int8 else np.uint8
    weights = bytes_of(net, [out, value.size("C") // group, *found["kernel_shape"]], of_weights)
    each = out if net.once_in(2) else None
    size = 1 / (35 * np.sqrt(terms))
    middle = 128 if of_weights == np.uint8 else 0
    w_zero = net.constant(np.full(each or (), middle, of_weights), True)
    inputs = [name, s, z, weights, scale(net, 0.7 * size, 1.3 * size, each), w_zero, scale(net, 0.02, 0.05), zero(net, kind)]
    if net.once_in(2):
        inputs.append(net.constant(net.numbers.integers(-500, 501, out).astype(np.int32), True))
    made = net.op("QLinearConv", inputs, **found)
    made = net.op("DequantizeLinear", [made, inputs[6], inputs[7]])
    return net.keep(net.back(net.like(made, value, C=out, **extents)))


def conv_integer(net):
    value = net.first(net.any(lambda v: len(v.space) == 2))
    found, extents, group, out = windowed(net, value)
    name, s, z = quantized(net, value, np.uint8)
    terms = value.size("C") // group * int(np.prod(found["kernel_shape"]))
    weights = bytes_of(net, [out, value.size("C") // group, *found["kernel_shape"]], np.uint8)
    inputs = [name, weights, z] + ([net.constant(np.asarray(128, np.uint8), True)] if net.once_in(2) else [])
    if len(inputs) == 3:
        raise Misfit
    return net.keep(net.back(rescaled(net, net.op("ConvInteger", inputs, **found), value, s, terms, out, extents, [out, 1, 1])))


def rescaled(net, name, value, s, terms, wide, extents, shape):
    """Sums of integers as floats again: with the scale of the input, and one number for all or for each channel."""
    floats = net.op("Cast", [name], to=1)
    size = 1 / (35 * np.sqrt(terms))
    factors = scale(net, 0.7 * size, 1.3 * size, shape if net.once_in(2) else None)
    made = net.op("Mul", [net.op("Mul", [floats, s]), factors])
    return net.like(made, value, C=wide, **extents)


def matmul_integer(net):
    """MatMulInteger of a quantized value, with no zero point for the weights, one, or one for each column."""
    value = net.final(net.any())
    depth, wide = value.size("C"), net.channels()
    net.since(11)
    if net.kind != np.float32:
        raise Misfit
    if net.once_in(2):
        name, s, z = net.op("DynamicQuantizeLinear", [value], 3)
    else:
        name, s, z = quantized(net, value, np.uint8)
    kind = net.pick([np.int8, np.uint8])
    weights = bytes_of(net, [depth, wide], kind)
    zeros = {0: [], 1: [zero(net, kind)], 2: [zero(net, kind, wide)]}[net.dice.randrange(3)] if kind == np.int8 else [zero(net, kind, net.pick([None, wide]))]
    made = net.op("MatMulInteger", [name, weights, z, *zeros])
    made = rescaled(net, made, value, s, depth, wide, {}, [wide])
    return net.keep(net.first(made) if net.once_in(2) else made)


def qlinear_matmul(net):
    """QLinearMatMul with one scale for the weights, or one for each column."""
    value = net.final(net.any())
    depth, wide = value.size("C"), net.channels()
    kind = np.uint8
    name, s, z = quantized(net, value, kind)
    of_weights = net.pick([np.int8, np.uint8])
    each = wide if net.once_in(2) else None
    size = 1 / (35 * np.sqrt(depth))
    weights = bytes_of(net, [depth, wide], of_weights)
    inputs = [name, s, z, weights, scale(net, 0.7 * size, 1.3 * size, each), zero(net, of_weights, each), scale(net), zero(net, kind)]
    made = net.op("QLinearMatMul", inputs)
    made = net.fixed(net.op("DequantizeLinear", [made, inputs[6], inputs[7]]), value, C=wide)
    return net.keep(net.first(made) if net.once_in(2) else made)


def unit(net):
    """A convolution of floats between quantizations, with weights in bytes: what quantizers of QDQ form write."""
    net.since(13)
    value = net.first(net.any(lambda v: v.space and len(v.space) < 3))
    kind = net.pick([np.int8, np.uint8])
    found, extents, group, out = windowed(net, value)
    name, s, z = quantized(net, value, kind)
    held = net.op("DequantizeLinear", [name, s, z])
    terms = value.size("C") // group * int(np.prod(found["kernel_shape"]))
    size = 1 / (35 * np.sqrt(terms))
    each = out if net.once_in(2) else None
    weights = bytes_of(net, [out, value.size("C") // group, *found["kernel_shape"]], np.int8)
    zeros = net.constant(np.zeros(each or (), np.int8), True)
    weights = net.op("DequantizeLinear", [weights, scale(net, 0.7 * size, 1.3 * size, each), zeros], axis=0 if each else None)
    made = net.op("Conv", [held, weights] + ([net.floats([out], -0.5, 0.5)] if net.once_in(3) else []), **found)
    if net.once_in(3):
        made = net.op("Relu", [made])
    made = net.like(made, value, C=out, **extents)
    if net.once_in(2):
        name, s, z = quantized(net, made, kind)
        made = Value(net.op("DequantizeLinear", [name, s, z]), made.axes, made.shape, made.free)
    return net.keep(net.back(made))


def blocked(net):
    """A value to bytes and back with a scale for each block of an axis, moved in between or behind it."""
    net.since(21)
    value = net.any()
    letters = [s for s in value.axes if s not in value.free and value.size(s) % 2 == 0]
    if not letters or net.kind != np.float32:
        raise Misfit
    letter = net.pick(letters)
    size = net.pick([size for size in (2, 4, 8) if value.size(letter) % size == 0])
    if value.free:
        raise Misfit
    shape = [value.size(s) // size if s == letter else value.size(s) for s in value.axes]
    s = net.constant(net.numbers.uniform(0.02, 0.05, shape).astype(np.float32), True)
    axis = value.at(letter)
    zeros = net.constant(np.zeros(shape, np.int8), True)
    name = net.op("QuantizeLinear", [value, s, zeros], axis=axis, block_size=size)
    made = net.like(net.op("DequantizeLinear", [name, s, zeros], axis=axis, block_size=size), value)
    letters = list(value.axes)
    net.dice.shuffle(letters)
    return net.keep(net.turn(made, "".join(letters)))
