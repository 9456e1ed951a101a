"""The table of ops, and how functions get into it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from runner.bundle import Node
from runner.errors import RunnerError

Function = Callable[..., "torch.Tensor | tuple[torch.Tensor, ...]"]


@dataclass(frozen=True)
class Op:
    """What executes a node: `function(node, *operands)`.

    Operands at the positions `host` come as lists of numbers, those at `scalars` as a number where they are a constant of rank 0.
    """

    function: Function
    host: frozenset[int] = frozenset()
    scalars: frozenset[int] = frozenset()
    stored: Callable[..., "torch.Tensor"] | None = None
    """The same as `stored(node, layout, *operands)`, whose result is stored in the layout; for ops that can write it so."""


_TABLE: dict[str, Op] = {}


def op(
    *names: str,
    host: tuple[int, ...] = (),
    scalars: tuple[int, ...] = (),
    stored: Callable[..., "torch.Tensor"] | None = None,
) -> Callable[[Function], Function]:
    """Enters a function for these ops of the standard domain."""

    def enter(function: Function) -> Function:
        for name in names:
            if name in _TABLE:
                raise ValueError(f"{name} is in the table of ops twice")
            _TABLE[name] = Op(function, frozenset(host), frozenset(scalars), stored)
        return function

    return enter


def standard_op(name: str) -> Op | None:
    """The entry of a standard op, if there is one."""
    return _TABLE.get(name)


def known_ops() -> list[str]:
    """The names of all standard ops that the runner has."""
    return sorted(_TABLE)


def unsupported(node: Node, what: str) -> RunnerError:
    """The error for a form of an op that its function lacks."""
    return RunnerError(f"{node}: {what}; it is to be added to tools/runner/ops")


def one_of(node: Node, name: str, default: Any, allowed: tuple[Any, ...]) -> Any:
    """An attribute that must have one of these values."""
    value = node.attr(name, default)
    if value not in allowed:
        raise unsupported(node, f"no {name} {value!r}, only {', '.join(repr(a) for a in allowed)}")
    return value
