"""Convolutions and pools. Operands are in ONNX's order, but their bytes need not be: channels-last strides stay channels last."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from runner.bundle import Node
from runner.ops.table import one_of, op, unsupported

_CONV = {2: F.conv2d, 3: F.conv3d}
_CONV_TRANSPOSE = {2: F.conv_transpose2d, 3: F.conv_transpose3d}
_MAX_POOL = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
_AVG_POOL = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}

Widths = list[int]


def _widths(node: Node, name: str, spatial: int) -> Widths:
    return list(node.attr(name) or [1] * spatial)


def _pads(node: Node, x: Tensor, kernel: Widths, strides: Widths, dilations: Widths) -> tuple[Widths, Widths]:
    """Pads at the beginnings and at the ends of the spatial axes, `auto_pad` worked out."""
    spatial = len(kernel)
    auto = one_of(node, "auto_pad", "NOTSET", ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"))
    if auto == "VALID":
        return [0] * spatial, [0] * spatial
    if auto == "NOTSET":
        pads = list(node.attr("pads") or [0] * 2 * spatial)
        return pads[:spatial], pads[spatial:]
    begin, end = [], []
    for extent, width, stride, dilation in zip(x.shape[2:], kernel, strides, dilations):
        total = max((-(-extent // stride) - 1) * stride + (width - 1) * dilation + 1 - extent, 0)
        small, large = total // 2, total - total // 2
        begin.append(small if auto == "SAME_UPPER" else large)
        end.append(large if auto == "SAME_UPPER" else small)
    return begin, end


def _padded(x: Tensor, begin: Widths, end: Widths, value: float = 0.0) -> Tensor:
    """With so much more around the spatial axes."""
    return F.pad(x, [width for pair in reversed(list(zip(begin, end))) for width in pair], value=value)


@op("Conv")
def conv(node: Node, x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    """`x` [N, C, ..], `w` [O, C / group, ..], `b` [O]. Pads that differ at the two ends cost a call of their own."""
    kernel = list(w.shape[2:])
    strides, dilations = _widths(node, "strides", len(kernel)), _widths(node, "dilations", len(kernel))
    begin, end = _pads(node, x, kernel, strides, dilations)
    if begin != end:
        x, begin = _padded(x, begin, end), [0] * len(kernel)
    group = node.attr("group", 1)
    if len(kernel) == 1:
        # In two dims, because a 3-D tensor has no channels-last format.
        y = F.conv2d(x.unsqueeze(2), w.unsqueeze(2), b, [1, *strides], [0, *begin], [1, *dilations], group)
        return y.squeeze(2)
    return _CONV[len(kernel)](x, w, b, strides, begin, dilations, group)


@op("ConvTranspose")
def conv_transpose(node: Node, x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    """`x` [N, C, ..], `w` [C, O / group, ..], `b` [O]. What pads take away unevenly is cut off the result."""
    kernel = list(w.shape[2:])
    spatial = len(kernel)
    strides, dilations = _widths(node, "strides", spatial), _widths(node, "dilations", spatial)
    extra = list(node.attr("output_padding") or [0] * spatial)
    begin, end = _cut(node, x, kernel, strides, dilations, extra)
    group = node.attr("group", 1)
    even = begin == end
    if spatial == 1:
        pads = begin if even else [0]
        y = F.conv_transpose2d(
            x.unsqueeze(2), w.unsqueeze(2), b, [1, *strides], [0, *pads], [0, *extra], group, [1, *dilations]
        ).squeeze(2)
    else:
        y = _CONV_TRANSPOSE[spatial](x, w, b, strides, begin if even else [0] * spatial, extra, group, dilations)
    return y if even else _padded(y, [-width for width in begin], [-width for width in end])


def _cut(node: Node, x: Tensor, kernel: Widths, strides: Widths, dilations: Widths, extra: Widths) -> tuple[Widths, Widths]:
    """What is cut off the full result of a transposed convolution: the pads, or what `output_shape` and `auto_pad` ask for."""
    auto, wanted = node.attr("auto_pad", "NOTSET"), node.attr("output_shape")
    if wanted is None and auto in ("NOTSET", "VALID"):
        return _pads(node, x, kernel, strides, dilations)
    begin, end = [], []
    wanted = list(wanted)[-len(kernel) :] if wanted is not None else [e * s for e, s in zip(x.shape[2:], strides)]
    for at, extent in enumerate(x.shape[2:]):
        full = (extent - 1) * strides[at] + (kernel[at] - 1) * dilations[at] + 1 + extra[at]
        total = max(full - wanted[at], 0)
        small, large = total // 2, total - total // 2
        begin.append(small if auto == "SAME_UPPER" else large)
        end.append(large if auto == "SAME_UPPER" else small)
    return begin, end


@op("MaxPool")
def max_pool(node: Node, x: Tensor) -> Tensor:
    """The largest of each window; pads never win."""
    if len([name for name in node.outputs if name]) > 1:
        raise unsupported(node, "no indices as a result")
    kernel = list(node.attr("kernel_shape"))
    strides, dilations = _widths(node, "strides", len(kernel)), _widths(node, "dilations", len(kernel))
    begin, end = _pads(node, x, kernel, strides, dilations)
    if begin != end or any(2 * pad > width for pad, width in zip(begin, kernel)):
        lowest = -math.inf if x.dtype.is_floating_point else torch.iinfo(x.dtype).min
        x, begin = _padded(x, begin, end, lowest), [0] * len(kernel)
    return _MAX_POOL[len(kernel)](x, kernel, strides, begin, dilations, ceil_mode=bool(node.attr("ceil_mode", 0)))


@op("AveragePool")
def average_pool(node: Node, x: Tensor) -> Tensor:
    """The mean of each window, over what is not padding unless `count_include_pad`."""
    kernel = list(node.attr("kernel_shape"))
    strides, dilations = _widths(node, "strides", len(kernel)), _widths(node, "dilations", len(kernel))
    if any(width != 1 for width in dilations):
        raise unsupported(node, "no dilations")
    begin, end = _pads(node, x, kernel, strides, dilations)
    ceil, count_pads = bool(node.attr("ceil_mode", 0)), bool(node.attr("count_include_pad", 0))
    pool = _AVG_POOL[len(kernel)]
    if begin == end and all(2 * pad <= width for pad, width in zip(begin, kernel)):
        return pool(x, kernel, strides, begin, ceil, count_pads)
    if count_pads:
        return pool(_padded(x, begin, end), kernel, strides, ceil_mode=ceil)
    counted = pool(_padded(torch.ones_like(x[:1, :1]), begin, end), kernel, strides, ceil_mode=ceil)
    return pool(_padded(x, begin, end), kernel, strides, ceil_mode=ceil) / counted


@op("GlobalAveragePool")
def global_average_pool(node: Node, x: Tensor) -> Tensor:
    """The mean over all spatial axes, which stay with extent 1."""
    return x.mean(dim=tuple(range(2, x.dim())), keepdim=True)


@op("GlobalMaxPool")
def global_max_pool(node: Node, x: Tensor) -> Tensor:
    """The largest over all spatial axes, which stay with extent 1."""
    return x.amax(dim=tuple(range(2, x.dim())), keepdim=True)
