"""``permute`` against NumPy."""

import itertools
import sys
import types

import numpy as np
import pytest

import relayout
from relayout import _relayout

SHAPES = [(), (5,), (3, 4), (2, 3, 5), (2, 17, 9, 5), (1, 64, 7, 7), (3, 0, 2), (1, 1, 1), (2, 3, 2, 3, 2)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["u1", "f4"])
def test_all_permutations_are_those_of_numpy(shape, dtype):
    array = np.random.default_rng(0).integers(0, 255, shape).astype(dtype)
    for perm in itertools.islice(itertools.permutations(range(array.ndim)), 24):
        result = relayout.permute(array, perm)
        np.testing.assert_array_equal(result, array.transpose(perm), strict=True)
        assert result.flags.c_contiguous and result.flags.owndata


@pytest.mark.parametrize("dtype", ["?", "i2", "f2", "i4", "f8", "c16", "S3", "U2", "M8[s]", ">i4", "u1,f4"])
def test_elements_of_any_plain_type_are_moved(dtype):
    array = np.random.default_rng(0).integers(0, 2, (4, 6, 5)).astype(dtype)
    result = relayout.permute(array, [2, 0, 1])
    assert result.dtype == array.dtype and (result == array.transpose(2, 0, 1)).all()


def test_types_of_ml_dtypes_are_moved():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.arange(24).reshape(2, 3, 4).astype(ml_dtypes.bfloat16)
    result = relayout.permute(array, [2, 1, 0])
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(result.astype(np.float32), array.transpose(2, 1, 0).astype(np.float32))


def turned(base):
    return base.transpose(2, 0, 3, 1)


def rows(base):
    return base[1:3]


def crop(base):
    return base[:, 1:5, ::2, 3:]


def mirrored(base):
    return base[::-1, :, ::-1]


def single(base):
    return base[:, :1]


def repeated(base):
    return np.broadcast_to(base[:, :1], base.shape)


def windows(base):
    return np.lib.stride_tricks.sliding_window_view(base[0, 0], (3, 3))


def swapped(base):
    return base.astype(">f4")


@pytest.mark.parametrize("view", [turned, rows, crop, mirrored, single, repeated, windows, swapped, np.asfortranarray])
def test_views_are_moved(view):
    array = view(np.random.default_rng(0).standard_normal((4, 6, 8, 10)).astype(np.float32))
    for perm in itertools.permutations(range(4)):
        np.testing.assert_array_equal(relayout.permute(array, perm), array.transpose(perm), strict=True)


@pytest.mark.parametrize(
    "made",
    [
        lambda shape: np.zeros(shape, "f4"),
        lambda shape: np.zeros(shape[::-1], "f4").T,
        lambda shape: np.zeros([2 * n for n in shape], "f4")[::2, 1::2, ::-2],
        lambda shape: np.zeros([shape[1], shape[0], shape[2]], "f4").transpose(1, 0, 2),
    ],
    ids=["plain", "turned", "gaps", "swapped"],
)
def test_out_of_any_form_is_written(made):
    source = np.random.default_rng(0).standard_normal((3, 4, 5)).astype("f4")
    for perm in itertools.permutations(range(3)):
        out = made([source.shape[axis] for axis in perm])
        assert relayout.permute(source, perm, out) is out
        np.testing.assert_array_equal(out, source.transpose(perm))


def test_large_arrays_are_moved_by_any_number_of_threads():
    array = np.random.default_rng(0).standard_normal((8, 64, 112, 112)).astype(np.float32)
    want = np.ascontiguousarray(array.transpose(0, 2, 3, 1))
    for threads in (0, 1, 2, 5):
        np.testing.assert_array_equal(relayout.permute(array, [0, 2, 3, 1], threads=threads), want)


def test_what_does_not_fit_is_refused():
    array = np.zeros((2, 3, 4), np.float32)
    for perm in ([0, 1], [0, 1, 1], [0, 1, 3], [0, 1, 2, 3], [-4, 1, 2]):
        with pytest.raises(relayout.PermuteError, match="not a permutation of the 3 axes"):
            relayout.permute(array, perm)
    with pytest.raises(TypeError):
        relayout.permute(array, [0.0, 1.0, 2.0])
    with pytest.raises(relayout.PermuteError, match=r"out is float32\[2, 3, 4\]"):
        relayout.permute(array, [2, 0, 1], np.zeros((2, 3, 4), np.float32))
    with pytest.raises(relayout.PermuteError, match="float64"):
        relayout.permute(array, [0, 1, 2], np.zeros((2, 3, 4)))
    with pytest.raises(relayout.PermuteError, match="share memory"):
        relayout.permute(array, [0, 1, 2], array)
    locked = np.zeros((2, 3, 4), np.float32)
    locked.flags.writeable = False
    with pytest.raises(relayout.PermuteError, match="read-only"):
        relayout.permute(array, [0, 1, 2], locked)
    with pytest.raises(TypeError, match="list"):
        relayout.permute([[1, 2]], [1, 0])
    with pytest.raises(TypeError, match="plain elements"):
        relayout.permute(np.array([[None, 1]], dtype=object), [1, 0])


def test_axes_may_count_from_the_end():
    array = np.arange(24).reshape(2, 3, 4)
    np.testing.assert_array_equal(relayout.permute(array, [-1, 0, -2]), array.transpose(-1, 0, -2))


class Lent:
    """An array of another library, as far as DLPack goes."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_whatever_has_dlpack_is_moved(monkeypatch):
    monkeypatch.setitem(sys.modules, "lender", types.SimpleNamespace(from_dlpack=Lent))
    monkeypatch.setattr(Lent, "__module__", "lender.arrays")
    array = np.random.default_rng(0).standard_normal((3, 4, 5))
    result = relayout.permute(Lent(array), [2, 0, 1])
    assert type(result) is Lent, "what its library makes of the result"
    np.testing.assert_array_equal(result.array, array.transpose(2, 0, 1))
    out = Lent(np.zeros((5, 3, 4)))
    assert relayout.permute(Lent(array), [2, 0, 1], out) is out
    np.testing.assert_array_equal(out.array, array.transpose(2, 0, 1))


class Liar(np.ndarray):
    __array_interface__ = {"data": (1, False), "shape": (4,), "typestr": "|u1", "version": 3}


def test_the_rust_half_takes_arrays_of_numpy_only():
    """It trusts what an array says of its memory, so it must not ask anything that only looks like one."""
    good = np.zeros(4, np.uint8)
    for bad in (good.view(Liar), good.tobytes(), np.zeros(8, np.uint8)[::2]):
        with pytest.raises((TypeError, AttributeError)):
            _relayout.permute(bad, [0], good, 1)
        with pytest.raises((TypeError, AttributeError)):
            _relayout.permute(good, [0], bad, 1)
    with pytest.raises(relayout.PermuteError, match="shares memory"):
        _relayout.permute(good, [0], good, 1)
    with pytest.raises(relayout.PermuteError, match="5"):
        _relayout.permute(good, [0], np.zeros(5, np.uint8), 1)
