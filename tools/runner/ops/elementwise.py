"""Ops that compute each element by itself, with broadcasting as in numpy."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from runner.bundle import Node
from runner.ops.table import one_of, op, unsupported

_UNARY = {
    "Abs": torch.abs,
    "Ceil": torch.ceil,
    "Cos": torch.cos,
    "Erf": torch.erf,
    "Exp": torch.exp,
    "Floor": torch.floor,
    "HardSwish": F.hardswish,
    "Identity": lambda x: x,
    "Log": torch.log,
    "Mish": F.mish,
    "Neg": torch.neg,
    "Not": torch.logical_not,
    "Reciprocal": torch.reciprocal,
    "Relu": torch.relu,
    "Round": torch.round,
    "Sigmoid": torch.sigmoid,
    "Sign": torch.sign,
    "Sin": torch.sin,
    "Softplus": F.softplus,
    "Sqrt": torch.sqrt,
    "Tanh": torch.tanh,
}
_BINARY = {
    "Add": torch.add,
    "And": torch.logical_and,
    "Equal": torch.eq,
    "Greater": torch.gt,
    "GreaterOrEqual": torch.ge,
    "Less": torch.lt,
    "LessOrEqual": torch.le,
    "Mul": torch.mul,
    "Or": torch.logical_or,
    "Sub": torch.sub,
}
_CASTS = {
    1: torch.float32,
    2: torch.uint8,
    3: torch.int8,
    5: torch.int16,
    6: torch.int32,
    7: torch.int64,
    9: torch.bool,
    10: torch.float16,
    11: torch.float64,
    16: torch.bfloat16,
}
"""Element types by their numbers in ONNX."""

for _name, _function in _UNARY.items():
    op(_name)(lambda node, x, _function=_function: _function(x))
for _name, _function in _BINARY.items():
    op(_name)(lambda node, a, b, _function=_function: _function(a, b))


@op("Div")
def div(node: Node, a: Tensor, b: Tensor) -> Tensor:
    """Integers are rounded towards zero."""
    return torch.div(a, b) if a.dtype.is_floating_point else torch.div(a, b, rounding_mode="trunc")


@op("Pow", scalars=(1,))
def power(node: Node, x: Tensor, exponent: Tensor | float) -> Tensor:
    """Of the element type of `x`."""
    return torch.pow(x, exponent).to(x.dtype)


@op("Mod")
def mod(node: Node, a: Tensor, b: Tensor) -> Tensor:
    """The sign is that of the divisor, or with `fmod` that of the dividend."""
    return torch.fmod(a, b) if node.attr("fmod", 0) else torch.remainder(a, b)


@op("Max")
def maximum(node: Node, first: Tensor, *rest: Tensor) -> Tensor:
    """The largest of any number of operands."""
    for other in rest:
        first = torch.maximum(first, other)
    return first


@op("Min")
def minimum(node: Node, first: Tensor, *rest: Tensor) -> Tensor:
    """The smallest of any number of operands."""
    for other in rest:
        first = torch.minimum(first, other)
    return first


@op("Sum")
def sum_of(node: Node, first: Tensor, *rest: Tensor) -> Tensor:
    """The sum of any number of operands."""
    for other in rest:
        first = first + other
    return first


@op("Where")
def where(node: Node, condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Elements of `a` where the condition holds, else of `b`."""
    return torch.where(condition, a, b)


@op("Cast")
def cast(node: Node, x: Tensor) -> Tensor:
    """To the element type `to`."""
    to = node.attr("to")
    if to not in _CASTS:
        raise unsupported(node, f"no cast to the element type {to}")
    return x.to(_CASTS[to])


@op("Clip", host=(1, 2))
def clip(node: Node, x: Tensor, low: list | float | None = None, high: list | float | None = None) -> Tensor:
    """Bounds are attributes before opset 11, then operands."""
    low = node.attr("min") if low is None else low
    high = node.attr("max") if high is None else high
    return x if low is None and high is None else torch.clamp(x, low, high)


@op("LeakyRelu")
def leaky_relu(node: Node, x: Tensor) -> Tensor:
    """`alpha` x below zero."""
    return F.leaky_relu(x, node.attr("alpha", 0.01))


@op("Elu")
def elu(node: Node, x: Tensor) -> Tensor:
    """`alpha` (e^x - 1) below zero."""
    return F.elu(x, node.attr("alpha", 1.0))


@op("PRelu")
def prelu(node: Node, x: Tensor, slope: Tensor) -> Tensor:
    """A slope per element, broadcast, below zero."""
    return torch.where(x < 0, x * slope, x)


@op("HardSigmoid")
def hard_sigmoid(node: Node, x: Tensor) -> Tensor:
    """max(0, min(1, alpha x + beta)); one call where it is torch's own."""
    alpha, beta = node.attr("alpha", 0.2), node.attr("beta", 0.5)
    if abs(alpha - 1 / 6) < 1e-6 and beta == 0.5:
        return F.hardsigmoid(x)
    return torch.clamp(x * alpha + beta, 0.0, 1.0)


@op("Gelu")
def gelu(node: Node, x: Tensor) -> Tensor:
    """Exact, or by tanh."""
    return F.gelu(x, approximate=one_of(node, "approximate", "none", ("none", "tanh")))
