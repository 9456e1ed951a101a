"""``verify``: whether two models compute the same."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Union

from . import _relayout, _runtime
from ._models import ModelLike, adapted
from ._options import Dims, StrPath, sizes

if TYPE_CHECKING:
    from ._reports import Comparison


def verify(
    a: ModelLike,
    b: ModelLike,
    *,
    inputs: Union[Mapping[str, Any], StrPath, None] = None,
    seed: int = 0,
    rounds: int = 3,
    dims: Dims | None = None,
    rms: float | None = None,
    exact: bool = False,
    custom_ops: Iterable[StrPath] = (),
    base_dir: StrPath | None = None,
) -> Comparison:
    """Runs two models in ONNX Runtime, with and without its rewrites, and compares every element. Needs the package onnxruntime.

    >>> result = relayout.optimize("tf_unet.onnx", "out.onnx")
    >>> bool(relayout.verify("tf_unet.onnx", "out.onnx", rms=1e-4))
    True

    Args:
        a: The reference, of any kind that :func:`optimize` takes.
        b: The model that should do the same.
        inputs: Arrays by the names of the inputs, or a file that ``numpy.savez`` wrote. Random ones otherwise.
        seed: Seed of the random inputs.
        rounds: On how many sets of random inputs the models run: batches of 2, 3 and 1, numbers of several kinds.
        dims: Sizes of dims that the inputs leave open, by symbol or as ``INPUT.AXIS``; of a range the size in its middle.
        rms: The largest error of an element that holds, relative to the magnitude of the elements around it. Otherwise what the first
            model differs from itself by, between these runs and where the last bit of its inputs is another.
        exact: Whether outputs must be equal where the runtime rewrites nothing.
        custom_ops: Libraries of custom ops for both models.
        base_dir: The folder of external data, for models in memory.

    Raises:
        OnnxRuntimeError: ONNX Runtime is not installed, or is not one that can be used.
        VerifyError: A model can't be loaded or run. A difference is no error: see :attr:`Comparison.holds`.
        Error: Another of its subclasses.
    """
    from ._reports import Comparison, read

    first, second = (adapted(m, None if isinstance(m, (str, os.PathLike)) else base_dir) for m in (a, b))
    with _file_of(inputs) as path:
        how = {
            "place": _runtime.place(),
            "inputs": path,
            "seed": seed,
            "rounds": rounds,
            "dims": sizes(dims),
            "custom_ops": [os.fspath(path) for path in custom_ops],
            "rms": rms,
            "exact": exact,
        }
        text, explanation, holds = _relayout.verify(first.source, second.source, how)
    return read(Comparison, text, holds=holds, explanation=explanation)


@contextmanager
def _file_of(inputs: Union[Mapping[str, Any], StrPath, None]) -> Iterator[str | None]:
    """The file of the inputs; arrays are written to one."""
    if not isinstance(inputs, Mapping):
        yield None if inputs is None else os.fspath(inputs)
        return
    import tempfile
    import zipfile

    import numpy

    with tempfile.TemporaryDirectory(prefix="relayout") as folder:
        path = os.path.join(folder, "inputs.npz")
        # What numpy.savez writes; but inputs may have the names of its parameters.
        with zipfile.ZipFile(path, "w") as file:
            for name, array in inputs.items():
                with file.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    numpy.lib.format.write_array(entry, numpy.asarray(array), allow_pickle=False)
        yield path
