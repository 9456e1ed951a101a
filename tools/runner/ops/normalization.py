"""Normalizations: by stored statistics, and by those of the operand."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from runner.bundle import Node
from runner.ops.table import op, unsupported


@op("BatchNormalization")
def batch_normalization(node: Node, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """By channels, which are axis 1, with stored mean and variance."""
    if node.attr("training_mode", 0):
        raise unsupported(node, "no training mode")
    return F.batch_norm(x, mean, variance, scale, bias, training=False, eps=node.attr("epsilon", 1e-5))


@op("LayerNormalization")
def layer_normalization(node: Node, x: Tensor, scale: Tensor, bias: Tensor | None = None) -> Tensor:
    """Over all axes from `axis` on."""
    if len([name for name in node.outputs if name]) > 1:
        raise unsupported(node, "no mean and no deviation as results")
    axis = node.attr("axis", -1) % x.dim()
    shape = x.shape[axis:]
    scale = scale if scale.shape == shape else scale.expand(shape)
    bias = bias if bias is None or bias.shape == shape else bias.expand(shape)
    return F.layer_norm(x, shape, scale, bias, node.attr("epsilon", 1e-5))


def _by_statistics(x: Tensor, axes: list[int], epsilon: float) -> Tensor:
    """With mean 0 and variance 1 over `axes`; keeps the order of the bytes, unlike torch's calls for channels first."""
    variance, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + epsilon)


def _by_channel(x: Tensor, numbers: Tensor) -> Tensor:
    """A number per channel in a shape that broadcasts over axis 1."""
    return numbers.reshape([1, -1] + [1] * (x.dim() - 2))


@op("InstanceNormalization")
def instance_normalization(node: Node, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    """Over the spatial axes of every image and channel. Torch's own call copies what is not channels first."""
    epsilon = node.attr("epsilon", 1e-5)
    if x.is_contiguous():
        return F.instance_norm(x, weight=scale, bias=bias, eps=epsilon)
    return torch.addcmul(_by_channel(x, bias), _by_statistics(x, list(range(2, x.dim())), epsilon), _by_channel(x, scale))


@op("GroupNormalization")
def group_normalization(node: Node, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    """Over groups of channels; scales are by group at opsets 18 to 20, then by channel."""
    groups = node.attr("num_groups")
    if node.opset < 21:
        scale, bias = (numbers.repeat_interleave(x.shape[1] // groups) for numbers in (scale, bias))
    return F.group_norm(x, groups, scale, bias, node.attr("epsilon", 1e-5))
