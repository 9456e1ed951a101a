"""Holds the checker's table of ops and its lemmas to onnx's reference implementation.

    python tools/proof_ops.py --bin target/debug/relayout

For each op and each of several orders of axes two models are made: the op, and a Transpose, the op with what it is told of axes
renumbered, and the Transpose back. The checker has to prove them equal. Then the op is told the axes of another order. Where
the reference implementation finds a difference on random data, the checker has to refuse.

For each lemma, and for rows of the table about several ops, there are a model, the same written otherwise, and changes of the latter,
one line or constant each. What is written otherwise has to be proved and to compute the same. Where the reference implementation finds a difference, the checker has to refuse.
Ops of the runtime's own domain run in ONNX Runtime, with its rewrites off.
"""

import argparse
import itertools
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper, save
from onnx.reference import ReferenceEvaluator

OPSET = 18
RANK = 4
F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def plain(op, operands=1, **attributes):
    """A pointwise op, whose operands all have the full shape."""
    return op, lambda q, inv: (attributes, []), operands


def along(op, axis, *more, **attributes):
    return op, lambda q, inv: (attributes | {"axis": inv[axis]}, list(more)), 1


def reducing(op, axes, **attributes):
    given = lambda inv: [np.array([inv[a] for a in axes], np.int64)]
    if op == "ReduceSum" or OPSET >= 18:
        return op, lambda q, inv: (attributes, given(inv)), 1
    return op, lambda q, inv: (attributes | {"axes": [inv[a] for a in axes]}, []), 1


def listed(op, make, **attributes):
    """An op with lists that have an entry per axis: `make` makes them from the order of axes."""
    return op, lambda q, inv: (attributes, make(q, inv)), 1


def slices(q, inv):
    ints = lambda *v: np.array(v, np.int64)
    return [ints(1, 0), ints(3, 2), ints(inv[1], inv[2]), ints(1, 1)]


def pads(q, inv):
    before, after = [0, 1, 0, 2], [1, 0, 0, 1]
    return [np.array([before[a] for a in q] + [after[a] for a in q], np.int64), np.array(0.5, np.float32)]


def sizes(q, inv):
    scales = [1.0, 1.0, 2.0, 3.0]
    return [np.zeros(0, np.float32), np.array([scales[a] for a in q], np.float32)]


PLACES = np.random.default_rng(2).integers(0, 3, (1, 3, 3, 3))
UPDATES = np.linspace(-2, 2, PLACES.size).astype(np.float32).reshape(PLACES.shape)


def placed(op, axis, *arrays, **attributes):
    """An op with arrays that lie as its operand does, and an axis."""
    return op, lambda q, inv: (attributes | {"axis": inv[axis]}, [a.transpose(q) for a in arrays]), 1


CASES = [
    *(plain(op) for op in ("Relu", "Sigmoid", "Tanh", "Exp", "Neg", "Abs", "Erf", "HardSwish", "Softplus", "Floor", "Sign")),
    plain("Clip"), plain("LeakyRelu", alpha=0.2), plain("HardSigmoid", alpha=0.3), plain("Elu"), plain("Identity"),
    *(plain(op, 2) for op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu")),
    plain("Cast", to=int(TensorProto.DOUBLE)),
    *(along(op, axis) for op in ("Softmax", "LogSoftmax") for axis in (1, 3)),
    along("ArgMax", 1, keepdims=1), along("ArgMin", 2, keepdims=1), along("LpNormalization", 1, p=2),
    along("TopK", 1, np.array([2], np.int64)),
    along("Gather", 1, np.array([2, 0], np.int64)), along("Gather", 3, np.array([1, 1, 0], np.int64)),
    *(reducing(op, axes, keepdims=1) for op in ("ReduceMean", "ReduceMax", "ReduceSum", "ReduceProd", "ReduceL2") for axes in ([1], [2, 3])),
    listed("Slice", slices), listed("Pad", pads, mode="constant"), listed("Pad", lambda q, i: pads(q, i)[:1], mode="reflect"),
    listed("Resize", sizes, mode="nearest"), listed("Resize", sizes, mode="linear"),
    listed("Tile", lambda q, inv: [np.array([[1, 2, 1, 3][a] for a in q], np.int64)]),
    *(placed("ScatterElements", axis, PLACES, UPDATES, reduction="add") for axis in (1, 2)),
    plain("DynamicQuantizeLinear"),
    ("CumSum", lambda q, inv: ({}, [np.array(inv[2], np.int64)]), 1),
    ("Concat", lambda q, inv: ({"axis": inv[1]}, []), 2),
    ("Expand", lambda q, inv: ({}, [np.array([4, 1, 1, 1], np.int64)[list(q)]]), 1),
]


N, C, H, W, G = 1, 6, 4, 5, 3
ROOT = np.sqrt(np.float32(H * W))


def per_channel(start):
    return np.linspace(start, start + 1.5, C).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


# A matrix of five columns, of which some are multiplied with.
COLUMNS = (np.arange(W * 5, dtype=np.float32).reshape(W, 5) % 7 - 3) / 4


def shares(mode, before, after, scale):
    """The matrix by which a line is interpolated."""
    at = np.arange(after)
    half = (at + 0.5) / scale - 0.5
    symmetric = before / 2 * (1 - after / (scale * before)) + half
    modes = {"half_pixel_symmetric": symmetric, "align_corners": at * (before - 1) / (after - 1), "asymmetric": at / scale}
    place = np.clip(modes.get(mode, half), 0, before - 1)
    return np.maximum(0, 1 - np.abs(place[:, None] - np.arange(before))).astype(np.float32)


def interpolated(mode, by):
    """A linear Resize by scales or to sizes, and products with two matrices."""
    scaled = isinstance(by[0], float)
    sizes = [int(extent * np.float32(scale)) for extent, scale in zip((H, W), by)] if scaled else by
    scales = [float(np.float32(scale)) for scale in by] if scaled else [after / before for before, after in zip((H, W), by)]
    told = {"mode": "linear", "coordinate_transformation_mode": mode}
    return (
        [("y", "Resize", ["x", "", "scales"] if scaled else ["x", "", "", "sizes"], told)],
        [
            ("t", "Transpose", ["x"], {"perm": [0, 2, 3, 1]}),
            ("f", "Reshape", ["t", "flat"], {}),
            ("p", "MatMul", ["rows", "f"], {}),
            ("g", "Reshape", ["p", "apart"], {}),
            ("q", "MatMul", ["columns", "g"], {}),
            ("y", "Transpose", ["q"], {"perm": [0, 3, 1, 2]}),
        ],
        {
            "scales": np.array([1, 1, *scales], np.float32), "sizes": ints(N, C, *sizes),
            "flat": ints(N, H, W * C), "apart": ints(N, sizes[0], W, C),
            "rows": shares(mode, H, sizes[0], scales[0]), "columns": shares(mode, W, sizes[1], scales[1]),
        },
    )


# For each lemma, and for rows about several ops: the model, the same written otherwise, and the constants of both. A line is result, op,
# operands, attributes.
LEMMAS = {
    "interpolation from halves of pixels": interpolated("half_pixel", (7, 11)),
    "interpolation by scales": interpolated("half_pixel", (1.6, 2.3)),
    "interpolation around the centre": interpolated("half_pixel_symmetric", (1.6, 2.3)),
    "interpolation as PyTorch has it": interpolated("pytorch_half_pixel", (7, 3)),
    "interpolation between corners": interpolated("align_corners", (9, 4)),
    "interpolation from the first pixel": interpolated("asymmetric", (3, 13)),
    "truth values that change nothing": (
        [("t", "Greater", ["x", "none"], {}), ("y", "Where", ["t", "x", "other"], {})],
        [
            ("t", "Greater", ["x", "none"], {}),
            ("a", "And", ["t", "yes"], {}),
            ("o", "Or", ["no", "a"], {}),
            ("n", "Not", ["o"], {}),
            ("w", "Where", ["no", "none", "x"], {}),
            ("y", "Where", ["n", "other", "w"], {}),
        ],
        {"none": np.zeros(1, np.float32), "other": np.array([-2.5], np.float32), "yes": np.array([True]), "no": np.array([False])},
    ),
    "integers that come to nothing": (
        [("y", "Neg", ["x"], {})],
        [
            ("s", "Mul", ["x", "ten"], {}),
            ("i", "Cast", ["s"], {"to": int(I)}),
            ("r", "Mod", ["i", "three"], {"fmod": 1}),
            ("q", "Mod", ["r", "three"], {"fmod": 1}),
            ("d", "Sub", ["q", "r"], {}),
            ("m", "Mul", ["i", "nought"], {}),
            ("e", "Equal", ["i", "i"], {}),
            ("g", "Greater", ["d", "m"], {}),
            ("a", "And", ["e", "g"], {}),
            ("w", "Where", ["a", "ten", "x"], {}),
            ("n", "Neg", ["w"], {}),
            ("o", "Neg", ["n"], {}),
            ("y", "Neg", ["o"], {}),
        ],
        {"ten": np.array([10.0], np.float32), "three": ints(3), "nought": ints(0)},
    ),
    "magnitudes times themselves": (
        [("y", "Mul", ["x", "x"], {})],
        [("a", "Abs", ["x"], {}), ("y", "Mul", ["a", "a"], {})],
        {},
    ),
    "parts of values one behind the other": (
        [("n", "Neg", ["x"], {}), ("r", "Relu", ["x"], {}), ("c", "Concat", ["n", "r"], {"axis": 1}), ("y", "Slice", ["c", "two", "ten", "axis"], {})],
        [
            ("n", "Neg", ["x"], {}),
            ("r", "Relu", ["x"], {}),
            ("a", "Concat", ["x", "n"], {"axis": 1}),
            ("c", "Concat", ["a", "r"], {"axis": 1}),
            ("y", "Slice", ["c", "eight", "most", "axis"], {}),
        ],
        {"two": ints(2), "ten": ints(10), "eight": ints(8), "most": ints(16), "axis": ints(1)},
    ),
    "bounds behind bounds": (
        [("y", "Clip", ["x", "none", "high"], {})],
        [("a", "Max", ["low", "x"], {}), ("b", "Relu", ["a"], {}), ("c", "Relu", ["b"], {}), ("y", "Min", ["c", "high"], {})],
        {"none": np.array(0, np.float32), "low": np.array(-0.5, np.float32), "high": np.array(0.75, np.float32)},
    ),
    "bounds that are values": (
        [("n", "Neg", ["x"], {}), ("s", "Sin", ["x"], {}), ("a", "Max", ["x", "n"], {}), ("y", "Min", ["a", "s"], {})],
        [
            ("n", "Neg", ["x"], {}),
            ("s", "Sin", ["x"], {}),
            ("a", "Max", ["x", "n"], {}),
            ("b", "Min", ["a", "s"], {}),
            ("c", "Max", ["b", "n"], {}),
            ("y", "Min", ["c", "s"], {}),
        ],
        {},
    ),
    "comparisons of what is bounded": (
        [("n", "Neg", ["x"], {}), ("b", "Less", ["x", "n"], {}), ("y", "Where", ["b", "x", "three"], {})],
        [("n", "Neg", ["x"], {}), ("m", "Max", ["n", "x"], {}), ("b", "Greater", ["m", "x"], {}), ("y", "Where", ["b", "x", "three"], {})],
        {"three": np.array(3, np.float32)},
    ),
    "two comparisons with numbers": (
        [("b", "Less", ["x", "half"], {}), ("y", "Where", ["b", "x", "three"], {})],
        [
            ("a", "Less", ["x", "half"], {}),
            ("c", "Greater", ["three", "x"], {}),
            ("b", "And", ["c", "a"], {}),
            ("y", "Where", ["b", "x", "three"], {}),
        ],
        {"half": np.array(0.5, np.float32), "three": np.array(3, np.float32)},
    ),
    "one number in front and behind as padding": (
        [("y", "Pad", ["x", "pads", "three"], {})],
        [("y", "Concat", ["front", "x", "back"], {"axis": 2})],
        {
            "pads": ints(0, 0, 2, 0, 0, 0, 1, 0), "three": np.array(3, np.float32),
            "front": np.full((N, C, 2, W), 3, np.float32), "back": np.full((N, C, 1, W), 3, np.float32),
        },
    ),
    "padding by less than nothing": (
        [("p", "Pad", ["x", "pads", "three"], {}), ("y", "Slice", ["p", "from", "to", "axes"], {})],
        [("y", "Pad", ["x", "less", "three"], {})],
        {
            "pads": ints(0, 0, 1, 0, 0, 0, 0, 2), "less": ints(0, 0, 1, -1, 0, 0, -1, 2), "three": np.array(3, np.float32),
            "from": ints(0, 1), "to": ints(-1, 99), "axes": ints(2, 3),
        },
    ),
    "slices of padding": (
        [("y", "Slice", ["x", "one", "three", "axis"], {})],
        [("p", "Pad", ["x", "pads", "number"], {}), ("s", "Slice", ["p", "one", "most", "last"], {}), ("y", "Slice", ["s", "three", "five", "axis"], {})],
        {
            "pads": ints(0, 0, 2, 1, 0, 0, 1, 0), "number": np.array(3, np.float32), "one": ints(1), "three": ints(3), "five": ints(5),
            "most": ints(99), "axis": ints(2), "last": ints(3),
        },
    ),
    "slices next to each other": (
        [("y", "Slice", ["x", "one", "three", "axis"], {})],
        [("a", "Slice", ["x", "one", "two", "axis"], {}), ("b", "Slice", ["x", "two", "three", "axis"], {}), ("y", "Concat", ["a", "b"], {"axis": 1})],
        {"one": ints(0), "two": ints(2), "three": ints(4), "axis": ints(1)},
    ),
    "slices of two axes": (
        [("a", "Slice", ["x", "one", "three", "axis"], {}), ("y", "Slice", ["a", "last", "far", "other", "back"], {})],
        [("a", "Slice", ["x", "last", "far", "other", "back"], {}), ("y", "Slice", ["a", "one", "three", "axis"], {})],
        {"one": ints(1), "three": ints(3), "last": ints(-1), "far": ints(-99), "axis": ints(1), "other": ints(3), "back": ints(-1)},
    ),
    "a bias behind what skips": (
        [
            ("r", "Reshape", ["x", "rows"], {}), ("n", "Sin", ["r"], {}), ("b", "Add", ["r", "bias"], {}), ("s", "Add", ["n", "b"], {}),
            ("y", "LayerNormalization", ["s", "gain", "shift"], {"axis": -1, "epsilon": 1e-5}),
        ],
        [
            ("r", "Reshape", ["x", "rows"], {}), ("n", "Sin", ["r"], {}),
            ("y", "com.microsoft.SkipLayerNormalization", ["r", "n", "gain", "shift", "bias"], {"epsilon": 1e-5}),
        ],
        {"rows": ints(N, C * H, W), "gain": np.linspace(0.5, 1, W).astype(np.float32), "shift": np.linspace(1, 2, W).astype(np.float32), "bias": np.linspace(-1, 3, W).astype(np.float32)},
    ),
    "sums of three in another order": (
        [("n", "Sin", ["x"], {}), ("m", "Exp", ["x"], {}), ("b", "Add", ["m", "x"], {}), ("s", "Add", ["b", "n"], {}), ("y", "Relu", ["s"], {})],
        [("n", "Sin", ["x"], {}), ("m", "Exp", ["x"], {}), ("b", "Add", ["n", "m"], {}), ("s", "Add", ["x", "b"], {}), ("y", "Relu", ["s"], {})],
        {},
    ),
    "sums of sums and of products": (
        [("n", "Sin", ["x"], {}), ("m", "Mul", ["x", "n"], {}), ("y", "ReduceSum", ["m", "both"], {"keepdims": 0})],
        [
            ("n", "Sin", ["x"], {}),
            ("e", "Einsum", ["x", "n"], {"equation": "abcd,abcd->acd"}),
            ("r", "ReduceSum", ["e", "one"], {"keepdims": 1}),
            ("y", "ReduceSum", ["r", "one"], {"keepdims": 0}),
        ],
        {"both": ints(1, 2), "one": ints(1)},
    ),
    "products of which nothing is summed": (
        [("n", "Sin", ["x"], {}), ("y", "Mul", ["x", "n"], {})],
        [("n", "Sin", ["x"], {}), ("y", "Einsum", ["n", "x"], {"equation": "abcd,abcd->abcd"})],
        {},
    ),
    "what is written everywhere": (
        [("n", "Neg", ["x"], {}), ("y", "Slice", ["n", "last", "far", "axis", "back"], {})],
        [("n", "Neg", ["x"], {}), ("y", "ScatterElements", ["x", "places", "n"], {"axis": 3})],
        {
            "places": np.broadcast_to(np.arange(W, dtype=np.int64)[::-1], (N, C, H, W)).copy(),
            "last": ints(-1), "far": ints(-99), "axis": ints(3), "back": ints(-1),
        },
    ),
    "a part of a product": (
        [("y", "MatMul", ["x", "part"], {})],
        [("m", "MatMul", ["x", "all"], {}), ("y", "Slice", ["m", "two", "five", "axis"], {})],
        {"all": COLUMNS, "part": COLUMNS[:, 2:5].copy(), "two": ints(2), "five": ints(5), "axis": ints(3)},
    ),
    "parts of what repeats": (
        [("y", "Expand", ["x", "three"], {})],
        [("e", "Expand", ["x", "seven"], {}), ("y", "Slice", ["e", "two", "five", "axis"], {})],
        {"three": ints(3, 1, 1, 1), "seven": ints(7, 1, 1, 1), "two": ints(2), "five": ints(5), "axis": ints(0)},
    ),
    "a normalization as convolutions": (
        [
            ("t", "Transpose", ["x"], {"perm": [0, 2, 3, 1]}),
            ("n", "LayerNormalization", ["t", "scale", "shift"], {"axis": -1, "epsilon": 1e-3}),
            ("y", "Transpose", ["n"], {"perm": [0, 3, 1, 2]}),
        ],
        [
            ("m", "Conv", ["x", "mean"], {}),
            ("c", "Sub", ["x", "m"], {}),
            ("q", "Mul", ["c", "c"], {}),
            ("v", "Conv", ["q", "mean", "epsilon"], {}),
            ("d", "Sqrt", ["v"], {}),
            ("r", "Reciprocal", ["d"], {}),
            ("n", "Mul", ["c", "r"], {}),
            ("y", "BatchNormalization", ["n", "scale", "shift", "none", "one"], {"epsilon": 0.0}),
        ],
        {
            "scale": per_channel(0.5), "shift": per_channel(-1.0), "none": np.zeros(C, np.float32), "one": np.ones(C, np.float32),
            "mean": np.full((1, C, 1, 1), 1 / C, np.float32), "epsilon": np.array([1e-3], np.float32),
        },
    ),
    "a gate that is cut off": (
        [
            ("a", "Add", ["x", "add"], {}),
            ("c", "Clip", ["a", "zero", "most"], {}),
            ("m", "Mul", ["x", "c"], {}),
            ("y", "Div", ["m", "most"], {}),
        ],
        [
            ("g", "HardSigmoid", ["x"], {"alpha": 1 / 6, "beta": 0.5}),
            ("y", "Mul", ["x", "g"], {}),
        ],
        {"add": np.array(3, np.float32), "zero": np.array(0, np.float32), "most": np.array(6, np.float32)},
    ),
    "a normalization over groups as sums of products": (
        [
            ("g", "Reshape", ["x", "groups"], {}),
            ("i", "InstanceNormalization", ["g", "ones", "zeros"], {"epsilon": 1e-3}),
            ("r", "Reshape", ["i", "all"], {}),
            ("s", "Mul", ["r", "scale"], {}),
            ("y", "Add", ["s", "shift"], {}),
        ],
        [
            ("p", "GlobalAveragePool", ["x"], {}),
            ("a", "Reshape", ["p", "apart"], {}),
            ("m", "ReduceMean", ["a", "last"], {}),
            ("l", "Sub", ["none", "m"], {}),
            ("b", "Reshape", ["l", "channels"], {}),
            ("c", "Add", ["x", "b"], {}),
            ("q", "Einsum", ["c", "c"], {"equation": "nchw,nchw->nc"}),
            ("e", "Add", ["q", "epsilon"], {}),
            ("f", "Reshape", ["e", "apart"], {}),
            ("v", "ReduceMean", ["f", "last"], {}),
            ("d", "Sqrt", ["v"], {}),
            ("k", "Div", ["scales", "d"], {}),
            ("t", "Reshape", ["k", "channels"], {}),
            ("s", "Mul", ["c", "t"], {}),
            ("y", "Add", ["s", "shift"], {}),
        ],
        {
            "scale": per_channel(0.5).reshape(C, 1, 1), "shift": per_channel(-1.0).reshape(C, 1, 1), "last": ints(2),
            "ones": np.ones(G, np.float32), "zeros": np.zeros(G, np.float32), "none": np.zeros((1, G, C // G), np.float32),
            "scales": (per_channel(0.5) * ROOT).reshape(1, G, C // G), "epsilon": np.full(C, 1e-3 * H * W, np.float32),
            "groups": ints(N, G, -1), "all": ints(N, C, H, W), "apart": ints(N, G, C // G), "channels": ints(N, C, 1, 1),
        },
    ),
    "factors of a product": (
        [
            ("t", "Transpose", ["x"], {"perm": [0, 1, 3, 2]}),
            ("a", "Mul", ["x", "c"], {}),
            ("b", "Mul", ["t", "c"], {}),
            ("y", "MatMul", ["a", "b"], {}),
        ],
        [
            ("t", "Transpose", ["x"], {"perm": [0, 1, 3, 2]}),
            ("p", "MatMul", ["x", "t"], {}),
            ("y", "Mul", ["p", "d"], {}),
        ],
        {"c": np.array(0.25, np.float32), "d": np.array(0.0625, np.float32)},
    ),
    "a bias that is computed": (
        [
            ("m", "ReduceMean", ["x", "places"], {"keepdims": 0}),
            ("r", "Reshape", ["m", "wide"], {}),
            ("c", "Conv", ["x", "w", "b"], {"pads": [1, 1, 1, 1]}),
            ("y", "Add", ["c", "r"], {}),
        ],
        [
            ("m", "ReduceMean", ["x", "places"], {"keepdims": 0}),
            ("s", "Add", ["m", "b"], {}),
            ("y", "Conv", ["x", "w", "s"], {"pads": [1, 1, 1, 1]}),
        ],
        {
            "places": ints(0, 2, 3), "wide": ints(C, 1, 1), "b": per_channel(0.25),
            "w": np.linspace(-1, 1, C * C * 9).astype(np.float32).reshape(C, C, 3, 3),
        },
    ),
    "a product of integers": (
        [
            ("q", "QuantizeLinear", ["x", "scale", "zx"], {}),
            ("m", "MatMulInteger", ["q", "w", "zx", "zw"], {}),
            ("y", "Cast", ["m"], {"to": F}),
        ],
        [
            ("q", "QuantizeLinear", ["x", "scale", "zx"], {}),
            ("t", "Transpose", ["q"], {"perm": [0, 2, 1, 3]}),
            ("m", "MatMulInteger", ["t", "w", "zx", "zw"], {}),
            ("u", "Transpose", ["m"], {"perm": [0, 2, 1, 3]}),
            ("y", "Cast", ["u"], {"to": F}),
        ],
        {
            "scale": np.array(0.05, np.float32), "zx": np.array(3, np.uint8), "zw": np.array(7, np.uint8),
            "w": (np.arange(W * W) ** 2 % 97).astype(np.uint8).reshape(W, W),
        },
    ),
    "a product of integers with its scales": (
        [
            ("q", "QuantizeLinear", ["x", "scale", "zx"], {}),
            ("m", "MatMulInteger", ["q", "w", "zx", "zw"], {}),
            ("f", "Cast", ["m"], {"to": F}),
            ("t", "Mul", ["scale", "sw"], {}),
            ("u", "Mul", ["f", "t"], {}),
            ("y", "Add", ["u", "b"], {}),
        ],
        [
            ("q", "QuantizeLinear", ["x", "scale", "zx"], {}),
            ("y", "com.microsoft.MatMulIntegerToFloat", ["q", "w", "scale", "sw", "zx", "zw", "b"], {}),
        ],
        {
            "scale": np.array(0.05, np.float32), "zx": np.array(3, np.uint8), "zw": np.array(7, np.uint8), "sw": np.array(0.25, np.float32),
            "w": (np.arange(W * W) ** 2 % 97).astype(np.uint8).reshape(W, W), "b": np.linspace(-1, 1, W).astype(np.float32),
        },
    ),
    "a product of a matrix that is quantized by its range": (
        [
            ("q", "DynamicQuantizeLinear", ["x"], {}),
            ("m", "MatMulInteger", ["q", "w", "q.zero", "zw"], {}),
            ("f", "Cast", ["m"], {"to": F}),
            ("t", "Mul", ["q.scale", "sw"], {}),
            ("y", "Mul", ["f", "t"], {}),
        ],
        [("y", "com.microsoft.DynamicQuantizeMatMul", ["x", "w", "sw", "zw"], {})],
        {
            "zw": np.array(7, np.uint8), "sw": np.array(0.25, np.float32),
            "w": (np.arange(W * W) ** 2 % 97).astype(np.uint8).reshape(W, W),
        },
    ),
    "a Gemm with an activation that has a number": (
        [
            ("f", "Flatten", ["x"], {}),
            ("m", "Gemm", ["f", "w"], {}),
            ("y", "Elu", ["m"], {"alpha": 0.5}),
        ],
        [
            ("f", "Flatten", ["x"], {}),
            ("y", "com.microsoft.FusedGemm", ["f", "w"], {"activation": "Elu", "activation_alpha": 0.5}),
        ],
        {"w": np.linspace(-1, 1, C * H * W * 5).astype(np.float32).reshape(C * H * W, 5)},
    ),
    "what quantizing cuts off": (
        [("y", "QuantizeLinear", ["x", "scale", "none"], {})],
        [("r", "Relu", ["x"], {}), ("y", "QuantizeLinear", ["r", "scale", "none"], {})],
        {"scale": np.array(0.05, np.float32), "none": np.array(0, np.uint8)},
    ),
    "the largest of integers": (
        [
            ("q", "QuantizeLinear", ["x", "scale", "zero"], {}),
            ("f", "DequantizeLinear", ["q", "scale", "zero"], {}),
            ("p", "MaxPool", ["f"], {"kernel_shape": [2, 2], "pads": [1, 0, 1, 0]}),
            ("y", "QuantizeLinear", ["p", "scale", "zero"], {}),
        ],
        [
            ("q", "QuantizeLinear", ["x", "scale", "zero"], {}),
            ("y", "MaxPool", ["q"], {"kernel_shape": [2, 2], "pads": [1, 0, 1, 0]}),
        ],
        {"scale": np.array(0.05, np.float32), "zero": np.array(-128, np.int8)},
    ),
    "a normalization that squares by a power": (
        [
            ("m", "ReduceMean", ["x", "last"], {}),
            ("c", "Sub", ["x", "m"], {}),
            ("q", "Pow", ["c", "two"], {}),
            ("v", "ReduceMean", ["q", "last"], {}),
            ("e", "Add", ["v", "epsilon"], {}),
            ("d", "Sqrt", ["e"], {}),
            ("n", "Div", ["c", "d"], {}),
            ("y", "Mul", ["n", "scale"], {}),
        ],
        [("y", "LayerNormalization", ["x", "scale"], {"axis": -1, "epsilon": 1e-3})],
        {"last": ints(3), "two": np.array(2, np.float32), "epsilon": np.array(1e-3, np.float32), "scale": np.linspace(1, 2, W).astype(np.float32)},
    ),
    "a number before a convolution": (
        [("m", "Mul", ["x", "half"], {}), ("y", "Conv", ["m", "w"], {"pads": [1, 1, 1, 1]})],
        [("y", "Conv", ["x", "v"], {"pads": [1, 1, 1, 1]})],
        {
            "half": np.array(0.5, np.float32), "w": np.linspace(-1, 1, C * C * 9).astype(np.float32).reshape(C, C, 3, 3),
            "v": np.float32(0.5) * np.linspace(-1, 1, C * C * 9).astype(np.float32).reshape(C, C, 3, 3),
        },
    ),
    "what is reduced over one place": (
        [("s", "ReduceSum", ["x", "first"], {"keepdims": 0}), ("y", "Relu", ["s"], {})],
        [("s", "Squeeze", ["x", "first"], {}), ("y", "Relu", ["s"], {})],
        {"first": ints(0)},
    ),
    "axes that an Einsum has no letters for": (
        [("y", "Einsum", ["x", "w"], {"equation": "nchw,co->nohw"})],
        [
            ("t", "Transpose", ["x"], {"perm": [0, 2, 3, 1]}),
            ("e", "Einsum", ["t", "w"], {"equation": "...c,co->...o"}),
            ("y", "Transpose", ["e"], {"perm": [0, 3, 1, 2]}),
        ],
        {"w": np.linspace(-1, 1, C * C).astype(np.float32).reshape(C, C) ** 2},
    ),
}


def changes(lines, constants):
    """The lines and constants with one of them changed: operands in another order, another operand, a number, a perm."""
    for at, (result, op, operands, attributes) in enumerate(lines):
        if len(operands) > 1:
            yield [*lines[:at], (result, op, operands[::-1], attributes), *lines[at + 1 :]], constants
        for other in [name for name, *_ in lines[:at]] + ["x"]:
            yield [*lines[:at], (result, op, [other, *operands[1:]], attributes), *lines[at + 1 :]], constants
        for name, value in attributes.items():
            if isinstance(value, float):
                yield [*lines[:at], (result, op, operands, attributes | {name: value + 0.125}), *lines[at + 1 :]], constants
            if name == "perm":
                yield [*lines[:at], (result, op, operands, {"perm": value[1:] + value[:1]}), *lines[at + 1 :]], constants
    for name in {operand for _, _, operands, _ in lines for operand in operands} & set(constants):
        if constants[name].dtype == np.float32:
            one = constants[name].copy()
            one.reshape(-1)[0] += 0.125
            yield lines, constants | {name: one}


def written(lines, constants):
    nodes = []
    for result, op, operands, attributes in lines:
        *domain, op = op.rsplit(".", 1)
        results = [result, *(f"{result}.{name}" for name in MORE.get(op, []))]
        nodes.append(helper.make_node(op, operands, results, domain="".join(domain), **attributes))
    read = {name for node in nodes for name in node.input}
    held = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items() if name in read]
    inputs = [helper.make_tensor_value_info("x", F, [N, C, H, W])]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info("y")], held)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def lemmas(binary, folder, counts, wrong):
    one, other = folder / "a.onnx", folder / "b.onnx"
    values = {"x": np.random.default_rng(1).standard_normal((N, C, H, W)).astype(np.float32)}
    for name, (plain, otherwise, constants) in LEMMAS.items():
        save(written(plain, constants), one)
        # The reference implementation has no padding by less than nothing.
        wanted = run(written(plain, constants), values, ("MaxPool", "Pad"))
        for at, (lines, held) in enumerate([(otherwise, constants), *changes(otherwise, constants)]):
            made = written(lines, held)
            save(made, other)
            ran = subprocess.run([binary, "prove", one, other], capture_output=True, text=True)
            found = run(made, values, ("MaxPool", "Pad"))
            same = found is not None and found.shape == wanted.shape and np.allclose(wanted, found, rtol=1e-4, atol=1e-5)
            proved = ran.returncode == 0
            if (proved and not same) or (at == 0 and not (proved and same)):
                wrong.append(f"{name}, change {at}: {(ran.stdout + ran.stderr).strip()}")
            counts["proved" if proved else "refused and alike" if same else "refused"] += 1


# What an op makes beside its first result.
MORE = {"TopK": ["indices"], "DynamicQuantizeLinear": ["scale", "zero"]}


def inverse(order):
    return [order.index(a) for a in range(len(order))]


def model(op, told, operands, shape, order):
    """The op between a Transpose to `order` and the one back. Without an order the op by itself."""
    attributes, lists = told
    nodes, names = [], []
    for at in range(operands):
        names.append(f"x{at}" if order is None else f"t{at}")
        if order is not None:
            nodes.append(helper.make_node("Transpose", [f"x{at}"], [f"t{at}"], perm=list(order)))
    constants = [numpy_helper.from_array(array, f"c{at}") for at, array in enumerate(lists)]
    given = names + [c.name for c in constants]
    outputs = ["y" if order is None else "u", *MORE.get(op, [])]
    nodes.append(helper.make_node(op, given, outputs, **attributes))
    if order is not None:
        nodes.append(helper.make_node("Transpose", ["u"], ["y"], perm=inverse(list(order))))
    inputs = [helper.make_tensor_value_info(f"x{at}", F, shape) for at in range(operands)]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info("y")], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def run(made, values, runtimes=("MaxPool",)):
    # The reference implementation has no padding for integers.
    if any(node.domain or node.op_type in runtimes for node in made.graph.node):
        return run_in_runtime(made, values)
    try:
        return ReferenceEvaluator(made).run(["y"], values)[0]
    except Exception:  # noqa: BLE001 - what does not run computes nothing
        return None


def run_in_runtime(made, values):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL, 4
    typed = onnx.shape_inference.infer_shapes(made)
    for output in typed.graph.output:
        # What onnx does not know of ops of the runtime: it is floats.
        if not output.type.tensor_type.elem_type:
            output.type.tensor_type.elem_type = F
    try:
        session = onnxruntime.InferenceSession(typed.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(["y"], values)[0]
    except Exception:  # noqa: BLE001 - what does not run computes nothing
        return None


def alike(a, b):
    return a is not None and b is not None and a.shape == b.shape and np.allclose(a, b, equal_nan=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, help="the program")
    a = parser.parse_args()
    orders = [(0, 2, 3, 1), (0, 3, 1, 2), (3, 1, 0, 2), (1, 0, 2, 3)]
    counts, wrong = {"proved": 0, "refused": 0, "refused and alike": 0}, []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        one, other = folder / "a.onnx", folder / "b.onnx"
        for (op, told, operands), shape in itertools.product(CASES, [(3, 3, 3, 3), (1, 3, 3, 3)]):
            rng = np.random.default_rng(1)
            values = {f"x{at}": rng.standard_normal(shape).astype(np.float32) for at in range(operands)}
            shape = list(shape)
            if op == "Expand":
                shape[0], values["x0"] = 1, values["x0"][:1]
            plainly = model(op, told(list(range(RANK)), list(range(RANK))), operands, shape, None)
            save(plainly, one)
            wanted = run(plainly, values)
            if wanted is None:
                wrong.append(f"{op}: the reference implementation does not run it")
            for order, as_if in itertools.product(orders, [None, *orders, (0, 1, 2, 3)]):
                right = as_if is None or as_if == order
                q = list(order if as_if is None else as_if)
                made = model(op, told(q, inverse(q)), operands, shape, order)
                save(made, other)
                ran = subprocess.run([a.bin, "prove", one, other], capture_output=True, text=True)
                same, proved = alike(wanted, run(made, values)), ran.returncode == 0
                if (proved and not same) or (right and not proved):
                    wrong.append(f"{op} {shape} {order} told of {q}: {(ran.stdout + ran.stderr).strip()}")
                counts["proved" if proved else "refused and alike" if same else "refused"] += 1
        lemmas(a.bin, folder, counts, wrong)
    print(", ".join(f"{count} {what}" for what, count in counts.items()), f"{len(wrong)} wrong")
    print(*wrong[:20], sep="\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
