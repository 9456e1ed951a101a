"""``permute``: axes in another order, by the kernels of the library."""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from . import _relayout
from ._errors import PermuteError

if TYPE_CHECKING:
    import numpy

ArrayT = TypeVar("ArrayT")


def permute(array: ArrayT, perm: Sequence[int], out: ArrayT | None = None, *, threads: int = 0) -> ArrayT:
    """Copies an array with its axes in another order: axis ``i`` of the result is axis ``perm[i]`` of the array.

    >>> import numpy
    >>> image = numpy.arange(24, dtype="float32").reshape(1, 2, 3, 4)
    >>> relayout.permute(image, [0, 2, 3, 1])[0, 0, :2]
    array([[ 0., 12.],
           [ 1., 13.]], dtype=float32)

    The result is what ``numpy.ascontiguousarray(array.transpose(perm))`` gives, sooner. Elements are moved as bytes, so any type of
    plain elements can be moved, ``bfloat16`` of ml_dtypes as well. Arrays whose elements lie in another order of axes are moved where
    they lie; those with gaps or repeats are made contiguous first.

    Args:
        array: A ``numpy.ndarray``, or anything in memory of the CPU that has DLPack, such as a ``torch.Tensor``.
        perm: Each axis once; negative ones count from the end.
        out: An array of the result's shape and type that shares no memory with ``array``. It is written and returned.
        threads: How many threads take part, that of the caller included; 0 for as many as there are processors. Small arrays take
            one.

    Returns:
        ``out``, or a new array in row-major order: a ``numpy.ndarray``, or what the library of ``array`` makes of it without a copy.

    Raises:
        PermuteError: ``perm`` is not a permutation of the axes, or ``out`` does not fit.
        TypeError: ``array`` is neither, or has elements that are Python objects.

    No other thread may write to ``array``, or touch ``out``, meanwhile: Python's lock is not held.
    """
    import numpy

    source = _viewed(array)
    axes = _axes(perm, source.ndim)
    if out is None:
        made = numpy.empty([source.shape[axis] for axis in axes], source.dtype)
        _move(source, axes, made, threads)
        result: ArrayT = _returned(array, made)
        return result
    target = _viewed(out)
    wanted = tuple(source.shape[axis] for axis in axes)
    if target.shape != wanted or target.dtype != source.dtype:
        raise PermuteError(f"out is {target.dtype}{list(target.shape)}; the result is {source.dtype}{list(wanted)}")
    if not target.flags.writeable:
        raise PermuteError("out is read-only; give an array that can be written to")
    if numpy.may_share_memory(source, target):
        raise PermuteError("out may share memory with the array; give one of its own")
    _move(source, axes, target, threads)
    return out


def _axes(perm: Sequence[int], rank: int) -> list[int]:
    axes = [operator.index(axis) for axis in perm]
    positive = [axis + rank if axis < 0 else axis for axis in axes]
    if sorted(positive) != list(range(rank)):
        raise PermuteError(f"{axes} is not a permutation of the {rank} axes of the array; name each of 0..{rank} once")
    return positive


def _viewed(array: Any) -> numpy.ndarray[Any, Any]:
    """The array as one of NumPy, in the same memory."""
    import numpy

    if isinstance(array, numpy.ndarray):
        return numpy.asarray(array)
    if not hasattr(array, "__dlpack__"):
        raise TypeError(f"expected a numpy.ndarray or an array with DLPack, not {type(array).__name__}")
    try:
        return numpy.from_dlpack(array)
    except (BufferError, RuntimeError) as error:
        raise TypeError(f"NumPy can't look at this array: {error}; move it to the CPU, or view its elements as integers") from error


def _returned(array: Any, made: numpy.ndarray[Any, Any]) -> Any:
    """The result, as what the library of the array makes of it."""
    import numpy

    if isinstance(array, numpy.ndarray):
        return made
    library = sys.modules.get(type(array).__module__.partition(".")[0])
    from_dlpack = getattr(library, "from_dlpack", None)
    return made if from_dlpack is None else from_dlpack(made)


def _by_stride(array: numpy.ndarray[Any, Any]) -> list[int]:
    """The axes, outermost in memory first."""
    return sorted(range(array.ndim), key=lambda axis: (-array.strides[axis], axis))


def _move(source: numpy.ndarray[Any, Any], axes: list[int], target: numpy.ndarray[Any, Any], threads: int) -> None:
    """Moves between arrays in any order of axes: both are dense once their axes are in the order of their strides."""
    import numpy

    if source.size == 0:
        return
    outer = _by_stride(target)
    dense_target = target.transpose(outer)
    if not dense_target.flags.c_contiguous:
        made = numpy.empty(target.shape, target.dtype)
        _move(source, axes, made, threads)
        numpy.copyto(target, made)
        return
    inner = _by_stride(source)
    dense_source = source.transpose(inner)
    if not dense_source.flags.c_contiguous:
        dense_source, inner = numpy.ascontiguousarray(source), list(range(source.ndim))
    perm = [inner.index(axes[axis]) for axis in outer]
    _relayout.permute(dense_source, perm, dense_target, threads)
