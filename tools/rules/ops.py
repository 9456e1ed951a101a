"""The ops of the statements: what each makes of its operands, as the standard of ONNX says it."""

from fractions import Fraction

from . import counted as co
from . import expressions as ex
from .tensors import (
    Tensor, Unsaid, convolution, convolution_back, each, matmul, mean, number, places, reduce, reordered, reshape, transpose,
)

HALF, SIX = ex.num(Fraction(1, 2)), ex.num(6)


def mul(a, b):
    return ("mul", a, b)


def add(a, b):
    return ("add", a, b)


def fn(name):
    return lambda a: ("fn", name, a)


def sigmoid(a):
    return ("inv", add(ex.ONE, ("fn", "exp", ("neg", a))))


def clip(a, low, high):
    return ("min", ("max", a, low), high)


def hard_sigmoid(x, a, b):
    return ("max", ex.ZERO, ("min", ex.ONE, add(mul(a, x), b)))


def gelu(x):
    return mul(mul(HALF, x), add(ex.ONE, ("fn", "erf", mul(x, ("elem", "1/sqrt(2)", ())))))


def gelu_by_tanh(x):
    cube = mul(ex.num(Fraction("0.044715")), mul(x, mul(x, x)))
    return mul(mul(HALF, x), add(ex.ONE, ("fn", "tanh", mul(("elem", "sqrt(2/pi)", ()), add(x, cube)))))


def prelu(x, a):
    return ("choose", x, mul(x, a))


EACH = {
    "Add": add, "Sub": lambda a, b: ("sub", a, b), "Mul": mul, "Div": lambda a, b: ("div", a, b),
    "Neg": lambda a: ("neg", a), "Reciprocal": lambda a: ("inv", a), "Min": lambda a, b: ("min", a, b),
    "Max": lambda a, b: ("max", a, b), "Exp": fn("exp"), "Erf": fn("erf"), "Tanh": fn("tanh"), "Sqrt": fn("sqrt"),
    "Sigmoid": sigmoid, "Clip": clip, "Relu": lambda a: ("max", a, ex.ZERO), "HardSigmoid": hard_sigmoid, "Gelu": gelu,
    "GeluTanh": gelu_by_tanh, "QuickGelu": lambda x: mul(x, sigmoid(mul(ex.num(Fraction("1.702")), x))),
    "Swish": lambda x: mul(x, sigmoid(x)), "PRelu": prelu, "Some": fn("some function"), "Cast": lambda a: a, "Identity": lambda a: a,
    "HardSwish": lambda x: mul(x, hard_sigmoid(x, ex.num(Fraction(1, 6)), HALF)),
    "minus": lambda a: ("neg", a), "inverse": lambda a: ("inv", a), "times": mul, "plus": add,
}


def power(world, x, exponent):
    """Powers that the equations have: whole ones are products, a half is a root."""
    tree = exponent.read([])
    of = {
        2: lambda a: mul(a, a), 3: lambda a: mul(a, mul(a, a)), -1: lambda a: ("inv", a), Fraction(1, 2): fn("sqrt"),
        Fraction(-1, 2): lambda a: ("inv", ("fn", "sqrt", a)),
    }.get(tree[1] if tree[0] == "num" else None)
    if of is None:
        raise Unsaid(f"a power of {tree}")
    return each(world, of, x)


def softmax(world, x, axes):
    up = each(world, fn("exp"), x)
    return each(world, lambda a, b: ("div", a, b), up, reduce(world, "sum", up, axes))


def normalized(world, x, axes, epsilon, centred=True):
    middle = each(world, lambda a, b: ("sub", a, b), x, mean(world, x, axes)) if centred else x
    spread = mean(world, each(world, lambda a: mul(a, a), middle), axes)
    return each(world, lambda a, v, e: ("div", a, ("fn", "sqrt", add(v, e))), middle, spread, epsilon)


def scaled(world, x, scale, shift=None):
    """Scale and shift may not make the result larger."""
    for tensor in filter(None, (scale, shift)):
        if len(each(world, mul, x, tensor).axes) > x.rank:
            raise Unsaid("a scale of more axes than what it scales")
    x = each(world, mul, x, scale)
    return x if shift is None else each(world, add, x, shift)


def layer_normalization(world, x, scale, shift, axes, epsilon):
    if axes != ("at", (-1,)) and axes != ("digits", frozenset(x.axes[-1])):
        raise Unsaid("the last axis is what the equations normalize")
    return scaled(world, normalized(world, x, axes, epsilon), scale, shift)


def per_channel(world, tensor, rank):
    """A number or an entry per channel, for images of so many axes."""
    if tensor.rank == 0:
        return tensor
    return Tensor([*tensor.axes, *[()] * (rank - 2)], lambda index: tensor.read([index[0]]))


def instance_normalization(world, x, scale, shift, epsilon):
    inner = ("at", tuple(range(2, x.rank)))
    scale, shift = (per_channel(world, t, x.rank) for t in (scale, shift))
    return scaled(world, normalized(world, x, inner, epsilon), scale, shift)


def group_normalization(world, x, scale, shift, groups, epsilon):
    """Channels are `(G C)`; scale and shift have an entry per group."""
    batch, channels, *space = x.axes
    of = groups[1]
    inner = channels[len(of):]
    if world.extents is not None:
        size = world.extent(channels)
        if size % world.extent(of):
            raise Unsaid("groups do not divide the channels")
        world.extents["within"] = size // world.extent(of)
        inner = ("within",)
    elif channels[: len(of)] != of:
        raise Unsaid("groups are not the outer digit of the channels")
    rows = reshape(world, x, [batch, of, (*inner, *(d for a in space for d in a))])
    return reshape(world, instance_normalization(world, rows, scale, shift, epsilon), x.axes)


def attention(world, q, k, v, scale):
    scores = each(world, mul, matmul(world, q, k), scale)
    return matmul(world, softmax(world, scores, ("at", (-1,))), v)


def turned(world, x):
    return transpose(world, x, ("order", (*range(x.rank - 2), x.rank - 1, x.rank - 2)))


def convolve(world, x, w, bias=None):
    return convolution(world, x, w, bias)


def channels(world, x):
    """A vector as `[C, 1, ...]`: beside an image of three axes here."""
    return per_channel(world, x, 3)


def filters(world, w, scale):
    """The weights of each filter times its number."""
    if scale.rank == 0:
        return each(world, mul, w, scale)
    at = next((i for i, axis in enumerate(w.axes) if axis == scale.axes[0]), None)
    if at is None:
        raise Unsaid("weights have no axis of the scale's")
    return Tensor(w.axes, lambda index: mul(w.read(index), scale.read([index[at]])))


def rows(world, x, out=None):
    """Some function of each row, of which nothing is known."""
    def read(index):
        return world.row("row function", index[-1], [x.axes[-1]], lambda i: x.read([*index[:-1], *i]))
    return Tensor([*x.axes[:-1], out or x.axes[-1]], read)


def concat(world, axis, a, b):
    """Two operands one behind the other: along an axis whose outer digit says which."""
    def read(index):
        side, *inner = index[axis]
        rest = list(index)
        rest[axis] = tuple(inner)
        left, right = a.read(rest), b.read(rest)
        return (left if side == 0 else right) if isinstance(side, int) else ("if", ("eq", side, 0), left, right)
    axes = list(a.axes)
    axes[axis] = ("two", *axes[axis])
    return Tensor(axes, read)


def batch_normalization(world, x, scale, shift, average, variance, epsilon):
    parts = [channels(world, t) for t in (scale, shift, average, variance)]
    of = lambda a, s, b, m, v, e: add(mul(("div", ("sub", a, m), ("fn", "sqrt", add(v, e))), s), b)
    return each(world, of, x, *parts, epsilon)


OPS = {
    "Pow": power,
    "Softmax": softmax,
    "ReduceSum": lambda w, x, a: reduce(w, "sum", x, a),
    "ReduceMax": lambda w, x, a: reduce(w, "maximum", x, a),
    "ReduceMean": mean,
    "MatMul": matmul,
    "Transpose": transpose,
    "Reshape": lambda w, x, d: reshape(w, x, d[1]),
    "Normalized": normalized,
    "RootNormalized": lambda w, x, a, e: normalized(w, x, a, e, centred=False),
    "LayerNormalization": layer_normalization,
    "RMSNormalization": lambda w, x, s, a, e: scaled(w, normalized(w, x, a, e, centred=False), s),
    "InstanceNormalization": instance_normalization,
    "GroupNormalization": group_normalization,
    "BatchNormalization": batch_normalization,
    "Attention": attention,
    "AttentionOfRows": lambda w, q, k, v, s: attention(w, q, turned(w, k), v, s),
    "Conv": convolve,
    "ConvTranspose": convolution_back,
    "Channels": channels,
    "Filters": filters,
    "Rows": rows,
    "RowsTo": lambda w, x: rows(w, x, ("K",)),
    "First": lambda w, x, b: each(w, add, Tensor(x.axes[:-1], lambda index: x.read([*index, (0,)])), b),
    "Order": lambda w, x, at, name: reordered(w, x, at[1], name[1]),
    "Turned": turned,
    "Concat": lambda w, at, a, b: concat(w, at[1], a, b),
    "Pad": co.pad, "Slice": co.cut, "SliceAll": co.whole, "Gather": co.gather, "Windows": co.windows, "Blocks": co.blocks,
    "Join": co.join, "count+": lambda w, a, b: co.plus(a, b), "count-": lambda w, a, b: co.count("minus", a, b),
    "Affine": lambda w, start, step, at: lambda i: co.plus(start, co.count("times", step, at(i))),
    "count*": lambda w, a, b: co.count("times", a, b),
    "then": lambda w, p, q: ("any", (*p[1], *q[1])) if p[0] == "any" else ("order", tuple(p[1][i] for i in q[1])),
    "second": lambda w, d: ("groups", d[1][1]),
    "square": lambda w, a: each(w, lambda x: mul(x, x), a),
}
for name, of in EACH.items():
    OPS[name] = lambda w, *operands, of=of: each(w, of, *operands)


def evaluate(world, term, operands):
    """A term, which is a name, a number, or a list of an op and terms."""
    if isinstance(term, list):
        head, *args = term
        if head not in OPS:
            raise Unsaid(f"op {head} has no meaning here")
        return OPS[head](world, *(evaluate(world, a, operands) for a in args))
    if term in operands:
        return operands[term]
    if term.startswith("["):
        return ("at", tuple(int(a) for a in term[1:-1].split(",")))
    if term.startswith("@"):
        return ("at", int(term[1:]))
    if term.startswith("|"):
        return ("var", term) if world.extents is None else world.extents[term[1:-1]]
    if term.startswith("#"):
        return int(term[1:])
    if term.startswith("'"):
        return ("name", term[1:])
    try:
        return number(ex.num(Fraction(term)))
    except ValueError as wrong:
        raise Unsaid(f"{term} is no operand") from wrong
