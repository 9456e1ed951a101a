"""Families of several nodes, as architectures put them together: what a pass decides for one of their nodes, it decides for all."""
from . import cuts, norms, rows, units, windows
from .cuts import fail, join, parts
from .windows import convolved


def conv_of(net, value, out=None, group=1):
    return convolved(net, value, out=out, group=group, simple=True)


def activated(net, value):
    return net.keep(net.map(net.pick(["Relu", "Sigmoid", "LeakyRelu"]), value)) if net.once_in(2) else value


def image(net):
    """An image, after a convolution most often."""
    value = net.any(lambda v: v.space)
    return activated(net, conv_of(net, value)) if not net.once_in(4) else value


def whole_and_part(net):
    """A convolution's result that one node reads whole and others in part."""
    value = image(net)
    if value.size("C") < 2:
        fail()
    ways = [lambda: conv_of(net, value), lambda: convolved(net, value, group=value.size("C")), lambda: norms.group_norm(net),
            lambda: windows.pool(net), lambda: net.keep(net.map("Relu", value))]
    net.pick(ways)()
    sizes = parts(net, value.size("C"))
    style = net.dice.randrange(3)
    if style == 0:
        found = net.splits(value, "C", sizes)
    elif style == 1:
        found = [net.cut(value, "C", sum(sizes[:k]), sum(sizes[:k + 1])) for k in range(len(sizes))]
    else:
        chosen = net.ints(sorted(net.dice.sample(range(value.size("C")), sizes[0])))
        name = net.op("Gather", [value, chosen], axis=value.at("C"))
        found = [net.fixed(name, value, C=sizes[0])]
    found = found if net.once_in(2) else [net.pick(found)]
    found = [net.keep(part) for part in found]
    return [conv_of(net, part) for part in found if not net.once_in(3)]


def cross_stage(net):
    """A CSP block: halves of a convolution's channels, one goes through convolutions, all are put together; with a side branch."""
    value = conv_of(net, net.any(lambda v: v.space), out=net.pick([12, 20, 24, 28, 32, 36, 44, 60]))
    half = value.size("C") // 2
    first, second = (net.keep(part) for part in net.splits(value, "C", [half, half]))
    deep = net.turn(conv_of(net, activated(net, second), out=half), second.axes)
    if net.once_in(2):
        deep = net.keep(net.map("Add", deep, [second]))
    held = [first, second, deep] if net.once_in(2) else [first, deep]
    made = conv_of(net, join(net, held, "C"))
    if net.once_in(2):
        conv_of(net, value)
    return made


def upscaled(net):
    """Convolutions and DepthToSpace by turns, as super-resolution has them."""
    value = net.any(lambda v: len(v.space) == 2 and v.size("H") <= 6)
    mode = net.pick(["CRD", "CRD", "DCR"]) if net.opset >= 11 else None
    for _ in range(net.pick([1, 2, 2])):
        few = net.pick([16, 16, 8, 8, 12, 3, 20, 32])
        value = net.first(conv_of(net, value, out=few * 4))
        if net.once_in(3):
            value = net.first(net.keep(net.map("PRelu", value, [net.floats([few * 4, 1, 1], 0.1, 0.5)])))
        name = net.op("DepthToSpace", [value], blocksize=2, mode=mode)
        value = net.keep(net.back(net.like(name, value, C=few, H=2 * value.size("H"), W=2 * value.size("W"))))
        if value.size("H") > 16:
            break
        if not net.once_in(3):
            value = conv_of(net, value)
    return value


def normed(net):
    """A GroupNorm, an exporter's or the op, behind each op that has channels; a number for each channel and a convolution follow."""
    makers = [windows.conv, windows.transposed, windows.pool, windows.resized, units.qlinear_conv, units.conv_integer, units.matmul_integer,
              units.qlinear_matmul, units.unit, rows.matmul, norms.prelu, norms.batch_norm, norms.instance_norm, cuts.depth_to_space,
              cuts.shuffle, cuts.concat, norms.squeeze_and_excite, rows.einsum, units.quantize, norms.per_channel]
    net.pick(makers)(net)
    if net.opset >= 21 and net.once_in(2):
        norms.group_normalization(net)
        value = net.pool[-1]
        if net.once_in(2):
            kind = net.pick(["Mul", "Add"])
            net.keep(net.map(kind, value, [net.floats(net.along(value, "C", net.pick([0, 1])))]))
    else:
        norms.group_norm(net)
    return conv_of(net, net.pool[-1])


def inverted(net):
    """An inverted residual: wide, by channel, narrow, and the sum; with squeeze-and-excitation now and then."""
    value = net.any(lambda v: v.space)
    wide = activated(net, conv_of(net, value, out=min(64, value.size("C") * net.pick([2, 3, 4]))))
    wide = activated(net, convolved(net, wide, out=wide.size("C"), group=wide.size("C"), simple=True))
    if net.once_in(3):
        norms.squeeze_and_excite(net)
    thin = net.turn(conv_of(net, wide, out=value.size("C")), value.axes)
    return net.keep(net.map("Add", thin, [value]))


def dense(net):
    """Each convolution reads everything before it."""
    held = [image(net)]
    for _ in range(net.pick([2, 3])):
        whole = join(net, held, "C") if len(held) > 1 else held[0]
        held.append(net.turn(conv_of(net, activated(net, whole), out=net.pick([4, 12, 16, 20])), held[0].axes))
    return join(net, held, "C")


def shuffled(net):
    """A unit of ShuffleNet: half of the channels through convolutions, both put together, shuffled, and read."""
    value = conv_of(net, net.any(lambda v: v.space), out=net.pick([12, 24, 28, 32, 44, 60]))
    half = value.size("C") // 2
    first, second = net.splits(value, "C", [half, half])
    deep = convolved(net, conv_of(net, second, out=half), out=half, group=half, simple=True)
    net.keep(join(net, [first, net.turn(deep, first.axes)], "C"))
    cuts.shuffle(net)
    return conv_of(net, net.pool[-1])


def scaled(net):
    """A convolution, a number for each channel, and convolutions of one group or of several; something of it may be read by nobody."""
    value = image(net)
    c = value.size("C")
    kind = net.pick(["Mul", "Add", "Div", "Sub"])
    made = net.keep(net.map(kind, value, [net.floats(net.along(value, "C", net.pick([0, 1])))]))
    for group in (windows.groups(net, c), 1):
        conv_of(net, net.pick([made, value]), group=group, out=group * net.pick([1, 2, 4]))
    return made


def branch(net):
    """Branches of several windows over one value, put together, as Inception has them; a pool is one of them."""
    value = net.any(lambda v: v.space)
    held = [conv_of(net, value, out=net.pick([4, 8, 12, 20])) for _ in range(net.pick([2, 3]))]
    return conv_of(net, join(net, [net.turn(part, held[0].axes) for part in held], "C"))
