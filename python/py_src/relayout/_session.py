"""``session``: a session of ONNX Runtime, once host and file are known to fit."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from . import _relayout
from ._errors import HostError, OnnxRuntimeError
from ._options import StrPath

if TYPE_CHECKING:
    import onnxruntime


def session(path: StrPath, **options: Any) -> onnxruntime.InferenceSession:
    """Makes an ``onnxruntime.InferenceSession``, after a check that this host is one that the file was made for.

    A file for target ``ort-cpu`` has convolutions in blocks of channels, 16 for hosts with AVX-512 and 8 for others. On another host it
    would fail, or compute wrong numbers if it was written without its guard. Other files run on every host.

    >>> session = relayout.session("tf_unet.onnx", providers=["CPUExecutionProvider"])
    >>> [end.name for end in session.get_inputs()]
    ['input:0']

    Args:
        path: A model file.
        **options: Those of ``onnxruntime.InferenceSession``: ``sess_options``, ``providers``, ``provider_options``, …

    Raises:
        HostError: The file was made for another host, or for an execution provider that is not among ``providers``.
        OnnxRuntimeError: The package onnxruntime is not installed.
        Error: The file can't be read, or is no model.
    """
    facts = dict(_relayout.file_facts(os.fspath(path)))
    if facts.get("relayout.target") == "ort-cpu":
        _check(os.fspath(path), facts.get("relayout.block"), options.get("providers"))
    try:
        import onnxruntime
    except ImportError as error:
        oldest = " (CPython 3.11 or newer)" if sys.version_info < (3, 11) else ""
        raise OnnxRuntimeError(f"a session needs the package onnxruntime{oldest}: {error}") from error
    return onnxruntime.InferenceSession(os.fspath(path), **options)


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
