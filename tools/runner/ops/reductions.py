"""Ops that sum something over axes."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from runner.bundle import Node
from runner.ops.table import op

_REDUCTIONS: dict[str, Callable[..., Tensor]] = {
    "ReduceMax": torch.amax,
    "ReduceMean": torch.mean,
    "ReduceMin": torch.amin,
    "ReduceSum": torch.sum,
    "ReduceL2": lambda x, dim, keepdim: torch.linalg.vector_norm(x, dim=dim, keepdim=keepdim),
}


def _reduce(node: Node, x: Tensor, axes: list[int] | None, function: Callable[..., Tensor]) -> Tensor:
    """Axes are an attribute or an operand, by opset; none are all of them, unless `noop_with_empty_axes`."""
    axes = node.attr("axes") if axes is None else axes
    if not axes:
        if node.attr("noop_with_empty_axes", 0):
            return x
        axes = range(x.dim())
    return function(x, dim=tuple(axes), keepdim=bool(node.attr("keepdims", 1)))


for _name, _function in _REDUCTIONS.items():
    op(_name, host=(1,))(lambda node, x, axes=None, _function=_function: _reduce(node, x, axes, _function))


def _over_axis(node: Node, x: Tensor, function: Callable[..., Tensor]) -> Tensor:
    """Before opset 13 all axes from `axis` on count as one."""
    if node.opset >= 13:
        return function(x, dim=node.attr("axis", -1))
    flat = x.flatten(node.attr("axis", 1) % x.dim())
    return function(flat, dim=-1).reshape(x.shape)


@op("Softmax")
def softmax(node: Node, x: Tensor) -> Tensor:
    """Exponentials that sum to 1 over `axis`."""
    return _over_axis(node, x, F.softmax)


@op("LogSoftmax")
def log_softmax(node: Node, x: Tensor) -> Tensor:
    """Logarithms of Softmax."""
    return _over_axis(node, x, F.log_softmax)


@op("LpNormalization")
def lp_normalization(node: Node, x: Tensor) -> Tensor:
    """By the norm `p` over `axis`; zeros stay zeros."""
    norm = torch.linalg.vector_norm(x, node.attr("p", 2), dim=node.attr("axis", -1), keepdim=True)
    return torch.where(norm == 0, torch.zeros_like(x), x / norm)
