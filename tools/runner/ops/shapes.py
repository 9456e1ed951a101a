"""Ops that say how elements are grouped. Their results are views wherever torch has one."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from runner.bundle import Node
from runner.ops.table import one_of, op, unsupported


@op("Constant")
def constant(node: Node) -> Tensor:
    """Any of the attributes that hold a tensor, a number or a list."""
    value = node.attr("value")
    if isinstance(value, Tensor):
        return value
    for name, dtype in (
        ("value_int", torch.int64),
        ("value_ints", torch.int64),
        ("value_float", torch.float32),
        ("value_floats", torch.float32),
    ):
        if name in node.attributes:
            return torch.tensor(node.attributes[name], dtype=dtype)
    raise unsupported(node, f"no constant of the kind {', '.join(node.attributes)}")


@op("ConstantOfShape", host=(0,))
def constant_of_shape(node: Node, shape: list[int]) -> Tensor:
    """One value everywhere, 0 by default."""
    value = node.attr("value")
    if value is None:
        return torch.zeros(shape)
    return torch.full(shape, value.item(), dtype=value.dtype)


@op("Shape")
def shape_of(node: Node, x: Tensor) -> Tensor:
    """Extents, or a slice of them; always on the CPU."""
    return torch.tensor(x.shape[node.attr("start", 0) : node.attr("end")], dtype=torch.int64)


@op("Size")
def size_of(node: Node, x: Tensor) -> Tensor:
    """The number of elements, on the CPU."""
    return torch.tensor(x.numel(), dtype=torch.int64)


@op("Reshape", host=(1,))
def reshape(node: Node, x: Tensor, shape: list[int] | None = None) -> Tensor:
    """0 copies an extent unless `allowzero`; -1 is what is left."""
    shape = list(node.attr("shape") if shape is None else shape)
    if not node.attr("allowzero", 0):
        shape = [x.shape[at] if extent == 0 else extent for at, extent in enumerate(shape)]
    return x.reshape(shape)


@op("Flatten")
def flatten(node: Node, x: Tensor) -> Tensor:
    """Two dims: those before `axis`, and the others."""
    axis = node.attr("axis", 1)
    axis += x.dim() if axis < 0 else 0
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@op("Transpose")
def transpose(node: Node, x: Tensor) -> Tensor:
    """A view; a Transpose of a bundle is a move, and executed by a kernel unless the runner is told to leave moves to torch."""
    return x.permute(node.attr("perm") or tuple(reversed(range(x.dim()))))


@op("Squeeze", host=(1,))
def squeeze(node: Node, x: Tensor, axes: list[int] | None = None) -> Tensor:
    """Axes are an attribute before opset 13."""
    axes = node.attr("axes") if axes is None else axes
    return x.squeeze() if axes is None else x.squeeze(tuple(axes))


@op("Unsqueeze", host=(1,))
def unsqueeze(node: Node, x: Tensor, axes: list[int] | int | None = None) -> Tensor:
    """Axes count dims of the result; they are an attribute before opset 13."""
    axes = node.attr("axes") if axes is None else axes
    axes = [axes] if isinstance(axes, int) else axes
    rank = x.dim() + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        x = x.unsqueeze(axis)
    return x


@op("Concat")
def concat(node: Node, *parts: Tensor) -> Tensor:
    """Any number of operands, along `axis`."""
    return torch.cat(parts, node.attr("axis"))


@op("Split", host=(1,))
def split(node: Node, x: Tensor, sizes: list[int] | None = None) -> tuple[Tensor, ...]:
    """Views. Without sizes the parts are equal, the last one smaller if they can't be."""
    axis = node.attr("axis", 0)
    sizes = node.attr("split") if sizes is None else sizes
    if sizes is None:
        count = len(node.outputs)
        sizes = -(-x.shape[axis] // count)
    return torch.split(x, list(sizes) if not isinstance(sizes, int) else sizes, axis)


@op("Slice", host=(1, 2, 3, 4))
def slice_of(
    node: Node,
    x: Tensor,
    starts: list[int] | None = None,
    ends: list[int] | None = None,
    axes: list[int] | None = None,
    steps: list[int] | None = None,
) -> Tensor:
    """A view, unless a step is negative. Everything is an attribute before opset 10."""
    starts = list(node.attr("starts") if starts is None else starts)
    ends = list(node.attr("ends") if ends is None else ends)
    axes = node.attr("axes") if axes is None else axes
    axes = list(range(len(starts)) if axes is None else axes)
    for start, end, axis, step in zip(starts, ends, axes, steps or [1] * len(starts)):
        if step < 0:
            at = range(x.shape[axis])[start:end:step] if end >= -x.shape[axis] else range(x.shape[axis])[start::step]
            x = x.index_select(axis, torch.tensor(list(at), device=x.device))
        else:
            x = x[(slice(None),) * (axis % x.dim()) + (slice(start, end, step),)]
    return x


@op("Expand", host=(1,))
def expand(node: Node, x: Tensor, shape: list[int]) -> Tensor:
    """A view; the shape is broadcast with that of the operand."""
    return x.expand(torch.broadcast_shapes(x.shape, tuple(shape)))


@op("Tile", host=(1,))
def tile(node: Node, x: Tensor, repeats: list[int]) -> Tensor:
    """So many copies along each axis."""
    return x.repeat(repeats)


@op("Pad", host=(1, 2, 3))
def pad(
    node: Node, x: Tensor, pads: list[int] | None = None, value: float | None = None, axes: list[int] | None = None
) -> Tensor:
    """Pads are all beginnings, then all ends; attributes before opset 11."""
    mode = one_of(node, "mode", "constant", ("constant", "reflect", "edge"))
    pads = list(node.attr("pads") if pads is None else pads)
    value = node.attr("value", 0.0) if value is None else value
    axes = list(range(len(pads) // 2) if axes is None else axes)
    by_axis = {axis % x.dim(): (pads[at], pads[at + len(axes)]) for at, axis in enumerate(axes)}
    wide = [by_axis.get(axis, (0, 0)) for axis in range(x.dim())]
    if mode == "constant":
        return F.pad(x, [width for pair in reversed(wide) for width in pair], value=value)
    return _pad_by_index(x, wide, mode)


def _pad_by_index(x: Tensor, wide: list[tuple[int, int]], mode: str) -> Tensor:
    """Reflections and repeated edges, axis by axis: torch pads only trailing axes so."""
    for axis, (before, after) in enumerate(wide):
        if before or after:
            last = x.shape[axis] - 1
            at = torch.arange(-before, last + 1 + after, device=x.device)
            at = (last - (last - at.abs()).abs()) if mode == "reflect" else at.clamp(0, last)
            x = x.index_select(axis, at)
    return x
