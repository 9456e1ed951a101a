"""Options: what Python gives, checked, as the Rust half takes it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict, Union

from ._errors import OptionError

#: A path, as the functions of ``os`` take it.
StrPath: TypeAlias = "Union[str, os.PathLike[str]]"
#: Sizes of symbolic dims by name: a number, a range as ``(1, 32)``, or the text of either, ``"1..32"``.
Dims: TypeAlias = "Mapping[str, Union[int, tuple[int, int], str]]"
#: Layouts of inputs or outputs: ``{"x": "NCHW->NHWC"}`` or ``["x:NCHW->NHWC"]``.
Ends: TypeAlias = "Union[Mapping[str, str], Iterable[str]]"
#: What rewrites may do to results.
Numerics: TypeAlias = Literal["exact", "reassociate"]


class TargetOptions(TypedDict, total=False):
    """Options of single targets, ``strict``, ``fix_sizes`` and ``unproved``."""

    fix_sizes: bool
    """Whether the sizes of ``dims`` are written into the file, for runtimes that need numbers. The report says where."""
    strict: bool
    """Whether a rewrite that fails is an error. By default what it was about stays as it was, and the report says so."""
    unproved: str
    """What becomes of a result that is not proved to compute what the model computes: ``"loud"``, the default, warns; ``"give-back"``
    leaves what differs for the checker as it was; ``"allow"`` does not check; ``"fail"`` raises :class:`UnprovedError`;
    ``"keep-input"`` leaves the model as it is. ``report.proof`` has the verdict."""
    block: int | None
    """For ``ort-cpu``: channels of a block, 16 for hosts with AVX-512 and 8 for others; by default that of this machine."""
    guard: bool
    """For ``ort-cpu``: ``False`` leaves out the guard that makes a file fail on hosts of another block."""
    costs: StrPath | None
    """For ``ort-cpu`` and ``cuda-tensorcore``: a table of costs that ``relayout calibrate`` wrote."""
    threads: int
    """For ``ort-cpu``: threads that the model will run on, by which a built-in table of costs is taken; 0 for as many as the machine
    has cores. A :class:`Tune` says it for a model that is tuned."""


class Tune(NamedTuple):
    """How a model is tuned for this machine.

    >>> Tune(seconds=10)
    Tune(seconds=10, threads=1, cache=None, provider_library=None, provider_options=None)
    """

    seconds: float = 60
    """For how many seconds kernels are timed at most, the dearest first; 0 takes only what is in the cache."""
    threads: int = 1
    """Threads that the model will run on; 0 for as many as the machine has cores."""
    cache: StrPath | None = None
    """A file in which times are kept for later calls; by default one of this machine, runtime and threads among the user's caches."""
    provider_library: StrPath | None = None
    """The plugin library of the execution provider that models run on, for targets ``ort-nhwc``, which needs one, and ``onnx``."""
    provider_options: Mapping[str, str] | None = None
    """What that provider is told, by its own names."""


#: Targets whose results this machine runs as those do who ask for them.
_TUNED = ("onnx", "ort-cpu", "ort-nhwc")


def tuning(tune: bool | Tune, target: StrPath, library: Callable[[], str]) -> dict[str, Any] | None:
    """How to tune, checked."""
    if tune is False:
        return None
    given = Tune() if tune is True else tune
    if not isinstance(given, Tune):
        raise TypeError(f"tune: expected True, False or a relayout.Tune, not {type(tune).__name__}")
    if target not in _TUNED:
        raise OptionError(f"tune runs models in ONNX Runtime, which is what targets 'onnx', 'ort-cpu' and 'ort-nhwc' are for, not {str(target)!r}")
    if target == "ort-nhwc" and given.provider_library is None:
        raise OptionError("tune for target 'ort-nhwc' runs models on an execution provider's device; name its plugin with provider_library")
    if target == "ort-cpu" and given.provider_library is not None:
        raise OptionError("target 'ort-cpu' is for the CPU's own provider; leave out provider_library, or take target 'ort-nhwc'")
    if given.provider_options and given.provider_library is None:
        raise OptionError("tune: provider_options are told to a provider; name its plugin with provider_library")
    if not 0 <= given.seconds <= _LONGEST:
        raise OptionError(f"tune: seconds: {given.seconds!r} is not between 0 and {_LONGEST}")
    _check_threads(given.threads, "tune: threads")
    cache = None if given.cache is None else os.fspath(given.cache)
    provider = None if given.provider_library is None else os.fspath(given.provider_library)
    options = list((given.provider_options or {}).items())
    how = {"seconds": float(given.seconds), "cache": cache, "provider_library": provider, "provider_options": options}
    return {"library": library(), "threads": given.threads, **how}


#: A day.
_LONGEST = 86_400
_MOST_THREADS = 1024


def settings(
    target: StrPath,
    inputs: Ends | None,
    outputs: Ends | None,
    free_io: bool,
    dims: Dims | None,
    numerics: Numerics,
    machine: TargetOptions,
) -> dict[str, Any]:
    """The options of a decision, checked."""
    if unknown := set(machine) - set(TargetOptions.__annotations__):
        raise TypeError(f"there is no option {sorted(unknown)[0]!r}")
    if numerics not in ("exact", "reassociate"):
        raise OptionError(f"numerics: {numerics!r} is neither 'exact' nor 'reassociate'")
    name = target if isinstance(target, str) else None
    block, guard, costs = machine.get("block"), machine.get("guard", True), machine.get("costs")
    _check_machine(name, block, guard, costs)
    if name != "ort-cpu" and "threads" in machine:
        raise OptionError("threads is an option of target 'ort-cpu' only, and of a Tune")
    _check_threads(machine.get("threads", 1), "threads")
    return {
        "target": name or "",
        "target_file": None if name is not None else os.fspath(target),
        "block": block,
        "guard": guard,
        "costs": None if costs is None else os.fspath(costs),
        "threads": machine.get("threads", 1),
        "dims": sizes(dims),
        "fix_sizes": bool(machine.get("fix_sizes", False)),
        "exact": numerics == "exact",
        "strict": bool(machine.get("strict", False)),
        "unproved": machine.get("unproved", "loud"),
        "inputs": _ends(inputs),
        "outputs": _ends(outputs),
        "free_io": free_io,
    }


def _check_machine(name: str | None, block: int | None, guard: bool, costs: StrPath | None) -> None:
    if name != "ort-cpu" and (block is not None or not guard):
        raise OptionError("block and guard are options of target 'ort-cpu' only")
    if name not in ("ort-cpu", "cuda-tensorcore") and costs is not None:
        raise OptionError("costs is an option of targets 'ort-cpu' and 'cuda-tensorcore' only")


def _check_threads(threads: object, what: str) -> None:
    if not isinstance(threads, int) or not 0 <= threads <= _MOST_THREADS:
        raise OptionError(f"{what}: {threads!r} is not between 0 and {_MOST_THREADS}")


def sizes(dims: Dims | None) -> list[tuple[str, str]]:
    """Sizes as texts: ``4`` or ``1..32``."""
    return [(name, _size(name, size)) for name, size in (dims or {}).items()]


def _size(name: str, size: object) -> str:
    if isinstance(size, str):
        return size
    if isinstance(size, tuple) and len(size) == 2:
        return f"{size[0]}..{size[1]}"
    if isinstance(size, int) and not isinstance(size, bool):
        return str(size)
    raise OptionError(f"dims: {name}: expected a size, a range (1, 32), or a text such as '1..32', not {size!r}")


def _ends(ends: Ends | None) -> list[str]:
    if ends is None:
        return []
    if isinstance(ends, str):
        raise OptionError(f"expected layouts such as ['x:NCHW->NHWC'] or {{'x': 'NCHW->NHWC'}}, not the text {ends!r}")
    if isinstance(ends, Mapping):
        return [f"{name}:{layout}" for name, layout in ends.items()]
    return list(ends)
