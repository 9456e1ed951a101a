"""The library of ONNX Runtime that the package ``onnxruntime`` of this interpreter brings."""

from __future__ import annotations

import os
import sys

from ._errors import OnnxRuntimeError

_NAMES = ("libonnxruntime.so.*", "libonnxruntime.so", "libonnxruntime*.dylib", "onnxruntime.dll")


def find() -> str | None:
    """Where the library is: what ``ORT_DYLIB_PATH`` names, else that of the package. The package is not imported."""
    if named := os.environ.get("ORT_DYLIB_PATH"):
        return named
    from importlib.util import find_spec
    from pathlib import Path

    spec = find_spec("onnxruntime")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for name in _NAMES:
            for path in sorted(Path(folder, "capi").glob(name)):
                return str(path)
    return None


def library(what: str = "verifying") -> str:
    """Where the library is, for a call that needs it."""
    if found := find():
        return found
    oldest = " on CPython 3.11 or newer" if sys.version_info < (3, 11) else ""
    raise OnnxRuntimeError(f"{what} needs ONNX Runtime: pip install onnxruntime{oldest}, or set ORT_DYLIB_PATH to its library")
