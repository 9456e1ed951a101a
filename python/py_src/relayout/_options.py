"""Options: what Python gives, as the texts that the Rust half reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias, TypedDict, Union

from . import _runtime
from ._errors import OptionError

#: A path, as the functions of ``os`` take it.
StrPath: TypeAlias = "Union[str, os.PathLike[str]]"
#: Sizes of symbolic dims by name: a number, a range as ``(1, 32)``, or the text of either, ``"1..32"``.
Dims: TypeAlias = "Mapping[str, Union[int, tuple[int, int], str]]"
#: Layouts of inputs or outputs: ``{"x": "NCHW->NHWC"}`` or ``["x:NCHW->NHWC"]``.
Ends: TypeAlias = "Union[Mapping[str, str], Iterable[str]]"
#: What rewrites may do to results.
Numerics: TypeAlias = Literal["exact", "reassociate"]


class RequestOptions(TypedDict, total=False):
    """Options that are called as on the command line, with ``_`` in place of ``-``, and mean the same."""

    provider: str | None
    """For ``ort-nhwc``, which it implies: the execution provider of ONNX Runtime, by default ``"qnn"``."""
    allow: str | None
    """For provider ``"cuda"``: ``"com.microsoft"`` lets the result have ops of that domain that it runs: normalizations over groups as one op,
    which no other provider runs (``relayout.runs_on`` in the metadata then names this one), and attention as one op."""
    for_this_machine: bool
    """Whether target, block, machine, threads and provider are chosen by what is on this machine. What else is asked for stays;
    ``report.for_this_machine`` says what was chosen and why. Target ``"onnx"`` counts as not asked for."""
    target_file: StrPath | None
    """A target of your own, as ``target=pathlib.Path(...)`` is one."""
    fix_sizes: bool
    """Whether the sizes of ``dims`` are written into the file, for runtimes that need numbers. The report says where."""
    strict: bool
    """Whether a rewrite that fails is an error. By default what it was about stays as it was, and the report says so."""
    unproved: str
    """What becomes of a result that is not proved to compute what the model computes: ``"give-back"``, the default, leaves
    what differs for the checker as it was; ``"loud"`` warns; ``"allow"`` does not check; ``"fail"`` raises :class:`UnprovedError`;
    ``"keep-input"`` leaves the model as it is. ``report.proof`` has the verdict."""
    proof: StrPath | None
    """A file for a proof that the result computes what the model computes; the command ``relayout prove`` checks it."""
    certificate: StrPath | None
    """A file for a proof of how good the decision is; the command ``relayout check-certificate`` checks it."""
    block: int | None
    """For ``ort-cpu``: channels of a block, 16 for hosts with AVX-512 and 8 for others; by default that of this machine."""
    guard: bool
    """For ``ort-cpu``: ``False`` leaves out the guard that makes a file fail on hosts of another block."""
    runtime: str | None
    """The ONNX Runtime that will run the model: ``"onnxruntime"``, ``"onnxruntime-1.28"`` or, for ``ort-cpu``, ``"1.28"``. Target ``onnx`` is
    priced by what its CPU session makes of the file then, and takes ``block``, ``machine``, ``costs`` and ``threads``. Without a
    version files for ``ort-cpu`` may have what only newer releases run; ``relayout.needs`` in the metadata then says which."""
    machine: str | None
    """For ``ort-cpu``: the kind of machine that the model will run on, ``"avx512-server"``, ``"avx512-desktop"``, ``"avx2-desktop"`` or
    ``"avx2-laptop"``: its blocks, and the built-in table of its costs. Without it, and without ``block`` and ``costs``, the one that was
    measured on processors like those of this machine, else the one that is usual for its blocks."""
    costs: StrPath | None
    """For ``ort-cpu``, ``ort-nhwc`` and ``cuda-tensorcore``: a table of costs that ``relayout calibrate`` wrote."""
    threads: int | None
    """For ``ort-cpu``: threads that the model will run on, 1 by default; 0 for as many as the machine
    has cores. A :class:`Tune` says it for a model that is tuned."""


#: Options of a request: how each is called, and the text that it is set to. The Rust half reads them.
Settings: TypeAlias = "list[tuple[str, str]]"


class Tune(NamedTuple):
    """How a model is tuned for this machine.

    >>> Tune(seconds=10)
    Tune(seconds=10, threads=1, cache=None, provider_library=None, provider_options=None, python=None)
    """

    seconds: float = 60
    """For how many seconds kernels are timed at most, the dearest first; 0 takes only what is in the cache."""
    threads: int = 1
    """Threads that the model will run on; 0 for as many as the machine has cores."""
    cache: StrPath | None = None
    """A file in which times are kept for later calls; by default one of this machine, runtime and threads among the user's caches."""
    provider_library: StrPath | None = None
    """The plugin library of the execution provider that models run on, for targets ``ort-nhwc``, which needs it or a ``python``, and
    ``onnx``."""
    provider_options: Mapping[str, str] | None = None
    """What that provider is told, by its own names."""
    python: StrPath | None = None
    """A Python whose ONNX Runtime has the execution provider of ``ort-nhwc``, such as ``sys.executable``: it runs the model and the results on
    the provider's device."""


def tuning(tune: bool | Tune, machine: RequestOptions) -> Settings:
    """How to tune; nothing if that is not asked for."""
    if tune is False:
        return []
    given = Tune() if tune is True else tune
    if not isinstance(given, Tune):
        raise TypeError(f"tune: expected True, False or a relayout.Tune, not {type(tune).__name__}")
    if machine.get("threads") is not None:
        raise OptionError("threads: a model that is tuned runs on those of its Tune; leave out one of both")
    told = [("tune", "true"), ("tune_seconds", str(given.seconds)), ("threads", str(given.threads))]
    if given.cache is not None:
        told.append(("tune_cache", os.fspath(given.cache)))
    if given.provider_library is not None:
        told.append(("provider_library", os.fspath(given.provider_library)))
    if given.python is not None:
        told.append(("python", os.fspath(given.python)))
    return told + [("provider_options", f"{key}={value}") for key, value in (given.provider_options or {}).items()]


def settings(
    target: StrPath,
    inputs: Ends | None,
    outputs: Ends | None,
    free_io: bool,
    dims: Dims | None,
    numerics: Numerics,
    machine: RequestOptions,
) -> Settings:
    """The options of a decision. Their values are checked where they are read."""
    if unknown := set(machine) - set(RequestOptions.__annotations__):
        raise TypeError(f"there is no option {sorted(unknown)[0]!r}")
    told: Settings = [("numerics", str(numerics))]
    if not isinstance(target, str):
        told.append(("target_file", os.fspath(target)))
    elif target != "onnx":
        told.append(("target", target))
    told += [("inputs", end) for end in _ends(inputs)]
    told += [("outputs", end) for end in _ends(outputs)]
    told += [("dims", f"{name}={size}") for name, size in sizes(dims)]
    told += [("free_io", "true")] if free_io else []
    told += [(name, _text(name, value)) for name, value in machine.items() if value is not None]
    here = _runtime.equipment() if machine.get("for_this_machine") else []
    return told + [(name, value) for name, value in here if name != "runtime" or machine.get("runtime") is None]


#: What is true or false.
_FLAGS = ("for_this_machine", "fix_sizes", "strict", "guard")


def _text(name: str, value: object) -> str:
    """A value as the command line would have it."""
    if name in _FLAGS:
        return "true" if value else "false"
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


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
