"""Looking at models without changing them: ``explain``, ``why``, ``audit``, ``plan``; and ``targets``, ``for_this_machine``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _relayout
from ._models import ModelLike, adapted
from ._options import Dims, Ends, Numerics, RequestOptions, StrPath, settings
from ._progress import ProgressLike, teller

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._reports import Audit, Explanation, Plan, Target, Why

#: For how many moves `explain` and `audit` say what it would take for them to go.
_PRICED = 32


def explain(
    model: ModelLike,
    *,
    target: StrPath = "onnx",
    inputs: Ends | None = None,
    outputs: Ends | None = None,
    free_io: bool = False,
    dims: Dims | None = None,
    numerics: Numerics = "reassociate",
    price_moves: int = _PRICED,
    progress: ProgressLike = None,
    base_dir: StrPath | None = None,
    **machine: Unpack[RequestOptions],
) -> Explanation:
    """Says which moves a model has, which can go, and why the others stay. ``print`` shows what ``relayout explain`` does.

    >>> explanation = relayout.explain("tf_unet.onnx")
    >>> for move in explanation.moves:
    ...     print(move.value, move.from_, "->", move.to, move.bytes)
    input:0 NHWC -> NCHW 442368
    unet_1/conv2d_14_1/BiasAdd:0 NWCH -> NCHW 737280

    Args:
        model: As of :func:`optimize`, and so are all options that have the same name.
        price_moves: For how many of the moves, the dearest first, it is said what it would take for them to go. Each takes a few
            decisions about the whole model.

    Raises:
        Error: One of its subclasses.
    """
    from ._reports import Explanation, read

    # Nobody gets a result, so nothing is to be proved.
    asked: RequestOptions = {"unproved": "allow", **machine}
    given = settings(target, inputs, outputs, free_io, dims, numerics, asked)
    given.append(("price_moves", str(price_moves)))
    wanted = {"output": None, "verify": None, "tune": None}
    with teller(progress) as told:
        made = _relayout.optimize(adapted(model, base_dir).source, given, wanted, told)
    return read(Explanation, made.report(), summary=made.summary(), explanation=made.explanation())


def why(
    model: ModelLike,
    value: str,
    *,
    target: StrPath = "onnx",
    dims: Dims | None = None,
    numerics: Numerics = "reassociate",
    base_dir: StrPath | None = None,
    **machine: Unpack[RequestOptions],
) -> Why:
    """Says why a value has its layout: who makes and reads it, which layouts it could have, and what each would cost.

    >>> print(relayout.why("tf_unet.onnx", "input:0"))  # doctest: +ELLIPSIS
    `input:0`: f32[1,192,192,3], 442.4 kB
      left as NCHW by graph input `input:0`; it could as NCHW
      ...

    Args:
        model: As of :func:`optimize`, and so are all options that have the same name.
        value: The name of the value.

    Raises:
        UnknownValueError: There is no such value where layouts are decided.
        Error: Another of its subclasses.
    """
    from ._reports import Why, read

    given = settings(target, None, None, False, dims, numerics, machine)
    text, explanation = _relayout.why(adapted(model, base_dir).source, given, value)
    return read(Why, text, explanation=explanation)


def audit(
    model: ModelLike,
    *,
    target: StrPath = "onnx",
    dims: Dims | None = None,
    numerics: Numerics = "reassociate",
    price_moves: int = _PRICED,
    base_dir: StrPath | None = None,
    **machine: Unpack[RequestOptions],
) -> Audit:
    """Says what the moves of any model cost, and what they would have to cost. ``print`` shows what ``relayout audit`` does.

    >>> audit = relayout.audit("tf_unet.onnx")
    >>> audit.moves
    Traffic(nodes=36, bytes=71073792)
    >>> assert audit.floor_ns <= audit.best_ns <= audit.predicted_ns

    Args:
        model: As of :func:`optimize`, and so are all options that have the same name.
        price_moves: As of :func:`explain`.

    Raises:
        Error: One of its subclasses.
    """
    from ._reports import Audit, read

    given = settings(target, None, None, False, dims, numerics, machine)
    given.append(("price_moves", str(price_moves)))
    text, explanation = _relayout.audit(adapted(model, base_dir).source, given)
    return read(Audit, text, explanation=explanation)


def plan(
    model: ModelLike,
    *,
    target: StrPath = "onnx",
    inputs: Ends | None = None,
    outputs: Ends | None = None,
    free_io: bool = False,
    dims: Dims | None = None,
    numerics: Numerics = "reassociate",
    base_dir: StrPath | None = None,
    **machine: Unpack[RequestOptions],
) -> Plan:
    """Decides the layouts of a model and says what to do, for programs that carry it out themselves. No node is removed or fused.

    >>> plan = relayout.plan("tf_unet.onnx")
    >>> sorted({node["action"]["kind"] for node in plan.nodes})
    ['alias', 'keep', 'move']

    Args:
        model: As of :func:`optimize`, and so are all options that have the same name.

    Raises:
        PlanError: The model has bodies, or the target makes several nodes of one.
        Error: Another of its subclasses.
    """
    from ._reports import Plan, read

    given = settings(target, inputs, outputs, free_io, dims, numerics, machine)
    text, summary = _relayout.plan(adapted(model, base_dir).source, given)
    return read(Plan, text, summary=summary)


def for_this_machine() -> dict[str, Any]:
    """The options of :func:`optimize` that fit this machine and the ONNX Runtime that is found, as ``relayout doctor`` says.

    Leave ``machine`` out of them where you say ``costs`` or another ``block``; ``optimize(for_this_machine=True, ...)`` does so itself.

    >>> options = relayout.for_this_machine()
    >>> result = relayout.optimize("tf_unet.onnx", "out.onnx", **options)
    >>> result.report.target == options["target"]
    True
    """
    import json

    from ._runtime import equipment

    fits = json.loads(_relayout.fitting([("for_this_machine", "true"), *equipment()]))
    return {name: fits[name] for name in ("target", "block", "machine", "threads", "provider", "runtime") if name in fits}


def targets() -> list[Target]:
    """What a model can be optimized for.

    >>> [target.name for target in relayout.targets()][:2]
    ['onnx', 'ort-cpu']
    """
    from ._reports import read_targets

    return read_targets(_relayout.targets())
