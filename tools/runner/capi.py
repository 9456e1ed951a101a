"""The project's kernels on a CPU, by the C ABI of `crates/capi` (`include/relayout.h`)."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from runner.errors import RunnerError

_HINT_AUTO = 0
_SIZE = ctypes.c_size_t


class Plan:
    """A planned move. `source_bytes` and `bytes` are what it reads and writes."""

    def __init__(self, library: ctypes.CDLL, handle: ctypes.c_void_p) -> None:
        self._library, self._handle = library, handle
        self.source_bytes: int = library.relayout_plan_source_bytes(handle)
        self.bytes: int = library.relayout_plan_bytes(handle)

    def run(self, source: int, destination: int) -> None:
        """Moves, from and to addresses of buffers of `source_bytes` and `bytes`."""
        status = self._library.relayout_plan_run(self._handle, source, destination)
        if status != 0:
            raise RunnerError(f"a move failed: {_text(self._library, status)}")

    def __del__(self) -> None:
        self._library.relayout_plan_free(self._handle)


class CApi:
    """The loaded library."""

    def __init__(self, path: Path) -> None:
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            raise RunnerError(
                f"{path} can't be loaded: {error}; build it with: cargo build --release -p relayout-capi"
            ) from error
        library.relayout_status_text.restype = ctypes.c_char_p
        for name in ("relayout_plan_source_bytes", "relayout_plan_bytes"):
            getattr(library, name).restype = _SIZE
            getattr(library, name).argtypes = [ctypes.c_void_p]
        library.relayout_plan_run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        library.relayout_plan_free.argtypes = [ctypes.c_void_p]
        library.relayout_plan_free.restype = None
        sizes, out = ctypes.POINTER(_SIZE), ctypes.POINTER(ctypes.c_void_p)
        library.relayout_plan_new.argtypes = [_SIZE, _SIZE, sizes, sizes, _SIZE, ctypes.c_int, out]
        texts = [ctypes.c_char_p, ctypes.c_char_p]
        library.relayout_plan_new_layouts.argtypes = [_SIZE, _SIZE, sizes, *texts, _SIZE, ctypes.c_int, out]
        self._library = library

    def permute(self, elem_bytes: int, shape: list[int], perm: list[int], threads: int = 0) -> Plan:
        """A permutation: dim i of the result is dim `perm[i]` of the source."""
        handle = ctypes.c_void_p()
        status = self._library.relayout_plan_new(
            elem_bytes, len(shape), _sizes(shape), _sizes(perm), threads, _HINT_AUTO, ctypes.byref(handle)
        )
        return self._plan(status, handle, f"shape {shape} by {perm}")

    def layouts(self, elem_bytes: int, shape: list[int], source: str, destination: str, threads: int = 0) -> Plan:
        """A move between layouts, in the text form of the project, of a tensor with these logical extents."""
        handle = ctypes.c_void_p()
        status = self._library.relayout_plan_new_layouts(
            elem_bytes,
            len(shape),
            _sizes(shape),
            source.encode(),
            destination.encode(),
            threads,
            _HINT_AUTO,
            ctypes.byref(handle),
        )
        return self._plan(status, handle, f"shape {shape} from {source!r} to {destination!r}")

    def _plan(self, status: int, handle: ctypes.c_void_p, what: str) -> Plan:
        if status != 0:
            raise RunnerError(f"no plan for a move of {what}: {_text(self._library, status)}")
        return Plan(self._library, handle)


def find_library() -> Path:
    """The library that RELAYOUT_CAPI names, else that of this checkout's release build. Fails with `RunnerError` if there is none."""
    if named := os.environ.get("RELAYOUT_CAPI"):
        if not Path(named).is_file():
            raise RunnerError(f"{named}, which RELAYOUT_CAPI names, is not there")
        return Path(named)
    root = Path(__file__).resolve().parents[2]
    name = {"darwin": "librelayout_capi.dylib", "win32": "relayout_capi.dll"}.get(sys.platform, "librelayout_capi.so")
    path = Path(os.environ.get("CARGO_TARGET_DIR", root / "target")) / "release" / name
    if not path.is_file():
        raise RunnerError(f"{path} is not there; build it with: cargo build --release -p relayout-capi, or name it with --capi")
    return path


def _sizes(numbers: list[int]) -> ctypes.Array:
    return (_SIZE * len(numbers))(*numbers)


def _text(library: ctypes.CDLL, status: int) -> str:
    return library.relayout_status_text(status).decode()
