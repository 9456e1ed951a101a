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


def equipment() -> list[tuple[str, str]]:
    """What is on this machine, as options of a request: the version of ONNX Runtime, and the providers whose device is there."""
    import re

    from . import _relayout

    path = find()
    if path is None:
        return []
    numbers = re.search(r"\d+(\.\d+)+", os.path.basename(path))
    version = numbers.group() if numbers else "of an unknown version"
    folders = [folder for folder in sys.path if os.path.isabs(folder)]
    return [("runtime", version), *(("session_providers", name) for name in _relayout.providers_here(path, folders))]


def library(what: str = "verifying") -> str:
    """Where the library is, for a call that needs it."""
    if found := find():
        return found
    oldest = " on CPython 3.11 or newer" if sys.version_info < (3, 11) else ""
    raise OnnxRuntimeError(f"{what} needs ONNX Runtime: pip install onnxruntime{oldest}, or set ORT_DYLIB_PATH to its library")


# The folder of this package first, so that the other process finds it wherever it was imported from.
_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from relayout._cli import main; sys.exit(main())"


def command() -> list[str] | None:
    """What starts the command line in a process of its own; ``None`` in a program that has Python inside and no interpreter to start."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return [sys.executable, "-c", _START, folder] if sys.executable else None


def place(what: str = "verifying") -> dict[str, object]:
    """The library, and what starts a process that runs models in it. A model that ends the runtime ends that process alone."""
    return {"library": library(what), "command": command()}
