"""Ops that count along the last axis: their indices are sums and products of counts, which may be symbols.

Other axes of an image are alike: the op does along each what it does along one, and the rest is a digit of its own.
"""

from . import expressions as ex
from .tensors import Tensor, Unsaid

OF_COUNTS = {
    "plus": lambda a, b: a + b,
    "minus": lambda a, b: a - b,
    "times": lambda a, b: a * b,
    "div": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
}
OF_TRUTH = {"le": lambda a, b: a <= b, "lt": lambda a, b: a < b, "eq": lambda a, b: a == b}


def count(kind, a, b):
    """A count of two counts: a number where both are numbers."""
    return OF_COUNTS[kind](a, b) if isinstance(a, int) and isinstance(b, int) else (kind, a, b)


def plus(a, *more):
    for b in more:
        a = count("plus", a, b)
    return a


def chosen(low, at, high, then, other=ex.ZERO):
    """`then` where `low <= at < high`, else zero."""
    if all(isinstance(i, int) for i in (low, at, high)):
        return then() if low <= at < high else other
    return ("if", ("and", ("le", low, at), ("lt", at, high)), then(), other)


def extent(world, axis):
    if len(axis) != 1:
        raise Unsaid("an axis of one digit is counted along")
    if world.extents is not None:
        return world.extents[axis[0]]
    digit = axis[0]
    return digit[1] if isinstance(digit, tuple) else ("var", f"|{digit}|")


def axis_of(world, extent_of):
    """An axis of a computed extent."""
    digit = ("extent", extent_of)
    if world.extents is not None:
        world.extents[digit] = extent_of
    return (digit,)


def last(tensor, axis, of):
    """The tensor with another last axis; `of` makes the element of what stands before and of the place along it."""
    return Tensor([*tensor.axes[:-1], axis], lambda index: of(list(index[:-1]), index[-1][0]))


def pad(world, x, before, after, value=None):
    size = extent(world, x.axes[-1])

    def of(rest, i):
        inside = lambda: x.read([*rest, (count("minus", i, before),)])
        return chosen(before, i, plus(before, size), inside, value.read([]) if value else ex.ZERO)

    return last(x, axis_of(world, plus(before, size, after)), of)


def cut(world, x, start, step, places):
    """A Slice of so many places."""
    return last(x, axis_of(world, places), lambda rest, i: x.read([*rest, (plus(start, count("times", step, i)),)]))


def whole(world, x):
    """A Slice that takes everything."""
    return cut(world, x, 0, 1, extent(world, x.axes[-1]))


def gather(world, x, at):
    """Places that an index says, negative ones from the end."""
    size = extent(world, x.axes[-1])

    def of(rest, i):
        place = at(i)
        if isinstance(place, int):
            place = place + size if place < 0 else place
        else:
            place = ("cond", ("lt", place, 0), plus(place, size), place)
        return x.read([*rest, (place,)])

    return last(x, ("J",), of)


def windows(world, x, w, stride, dilation, before, after):
    """A convolution of `[N, C, X]` with `[O, C, T]`, zeros around."""
    (batch, channels, space), (filters, inner, taps) = x.axes, w.axes
    size, width = extent(world, space), extent(world, taps)
    reach = count("times", dilation, count("minus", width, 1))
    room = count("minus", count("minus", plus(size, before, after), reach), 1)
    out = axis_of(world, plus(count("div", room, stride), 1))

    def read(index):
        n, o, (p,) = index

        def body(place):
            c, (t,) = place
            at = count("minus", plus(count("times", stride, p), count("times", dilation, t)), before)
            return chosen(0, at, size, lambda: ("mul", x.read([n, c, (at,)]), w.read([o, c, (t,)])))

        return world.fold("sum", [inner, taps], body)

    return Tensor([batch, filters, out], read)


def blocks(world, x, block):
    """Places of blocks go into the batch: `[N, C, X]` to `[(b N), C, X / b]`."""
    batch, channels, space = x.axes
    out = axis_of(world, count("div", extent(world, space), block))
    within = axis_of(world, block)

    def read(index):
        (r, *n), c, (i,) = index
        return x.read([tuple(n), c, (plus(count("times", i, block), r),)])

    return Tensor([(*within, *batch), channels, out], read)


def join(world, x, block):
    """What `blocks` did, back."""
    (within, *batch), channels, space = x.axes
    out = axis_of(world, count("times", extent(world, space), block))

    def read(index):
        n, c, (u,) = index
        return x.read([(count("mod", u, block), *n), c, (count("div", u, block),)])

    return Tensor([tuple(batch), channels, out], read)
