"""Between real numbers and 8-bit integers."""

from __future__ import annotations

import torch
from torch import Tensor

from runner.bundle import Node
from runner.ops.table import op, unsupported


def _along(node: Node, x: Tensor, numbers: Tensor) -> Tensor:
    """One number, or one per index of `axis`, in a shape that broadcasts."""
    if node.attr("block_size", 0):
        raise unsupported(node, "no scales by block")
    if numbers.numel() == 1:
        return numbers.reshape([1] * x.dim())
    shape = [1] * x.dim()
    shape[node.attr("axis", 1)] = numbers.numel()
    return numbers.reshape(shape)


@op("QuantizeLinear")
def quantize(node: Node, x: Tensor, scale: Tensor, zero_point: Tensor | None = None) -> Tensor:
    """Rounded to the nearest, ties to even; beyond the range to its ends."""
    dtype = torch.uint8 if zero_point is None else zero_point.dtype
    info = torch.iinfo(dtype)
    steps = torch.round(x / _along(node, x, scale))
    if zero_point is not None:
        steps = steps + _along(node, x, zero_point).to(steps.dtype)
    return steps.clamp(info.min, info.max).to(dtype)


@op("DequantizeLinear")
def dequantize(node: Node, x: Tensor, scale: Tensor, zero_point: Tensor | None = None) -> Tensor:
    """(x - zero point) scale."""
    steps = x.to(torch.int32)
    if zero_point is not None:
        steps = steps - _along(node, x, zero_point).to(torch.int32)
    return steps.to(scale.dtype) * _along(node, x, scale)
