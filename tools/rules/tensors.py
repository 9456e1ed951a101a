"""Tensors and what ops make of them, element by element.

An axis is a tuple of *digits*, outermost first; a digit has a name and stands for any number of neighbouring axes of any extents, so what
is shown of it is shown for every rank. Without digits an axis has extent 1. In a world with extents each digit has a number, and sums are
written out; without, sums are folds over binders.
"""

import itertools
import math

from . import expressions as ex


class Unsaid(Exception):
    """The term means nothing for these operands."""


class World:
    def __init__(self, extents=None):
        self.extents = extents
        self.made = itertools.count()
        self.number_of = {}

    def extent(self, axis):
        return math.prod(self.extents[d] for d in axis)

    def same(self, a, b):
        return a == b if self.extents is None else self.extent(a) == self.extent(b)

    def one(self, axis):
        return not axis if self.extents is None else self.extent(axis) == 1

    def digits(self, axis):
        """A new index of each digit of an axis, with its binders. In a world with extents: all there are."""
        if self.extents is None:
            places = []
            for sides in itertools.product(*((0, 1) if d == "two" else (None,) for d in axis)):
                names = [(f"{d}.{next(self.made)}", d) if side is None else side for side, d in zip(sides, axis)]
                binders = tuple(n for n in names if isinstance(n, tuple))
                places.append((tuple(("var", n[0]) if isinstance(n, tuple) else n for n in names), binders))
            return places
        return [(i, ()) for i in itertools.product(*(range(self.extents[d]) for d in axis))]

    def fold(self, tag, axes, body):
        """What `tag` makes of the body at all places of the axes."""
        places = list(itertools.product(*(self.digits(axis) for axis in axes)))
        parts = []
        for place in places:
            binders = sum((b for _, b in place), ())
            part = body([i for i, _ in place])
            parts.append(("fold", tag, (), binders, part) if binders else part)
        total = parts[0]
        for part in parts[1:]:
            total = ({"sum": "add", "maximum": "max"}[tag], total, part)
        return total

    def count(self, axes):
        """How many places the axes have, as an expression: one in each place, summed."""
        return self.fold("sum", axes, lambda _: ex.ONE)

    def row(self, name, told, axes, body):
        """A function of all places at once of which nothing is known. With extents: a sum with unlike weights."""
        if self.extents is None:
            fold = self.fold(name, axes, body)
            return ("fold", name, told, *fold[3:]) if fold[0] == "fold" else fold
        weights = itertools.count(2 + sum(told))
        return self.fold("sum", axes, lambda i: ("mul", ex.num(next(weights)), body(i)))

    def flat(self, axes, index):
        number = 0
        for axis, place in zip(axes, index):
            for digit, i in zip(axis, place):
                number = number * self.extents[digit] + i
        return number

    def unflat(self, axes, number):
        index = []
        for axis in reversed(axes):
            place = []
            for digit in reversed(axis):
                number, i = divmod(number, self.extents[digit])
                place.append(i)
            index.append(tuple(reversed(place)))
        return list(reversed(index))


class Tensor:
    """Axes, and an expression at each index: a tuple of places of digits for each axis."""

    def __init__(self, axes, read):
        self.axes, self.read = tuple(axes), read

    @property
    def rank(self):
        return len(self.axes)


def operand(name, axes):
    return Tensor(axes, lambda index: ("elem", name, tuple(i for place in index for i in place)))


def number(tree):
    return Tensor((), lambda _: tree)


def there(world, tensor, index, axes):
    """An element of an operand that broadcasts, at an index of the result."""
    index = list(index)[len(index) - tensor.rank:]
    axes = list(axes)[len(axes) - tensor.rank:]
    place = []
    for own, i, of in zip(tensor.axes, index, axes):
        if world.one(own) and not world.one(of):
            i = (0,) * len(own)
        elif own != of and world.extents is not None:
            (i,) = world.unflat((own,), world.flat((of,), (i,)))
        place.append(i)
    return tensor.read(place)


def broadcast(world, *tensors):
    axes = []
    for at in range(1, max(t.rank for t in tensors) + 1):
        among = [t.axes[-at] for t in tensors if t.rank >= at]
        wide = [a for a in among if not world.one(a)]
        if any(not world.same(a, wide[0]) for a in wide):
            raise Unsaid(f"axes {among} do not broadcast")
        axes.insert(0, wide[0] if wide else among[0])
    return axes


def each(world, make, *tensors):
    axes = broadcast(world, *tensors)
    return Tensor(axes, lambda index: make(*(there(world, t, index, axes) for t in tensors)))


def places(world, tensor, axes):
    """Which axes of the tensor a list of axes is about."""
    if axes[0] == "at":
        return [a % tensor.rank for a in axes[1]]
    return [i for i, axis in enumerate(tensor.axes) if axis and set(axis) <= set(axes[1])]


def reduce(world, tag, tensor, axes):
    at = places(world, tensor, axes)
    kept = [() if i in at else axis for i, axis in enumerate(tensor.axes)]

    def read(index):
        def body(inner):
            place = list(index)
            for i, of in zip(at, inner):
                place[i] = of
            return tensor.read(place)
        return world.fold(tag, [tensor.axes[i] for i in at], body)

    return Tensor(kept, read)


def mean(world, tensor, axes):
    at = places(world, tensor, axes)
    count = world.count([tensor.axes[i] for i in at])
    return each(world, lambda e: ("div", e, count), reduce(world, "sum", tensor, axes))


def reshape(world, tensor, axes):
    """The elements in row-major order, with other axes."""
    axes = tuple(axes)
    before, after = (tuple(d for axis in a for d in axis) for a in (tensor.axes, axes))
    if before == after:
        def read(index):
            digits = iter([i for place in index for i in place])
            return tensor.read([tuple(next(digits) for _ in axis) for axis in tensor.axes])
    elif world.extents is None:
        if len(before) != 1 or len(after) != 1:
            raise Unsaid(f"a Reshape of {tensor.axes} into {axes} is no regrouping")
        def read(index):
            ((i,),) = index
            flat = ("app", f"number in {after[0]}", i)
            if isinstance(i, tuple) and i[:2] == ("app", f"place in {after[0]}"):
                flat = i[2]
            return tensor.read([(("app", f"place in {before[0]}", flat),)])
    else:
        if world.extent(before) != world.extent(after):
            raise Unsaid("a Reshape to another number of elements")
        def read(index):
            return tensor.read(world.unflat(tensor.axes, world.flat(axes, index)))
    return Tensor(axes, read)


def transpose(world, tensor, order):
    if order[0] == "any":
        return rearranged(world, tensor, order[1])
    order = order[1]
    if len(order) != tensor.rank:
        raise Unsaid("a permutation of another number of axes")

    def read(index):
        place = [None] * tensor.rank
        for new, old in enumerate(order):
            place[old] = index[new]
        return tensor.read(place)

    return Tensor([tensor.axes[old] for old in order], read)


def rearranged(world, tensor, names):
    """Transposes of which only the names are known: a bijection of indices of all axes as one digit."""
    if world.extents is not None or len(tensor.axes) != 1 or len(tensor.axes[0]) != 1:
        raise Unsaid("any order of axes is shown of all axes as one digit")
    ((digit,),) = tensor.axes

    def read(index):
        ((i,),) = index
        for name in reversed(names):
            i = ("app", name, i)
        return tensor.read([(i,)])

    return Tensor([(" ".join((digit, *names)),)], read)


def matmul(world, a, b):
    if a.rank < 2 or b.rank < 2 or not world.same(a.axes[-1], b.axes[-2]):
        raise Unsaid(f"no product of {a.axes} and {b.axes}")
    batch = broadcast(world, Tensor(a.axes[:-2], None), Tensor(b.axes[:-2], None)) if a.rank + b.rank > 4 else []
    axes = [*batch, a.axes[-2], b.axes[-1]]
    inner = a.axes[-1]

    def read(index):
        def body(place):
            (k,) = place
            other = k if inner == b.axes[-2] else world.unflat((b.axes[-2],), world.flat((inner,), (k,)))[0]
            left = there(world, Tensor(a.axes[:-2], lambda i: a.read([*i, index[-2], k])), index[:-2], batch)
            right = there(world, Tensor(b.axes[:-2], lambda i: b.read([*i, other, index[-1]])), index[:-2], batch)
            return ("mul", left, right)
        return world.fold("sum", [inner], body)

    return Tensor(axes, read)


def convolution(world, x, w, bias=None):
    """Windows of an image `[N, C, S]` or `[N, (G C), S]`; at each place of `S'` tap `T` reads some place of `S`, or one outside.

    Without taps each place reads itself. With extents, place p and tap t read place p + t.
    """
    (batch, channels, space), (filters, inner, taps) = x.axes, w.axes
    out = tuple(f"{d}'" for d in space) if taps else space
    if taps and world.extents is not None:
        for digit, place in zip(out, space):
            world.extents[digit] = world.extents[place] - (world.extent(taps) - 1 if place == space[0] else 0)
    group = channels[: len(channels) - len(inner)] if world.same(channels[len(channels) - len(inner):], inner) else None
    if group is None:
        raise Unsaid(f"filters of {inner} for channels of {channels}")

    def read(index):
        n, o, p = index

        def body(place):
            (c, t) = place
            at, inside = window(world, space, p, t) if taps else (p, None)
            own = c if group or channels == inner else world.unflat((channels,), world.flat((inner,), (c,)))[0]
            pixel = x.read([n, (*o[: len(group)], *own), at])
            weight = w.read([o, c, t])
            return ("if", inside, ("mul", pixel, weight), ex.ZERO) if inside is not None else ("mul", pixel, weight)

        total = world.fold("sum", [inner, taps], body)
        return total if bias is None else ("add", total, there(world, bias, [o], [filters]))

    return Tensor([batch, filters, out], read)


def window(world, space, p, t):
    if world.extents is not None:
        return (p[0] + (t[0] if t else 0), *p[1:]), None
    return tuple(("app", f"window along {d}", *p, *t) for d in space), ("holds", f"inside of {space}", *p, *t)


def convolution_back(world, x, w, bias=None):
    """Each place of the result is the sum of the places and taps that meet there."""
    (batch, channels, space), (inner, filters, taps) = x.axes, w.axes
    out = tuple(f"{d}'" for d in space)
    if world.extents is not None:
        world.extents[out[0]] = world.extent(space) + world.extent(taps) - 1

    def read(index):
        n, o, p = index

        def body(place):
            c, s, t = place
            product = ("mul", x.read([n, c, s]), w.read([c, o, t]))
            if world.extents is not None:
                return product if s[0] + t[0] == p[0] else ex.ZERO
            return ("if", ("eq", ("app", "meets", *s, *t), p[0]), product, ex.ZERO)

        total = world.fold("sum", [channels, space, taps], body)
        return total if bias is None else ("add", total, there(world, bias, [o], [filters]))

    return Tensor([batch, filters, out], read)


def reordered(world, tensor, at, name):
    """The places of an axis in another order: any bijection. With extents: from the last on."""
    ((digit),) = tensor.axes[at]

    def read(index):
        place = list(index)
        (i,) = place[at]
        place[at] = ((world.extents[digit] - 1 - i if world.extents else ("app", name, i)),)
        return tensor.read(place)

    return Tensor(tensor.axes, read)
