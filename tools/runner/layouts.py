"""Layouts as they are spelled in names and attributes of the dialect, and stored tensors seen in the order of ONNX.

A layout is a list of digits, outermost first; a digit is a part of an axis. In `NCHW16c` a capital is the outermost digit of its
axis and `16c` a block of 16 channels. See docs/dialect.md.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache

import torch

from runner.errors import RunnerError

_WORD = re.compile(r"[A-Z]|(\d+)([a-z])(?:x(\d+)x)?")
_DIGIT = re.compile(r"([A-Za-z])(?:\[[\d:,]+\])?(?:/(\d+))?(?:%(\d+))?")
_ALIASES = {"CHWN4": "CHWN4c", "NHCWc4": "NHCW4c"}
_SPATIAL = {3: "W", 4: "HW", 5: "DHW"}


@dataclass(frozen=True)
class Digit:
    """The part `slot // div % modulo` of an axis; `modulo` is None for the outermost digit, whose extent follows from the shape."""

    axis: int
    div: int
    modulo: int | None


@dataclass(frozen=True)
class Layout:
    """How the axes of a tensor lie in memory."""

    digits: tuple[Digit, ...]
    letters: str
    """The letter of each axis, in ONNX's order."""

    @property
    def rank(self) -> int:
        """The number of axes, which is not that of dims where axes are in blocks."""
        return len(self.letters)

    @property
    def is_plain(self) -> bool:
        """Whether every axis is one dim, so that a view brings any order to any other."""
        return len(self.digits) == self.rank

    def block(self, axis: int) -> int:
        """The slots that one step of the outermost digit of an axis spans."""
        return next(digit.div for digit in self.digits if digit.axis == axis and digit.modulo is None)

    def _in_order(self) -> list[int]:
        """The dims, sorted to the order of ONNX: by axis, then from coarse to fine."""
        return sorted(range(len(self.digits)), key=lambda at: (self.digits[at].axis, -self.digits[at].div))

    def slots(self, shape: torch.Size | tuple[int, ...]) -> list[int]:
        """The slots of each axis, of a storage shape."""
        if len(shape) != len(self.digits):
            raise RunnerError(
                f"a tensor of shape {list(shape)} can't be stored in {len(self.digits)} dims; is the bundle damaged?"
            )
        slots = [1] * self.rank
        for digit, extent in zip(self.digits, shape):
            slots[digit.axis] *= extent
        return slots

    def storage_shape(self, slots: list[int]) -> list[int]:
        """The storage shape of a tensor of so many slots on each axis."""
        return [slots[d.axis] // d.div if d.modulo is None else d.modulo for d in self.digits]

    def to_onnx(self, x: torch.Tensor) -> torch.Tensor:
        """A stored tensor in ONNX's order: a view, unless axes are in blocks."""
        slots = self.slots(x.shape)
        view = x.permute(self._in_order())
        return view if self.is_plain else view.reshape(slots)

    def from_onnx(self, y: torch.Tensor) -> torch.Tensor:
        """A tensor in ONNX's order as its stored bytes, contiguous. Copies nothing if the bytes already lie so."""
        order = self._in_order()
        storage = self.storage_shape(list(y.shape))
        split = y if self.is_plain else y.reshape([storage[at] for at in order])
        return split.permute([order.index(at) for at in range(len(order))]).contiguous()


def feature_letters(rank: int) -> str:
    """The letters of a value: `NCHW` and its like at ranks 3 to 5, else `ABC..`."""
    return "NC" + _SPATIAL[rank] if rank in _SPATIAL else neutral_letters(rank)


def weight_letters(rank: int, head: str = "OI") -> str:
    """The letters of the weights of a convolution: `OIHW` and its like."""
    return head + _SPATIAL[rank] if rank in _SPATIAL else neutral_letters(rank)


def neutral_letters(rank: int) -> str:
    """`ABC..`"""
    return "".join(chr(ord("A") + axis) for axis in range(rank))


@cache
def parse_layout(text: str, letters: str | None = None) -> Layout:
    """Reads a layout as names of functions spell it, such as `NHWC`, `NCHW16c` or `HW8h2wNC`.

    `letters` are those of the axes in ONNX's order, by default those of features of the rank. Fails with `RunnerError`.
    """
    spelled = _ALIASES.get(text, text)
    words = list(_WORD.finditer(spelled))
    if "".join(word.group() for word in words) != spelled or not words:
        raise RunnerError(f"{text!r} spells no layout")
    letters = letters or feature_letters(sum(word.group(1) is None for word in words))
    digits: list[Digit] = []
    for word in reversed(words):
        letter = (word.group(2) or word.group()).upper()
        if letter not in letters:
            raise RunnerError(f"{text!r} has the letter {letter}, which is none of {letters}")
        axis = letters.index(letter)
        finer = [digit for digit in digits if digit.axis == axis]
        if word.group(1) is None:
            digits.append(Digit(axis, 0, None))
        else:
            span = math.prod(d.modulo for d in finer if d.modulo is not None)
            digits.append(Digit(axis, int(word.group(3) or span), int(word.group(1))))
    for at, digit in enumerate(digits):
        if digit.modulo is None:
            inner = [d.div * d.modulo for d in digits if d.axis == digit.axis and d.modulo is not None]
            digits[at] = Digit(digit.axis, max(inner, default=1), None)
    if sorted(d.axis for d in digits if d.modulo is None) != list(range(len(letters))):
        raise RunnerError(f"{text!r} does not spell each of the axes {letters} once")
    return Layout(tuple(reversed(digits)), letters)


@cache
def parse_text(text: str) -> tuple[Layout, list[int]]:
    """Reads a layout as attributes spell it where it has no short name, such as `N C/16 H W C%16` or `N H W C[20:24]`, and the axes that
    have a slot map in it. Fails with `RunnerError`.
    """
    words = [_DIGIT.fullmatch(word) for word in text.split()]
    if not all(words):
        raise RunnerError(f"{text!r} spells no layout")
    spelled = [(word.group(1).upper(), int(word.group(2) or 1), word.group(3)) for word in words if word]
    letters = feature_letters(len({letter for letter, _, _ in spelled}))
    if {letter for letter, _, _ in spelled} != set(letters):
        raise RunnerError(f"{text!r} does not spell the axes {letters}")
    digits = tuple(Digit(letters.index(letter), div, None if modulo is None else int(modulo)) for letter, div, modulo in spelled)
    if sorted(digit.axis for digit in digits if digit.modulo is None) != list(range(len(letters))):
        raise RunnerError(f"{text!r} does not spell each of the axes {letters} once")
    mapped = {letters.index(word.group(1).upper()) for word in words if word and "[" in word.group()}
    return Layout(digits, letters), sorted(mapped)
