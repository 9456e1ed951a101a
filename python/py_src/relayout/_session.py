"""``session``: a session of ONNX Runtime, once host and file are known to fit, of the file or of what is made of it."""

from __future__ import annotations

import logging
import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from . import _relayout
from ._errors import HostError, OnnxRuntimeError
from ._options import StrPath

if TYPE_CHECKING:
    import onnxruntime


_LOG = logging.getLogger("relayout")


def session(
    path: StrPath,
    *,
    optimize: bool = False,
    exact: bool = False,
    cache: StrPath | None = None,
    patience: float | None = 2.0,
    **options: Any,
) -> onnxruntime.InferenceSession:
    """Makes an ``onnxruntime.InferenceSession``, after a check that this host is one that the file was made for.

    A file for target ``ort-cpu`` has convolutions in blocks of channels, 16 for hosts with AVX-512 and 8 for others. On another host it
    would fail, or compute wrong numbers if it was written without its guard. Other files run on every host.

    >>> session = relayout.session("tf_unet.onnx", providers=["CPUExecutionProvider"])
    >>> [end.name for end in session.get_inputs()]
    ['input:0']

    With ``optimize`` the session runs what is best made of the model for this machine, its providers and threads. The first start optimizes
    and keeps the result; later starts load what was kept. Where anything goes wrong the model is loaded as it is. The logger ``relayout``
    has a line for each start, which says why.

    Args:
        path: A model file.
        optimize: Whether the session runs an optimized model.
        exact: With ``optimize``: whether results stay the same, bit by bit. Otherwise they may differ by rounding.
        cache: With ``optimize``: the folder in which optimized models are kept, by default one of the user's caches.
        patience: With ``optimize``: for how many seconds a start waits. Then it loads the model as it is, and a thread makes the optimized
            model for the next start. ``None`` waits as long as it takes.
        **options: Those of ``onnxruntime.InferenceSession``: ``sess_options``, ``providers``, ``provider_options``, …

    Raises:
        HostError: The file was made for another host, or for an execution provider that is not among ``providers``.
        OnnxRuntimeError: The package onnxruntime is not installed.
        Error: The file can't be read, or is no model.
    """
    if optimize:
        how = {"exact": exact, "cache": None if cache is None else os.fspath(cache), "patience": patience}
        made = _optimized(path, how, options)
        if made is not None:
            return made
    facts = dict(_relayout.file_facts(os.fspath(path)))
    if facts.get("relayout.target") == "ort-cpu":
        _check(os.fspath(path), facts.get("relayout.block"), options.get("providers"))
    return _onnxruntime().InferenceSession(os.fspath(path), **options)


def _onnxruntime() -> ModuleType:
    try:
        import onnxruntime
    except ImportError as error:
        oldest = " (CPython 3.11 or newer)" if sys.version_info < (3, 11) else ""
        raise OnnxRuntimeError(f"a session needs the package onnxruntime{oldest}: {error}") from error
    return onnxruntime


def _optimized(path: StrPath, how: dict[str, Any], options: dict[str, Any]) -> onnxruntime.InferenceSession | None:
    """A session of what is made of a model; nothing where the model is to be loaded as it is."""
    runtime = _onnxruntime()
    told = options.get("sess_options")
    if told is not None and told.graph_optimization_level == runtime.GraphOptimizationLevel.ORT_DISABLE_ALL:
        _LOG.info("%s: as it is; the level of optimization asks for it", path)
        return None
    prepared = _relayout.prepared(os.fspath(path), _known(runtime, told, options.get("providers"), how))
    file, data = prepared.load()
    session = None
    if file is not None or data is not None:
        try:
            session = runtime.InferenceSession(os.fspath(file) if file is not None else data, **options)
        except Exception as error:  # the runtime's own classes have no common base
            session = runtime.InferenceSession(os.fspath(path), **options)
            # What the runtime would not load either way is no fault of the optimized model.
            prepared.refused(str(error))
    _LOG.info("%s: %s", path, prepared.outcome())
    return session


def _known(runtime: ModuleType, told: Any, providers: Any, how: dict[str, Any]) -> dict[str, Any]:
    """What is known of a session, as the Rust half takes it."""
    names = [each[0] if isinstance(each, (tuple, list)) else each for each in providers or []]
    level = "" if told is None else str(told.graph_optimization_level)
    return {
        "runtime": runtime.__version__,
        "told": f"{runtime.get_build_info()} {level}",
        "providers": names,
        "threads": 0 if told is None else told.intra_op_num_threads,
        **how,
    }


def _check(path: str, block: str | None, providers: Any) -> None:
    """That a file for target `ort-cpu` runs here."""
    import platform

    again = "optimize the model that it was made from on this machine, or for target 'onnx'"
    machine = platform.machine()
    if machine.lower() not in ("x86_64", "amd64"):
        raise HostError(f"{path} was made for x86-64, and this is {machine}; {again}")
    here, sets = _relayout.host()
    if block is not None and block != str(here):
        raise HostError(
            f"{path} was made for blocks of {block} channels, and ONNX Runtime takes blocks of {here} here "
            f"({', '.join(sets)}); {again}, with block={here}"
        )
    names = [each[0] if isinstance(each, tuple) else each for each in providers or []]
    if names and "CPUExecutionProvider" not in names:
        raise HostError(f"{path} was made for ONNX Runtime's CPU provider, which is not among {names}; add 'CPUExecutionProvider'")
