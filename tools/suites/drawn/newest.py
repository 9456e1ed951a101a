"""Networks of the ops that came with the operator sets 23 to 28: those of language models, small numbers, caches.

Values are rows [batch, position, number], heads [batch, head, position, number], or heads behind positions. A quarter of the networks has
operator set 28, which no runtime loads: they run in the reference of the onnx package. The others have 23 to 26.
"""
import random

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .draw import Rejected

OPSETS = [23, 23, 24, 24, 25, 26]
# Types of quantized weights, the operator set that has them, and the smallest and the largest number.
WEIGHTS = [(TensorProto.INT8, 23, -127, 127), (TensorProto.UINT8, 23, 0, 255), (TensorProto.INT4, 23, -8, 7), (TensorProto.UINT4, 23, 0, 15),
           (TensorProto.FLOAT8E4M3FN, 23, -8, 8), (TensorProto.FLOAT8E5M2, 23, -8, 8), (TensorProto.INT2, 25, -2, 1),
           (TensorProto.UINT2, 25, 0, 3)]


class Misfit(Exception):
    """A step that does not fit what there is."""


class Value:
    """A name, what its axes are, in letters, and their extents. B batch, S positions, H heads, D numbers of a head, E of a row."""

    def __init__(self, name, axes, shape):
        self.name, self.axes, self.shape = name, axes, tuple(shape)

    def size(self, letter):
        return self.shape[self.axes.index(letter)]


class Net:
    """What was drawn so far."""

    def __init__(self, seed):
        self.dice, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.newest = self.once_in(4)
        self.opset = 28 if self.newest else self.pick(OPSETS)
        self.nodes, self.inputs, self.constants, self.pool, self.extra, self.feeds = [], [], [], [], [], {}
        self.counted = 0
        self.free = not self.newest and self.once_in(3)
        self.batch, self.length = self.pick([1, 2, 3]), self.pick([1, 2, 4, 5, 7])

    def pick(self, of):
        return self.dice.choice(of)

    def once_in(self, count):
        return self.dice.randrange(count) == 0

    def any(self, axes=None):
        fitting = [value for value in self.pool if axes is None or value.axes in axes]
        if not fitting:
            raise Misfit
        return fitting[-1] if self.once_in(2) else self.pick(fitting)

    def fresh(self):
        self.counted += 1
        return f"v{self.counted}"

    def op(self, kind, operands, results=1, **attributes):
        """A node; the names of its results."""
        names = [self.fresh() for _ in range(results)]
        operands = [getattr(operand, "name", operand) or "" for operand in operands]
        given = {name: value for name, value in attributes.items() if value is not None}
        self.nodes.append(helper.make_node(kind, operands, names, **given))
        return names[0] if results == 1 else names

    def keep(self, value):
        self.pool.append(value)
        return value

    def constant(self, array, name=None):
        name = name or f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def ints(self, numbers):
        return self.constant(np.asarray(numbers, np.int64))

    def floats(self, shape, scale=1.0):
        return (self.numbers.standard_normal(shape) * scale).astype(np.float32)

    def enter(self, axes, extents, array=None):
        """An input. Batch and positions are open where the network's are."""
        shape = [self.batch if axis == "B" else self.length if axis == "S" else extent for axis, extent in zip(axes, extents)]
        name = f"x{len(self.inputs)}"
        array = self.floats(shape) if array is None else array
        dims = [axis if self.free and axis in "BS" else extent for axis, extent in zip(axes, shape)]
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), dims))
        self.feeds[name] = array
        return Value(name, axes, shape)

    def turn(self, value, axes):
        if axes == value.axes:
            return value
        perm = [value.axes.index(axis) for axis in axes]
        return Value(self.op("Transpose", [value], perm=perm), axes, [value.shape[place] for place in perm])

    def result(self, name, kind=1):
        self.extra.append((name, kind))


def rows(net, width=None):
    """Rows of this width, entered where there are none."""
    fitting = [value for value in net.pool if value.axes == "BSE" and width in (None, value.size("E"))]
    if fitting and not net.once_in(5):
        return net.pick(fitting)
    return net.keep(net.enter("BSE", [0, 0, width or net.pick([8, 16, 24, 32])]))


def split(net, value, heads):
    """Heads of rows, before or behind positions."""
    width = value.size("E") // heads
    apart = Value(net.op("Reshape", [value, net.ints([0, 0, heads, width])]), "BSHD", [*value.shape[:2], heads, width])
    if net.once_in(3):
        apart = normed(net, apart)
    return apart


def heads_of(net, heads, width, packed):
    """An operand of attention: heads before positions, or packed rows."""
    value = rows(net, heads * width)
    if packed and not net.once_in(3):
        return rotated(net, value, heads) if net.once_in(3) else value
    apart = split(net, value, heads)
    turned = net.turn(apart, "BHSD")
    if net.once_in(2):
        turned = rotated(net, turned, None)
    if packed:
        turned = joined(net, turned)
    return turned


def joined(net, value):
    behind = net.turn(value, "BSHD")
    width = behind.size("H") * behind.size("D")
    return Value(net.op("Reshape", [behind, net.ints([0, 0, width])]), "BSE", [*behind.shape[:2], width])


def normed(net, value):
    scale = net.constant(1 + net.floats([value.shape[-1]], 0.2))
    if net.once_in(4):
        name = net.op("LayerNormalization", [value, scale], axis=-1)
    else:
        name = net.op("RMSNormalization", [value, scale], axis=net.pick([None, -1, len(value.shape) - 1]), epsilon=net.pick([None, 1e-3]))
    return Value(name, value.axes, value.shape)


def rotated(net, value, heads):
    """Turned by places: of a table, or by the place of each token."""
    width = value.size("D") if heads is None else value.size("E") // heads
    if width % 2:
        raise Misfit
    part = net.pick([0, 0, width // 2 // 2 * 2])
    half = (part or width) // 2
    attributes = {"interleaved": net.pick([None, 0, 1]), "rotary_embedding_dim": part or None, "num_heads": heads}
    if net.free or net.once_in(2):
        places = net.enter("BS", [0, 0], np.asarray(net.numbers.integers(0, 9, [net.batch, net.length]), np.int64))
        angles = net.floats([9, half])
        tables = [net.constant(np.cos(angles)), net.constant(np.sin(angles)), places]
    else:
        angles = net.floats([net.batch, net.length, half])
        tables = [net.constant(np.cos(angles)), net.constant(np.sin(angles))]
    return Value(net.op("RotaryEmbedding", [value, *tables], **attributes), value.axes, value.shape)


def mask(net, heads, total):
    """A mask of two to four axes, of numbers or of truth values."""
    shape = net.pick([[net.length, total], [1, net.length, total], [net.batch, 1, net.length, total], [net.batch, heads, net.length, total]])
    if len(shape) == 3:
        shape = [heads, net.length, total]
    if net.once_in(2):
        return net.constant(net.floats(shape))
    allowed = net.numbers.random(shape) < 0.7
    allowed[..., 0] = True
    return net.constant(allowed)


def attention(net):
    """Attention: heads of their own or packed, fewer keys than queries, masks, causality, caches."""
    kv = net.pick([1, 2, 2])
    heads, width = kv * net.pick([1, 1, 2, 3]), net.pick([4, 6, 8])
    packed = net.once_in(3)
    operands = [heads_of(net, count, width, packed) for count in (heads, kv, kv)]
    past = 0 if net.free or net.once_in(2) else net.pick([1, 3, 4])
    attributes = {"is_causal": net.pick([None, None, 1]), "scale": net.pick([None, None, 0.3]), "softcap": net.pick([None, None, None, 2.0])}
    if packed:
        attributes |= {"q_num_heads": heads, "kv_num_heads": kv}
    more = [] if net.free or net.once_in(2) else [mask(net, heads, net.length + past)]
    results = 1
    if past:
        more = (more or [""]) + [net.enter("BHPD", [0, kv, past, width]) for _ in range(2)]
        results = 3
    made = net.op("Attention", [*operands, *more], results, **attributes)
    made = [made] if results == 1 else made
    for name in made[1:]:
        net.result(name)
    shape = [net.batch, net.length, heads * width] if packed else [net.batch, heads, net.length, width]
    value = Value(made[0], "BSE" if packed else "BHSD", shape)
    if not packed and not net.once_in(4):
        value = joined(net, value)
    return net.keep(value)


def rotation(net):
    value = rows(net)
    heads = net.pick([1, 2, 4])
    if value.size("E") // heads % 2:
        raise Misfit
    if net.once_in(2):
        return net.keep(rotated(net, value, heads))
    return net.keep(joined(net, rotated(net, net.turn(split(net, value, heads), "BHSD"), None)))


def norm(net):
    return net.keep(normed(net, net.any()))


def each(net):
    """One value by itself, or with others of its shape."""
    value = net.any()
    kind = net.pick(["Swish", "Swish", "Gelu", "Relu", "Sigmoid", "Tanh", "Mish", "residual", "residual", "SwiGLU"])
    if kind == "residual":
        other = net.pick([other for other in net.pool if (other.axes, other.shape) == (value.axes, value.shape)])
        return net.keep(Value(net.op(net.pick(["Add", "Mul"]), [value, other]), value.axes, value.shape))
    if kind == "SwiGLU":
        if not net.newest:
            raise Misfit
        gate = net.op("Neg", [value])
        return net.keep(Value(net.op("SwiGLU", [gate, value], alpha=net.pick([None, 0.7])), value.axes, value.shape))
    if kind == "Swish" and net.opset < 24:
        kind = "Sigmoid"
    alpha = net.pick([None, 1.3]) if kind == "Swish" else None
    return net.keep(Value(net.op(kind, [value], alpha=alpha), value.axes, value.shape))


def turned(net):
    value = net.any()
    axes = list(value.axes)
    net.dice.shuffle(axes)
    return net.keep(net.turn(value, "".join(axes)))


def cache(net):
    """Rows of a cache that others take the place of."""
    if net.opset < 24 or net.free:
        raise Misfit
    value = net.any(["BSE", "BHSD", "BSHD"])
    axis = value.axes.index("S")
    length = net.length + net.pick([0, 2, 3])
    shape = list(value.shape)
    shape[axis] = length
    past = net.enter("".join("P" if letter == "S" else letter for letter in value.axes), shape)
    most = length - net.length
    indices = [] if net.once_in(3) else [net.constant(net.numbers.integers(0, most + 1, net.batch).astype(np.int64))]
    made = net.op("TensorScatter", [past, value, *indices], axis=net.pick([axis, axis - len(shape)]), mode=net.pick([None, "linear", "circular"]))
    whole = Value(made, value.axes.replace("S", "P"), shape)
    if net.once_in(2):
        whole = net.turn(whole, net.pick(["".join(reversed(whole.axes)), whole.axes]))
    net.result(net.op(net.pick(["Relu", "Neg"]), [whole]))
    return value


def cumulated(net):
    if net.opset < 26:
        raise Misfit
    value = net.any()
    axis = net.dice.randrange(len(value.axes))
    small = net.op("Tanh", [value])
    name = net.op("CumProd", [small, net.constant(np.asarray(axis, np.int64))], exclusive=net.pick([None, 1]), reverse=net.pick([None, 1]))
    return net.keep(Value(name, value.axes, value.shape))


def product(net):
    """Rows times dequantized weights, stored as they are read or turned: one scale, one for each column, or one for each block."""
    value = rows(net)
    kind, since, least, most = net.pick(WEIGHTS)
    if net.opset < since:
        raise Misfit
    inner, outer = value.size("E"), net.pick([8, 16, 24, 32])
    stored = [outer, inner] if (turns := net.once_in(2)) else [inner, outer]
    numbers = net.numbers.integers(least, most + 1, stored)
    weights = net.constant(numbers.astype(helper.tensor_dtype_to_np_dtype(kind)))
    way = net.pick(["one", "column", "block"])
    columns = 0 if turns else 1
    spread = 1.0 / (most - least) / np.sqrt(inner)
    attributes = {}
    if way == "one":
        scale = np.asarray(spread, np.float32)
    elif way == "column":
        scale, attributes = (spread * (0.5 + net.numbers.random(outer))).astype(np.float32), {"axis": columns}
    else:
        block, axis = net.pick([4, 8]), 1 - columns
        blocks = list(stored)
        blocks[axis] //= block
        scale, attributes = (spread * (0.5 + net.numbers.random(blocks))).astype(np.float32), {"axis": axis, "block_size": block}
    made = net.op("DequantizeLinear", [weights, net.constant(scale)], **attributes)
    if turns:
        made = net.op("Transpose", [made], perm=[1, 0])
    return net.keep(Value(net.op("MatMul", [value, made]), "BSE", [*value.shape[:2], outer]))


def rounded(net):
    """A value as floats of 8 bits, or as quantized blocks, and back."""
    value = net.any()
    if net.once_in(2):
        small = net.op("Cast", [value], to=net.pick([TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2]))
        return net.keep(Value(net.op("Cast", [small], to=1), value.axes, value.shape))
    zero = net.constant(np.zeros([], ml_dtypes.float8_e4m3fn) if net.once_in(2) else np.zeros([], np.int8))
    scale = net.constant(np.float32(0.05))
    small = net.op("QuantizeLinear", [value, scale, zero])
    return net.keep(Value(net.op("DequantizeLinear", [small, scale, zero]), value.axes, value.shape))


def recurrence(net):
    """Linear attention, and a convolution that keeps its last positions."""
    if not net.newest:
        raise Misfit
    if net.once_in(2):
        value = net.turn(rows(net), "BES")
        window = net.pick([2, 3, 4])
        weights = net.constant(net.floats([value.size("E"), 1, window], 0.5))
        bias = [net.constant(net.floats([value.size("E")]))] if net.once_in(2) else [""]
        past = [net.enter("BEP", [0, value.size("E"), window - 1])] if net.once_in(2) else []
        made = net.op("CausalConvWithState", [value, weights, *bias, *past], 2, activation=net.pick([None, "silu"]))
        net.result(made[1])
        return net.keep(net.turn(Value(made[0], "BES", value.shape), "BSE"))
    heads, width = 2, 4
    operands = [rows(net, heads * width) for _ in range(3)]
    rule = net.pick(["linear", "gated"])
    decay = ["", net.op("Neg", [net.op("Sigmoid", [rows(net, heads * width)])])] if rule == "gated" else []
    made = net.op("LinearAttention", [*operands, *decay], 2, q_num_heads=heads, kv_num_heads=heads, update_rule=rule)
    net.result(made[1])
    return net.keep(Value(made[0], "BSE", [net.batch, net.length, heads * width]))


def spread(net):
    """Images of packed pixels, in the order that operator set 28 lets a node say."""
    if not net.newest:
        raise Misfit
    x = net.enter("BCHW", [0, net.pick([2, 3]), 4, 6])
    last = net.turn(x, "BHWC")
    first = net.turn(Value(net.op("Relu", [last]), last.axes, last.shape), "BCHW")
    deep = net.op("SpaceToDepth", [first], blocksize=2, mode=net.pick(["DCR", "CRD"]))
    back = net.op(net.pick(["DepthToSpace", "Neg"]), [deep], **({}))
    node = net.nodes[-1]
    if node.op_type == "DepthToSpace":
        node.attribute.extend([helper.make_attribute("blocksize", 2), helper.make_attribute("mode", net.pick(["DCR", "CRD"]))])
    net.result(net.op("Transpose", [back], perm=[0, 2, 3, 1]))
    return x


FAMILIES = [(8, attention), (4, rotation), (4, norm), (6, each), (5, turned), (4, cache), (2, cumulated), (6, product), (3, rounded),
            (4, recurrence), (2, spread)]


def grow(net, count):
    weights = [weight for weight, _ in FAMILIES]
    for _ in range(12 * count):
        if count == 0:
            return
        held = (net.nodes, net.inputs, net.constants, net.pool, net.extra)
        before = [len(each) for each in held]
        try:
            net.dice.choices(FAMILIES, weights)[0][1](net)
            count -= 1
        except Misfit:
            for each_, length in zip(held, before, strict=True):
                del each_[length:]
            names = {port.name for port in net.inputs}
            net.feeds = {name: array for name, array in net.feeds.items() if name in names}


def network(seed, _without=()):
    """(model, two sets of inputs) of a seed."""
    net = Net(seed)
    rows(net)
    grow(net, net.dice.randint(2, 7))
    made = {name for node in net.nodes for name in node.output}
    read = {name for node in net.nodes for name in node.input}
    kept = [value.name for value in net.pool if value.name in made and (value.name not in read or net.once_in(6))]
    if not kept:
        raise Rejected("nothing to give")
    outs = [helper.make_tensor_value_info(name, 1, None) for name in dict.fromkeys([*kept, *(name for name, _ in net.extra)])]
    graph = helper.make_graph(net.nodes, "newest", net.inputs, outs, initializer=net.constants)
    least = helper.find_min_ir_version_for([helper.make_opsetid("", net.opset)])
    model = helper.make_model(graph, ir_version=least, opset_imports=[helper.make_opsetid("", net.opset)])
    try:
        model = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        onnx.checker.check_model(model)
    except Exception as error:
        raise Rejected("the checker: " + str(error).replace("\n", " ")[:80]) from error
    del model.graph.value_info[:]
    feeds = [net.feeds]
    if net.free:
        feeds.append({name: grown(net, name, array) for name, array in net.feeds.items()})
    return model, feeds


def grown(net, name, array):
    """Other numbers, of other batches and positions."""
    port = next(port for port in net.inputs if port.name == name)
    sizes = {"B": net.batch + 1, "S": net.length + 2}
    shape = [sizes.get(dim.dim_param, dim.dim_value) for dim in port.type.tensor_type.shape.dim]
    if array.dtype == np.int64:
        return np.resize(array, shape)
    return net.floats(shape)
