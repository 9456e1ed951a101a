"""Ops of the dialect: a standard op whose operands are stored in other layouts, as the name of the function says.

`Conv2d_NHWC_B` is Conv with `x` stored as NHWC, `w` therefore as OHWI, and a bias. Each stored operand is seen in ONNX's order, which
takes a view where no axis is in blocks; the function of the standard op runs; the result is handed on as it is to be stored. For
channels last the strides of the views are those of `torch.channels_last`, so torch copies nothing on either side. An op that has a
function for results in any layout (`Op.stored`) writes them there itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from torch import Tensor

from runner.bundle import Node
from runner.errors import RunnerError
from runner.layouts import Layout, feature_letters, neutral_letters, parse_layout, weight_letters
from runner.ops.table import Op, known_ops, standard_op

DOMAIN = "relayout"

Letters = Callable[[int], str]


def _matrix(letters: str) -> Letters:
    return lambda rank: letters if rank == 2 else neutral_letters(rank)


def _channels(rank: int) -> str:
    return "C" if rank == 1 else neutral_letters(rank)


_PLAIN: Letters = neutral_letters
_IN_OUT: Letters = partial(weight_letters, head="IO")
_FEATURES = [("X", feature_letters)]
_QUANTIZED = [("x", feature_letters), ("y_scale", _channels), ("y_zero_point", _channels)]
_DEQUANTIZED = [("x", feature_letters), ("x_scale", _channels), ("x_zero_point", _channels)]
_STATISTICS = [(name, _channels) for name in ("scale", "B", "input_mean", "input_var")]

OPERANDS: dict[str, list[tuple[str, Letters]]] = {
    "Conv": [*_FEATURES, ("W", weight_letters), ("B", _channels)],
    "ConvTranspose": [*_FEATURES, ("W", _IN_OUT), ("B", _channels)],
    "MaxPool": _FEATURES,
    "AveragePool": _FEATURES,
    "GlobalAveragePool": _FEATURES,
    "GlobalMaxPool": _FEATURES,
    "Resize": [*_FEATURES, ("roi", _PLAIN), ("scales", _PLAIN), ("sizes", _PLAIN)],
    "GridSample": [*_FEATURES, ("grid", _PLAIN)],
    "DepthToSpace": [("input", feature_letters)],
    "SpaceToDepth": [("input", feature_letters)],
    "BatchNormalization": [*_FEATURES, *_STATISTICS],
    "InstanceNormalization": [("input", feature_letters), *_STATISTICS[:2]],
    "GroupNormalization": [*_FEATURES, ("scale", _channels), ("bias", _channels)],
    "LpNormalization": [("input", feature_letters)],
    "Softmax": [("input", feature_letters)],
    "LogSoftmax": [("input", feature_letters)],
    "QuantizeLinear": _QUANTIZED,
    "DequantizeLinear": _DEQUANTIZED,
    "MatMul": [("A", _matrix("MK")), ("B", _matrix("KN"))],
    "Gemm": [("A", neutral_letters), ("B", neutral_letters), ("C", neutral_letters)],
}
"""Operands as ONNX names them, with the letters of their axes, of the ops that the dialect has and the runner too."""

_OPTIONAL = {("Conv", "B"), ("ConvTranspose", "B"), ("Resize", "roi"), ("Resize", "scales"), ("Resize", "sizes"), ("Gemm", "C")}
_OPTIONAL |= {("QuantizeLinear", "y_zero_point"), ("DequantizeLinear", "x_zero_point")}
_RESULTS = {"y", "Y", "output"}
_LAYOUT = re.compile(r"(?:[A-Z]|\d+[a-z](?:x\d+x)?){2,}|CHWN4|NHCWc4")
"""A layout in a name. One of a single axis is never spelled, so a single letter is an operand."""


def find_op(node: Node) -> Op:
    """What executes a node that is no move. Fails with `RunnerError` if the runner lacks the op."""
    if node.domain == "":
        found = standard_op(node.op)
        if found is None:
            raise RunnerError(
                f"{node}: the runner has no such op. Add it in tools/runner/ops; there are: {', '.join(known_ops())}"
            )
        return found
    if node.domain != DOMAIN:
        raise RunnerError(
            f"{node}: the runner has no ops of domain {node.domain!r}. Add the domain in tools/runner/ops/dialect.py"
        )
    return _dialect_op(node)


def _dialect_op(node: Node) -> Op:
    """The standard op with views around it."""
    base, _, rest = node.op.partition("_")
    base = re.sub(r"\dd$", "", base)
    standard = standard_op(base)
    if standard is None or base not in OPERANDS:
        raise RunnerError(f"{node}: the runner has no {base}. Add it in tools/runner/ops and to OPERANDS in ops/dialect.py")
    try:
        there, layouts, result = _read_name(base, rest)
    except RunnerError as error:
        raise RunnerError(f"{node}: {error}") from error
    operands = [name for name, _ in OPERANDS[base]]
    if len(there) != len(node.inputs):
        raise RunnerError(f"{node}: its name speaks of the operands {', '.join(there)}, but it has {len(node.inputs)}")

    def run(node: Node, *stored: Tensor) -> Tensor:
        seen: list[Tensor | None] = [None] * len(operands)
        for name, x in zip(there, stored):
            layout = layouts.get(name)
            seen[operands.index(name)] = x if layout is None else layout.to_onnx(x)
        while seen and seen[-1] is None:
            seen.pop()
        if result is not None and standard.stored is not None:
            return standard.stored(node, result, *seen)
        made = standard.function(node, *seen)
        return made if result is None else result.from_onnx(made)

    host = frozenset(there.index(operands[at]) for at in standard.host if at < len(operands) and operands[at] in there)
    return Op(run, host)


def _read_name(base: str, rest: str) -> tuple[list[str], dict[str, Layout], Layout | None]:
    """The operands that are there, the layouts of those that are stored, and that of the result, None for ONNX's order.

    `rest` is what follows the op: the layout of operand 0 if that is features, then optional operands that are there, and operands and
    results whose layout is not the usual one, with that layout.
    """
    letters = dict(OPERANDS[base])
    first, of_first = OPERANDS[base][0]
    tokens = rest.split("_") if rest else []
    spelled = {first: tokens.pop(0)} if tokens and of_first is feature_letters else {}
    named: list[str] = []
    while tokens:
        name = _take_name(tokens, {*letters, *_RESULTS})
        named.append(name)
        if tokens and _LAYOUT.fullmatch(tokens[0]):
            spelled[name] = tokens.pop(0)
    if "W" in letters:
        spelled.setdefault("W", _usual_weights(spelled[first]))
    there = [name for name in letters if (base, name) not in _OPTIONAL or name in named]
    layouts = {name: _layout(text, letters[name]) for name, text in spelled.items() if name in letters}
    result = next((spelled[name] for name in named if name in _RESULTS and name in spelled), None)
    if result is None:
        return there, layouts, layouts.get(first) if of_first is feature_letters else None
    return there, layouts, _layout(result, of_first if of_first is feature_letters else _matrix("MN"))


def _take_name(tokens: list[str], names: set[str]) -> str:
    """Takes the longest name of an operand or a result off the tokens; names may have underscores."""
    for count in range(len(tokens), 0, -1):
        name = "_".join(tokens[:count])
        if name in names:
            del tokens[:count]
            return name
    raise RunnerError(f"its name has {tokens[0]!r}, which is no operand, no result and no layout of one")


def _layout(text: str, letters: Letters) -> Layout:
    rank = sum(letter.isupper() for letter in text)
    return parse_layout(text, letters(rank))


def _usual_weights(features: str) -> str:
    """How weights are stored if the name does not say: output channels in the place of N and input channels in that of C; where the
    channels of the features are the innermost block, blocks of both."""
    weights = features.replace("N", "O").replace("C", "I").replace("c", "i")
    if features == "CHWN4":
        return "IHWO4i"
    block = re.fullmatch(r"NC[DHW]+(\d+)c", features)
    return f"{weights}{block.group(1)}o" if block else weights
