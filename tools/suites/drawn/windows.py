"""Families with a window over the image: convolutions, pools, and what makes images larger or smaller."""
import numpy as np

from .net import Misfit


def attributes(net, value, dense=True):
    """Window, strides, pads and dilations as an op of `value` may have them: (attributes, extents of the result by letter)."""
    kernel, strides, dilations, begins, ends, extents = [], [], [], [], [], {}
    style = net.pick(["same", "same", "valid", "odd", "SAME_UPPER", "SAME_LOWER"])
    for letter in value.space:
        size = value.size(letter)
        window = min(net.pick([1, 3, 3, 5, 2]), max(1, size))
        dilation = 2 if dense and window > 1 and net.once_in(5) else 1
        stride = net.pick([1, 1, 1, 2])
        span = dilation * (window - 1) + 1
        if style.startswith("SAME"):
            before = after = 0
            extents[letter] = -(-size // stride)
            if dilation > 1 or window < stride:
                raise Misfit
        elif style == "same":
            before = after = (span - 1) // 2
        elif style == "odd":
            before, after = net.pick([0, 1]), net.pick([0, 1])
        else:
            before = after = 0
        if not style.startswith("SAME"):
            if size + before + after < span:
                raise Misfit
            extents[letter] = (size + before + after - span) // stride + 1
        kernel.append(window)
        strides.append(stride)
        dilations.append(dilation)
        begins.append(before)
        ends.append(after)
    found = {"kernel_shape": kernel, "strides": strides}
    if style.startswith("SAME"):
        found["auto_pad"] = style
    elif style == "valid" and net.once_in(2):
        found["auto_pad"] = "VALID"
    else:
        found["pads"] = begins + ends
    if max(dilations) > 1 or net.once_in(4):
        found["dilations"] = dilations
    if max(strides) == 1 and net.once_in(3):
        del found["strides"]
    return found, extents


def groups(net, channels):
    """A number of groups that divides the channels."""
    return net.pick([group for group in range(1, channels + 1) if channels % group == 0][:6])


def convolved(net, value, out=None, group=None, simple=False):
    """A convolution of an image, kept. `simple` ones keep the extents."""
    value = net.first(value)
    if not value.space:
        raise Misfit
    c = value.size("C")
    style = net.dice.random()
    group = group or (1 if simple or style < 0.65 else c if style < 0.8 else groups(net, c))
    out = out or (group * net.pick([1, 1, 2]) if group == c > 1 else group * max(1, net.channels() // group))
    if simple:
        window = net.pick([1, 1, 3])
        found = {"kernel_shape": [window] * len(value.space), "pads": [window // 2] * 2 * len(value.space)}
        extents = {}
    else:
        found, extents = attributes(net, value)
    weights = net.weights([out, c // group, *found["kernel_shape"]], c // group * int(np.prod(found["kernel_shape"])))
    if net.once_in(4):
        del found["kernel_shape"]
    if group > 1 or net.once_in(6):
        found["group"] = group
    inputs = [value, weights] + ([net.floats([out], -0.5, 0.5)] if net.once_in(2) else [])
    made = net.like(net.op("Conv", inputs, **found), value, C=out, **extents)
    return net.keep(net.back(made))


def conv(net):
    return convolved(net, net.any(lambda v: v.space))


def pointwise(net):
    return convolved(net, net.any(lambda v: v.space), simple=True)


def transposed(net):
    """ConvTranspose, with bias, groups and output_padding."""
    value = net.first(net.any(lambda v: v.space and len(v.space) < 3 and max(v.size(s) for s in v.space) <= 14))
    c = value.size("C")
    group = net.pick([1, 1, groups(net, c)])
    each = max(1, net.channels() // group)
    kernel, strides, pads, extra, extents = [], [], [], [], {}
    for letter in value.space:
        window, stride = net.pick([(2, 2), (3, 2), (3, 1), (1, 1), (4, 2), (3, 3)])
        pad = net.pick([0, 0, 1]) if window > 2 else 0
        more = net.pick([0, 0, stride - 1])
        kernel.append(window)
        strides.append(stride)
        pads.append(pad)
        extra.append(more)
        extents[letter] = stride * (value.size(letter) - 1) + more + window - 2 * pad
        if extents[letter] < 1:
            raise Misfit
    weights = net.weights([c, each, *kernel], c // group * int(np.prod(kernel)) / int(np.prod(strides)))
    inputs = [value, weights] + ([net.floats([each * group], -0.5, 0.5)] if net.once_in(2) else [])
    given = {"strides": strides, "pads": pads * 2, "group": group, "kernel_shape": kernel if net.once_in(2) else None}
    name = net.op("ConvTranspose", inputs, output_padding=extra if any(extra) else None, **given)
    made = net.like(name, value, C=each * group, **extents)
    return net.keep(net.back(made))


def pool(net):
    """Max, average and Lp pools, with ceil_mode where no window lies in the padding alone."""
    value = net.first(net.any(lambda v: v.space))
    kind = net.pick(["MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool"])
    found, extents = attributes(net, value, dense=False)
    found.pop("dilations", None)
    pads = found.get("pads")
    if pads and any(pad >= window for pad, window in zip(pads, found["kernel_shape"] * 2)):
        raise Misfit
    if kind == "AveragePool" and net.once_in(3):
        found["count_include_pad"] = 1
    if net.opset >= 10 and kind != "LpPool" and net.once_in(3) and (not pads or not any(pads)) and "auto_pad" not in found:
        found["ceil_mode"] = 1
        window = dict(zip(value.space, zip(found["kernel_shape"], found.get("strides", [1] * len(value.space)))))
        extents = {s: -(-(value.size(s) - k) // step) + 1 for s, (k, step) in window.items()}
        if any((extents[s] - 1) * step >= value.size(s) for s, (_, step) in window.items()):
            raise Misfit
    two = kind == "MaxPool" and net.opset >= 8 and net.once_in(10)
    made = net.op(kind, [value], 2 if two else 1, **found)
    if two:
        net.outputs.append((made[1], np.int64))
    made = net.like(made[0] if two else made, value, **extents)
    return net.keep(net.back(made))


def global_pool(net):
    value = net.first(net.any(lambda v: v.space))
    kind = net.pick(["GlobalAveragePool", "GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"])
    made = net.fixed(net.op(kind, [value]), value, **dict.fromkeys(value.space, 1))
    if kind == "GlobalLpPool":
        made = net.map("Mul", made, [net.constant(np.asarray(0.2, net.kind))])
    made = net.keep(net.back(made))
    if net.once_in(2):
        return net.keep(net.reshape(net.first(made), "NC", ["N", "C" + made.space]) if net.once_in(2) else flat(net, made))
    return made


def flat(net, value):
    """Flatten of an image whose extents but N are one."""
    value = net.first(value)
    name = net.op("Flatten", [value], axis=1 if net.once_in(2) else None)
    return type(value)(name, "NC", (value.size("N"), int(np.prod(value.shape[1:]))), value.free & {"N"})


def resized(net):
    """Resize, or Upsample where the opset has no Resize: nearest and linear, over rows and columns."""
    value = net.first(net.any(lambda v: len(v.space) == 2 and max(v.size("H"), v.size("W")) <= 12))
    mode = net.pick(["nearest", "nearest", "linear"])
    factor = net.pick([2, 2, 3]) if net.opset < 10 or not net.once_in(5) else 0.5
    if factor < 1 and (value.free or min(value.size("H"), value.size("W")) < 4):
        raise Misfit
    scales = [1.0, 1.0, float(factor), float(factor)]
    extents = {letter: int(np.floor(value.size(letter) * factor)) for letter in "HW"}
    if net.opset < 9:
        name = net.op("Upsample", [value], mode=mode, scales=scales)
    else:
        given = net.constant(np.asarray(scales, np.float32), plain=True)
        if net.opset == 12:
            raise Misfit
        if net.opset < 11:
            name = net.op("Upsample" if net.opset < 10 else "Resize", [value, given], mode=mode)
        elif not value.free and net.once_in(3):
            sizes = net.ints([*value.shape[:2], extents["H"], extents["W"]])
            name = net.op("Resize", [value, "" if net.opset > 11 else net.constant(np.zeros(0, np.float32), True), *missing(net), sizes],
                          mode=mode, **coordinates(net, mode))
        else:
            roi = "" if net.opset > 12 else net.constant(np.zeros(0, np.float32), plain=True)
            name = net.op("Resize", [value, roi, given], mode=mode, **coordinates(net, mode))
    made = net.like(name, value, **extents)
    return net.keep(net.back(made))


def missing(net):
    """The scales of a Resize that has sizes."""
    return [""] if net.opset > 12 else [net.constant(np.zeros(0, np.float32), plain=True)]


def coordinates(net, mode):
    """How a Resize places its samples."""
    ways = ["asymmetric", "half_pixel"] + (["align_corners"] if mode == "linear" else [])
    found = {"coordinate_transformation_mode": net.pick(ways)}
    if mode == "nearest":
        found["nearest_mode"] = "floor"
    return found
