"""Moves between layouts, by kernels of the project: those of the C ABI on a CPU, those that the bundle has on a GPU.

A move is a Transpose that the optimizer left, or a call of `Relayout`, `Relayout_2` and so on, whose attributes say what moves; see
docs/dialect.md. On a GPU one that the bundle has no kernel for is left to torch, as its definition says.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from runner.bundle import Node
from runner.capi import CApi, Plan
from runner.cuda import Kernel, Kernels
from runner.errors import RunnerError
from runner.layouts import Layout, parse_layout, parse_text

_MOVE = re.compile(r"Relayout(_\d+)?")


@dataclass(frozen=True)
class Relayout:
    """What attributes `from`, `to`, `shape` and `slots` say. Slots keep their numbers; further slots of the result are zero."""

    source: Layout
    destination: Layout
    rounded: tuple[int, ...]
    """Axes whose slots are rounded up to whole blocks, if they are not whole blocks already."""
    given: tuple[tuple[int, int], ...]
    """Axes that are filled or cropped, with their slots after the move."""

    def slots(self, shape: tuple[int, ...]) -> tuple[list[int], list[int]]:
        """The slots of each axis before and after, for a source of this storage shape."""
        before = self.source.slots(shape)
        after = list(before)
        for axis in self.rounded:
            block = self.destination.block(axis)
            after[axis] = -(-before[axis] // block) * block
        for axis, slots in self.given:
            after[axis] = slots
        return before, after

    def texts(self, before: list[int], after: list[int]) -> tuple[str, str]:
        """Both layouts in the text form of the project, with axes a, b, .. and what they have of slots beyond the common ones."""
        return _text(self.source, before, after), _text(self.destination, after, before)


def _text(layout: Layout, slots: list[int], others: list[int]) -> str:
    words = []
    for digit in layout.digits:
        word = chr(ord("a") + digit.axis)
        common = min(slots[digit.axis], others[digit.axis])
        if digit.modulo is None and slots[digit.axis] > common:
            word += f"[{common}:{slots[digit.axis]}]"
        word += f"/{digit.div}" if digit.div > 1 else ""
        word += f"%{digit.modulo}" if digit.modulo is not None else ""
        words.append(word)
    return " ".join(words)


def is_move(node: Node) -> bool:
    """Whether the node is counted among the moves of a bundle."""
    return node.move is not None or node.no_kernel is not None


def perm_of(node: Node, rank: int) -> tuple[int, ...] | None:
    """The permutation, if the move only puts dims in another order. A Transpose has a default; `Relayout` has none."""
    if node.op == "Transpose":
        return node.attr("perm") or tuple(reversed(range(rank)))
    return node.attr("perm") if _MOVE.fullmatch(node.op) else None


def relayout_of(node: Node) -> Relayout:
    """The move that a call with layouts asks for. Fails with `RunnerError` if that is none of the dialect's."""
    if not _MOVE.fullmatch(node.op):
        raise RunnerError(f"{node}: it is no move of the dialect; write the bundle with this version of relayout")
    texts = node.attr("from"), node.attr("to")
    if None in texts:
        raise RunnerError(f"{node}: it has neither perm nor both of from and to; see docs/dialect.md")
    try:
        (source, _), (destination, filled) = (_layout(text) for text in texts)
    except RunnerError as error:
        raise RunnerError(f"{node}: {error}; see docs/dialect.md") from error
    if source.letters != destination.letters:
        raise RunnerError(f"{node}: its layouts have other axes; see docs/dialect.md")
    slots, shape = node.attr("slots", ()), node.attr("shape", (-1,) * source.rank)
    if len(slots) != len(filled):
        raise RunnerError(f"{node}: it has {len(slots)} entries of slots for {len(filled)} axes with slots to fill")
    if len(shape) != source.rank:
        raise RunnerError(f"{node}: shape {list(shape)} has no entry for each of {source.rank} axes")
    given = [*zip(filled, slots), *((axis, kept) for axis, kept in enumerate(shape) if kept >= 0)]
    blocks = (axis for axis in range(source.rank) if destination.block(axis) > 1)
    rounded = tuple(axis for axis in blocks if axis not in dict(given))
    return Relayout(source, destination, rounded, tuple(sorted(given)))


def _layout(text: str) -> tuple[Layout, list[int]]:
    """A layout as an attribute spells it, and the axes that have a slot map."""
    if " " in text:
        return parse_text(text)
    return parse_layout(text.upper() if text.islower() and text.isalpha() else text), []


def by_torch(node: Node, x: Tensor) -> Tensor:
    """The move in torch, as its definition says: a view for a permutation. What kernels are held against."""
    perm = perm_of(node, x.dim())
    if perm is not None:
        return x.permute(perm)
    move = relayout_of(node)
    before, after = move.slots(tuple(x.shape))
    logical = move.source.to_onnx(x)
    if move.destination.is_plain:
        common = tuple(slice(0, min(pair)) for pair in zip(before, after))
        shape = move.destination.storage_shape(after)
        y = x.new_zeros(shape) if any(a > b for a, b in zip(after, before)) else x.new_empty(shape)
        move.destination.to_onnx(y)[common] = logical[common]
        return y
    pads = [width for have, want in zip(reversed(before), reversed(after)) for width in (0, max(want - have, 0))]
    filled = F.pad(logical, pads) if any(pads) else logical
    return move.destination.from_onnx(filled[tuple(slice(0, extent) for extent in after)])


class Move:
    """One move of a model, planned for the shape that it is called with."""

    def __init__(self, node: Node, capi: CApi | None, kernel: Kernel | None) -> None:
        self.node, self._capi, self._kernel = node, capi, kernel
        self._relayout = None if perm_of(node, 0) is not None else relayout_of(node)
        self._plans: dict[tuple[tuple[int, ...], int], Plan] = {}
        self.number = len(_MOVES)
        """How `torch.ops.relayout.move` knows it."""
        _MOVES.append(self)

    def shape_after(self, shape: tuple[int, ...]) -> list[int]:
        """The storage shape of the result, for a source of this one."""
        if self._relayout is None:
            return [shape[at] for at in perm_of(self.node, len(shape)) or ()]
        return self._relayout.destination.storage_shape(self._relayout.slots(shape)[1])

    def __call__(self, x: Tensor) -> Tensor:
        """The moved tensor, contiguous."""
        return torch.ops.relayout.move(x, self.number)

    def run(self, x: Tensor) -> Tensor:
        """The same, not as an op of torch."""
        y = x.new_empty(self.shape_after(tuple(x.shape)))
        if x.is_cuda and self._kernel is None:
            made = by_torch(self.node, x).contiguous()
            return made.clone() if made.data_ptr() == x.data_ptr() else made
        if y.numel() > 0:
            self.into(x, y)
        return y

    def into(self, x: Tensor, y: Tensor) -> None:
        """Writes the moved tensor to `y`, which is contiguous, of that shape and not empty; by a kernel of the project, or not at all."""
        if not x.is_cuda:
            source = x.contiguous()
            self._plan(source).run(source.data_ptr(), y.data_ptr())
        elif self._kernel is None:
            raise RunnerError(f"{self.node}: it has no kernel for a GPU: {self.node.no_kernel}")
        else:
            self._kernel.run(_aligned(x, self._kernel.alignment), y)

    def _plan(self, x: Tensor) -> Plan:
        shape, elem = tuple(x.shape), x.element_size()
        if (shape, elem) not in self._plans:
            if self._capi is None:
                raise RunnerError(f"{self.node}: no library of kernels was loaded")
            self._plans[shape, elem] = self._planned(shape, elem)
        return self._plans[shape, elem]

    def _planned(self, shape: tuple[int, ...], elem: int) -> Plan:
        try:
            if self._relayout is None:
                plan = self._capi.permute(elem, list(shape), list(perm_of(self.node, len(shape)) or ()))
            else:
                before, after = self._relayout.slots(shape)
                common = [min(pair) for pair in zip(before, after)]
                plan = self._capi.layouts(elem, common, *self._relayout.texts(before, after))
        except RunnerError as error:
            raise RunnerError(f"{self.node}: {error}") from error
        expected = math.prod(shape) * elem, math.prod(self.shape_after(shape)) * elem
        if (plan.source_bytes, plan.bytes) != expected:
            raise RunnerError(f"{self.node}: the plan moves {plan.source_bytes} B to {plan.bytes} B, the tensors have {expected}")
        return plan


def kernel_of(node: Node, kernels: Kernels | None) -> Kernel | None:
    """The CUDA kernel of a move, compiled; None where the bundle has none for it."""
    return kernels.get(node.move) if kernels is not None and node.move is not None else None


def kernel_folder(folder: Path) -> Path:
    """Where a bundle has its kernels; no link, since links of a bundle are not followed."""
    kernels = folder / "kernels"
    if kernels.is_symlink():
        raise RunnerError(f"{kernels} is a link, and links of a bundle are not followed; write the bundle anew")
    return kernels


def _aligned(x: Tensor, alignment: int) -> Tensor:
    """Contiguous and at an address that the kernel can read from; a copy where a view is neither."""
    x = x.contiguous()
    return x if x.data_ptr() % alignment == 0 else x.clone()


_MOVES: list[Move] = []


@torch.library.custom_op("relayout::move", mutates_args=())
def _move(x: Tensor, number: int) -> Tensor:
    return _MOVES[number].run(x)


@_move.register_fake
def _(x: Tensor, number: int) -> Tensor:
    return x.new_empty(_MOVES[number].shape_after(tuple(x.shape)))
