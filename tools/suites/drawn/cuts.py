"""Families that take parts of values, put values together, and move channels: what a pass that renumbers channels has to follow."""
import numpy as np

from .net import Misfit
from .windows import convolved


def parts(net, total):
    """Sizes that sum up to a total: halves, or two or three of any size."""
    if total < 2:
        raise Misfit
    if total % 2 == 0 and net.once_in(2):
        return [total // 2] * 2
    if total % 3 == 0 and net.once_in(3):
        return [total // 3] * 3
    whole = [size for size in (8, 16, 12, 4) if size < total]
    first = net.pick(whole) if whole and net.once_in(2) else net.dice.randint(1, total - 1)
    return [first, total - first]


def letter_of(net, value):
    """Channels most often."""
    return "C" if not net.once_in(5) else net.pick([s for s in value.axes if s != "N" and s not in value.free] or ["C"])


def split(net):
    """Split; each part goes on, through a convolution now and then, and they may meet again."""
    value = net.any(lambda v: v.size("C") > 1)
    letter = letter_of(net, value)
    found = [net.keep(part) for part in net.splits(value, letter, parts(net, value.size(letter)))]
    if net.once_in(3):
        join(net, found, letter)
    elif net.once_in(2) and found[0].space:
        convolved(net, net.pick(found), simple=True)


def slice_(net):
    """Slice with one bound or two, from the end, with steps, backwards."""
    value = net.any(lambda v: v.size("C") > 1)
    letter = letter_of(net, value)
    extent = value.size(letter)
    if extent < 2:
        raise Misfit
    if net.opset >= 10 and net.once_in(8):
        return net.keep(net.cut(value, letter, extent - 1, None, -1))
    if net.opset >= 10 and net.once_in(8):
        return net.keep(net.cut(value, letter, net.pick([0, 1]), extent, 2))
    start = net.pick([0, 4, 8, net.dice.randrange(extent)]) % extent
    end = net.pick([extent, net.dice.randint(start + 1, extent), min(extent, start + 8)])
    return net.keep(net.cut(value, letter, start if net.once_in(2) else start - extent, end))


def gather(net):
    """Some indices, all of them in another order, one that goes, or one that stays as an extent of 1."""
    value = net.any()
    letter = letter_of(net, value)
    extent = value.size(letter)
    style = net.dice.randrange(4)
    axis = value.at(letter)
    if style == 0 and len(value.axes) > 2 and letter not in "C":
        name = net.op("Gather", [value, net.constant(np.asarray(net.dice.randrange(extent)), True)], axis=axis)
        axes = relettered(value.axes.replace(letter, ""))
        shape = tuple(size for s, size in zip(value.axes, value.shape) if s != letter)
        return net.keep(type(value)(name, axes, shape, frozenset(s for s in value.free if s == "N")) if value.free <= {"N"} else fail())
    order = list(net.numbers.permutation(extent))
    count = extent if style == 1 else net.dice.randint(1, extent)
    if style == 3:
        order = [net.dice.randrange(-extent if net.opset >= 11 else 0, extent) for _ in range(count)]
    chosen = np.asarray(order[:count], np.int32 if net.once_in(4) else np.int64)
    name = net.op("Gather", [value, net.constant(chosen, True)], axis=axis)
    return net.keep(net.fixed(name, value, **{letter: count}))


def fail():
    raise Misfit


def relettered(axes):
    """The axes of an image of one axis less."""
    rest = [s for s in axes if s not in "NC"]
    names = {0: "", 1: "L", 2: "HW"}[len(rest)]
    return "".join(s if s in "NC" else names[rest.index(s)] for s in axes)


def join(net, values, letter):
    """Concat of values that agree but for a letter."""
    if len({value.axes for value in values}) != 1:
        raise Misfit
    axis = values[0].at(letter)
    name = net.op("Concat", values, axis=axis - (len(values[0].axes) if net.opset >= 11 and net.once_in(4) else 0))
    return net.keep(net.fixed(name, values[0], **{letter: sum(value.size(letter) for value in values)}))


def concat(net):
    """Values that fit each other, a value with itself, or with a constant."""
    value = net.any()
    letter = letter_of(net, value)
    alike = [other for other in net.pool if other.axes == value.axes and other.free == value.free
             and all(s == letter or other.size(s) == value.size(s) for s in value.axes)]
    chosen = [value] + [net.pick(alike) for _ in range(net.pick([1, 1, 2]))]
    if net.once_in(6) and not value.free:
        constant = net.floats(value.shape, -1, 1)
        chosen = [value, type(value)(constant, value.axes, value.shape)]
    net.dice.shuffle(chosen)
    return join(net, chosen, letter)


def shuffle(net):
    """A channel shuffle, as exporters write it; on channels first, or last."""
    value = net.any(lambda v: v.size("C") > 3)
    value = value if net.once_in(4) else net.first(value)
    c = value.size("C")
    group = net.pick([k for k in range(2, c + 1) if c % k == 0])
    before = [1 if letter == "N" and value.size("N") == 1 and "N" not in value.free else letter for letter in value.axes]
    at = value.at("C")
    axes = value.axes.replace("C", "GC")
    wide = list(before)
    wide[at:at + 1] = [group, c // group]
    if len(value.free) > 1:
        raise Misfit
    opened = reshaped(net, value, axes, wide)
    turned = net.turn(opened, axes.replace("GC", "CG"))
    back = list(value.axes)
    back[at:at + 1] = ["CG"]
    return net.keep(net.reshape(turned, value.axes, back))


def reshaped(net, value, axes, sizes):
    """A Reshape whose sizes are letters of axes that stay, or numbers of new ones."""
    wanted, extents, left = [], [], 1
    for place, size in enumerate(sizes):
        extent = size if isinstance(size, int) else value.size(size)
        extents.append(extent)
        stays = not isinstance(size, int) and value.axes.index(size) == place
        if stays and (size in value.free or net.once_in(2)):
            wanted.append(0)
        elif not isinstance(size, int) and size in value.free:
            wanted.append(-1)
            left -= 1
        else:
            wanted.append(extent)
    if left < 0:
        raise Misfit
    free = frozenset(size for size in sizes if not isinstance(size, int) and size in value.free)
    return type(value)(net.op("Reshape", [value, net.ints(wanted)]), axes, tuple(extents), free)


def depth_to_space(net):
    """In both modes, in front of a convolution most often."""
    value = net.first(net.any(lambda v: len(v.space) == 2 and v.size("H") <= 8))
    blocks = net.pick([2, 2, 3])
    c = value.size("C")
    if c % blocks ** 2:
        value = net.first(convolved(net, value, out=blocks ** 2 * net.pick([1, 3, 4, 5, 7, 12, 16]), group=1, simple=True))
        c = value.size("C")
    mode = net.pick(["DCR", "CRD", "CRD"]) if net.opset >= 11 else None
    name = net.op("DepthToSpace", [value], blocksize=blocks, mode=mode)
    made = net.like(name, value, C=c // blocks ** 2, H=value.size("H") * blocks, W=value.size("W") * blocks)
    made = net.keep(net.back(made))
    return convolved(net, made, simple=True) if net.once_in(2) else made


def space_to_depth(net):
    value = net.first(net.any(lambda v: len(v.space) == 2 and not v.free & set("HW") and v.size("C") <= 20))
    blocks = net.pick([2, 2, 3])
    if value.size("H") % blocks or value.size("W") % blocks:
        raise Misfit
    name = net.op("SpaceToDepth", [value], blocksize=blocks)
    extents = {letter: value.size(letter) // blocks for letter in "HW"}
    return net.keep(net.back(net.like(name, value, C=value.size("C") * blocks ** 2, **extents)))


def pad(net):
    """All modes, of the space most often, now and then of the channels."""
    value = net.any()
    mode = net.pick(["constant", "constant", "reflect", "edge"] + (["wrap"] if net.opset >= 19 else []))
    letters = value.space if value.space and not net.once_in(6) else "C"
    begins, ends, extents = [0] * len(value.axes), [0] * len(value.axes), {}
    for letter in letters:
        most = value.size(letter) - 1 if mode in ("reflect", "wrap") else 2
        begins[value.at(letter)], ends[value.at(letter)] = min(most, net.pick([0, 1, 2])), min(most, net.pick([0, 1]))
        extents[letter] = value.size(letter) + begins[value.at(letter)] + ends[value.at(letter)]
    number = net.pick([0.0, 0.5])
    if net.opset < 11:
        name = net.op("Pad", [value], mode=mode, pads=begins + ends, value=number)
    elif net.opset >= 18 and net.once_in(3):
        named = [value.at(letter) for letter in letters]
        inputs = [value, net.ints([begins[k] for k in named] + [ends[k] for k in named]), net.constant(np.asarray(number, net.kind), True)]
        name = net.op("Pad", [*inputs, net.ints(named)], mode=mode)
    else:
        inputs = [value, net.ints(begins + ends)] + ([net.constant(np.asarray(number, net.kind), True)] if net.once_in(2) else [])
        name = net.op("Pad", inputs, mode=mode)
    return net.keep(net.like(name, value, **extents))


def tile(net):
    """Tile of any letter, or Expand of extents of one."""
    value = net.any()
    letter = net.pick([s for s in value.axes if value.size(s) <= 6] or fail())
    if value.size(letter) == 1 and letter not in value.free and net.opset >= 8 and net.once_in(2):
        times = net.pick([2, 3])
        shape = [times if s == letter else 1 for s in value.axes]
        return net.keep(net.fixed(net.op("Expand", [value, net.ints(shape)]), value, **{letter: times}))
    repeats = [2 if s == letter else 1 for s in value.axes]
    return net.keep(net.like(net.op("Tile", [value, net.ints(repeats)]), value, **{letter: 2 * value.size(letter)}))


def gather_nd(net):
    """GatherND of rows, ScatterND into a value."""
    net.since(11)
    value = net.any(lambda v: not v.free)
    places = net.dice.randint(1, 3)
    depth = net.pick([1, 2])
    chosen = np.stack([net.numbers.integers(0, value.shape[k], places) for k in range(depth)], -1)
    if net.once_in(2):
        net.op("GatherND", [value, net.ints(chosen)])
        net.outputs.append((f"v{net.counted}", net.kind))
        return value
    chosen = np.unique(chosen, axis=0)
    updates = net.floats([len(chosen), *value.shape[depth:]])
    return net.keep(net.map("ScatterND", value, [net.ints(chosen), updates]))


def squeeze(net):
    """Squeeze and Unsqueeze: of a batch of one, of an axis that comes and goes."""
    value = net.any()
    place = net.dice.randint(0, len(value.axes))
    name = net.with_axes("Unsqueeze", value, [place])
    wide = type(value)(name, value.axes[:place] + "U" + value.axes[place:], (*value.shape[:place], 1, *value.shape[place:]), value.free)
    if net.once_in(2):
        wide = net.map(net.pick(["Relu", "Sigmoid", "Abs"]), wide)
    if net.once_in(2):
        letters = list(wide.axes)
        net.dice.shuffle(letters)
        wide = net.turn(wide, "".join(letters))
    name = net.with_axes("Squeeze", wide, [wide.at("U")])
    shape = tuple(size for s, size in zip(wide.axes, wide.shape) if s != "U")
    return net.keep(type(value)(name, wide.axes.replace("U", ""), shape, value.free))


def turned(net):
    """A Transpose to any order."""
    value = net.any(lambda v: len(v.axes) > 1)
    letters = list(value.axes)
    net.dice.shuffle(letters)
    return net.keep(net.turn(value, "".join(letters))) if "".join(letters) != value.axes else fail()


def rows_and_columns(net):
    """An image as rows and back: H and W become L, or L becomes H and W."""
    value = net.any(lambda v: v.space in ("HW", "L"))
    if value.space == "HW":
        value = net.first(value)
        return net.keep(net.reshape(value, "NCL", ["N", "C", "HW"]))
    length = value.size("L")
    sides = [k for k in range(2, length) if length % k == 0]
    if not sides or "L" in value.free:
        raise Misfit
    height = net.pick(sides)
    value = net.first(value)
    return net.keep(reshaped(net, value, "NCHW", ["N", "C", height, length // height]))
