"""Time of two models side by side in ONNX Runtime, with its default options, on one thread."""

from __future__ import annotations

import statistics
import time
from typing import Any

from .._errors import OnnxRuntimeError, VerifyError

#: Size of a symbolic axis, other than the first, for which none is given.
_SIZE = 64
_ROUNDS = (5, 200)
_SECONDS = 2.0


def beside(a: str, b: str, dims: dict[str, Any]) -> tuple[int, int]:
    """Median times of a run of each, in nanoseconds. They take turns for two seconds, or at least five rounds."""
    try:
        import onnxruntime as ort
    except ImportError as error:
        raise OnnxRuntimeError("timing needs the package onnxruntime: pip install onnxruntime") from error
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        sessions = [ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]) for path in (a, b)]
        feeds = inputs(sessions[0].get_inputs(), dims)
        for session in sessions:
            session.run(None, feeds)
        return _medians(sessions, feeds)
    except VerifyError:
        raise
    except Exception as error:
        raise VerifyError(f"cannot take times: {error}") from error


def _medians(sessions: list[Any], feeds: dict[str, Any]) -> tuple[int, int]:
    times: tuple[list[int], list[int]] = ([], [])
    end = time.monotonic() + _SECONDS
    while len(times[0]) < _ROUNDS[0] or (time.monotonic() < end and len(times[0]) < _ROUNDS[1]):
        # In the same order each time: none follows itself and finds its own data in the caches.
        for session, taken in zip(sessions, times, strict=True):
            taken.append(_timed(session, feeds))
    return int(statistics.median(times[0])), int(statistics.median(times[1]))


def _timed(session: Any, feeds: dict[str, Any]) -> int:
    start = time.perf_counter_ns()
    session.run(None, feeds)
    return time.perf_counter_ns() - start


def inputs(ports: Any, dims: dict[str, Any]) -> dict[str, Any]:
    """Random inputs as ``verify`` makes them: numbers around 0, and 0 or 1 where an input is an index or a truth value.

    Args:
        ports: What ``InferenceSession.get_inputs`` gives.
        dims: Sizes of symbolic axes. 1 for the first axis and 64 for others if nothing is said.
    """
    import numpy

    random = numpy.random.default_rng(0)
    feeds = {}
    for port in ports:
        shape = [_size(axis, size, dims) for axis, size in enumerate(port.shape)]
        if port.type in _FLOATS:
            feeds[port.name] = random.standard_normal(shape).astype(_FLOATS[port.type])
        elif port.type in _INTEGERS:
            feeds[port.name] = random.integers(0, 2, shape).astype(_INTEGERS[port.type])
        else:
            raise VerifyError(f"cannot take times: input `{port.name}` is a {port.type}, for which no random inputs can be made")
    return feeds


_FLOATS = {"tensor(float)": "float32", "tensor(double)": "float64", "tensor(float16)": "float16"}
_INTEGERS = {
    "tensor(bool)": "bool",
    **{f"tensor({sign}int{bits})": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def _size(axis: int, size: Any, dims: dict[str, Any]) -> int:
    if isinstance(size, int):
        return size
    given = dims.get(size)
    if isinstance(given, str) and ".." in given:
        low, high = given.split("..")
        return (int(low) + int(high)) // 2
    return int(given) if given else 1 if axis == 0 else _SIZE
