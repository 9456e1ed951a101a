"""Holds a bundle against ONNX Runtime on the original model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from runner.bundle import Value
from runner.errors import RunnerError

REFERENCE = "reference.npz"
"""Where `prepare` leaves what ONNX Runtime makes of the original in float32, for `bench` to hold its modes against."""
SAMPLES = (0, -1)
"""The samples of a batch that it has outputs of."""
_INTEGERS_BELOW = 2
"""Seeded integers are smaller: they may be indices, and the smallest tables (of kinds of tokens) have two rows."""


@dataclass(frozen=True)
class Difference:
    """How far an output is off."""

    name: str
    largest: float
    """The largest difference over the largest magnitude of the reference."""
    rms: float
    """Root mean square of the differences over that of the reference."""


def seeded_inputs(values: tuple[Value, ...], seed: int, dims: dict[str, int]) -> dict[str, np.ndarray]:
    """Normal numbers of mean 0 and variance 1, or small integers, in the stored shapes. `dims` are the sizes of symbolic extents."""
    random = np.random.Generator(np.random.PCG64(seed))
    arrays = {}
    for value in values:
        shape = [_extent(value, extent, dims) for extent in value.shape or ()]
        dtype = value.torch_dtype
        if dtype.is_floating_point:
            x = torch.from_numpy(random.standard_normal(shape, dtype=np.float32)).to(dtype)
        else:
            x = torch.from_numpy(random.integers(0, _INTEGERS_BELOW, shape)).to(dtype)
        arrays[value.name] = x.numpy()
    return arrays


def run_original(model: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs of ONNX Runtime with all of its optimizations off."""
    try:
        import onnxruntime
    except ImportError as error:
        raise RunnerError(f"{error}; comparing needs onnxruntime, see tools/runner/requirements.txt") from error
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, inputs)))
    except Exception as error:  # The runtime's own exceptions have no common base.
        raise RunnerError(f"ONNX Runtime on {model}: {error}") from error


def differences(found: dict[str, np.ndarray], reference: dict[str, np.ndarray]) -> list[Difference]:
    """One entry per output of the reference. Fails with `RunnerError` if an output is missing or of another shape."""
    result = []
    for name, want in reference.items():
        if name not in found:
            raise RunnerError(f"the bundle has no output {name!r}; was it made of this model?")
        have = found[name]
        if have.shape != want.shape:
            raise RunnerError(f"output {name!r} has shape {list(have.shape)} and the original's {list(want.shape)}")
        result.append(_difference(name, have, want))
    return result


def _difference(name: str, have: np.ndarray, want: np.ndarray) -> Difference:
    a, b = have.astype(np.float64), want.astype(np.float64)
    if a.size == 0:
        return Difference(name, 0.0, 0.0)
    # A NaN on one side only, or an infinity that the other side has not, is off by any measure.
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if not np.isfinite(np.where(same, 0, a - b)).all():
        return Difference(name, float("inf"), float("inf"))
    off = np.where(same, 0.0, a - b)
    finite = b[np.isfinite(b)]
    scale = max(float(np.abs(finite).max(initial=0.0)), np.finfo(np.float32).tiny)
    rms = max(float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0, np.finfo(np.float32).tiny)
    return Difference(name, float(np.abs(off).max()) / scale, float(np.sqrt(np.mean(np.square(off)))) / rms)


def _extent(value: Value, extent: int | str | None, dims: dict[str, int]) -> int:
    if isinstance(extent, int):
        return extent
    if isinstance(extent, str) and extent in dims:
        return dims[extent]
    raise RunnerError(
        f"input {value.name!r} has the extent {extent}, whose size is not known; give it with --dim {extent}=SIZE, or give --inputs"
    )
