"""Ops that look elements up by number."""

from __future__ import annotations

import torch
from torch import Tensor

from runner.bundle import Node
from runner.ops.table import op


@op("Gather", scalars=(1,))
def gather(node: Node, x: Tensor, indices: Tensor | int) -> Tensor:
    """Slices along `axis`; a view where it is one of a number that is known. Negative numbers count from the end."""
    axis = node.attr("axis", 0) % x.dim()
    if isinstance(indices, int):
        return x.select(axis, indices)
    at = torch.where(indices < 0, indices + x.shape[axis], indices)
    return x.index_select(axis, at.reshape(-1)).reshape(x.shape[:axis] + indices.shape + x.shape[axis + 1 :])


@op("GatherElements")
def gather_elements(node: Node, x: Tensor, indices: Tensor) -> Tensor:
    """An element per index, in the index's place on all other axes."""
    axis = node.attr("axis", 0)
    return torch.gather(x, axis, torch.where(indices < 0, indices + x.shape[axis], indices))


@op("Range", host=(0, 1, 2))
def range_of(node: Node, start: float, limit: float, delta: float) -> Tensor:
    """Numbers from `start` to before `limit`."""
    return torch.arange(start, limit, delta)


@op("Trilu", host=(1,))
def trilu(node: Node, x: Tensor, k: int | list[int] | None = None) -> Tensor:
    """The upper or lower triangle; zeros elsewhere."""
    diagonal = (k[0] if isinstance(k, list) else k) or 0
    return torch.triu(x, diagonal) if node.attr("upper", 1) else torch.tril(x, diagonal)


@op("ArgMax")
def argmax(node: Node, x: Tensor) -> Tensor:
    """The first largest along `axis`."""
    return torch.argmax(x, node.attr("axis", 0), keepdim=bool(node.attr("keepdims", 1)))
