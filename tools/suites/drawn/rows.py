"""Families of products and of what works on rows: MatMul, Gemm, attention, Einsum, recurrent layers, running sums and orders."""
import numpy as np

from .cuts import fail
from .net import Misfit


def matmul(net):
    """A product along the last axis, with a bias."""
    value = net.any()
    value = value if net.once_in(4) else net.final(value)
    letter = value.axes[-1]
    if letter in value.free or letter == "N":
        raise Misfit
    depth = value.size(letter)
    wide = net.channels() if letter == "C" else net.pick([depth, 4, 8])
    if net.once_in(5):
        name = net.op("MatMul", [net.weights([value.shape[-2], value.shape[-2]], value.shape[-2]), value]) \
            if value.axes[-2] not in value.free | {"N"} else fail()
        return net.keep(net.like(name, value))
    made = net.fixed(net.op("MatMul", [value, net.weights([depth, wide], depth)]), value, **{letter: wide})
    if net.once_in(2):
        made = net.map("Add", made, [net.floats([wide], -0.5, 0.5)])
    if letter == "C" and net.once_in(3):
        return net.keep(net.first(made))
    return net.keep(made)


def gemm(net):
    """A Gemm of rows, in all four orders of its operands."""
    value = net.any(lambda v: v.axes in ("NC", "NCL", "NCHW", "NHWC", "NLC"))
    if value.axes != "NC":
        letters = value.axes[1:]
        if set(letters) & value.free:
            raise Misfit
        name = net.op("Flatten", [value])
        value = type(value)(name, "NC", (value.size("N"), int(np.prod(value.shape[1:]))), value.free)
    depth, wide = value.size("C"), net.channels()
    if depth > 600:
        raise Misfit
    turned = net.once_in(2)
    weights = net.weights([wide, depth] if turned else [depth, wide], depth)
    bias = [net.floats(net.pick([[wide], [1, wide], [1]]), -0.5, 0.5)] if net.once_in(2) or net.opset < 11 else []
    across = net.once_in(4)
    operand = net.turn(value, "CN") if across else value
    name = net.op("Gemm", [operand, weights, *bias], transB=int(turned), transA=int(across), alpha=net.pick([None, 0.5]))
    return net.keep(net.fixed(name, value, C=wide))


def tokens(net):
    """A value as rows of channels: N, L, C."""
    value = net.any(lambda v: v.space in ("L", "HW"))
    if value.space == "HW":
        value = net.first(value) if net.once_in(2) else net.final(value)
        value = net.reshape(value, *(("NCL", ["N", "C", "HW"]) if value.axes == "NCHW" else ("NLC", ["N", "HW", "C"])))
    return net.final(value)


def attention(net):
    """Queries, keys and values from one product or three, heads, Softmax, and the way back."""
    value = tokens(net)
    c = value.size("C")
    heads, depth = net.pick([1, 2, 4, 3]), net.pick([4, 8, 3])
    wide = heads * depth
    if value.size("L") > 64:
        raise Misfit
    if net.once_in(2):
        parts = [net.fixed(net.op("MatMul", [value, net.weights([c, wide], c)]), value, C=wide) for _ in range(3)]
    else:
        all_of_them = net.fixed(net.op("MatMul", [value, net.weights([c, 3 * wide], c)]), value, C=3 * wide)
        parts = net.splits(all_of_them, "C", [wide] * 3)
    shape = net.ints([0, 0, heads, depth])
    opened = [net.op("Reshape", [part, shape]) for part in parts]
    query, of = (net.op("Transpose", [opened[k]], perm=[0, 2, 1, 3]) for k in (0, 2))
    key = net.op("Transpose", [opened[1]], perm=[0, 2, 3, 1])
    scores = net.op("Mul", [net.op("MatMul", [query, key]), net.constant(np.asarray(depth ** -0.5, net.kind), True)])
    found = net.op("MatMul", [net.op("Softmax", [scores], axis=3), of])
    name = net.op("Reshape", [net.op("Transpose", [found], perm=[0, 2, 1, 3]), net.ints([0, 0, wide])])
    made = net.fixed(net.op("MatMul", [name, net.weights([wide, c], wide)]), value)
    made = net.map("Add", value, [made])
    return net.keep(net.first(made) if net.once_in(2) else made)


def einsum(net):
    """A product along channels in one of the orders that Einsum allows."""
    net.since(12)
    value = net.any(lambda v: len(v.axes) > 1)
    depth, wide = value.size("C"), net.channels()
    if value.axes[-1] == "C" and net.once_in(2):
        made = net.op("Einsum", [value, net.weights([depth, wide], depth)], equation="...c,co->...o")
        return net.keep(net.fixed(made, value, C=wide))
    letters = value.axes.lower()
    out = letters.replace("c", "o")
    if net.once_in(3):
        out = net.pick([out.replace("o", "") + "o", out[0] + "o" + out[1:].replace("o", "")]) if out[0] != "o" else out
    turned = net.once_in(2)
    weights = net.weights([wide, depth] if turned else [depth, wide], depth)
    name = net.op("Einsum", [value, weights], equation=f"{letters},{'oc' if turned else 'co'}->{out}")
    axes = out.replace("o", "c").upper()
    shape = tuple(wide if s == "C" else value.size(s) for s in axes)
    return net.keep(type(value)(name, axes, shape, value.free))


def recurrent(net):
    """LSTM or GRU over rows, in the layout of the standard: L, N, C."""
    value = net.turn(tokens(net), "LNC")
    c, hidden = value.size("C"), net.pick([3, 4, 8])
    gates = net.pick([4, 3])
    both = net.once_in(3)
    count = 2 if both else 1
    inputs = [value, net.weights([count, gates * hidden, c], c), net.weights([count, gates * hidden, hidden], hidden)]
    inputs += [net.floats([count, 2 * gates * hidden], -0.3, 0.3)] if net.once_in(2) else []
    kind = "LSTM" if gates == 4 else "GRU"
    name = net.op(kind, inputs, hidden_size=hidden, direction="bidirectional" if both else None)
    wide = net.op("Transpose", [name], perm=[0, 2, 1, 3])
    made = net.op("Reshape", [wide, net.ints([0, 0, count * hidden])])
    made = type(value)(made, "LNC", (value.shape[0], value.shape[1], count * hidden), value.free)
    return net.keep(net.turn(made, "NLC"))


def ordered(net):
    """What is told of an order: TopK, ArgMax, CumSum."""
    value = net.any()
    letter = net.pick([s for s in value.axes if s not in value.free] or [value.axes[0]])
    axis = value.at(letter)
    kind = net.pick(["CumSum", "CumSum", "TopK", "ArgMax", "ArgMin"])
    if kind == "CumSum":
        net.since(11)
        if net.kind != np.float32:
            raise Misfit
        made = net.map("CumSum", value, [net.constant(np.asarray(axis, np.int64), True)], reverse=net.pick([0, 1]), exclusive=net.pick([0, 1]))
        return net.keep(net.map("Mul", made, [net.constant(np.asarray(0.3, net.kind), True)]))
    if kind == "TopK":
        net.since(10)
        count = net.dice.randint(1, value.size(letter))
        if letter in value.free:
            raise Misfit
        made = net.op("TopK", [value, net.ints([count])], 2, axis=axis)
        net.outputs.append((made[1], np.int64))
        return net.keep(net.fixed(made[0], value, **{letter: count}))
    made = net.op(kind, [value], axis=axis, keepdims=net.pick([0, 1]))
    net.outputs.append((made, np.int64))
    return value


def texts(net):
    """Texts that are moved, gathered and moved back, as an output."""
    net.since(11)
    value = net.any(lambda v: len(v.axes) == 4)
    best = net.reduced("ReduceMax", value, value.axes[3], keep=0)
    rounded = net.op("Cast", [net.op("Cast", [best], to=7)], to=8)
    perm = net.dice.sample(range(3), 3)
    moved = net.op("Transpose", [rounded], perm=perm)
    axis = net.dice.randrange(3)
    letter = best.axes[perm[axis]]
    if letter in best.free:
        raise Misfit
    chosen = net.ints([net.dice.randrange(best.size(letter)) for _ in range(2)])
    moved = net.op("Gather", [moved, chosen], axis=axis)
    net.outputs.append((net.op("Transpose", [moved], perm=list(np.argsort(perm))), np.object_))
    return value


def concat_of_shapes(net):
    """A Reshape to what Shape, Gather and Concat compute, as PyTorch writes a view of symbolic sizes."""
    value = net.first(net.any(lambda v: len(v.space) == 2))
    batch = net.op("Gather", [net.op("Shape", [value]), net.ints([0])], axis=0)
    wanted = net.op("Concat", [batch, net.ints([value.size("C")]), net.ints([-1])], axis=0)
    free = frozenset(("N" if "N" in value.free else "") + ("L" if value.free & set("HW") else ""))
    shape = (value.size("N"), value.size("C"), value.size("H") * value.size("W"))
    made = type(value)(net.op("Reshape", [value, wanted]), "NCL", shape, free)
    return net.keep(net.final(made) if net.once_in(2) else made)


def product_of_two(net):
    """A MatMul of two computed operands, as correlation layers have it."""
    value = tokens(net)
    turned = net.turn(value, "NCL")
    name = net.op("MatMul", [turned, value])
    length = value.size("L")
    if "L" in value.free or length > 200 or net.kind != np.float32:
        raise Misfit
    scaled = net.op("Mul", [name, net.constant(np.asarray(1 / length, net.kind), True)])
    made = net.op("MatMul", [value, scaled])
    return net.keep(net.map("Mul", net.like(made, value), [net.constant(np.asarray(value.size("C") ** -0.5, net.kind), True)]))
