"""Every op against ONNX Runtime, as a model of one node; ops of the dialect against the standard op on operands in ONNX's order."""

import unittest
import unittest.mock
from itertools import permutations
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from torch.utils._python_dispatch import TorchDispatchMode

from runner.bundle import Node
from runner.errors import RunnerError
from runner.layouts import neutral_letters, parse_layout
from runner.ops import find_op, known_ops
from runner.ops.linear import product_in_place

RANDOM = np.random.Generator(np.random.PCG64(7))


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape, dtype=np.float32)


def positive(*shape: int) -> np.ndarray:
    return np.abs(normal(*shape)) + np.float32(0.1)


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def scalar(number: float, dtype: Any = np.float32) -> np.ndarray:
    return np.array(number, dtype)


def flags(*shape: int) -> np.ndarray:
    return RANDOM.integers(0, 2, shape).astype(bool)


X = normal(2, 3, 7, 9)


class Copies(TorchDispatchMode):
    """Counts copies."""

    count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += function.overloadpacket in (torch.ops.aten.clone, torch.ops.aten.copy_)
        return function(*args, **(kwargs or {}))


Case = tuple[str, int, list[np.ndarray | None], dict[str, Any]]

CASES: list[Case] = [
    *[
        (op, 20, [normal(3, 4)], {})
        for op in ("Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "Identity", "Neg", "Relu", "Round", "Sigmoid")
    ],
    *[(op, 20, [normal(3, 4)], {}) for op in ("Sign", "Sin", "Tanh", "HardSwish", "Mish", "Softplus")],
    *[(op, 20, [positive(3, 4)], {}) for op in ("Log", "Reciprocal", "Sqrt")],
    *[(op, 20, [normal(2, 3, 4), normal(3, 1)], {}) for op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum")],
    *[
        (op, 20, [np.round(normal(3, 4)), np.round(normal(4))], {})
        for op in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
    ],
    *[(op, 20, [flags(3, 4), flags(4)], {}) for op in ("And", "Or")],
    ("Not", 20, [flags(5)], {}),
    ("Div", 20, [ints(-7, 7, -6), ints(2, -2, 4)], {}),
    ("Mod", 20, [ints(-7, 7, -6), ints(2, -2, 4)], {}),
    ("Mod", 20, [normal(5), normal(5)], {"fmod": 1}),
    ("Pow", 20, [positive(3, 4), scalar(2.0)], {}),
    ("Pow", 20, [positive(3, 4), normal(4)], {}),
    ("Where", 20, [flags(3, 4), normal(4), normal(3, 1)], {}),
    ("Cast", 20, [normal(3, 4) * 9], {"to": TensorProto.INT32}),
    ("Cast", 20, [ints(0, 2)], {"to": TensorProto.BOOL}),
    ("Clip", 20, [normal(9), scalar(-0.5), scalar(0.5)], {}),
    ("Clip", 20, [normal(9), None, scalar(0.5)], {}),
    ("Clip", 9, [normal(9)], {"min": 0.0, "max": 0.25}),
    ("LeakyRelu", 20, [normal(9)], {"alpha": 0.2}),
    ("Elu", 20, [normal(9)], {"alpha": 0.7}),
    ("PRelu", 20, [X, normal(3, 1, 1)], {}),
    ("HardSigmoid", 20, [normal(9) * 4], {}),
    ("HardSigmoid", 20, [normal(9) * 4], {"alpha": 1 / 6}),
    ("Gelu", 20, [normal(9)], {}),
    ("Gelu", 20, [normal(9)], {"approximate": "tanh"}),
    ("ConstantOfShape", 20, [ints(2, 3)], {"value": np.array([5], np.int64)}),
    ("ConstantOfShape", 20, [ints(2, 3)], {}),
    ("Shape", 20, [X], {"start": 1, "end": -1}),
    ("Size", 20, [X], {}),
    ("Reshape", 20, [X, ints(0, -1, 9)], {}),
    ("Flatten", 20, [X], {"axis": 2}),
    ("Flatten", 20, [X], {"axis": -1}),
    ("Transpose", 20, [X], {"perm": [0, 2, 3, 1]}),
    ("Transpose", 20, [X], {}),
    ("Squeeze", 20, [normal(1, 3, 1, 2), ints(0)], {}),
    ("Squeeze", 20, [normal(1, 3, 1, 2)], {}),
    ("Squeeze", 11, [normal(1, 3, 1, 2)], {"axes": [0, 2]}),
    ("Unsqueeze", 20, [normal(3, 2), ints(0, -1)], {}),
    ("Unsqueeze", 11, [normal(3, 2)], {"axes": [1, 3]}),
    ("Concat", 20, [normal(2, 3), normal(2, 1), normal(2, 4)], {"axis": 1}),
    ("Slice", 20, [X, ints(1, -8), ints(3, 2**62), ints(2, 3), ints(1, 3)], {}),
    ("Slice", 20, [X, ints(-1), ints(-(2**62)), ints(3), ints(-2)], {}),
    ("Slice", 20, [X, ints(5), ints(1), ints(2), ints(-1)], {}),
    ("Slice", 9, [X], {"starts": [1], "ends": [6], "axes": [2]}),
    ("Expand", 20, [normal(3, 1), ints(2, 1, 4)], {}),
    ("Tile", 20, [normal(2, 3), ints(2, 3)], {}),
    ("Pad", 20, [X, ints(0, 0, 1, 2, 0, 0, 3, 0), scalar(0.5)], {}),
    ("Pad", 20, [X, ints(1, 2, 3, 0), None, ints(2, -1)], {}),
    ("Pad", 20, [X, ints(0, 0, 3, 2, 0, 0, 1, 4)], {"mode": "reflect"}),
    ("Pad", 20, [X, ints(0, 1, 3, 2, 0, 0, 1, 4)], {"mode": "edge"}),
    ("Pad", 10, [X], {"pads": [0, 0, 1, 2, 0, 0, 3, 0], "value": 2.0}),
    ("Gather", 20, [X, scalar(-2, np.int64)], {"axis": 2}),
    ("Gather", 20, [X, np.array([[0, -1], [3, 2]])], {"axis": 2}),
    ("GatherElements", 20, [X, RANDOM.integers(-3, 3, (2, 3, 7, 9))], {"axis": 1}),
    ("Range", 20, [scalar(2, np.int64), scalar(11, np.int64), scalar(4, np.int64)], {}),
    ("Trilu", 20, [normal(4, 5), scalar(1, np.int64)], {}),
    ("Trilu", 20, [normal(4, 5)], {"upper": 0}),
    ("ArgMax", 20, [X], {"axis": 1, "keepdims": 0}),
    *[(op, 20, [X, ints(1, -1)], {"keepdims": 0}) for op in ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceL2")],
    ("ReduceMean", 13, [X], {"axes": [2, 3]}),
    ("ReduceMean", 20, [X], {}),
    ("ReduceSum", 20, [X], {"noop_with_empty_axes": 1}),
    *[(op, 20, [X], {"axis": 1}) for op in ("Softmax", "LogSoftmax", "LpNormalization")],
    ("Softmax", 11, [X], {"axis": 2}),
    ("MatMul", 20, [normal(2, 3, 4), normal(4, 5)], {}),
    ("Gemm", 20, [normal(4, 3), normal(5, 4), normal(5)], {"alpha": 0.5, "beta": 2.0, "transA": 1, "transB": 1}),
    ("Gemm", 20, [normal(3, 4), normal(4, 5)], {"alpha": 0.5}),
    ("BatchNormalization", 15, [X, normal(3), normal(3), normal(3), positive(3)], {"epsilon": 1e-3}),
    ("LayerNormalization", 20, [X, normal(9), normal(9)], {"axis": -1}),
    ("LayerNormalization", 20, [X, normal(7, 9)], {"axis": 2, "epsilon": 1e-2}),
    ("InstanceNormalization", 20, [X, normal(3), normal(3)], {"epsilon": 1e-3}),
    ("GroupNormalization", 21, [normal(2, 6, 5), normal(6), normal(6)], {"num_groups": 3}),
    ("QuantizeLinear", 19, [X, scalar(0.05), scalar(128, np.uint8)], {}),
    ("QuantizeLinear", 19, [X, positive(3), np.array([1, -2, 3], np.int8)], {"axis": 1}),
    (
        "DequantizeLinear",
        19,
        [RANDOM.integers(-99, 99, (2, 3, 4)).astype(np.int8), positive(3), np.array([1, -2, 3], np.int8)],
        {"axis": 1},
    ),
    ("DequantizeLinear", 19, [RANDOM.integers(0, 99, (2, 3)).astype(np.uint8), scalar(0.1)], {}),
    ("Conv", 20, [X, normal(4, 3, 3, 2), normal(4)], {"pads": [1, 1, 1, 1], "strides": [2, 1], "dilations": [1, 2]}),
    ("Conv", 20, [X, normal(4, 3, 3, 2)], {"pads": [0, 1, 2, 0]}),
    ("Conv", 20, [normal(2, 6, 8), normal(4, 3, 3), normal(4)], {"group": 2, "pads": [1, 1]}),
    ("Conv", 20, [normal(1, 3, 5, 6, 7), normal(4, 3, 2, 3, 3)], {"strides": [1, 2, 2], "pads": [0, 1, 1, 0, 1, 1]}),
    ("Conv", 20, [X, normal(4, 3, 3, 2)], {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ("Conv", 20, [X, normal(4, 3, 2, 2)], {"auto_pad": "SAME_LOWER", "strides": [1, 2]}),
    (
        "ConvTranspose",
        20,
        [X, normal(3, 4, 3, 3), normal(4)],
        {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 0]},
    ),
    ("ConvTranspose", 20, [X, normal(3, 4, 3, 3)], {"strides": [2, 2], "pads": [1, 0, 0, 1]}),
    ("ConvTranspose", 20, [X, normal(3, 4, 3, 3)], {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ("ConvTranspose", 20, [normal(2, 4, 8), normal(4, 3, 3), normal(6)], {"group": 2, "strides": [2]}),
    ("MaxPool", 20, [X], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ("MaxPool", 20, [X], {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [0, 0, 1, 1], "ceil_mode": 1}),
    ("MaxPool", 20, [X], {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"}),
    ("MaxPool", 20, [normal(1, 2, 5, 6, 7)], {"kernel_shape": [2, 2, 2]}),
    ("AveragePool", 20, [X], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ("AveragePool", 20, [X], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    ("AveragePool", 20, [X], {"kernel_shape": [3, 2], "auto_pad": "SAME_UPPER"}),
    ("AveragePool", 20, [X], {"kernel_shape": [3, 2], "pads": [1, 0, 0, 1], "count_include_pad": 1}),
    *[(op, 20, [X], {}) for op in ("GlobalAveragePool", "GlobalMaxPool")],
    (
        "Resize",
        19,
        [X, None, np.array([1, 1, 2, 2], np.float32)],
        {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    ),
    ("Resize", 19, [X, None, None, ints(2, 3, 14, 27)], {"mode": "nearest"}),
    ("Resize", 19, [X, None, None, ints(2, 3, 13, 5)], {"mode": "linear"}),
    ("Resize", 19, [X, None, None, ints(2, 3, 13, 5)], {"mode": "linear", "coordinate_transformation_mode": "align_corners"}),
    ("Resize", 19, [X, None, None, ints(2, 3, 13, 20)], {"mode": "cubic"}),
    ("Resize", 10, [X, np.array([1, 1, 2, 2], np.float32)], {"mode": "nearest"}),
    ("GridSample", 20, [X, normal(2, 5, 6, 2)], {"mode": "linear", "padding_mode": "border"}),
    ("GridSample", 16, [X, normal(2, 5, 6, 2)], {"align_corners": 1}),
    ("DepthToSpace", 20, [normal(2, 12, 3, 4)], {"blocksize": 2}),
    ("DepthToSpace", 20, [normal(2, 12, 3, 4)], {"blocksize": 2, "mode": "CRD"}),
    ("SpaceToDepth", 20, [normal(2, 3, 4, 6)], {"blocksize": 2}),
]


def in_onnx_runtime(
    op: str, opset: int, operands: list[np.ndarray | None], attributes: dict[str, Any], results: int = 1
) -> list[np.ndarray]:
    """A model of one node; all operands but the first are constants."""
    names = [f"i{at}" if x is not None else "" for at, x in enumerate(operands)]
    made = {name: numpy_helper.from_array(a) if isinstance(a, np.ndarray) else a for name, a in attributes.items()}
    outputs = [f"o{at}" for at in range(results)]
    node = helper.make_node(op, names, outputs, **made)
    types = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in zip(names[:1], operands)
    ]
    constants = [numpy_helper.from_array(x, name) for name, x in zip(names[1:], operands[1:]) if x is not None]
    graph = helper.make_graph([node], "g", types, [onnx.ValueInfoProto(name=name) for name in outputs], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {names[0]: operands[0]} if names else {})


def in_torch(node: Node, operands: list[np.ndarray | None]) -> list[np.ndarray]:
    found = find_op(node)
    given: list[Any] = []
    for at, x in enumerate(operands):
        as_list = at in found.host and x is not None
        as_number = x is not None and at in found.scalars and x.ndim == 0
        given.append(x.tolist() if as_list or as_number else x if x is None else torch.from_numpy(x))
    made = found.function(node, *given)
    return [x.numpy() for x in (made if isinstance(made, tuple) else (made,))]


def attributes_of(attributes: dict[str, Any]) -> dict[str, Any]:
    def one(value: Any) -> Any:
        return torch.from_numpy(value) if isinstance(value, np.ndarray) else tuple(value) if isinstance(value, list) else value

    return {name: one(value) for name, value in attributes.items()}


class Standard(unittest.TestCase):
    def test_ops_compute_what_onnx_runtime_computes(self) -> None:
        for op, opset, operands, attributes in CASES:
            with self.subTest(f"{op} at opset {opset}, {attributes}"):
                names = tuple(f"i{at}" for at in range(len(operands)))
                node = Node("n", "", op, opset, names, ("o0",), attributes_of(attributes))
                (want,) = in_onnx_runtime(op, opset, operands, attributes)
                (have,) = in_torch(node, operands)
                self.assertEqual((have.shape, have.dtype), (want.shape, want.dtype))
                np.testing.assert_allclose(have.astype(np.float64), want.astype(np.float64), rtol=2e-5, atol=2e-5)

    def test_parts_of_a_split_are_in_order(self) -> None:
        for opset, operands, attributes in [
            (20, [X, ints(4, 2, 3)], {"axis": 3}),
            (20, [X], {"axis": 3, "num_outputs": 3}),
            (11, [X], {"axis": -1, "split": [4, 2, 3]}),
        ]:
            node = Node("n", "", "Split", opset, ("i0",), ("a", "b", "c"), attributes_of(attributes))
            for have, want in zip(
                in_torch(node, operands), in_onnx_runtime("Split", opset, operands, attributes, 3), strict=True
            ):
                np.testing.assert_array_equal(have, want)

    def test_constants_have_the_type_of_their_attribute(self) -> None:
        for attributes, want in [
            ({"value": torch.tensor([1, 2], dtype=torch.int32)}, torch.tensor([1, 2], dtype=torch.int32)),
            ({"value_ints": (3, 4)}, torch.tensor([3, 4])),
            ({"value_float": 0.5}, torch.tensor(0.5)),
        ]:
            node = Node("n", "", "Constant", 20, (), ("c",), attributes)
            have = find_op(node).function(node)
            self.assertEqual(have.dtype, want.dtype)
            self.assertTrue(torch.equal(have, want))

    def test_no_op_of_the_table_is_without_a_test(self) -> None:
        tested = {case[0] for case in CASES} | {"Split", "Constant"}
        self.assertEqual(sorted(set(known_ops()) - tested), [])

    def test_an_op_that_is_lacking_is_named_with_the_node_and_where_to_add_it(self) -> None:
        for domain, op in [
            ("", "Bernoulli"),
            ("relayout", "QLinearConv2d_NHWC_B"),
            ("com.example", "Thing"),
            ("relayout", "Conv2d_NHWC_Q"),
        ]:
            node = Node("block.3", domain, op, 20, ("a", "b"), ("c",))
            with self.assertRaisesRegex(RunnerError, f"block.3.*{op}"):
                find_op(node)


class Dialect(unittest.TestCase):
    """Stored operands are made of those in ONNX's order, and the result has to be stored as the name says."""

    def check(
        self,
        name: str,
        op: str,
        operands: list[tuple[np.ndarray | None, str | None, str | None]],
        result: str,
        attributes: dict[str, Any],
        opset: int = 20,
    ) -> torch.Tensor:
        """`operands`: array, layout and letters, of those that are stored; None where it is left out."""
        (want,) = in_onnx_runtime(op, opset, [x for x, *_ in operands], attributes)
        stored = []
        for x, layout, letters in operands:
            if x is not None:
                y = torch.from_numpy(x)
                stored.append(y if layout is None else parse_layout(layout, letters).from_onnx(y))
        node = Node("n", "relayout", name, opset, tuple("abcdefgh"[: len(stored)]), ("y",), attributes_of(attributes))
        found = find_op(node)
        made = found.function(node, *[x.tolist() if at in found.host else x for at, x in enumerate(stored)])
        self.assertTrue(made.is_contiguous(), name)
        letters = neutral_letters(want.ndim) if "A" in result else None
        expected = parse_layout(result, letters).from_onnx(torch.from_numpy(want))
        torch.testing.assert_close(made, expected, rtol=2e-5, atol=2e-5, msg=lambda text: f"{name}: {text}")
        return made

    def test_convolutions_of_channels_last(self) -> None:
        x, w, b = normal(2, 8, 9, 7), normal(4, 8, 3, 3), normal(4)
        attributes = {"pads": [1, 1, 1, 1], "strides": [2, 1]}
        self.check("Conv2d_NHWC_B", "Conv", [(x, "NHWC", None), (w, "OHWI", "OIHW"), (b, None, None)], "NHWC", attributes)
        self.check("Conv2d_NHWC", "Conv", [(x, "NHWC", None), (w, "OHWI", "OIHW")], "NHWC", attributes)
        self.check(
            "Conv2d_NHWC_B",
            "Conv",
            [(x, "NHWC", None), (normal(8, 1, 3, 3), "OHWI", "OIHW"), (normal(8), None, None)],
            "NHWC",
            {"group": 8},
        )
        self.check(
            "Conv1d_NWC_B",
            "Conv",
            [(normal(2, 8, 9), "NWC", None), (normal(4, 8, 3), "OWI", "OIW"), (b, None, None)],
            "NWC",
            {"pads": [1, 1]},
        )
        self.check(
            "Conv3d_NDHWC_B",
            "Conv",
            [(normal(1, 4, 5, 6, 7), "NDHWC", None), (normal(4, 4, 3, 3, 3), "ODHWI", "OIDHW"), (b, None, None)],
            "NDHWC",
            {},
        )
        transposed = [(x, "NHWC", None), (normal(8, 4, 2, 2), "OHWI", "IOHW"), (b, None, None)]
        self.check("ConvTranspose2d_NHWC_B", "ConvTranspose", transposed, "NHWC", {"strides": [2, 2]})

    def test_convolutions_of_blocks_and_of_unlike_layouts(self) -> None:
        x, w, b = normal(2, 16, 5, 6), normal(16, 16, 3, 3), normal(16)
        self.check("Conv2d_NCHW8c_B", "Conv", [(x, "NCHW8c", None), (w, "OIHW8i8o", "OIHW"), (b, None, None)], "NCHW8c", {})
        self.check("Conv2d_CHWN4", "Conv", [(x, "CHWN4", None), (w, "IHWO4i", "OIHW")], "CHWN4", {})
        self.check("Conv2d_NCHW_W_OIHW8o_Y_NCHW8c", "Conv", [(x, "NCHW", None), (w, "OIHW8o", "OIHW")], "NCHW8c", {})
        self.check("Conv2d_NHWC_W_OIHW_B", "Conv", [(x, "NHWC", None), (w, "OIHW", "OIHW"), (b, None, None)], "NHWC", {})

    def test_ops_that_see_each_channel_by_itself(self) -> None:
        x = [(normal(2, 8, 9, 7), "NHWC", None)]
        pool = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
        self.check("MaxPool2d_NHWC", "MaxPool", x, "NHWC", pool)
        self.check("AveragePool2d_NHWC", "AveragePool", x, "NHWC", pool)
        self.check("GlobalAveragePool_NHWC", "GlobalAveragePool", x, "NHWC", {})
        self.check("GlobalMaxPool_NHWC", "GlobalMaxPool", x, "NHWC", {})
        numbers = [(normal(8), None, None), (normal(8), None, None), (normal(8), None, None), (positive(8), None, None)]
        self.check("BatchNormalization_NHWC", "BatchNormalization", x + numbers, "NHWC", {})
        self.check("InstanceNormalization_NHWC", "InstanceNormalization", x + numbers[:2], "NHWC", {})
        self.check(
            "InstanceNormalization_NWC", "InstanceNormalization", [(normal(2, 8, 50), "NWC", None), *numbers[:2]], "NWC", {}
        )

    def test_resizes_take_what_they_need_of_their_operands(self) -> None:
        x = (normal(2, 8, 9, 7), "NHWC", None)
        none = (None, None, None)
        scales = (np.array([1, 1, 2, 2], np.float32), None, None)
        nearest = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        self.check("Resize_NHWC_scales", "Resize", [x, none, scales], "NHWC", nearest, 19)
        self.check(
            "Resize_NHWC_sizes", "Resize", [x, none, none, (ints(2, 8, 13, 20), None, None)], "NHWC", {"mode": "linear"}, 19
        )

    def test_ops_that_mix_or_count_channels(self) -> None:
        x = [(normal(2, 8, 4, 6), "NHWC", None)]
        for mode in ("DCR", "CRD"):
            self.check("DepthToSpace_NHWC", "DepthToSpace", x, "NHWC", {"blocksize": 2, "mode": mode})
        self.check("SpaceToDepth_NHWC", "SpaceToDepth", x, "NHWC", {"blocksize": 2})
        self.check("Softmax_NHWC", "Softmax", x, "NHWC", {"axis": 1})
        self.check("LogSoftmax_NHWC", "LogSoftmax", x, "NHWC", {"axis": 1})
        self.check("LpNormalization_NHWC", "LpNormalization", x, "NHWC", {"axis": 1})
        self.check(
            "GroupNormalization_NHWC",
            "GroupNormalization",
            [*x, (normal(8), None, None), (normal(8), None, None)],
            "NHWC",
            {"num_groups": 4},
            21,
        )
        self.check("GridSample_NHWC", "GridSample", [*x, (normal(2, 5, 3, 2), None, None)], "NHWC", {})

    def test_quantized_values(self) -> None:
        scale, zero = (positive(8), None, None), (np.arange(8, dtype=np.int8), None, None)
        self.check(
            "QuantizeLinear_NHWC_y_zero_point",
            "QuantizeLinear",
            [(normal(2, 8, 3, 4), "NHWC", None), scale, zero],
            "NHWC",
            {"axis": 1},
            19,
        )
        x = (RANDOM.integers(-99, 99, (2, 8, 3, 4)).astype(np.int8), "NHWC", None)
        self.check("DequantizeLinear_NHWC_x_zero_point", "DequantizeLinear", [x, scale, zero], "NHWC", {"axis": 1}, 19)

    def test_products_of_turned_matrices(self) -> None:
        a, b = normal(3, 4), normal(4, 5)
        self.check("MatMul_A_KM", "MatMul", [(a, "KM", "MK"), (b, None, None)], "AB", {})
        self.check("MatMul_B_NK_Y_NM", "MatMul", [(a, None, None), (b, "NK", "KN")], "BA", {})
        self.check("Gemm_B_BA_C", "Gemm", [(a, None, None), (b, "BA", "AB"), (normal(5), None, None)], "AB", {"alpha": 0.5})

    def test_products_of_many_matrices_are_stored_in_every_order(self) -> None:
        a, b = normal(2, 3, 4, 5), normal(2, 3, 5, 6)
        for order in permutations("ABCD"):
            word = "".join(order)
            self.check(f"MatMul_Y_{word}", "MatMul", [(a, None, None), (b, None, None)], word, {})
        self.check("MatMul_B_CABD_Y_CABD", "MatMul", [(a, None, None), (b, "CABD", "ABCD")], "CABD", {})
        self.check("MatMul_Y_ACB", "MatMul", [(normal(3, 4, 5), None, None), (normal(5, 6), None, None)], "ACB", {})
        self.check("MatMul_Y_ADCB", "MatMul", [(normal(4, 5), None, None), (b, None, None)], "ADCB", {})

    def test_products_are_written_in_place_where_the_library_can(self) -> None:
        a, b = torch.randn(2, 3, 4, 5), torch.randn(2, 3, 5, 6)
        pairs = [(a, b), (a, b[0, 0]), (a[:, :1], b), (a[0], b[0]), (a[0], b[0, 0]), (a[0, 0], b[0]), (a[0, 0], b[0, 0])]
        for x, w in pairs:
            product = torch.matmul(x, w)
            letters = neutral_letters(product.dim())
            *lead, rows, columns = letters
            for word in map("".join, permutations(letters)):
                order = parse_layout(word, letters)
                made = product_in_place(order, x, w)
                can = word[-1] in (rows, columns) and "".join(lead) in word
                self.assertEqual(made is not None, can, word)
                if made is not None:
                    torch.testing.assert_close(made, order.from_onnx(product), msg=lambda text, word=word: f"{word}: {text}")

    def test_products_are_copied_nowhere_on_a_gpu(self) -> None:
        a, b = (torch.empty(shape, device="meta") for shape in ([2, 3, 4, 5], [2, 3, 5, 6]))
        for word in ("ABDC", "CABD", "DABC", "ABCD"):
            node = Node("n", "relayout", f"MatMul_Y_{word}", 20, ("a", "b"), ("y",), {})
            with Copies() as copies:
                find_op(node).function(node, a, b)
            self.assertEqual(copies.count, 0, word)

    def test_channels_last_is_copied_on_neither_side(self) -> None:
        x, w = torch.randn(2, 9, 7, 8), torch.randn(4, 3, 3, 8)
        seen: list[tuple[int, ...]] = []

        def watched(*operands: torch.Tensor, **more: Any) -> torch.Tensor:
            y = torch.conv2d(operands[0], operands[1], operands[2], *operands[3:], **more)
            for tensor in (operands[0], operands[1], y):
                self.assertTrue(tensor.is_contiguous(memory_format=torch.channels_last))
            seen.append((operands[0].data_ptr(), operands[1].data_ptr(), y.data_ptr()))
            return y

        with unittest.mock.patch.dict("runner.ops.windows._CONV", {2: watched}):
            node = Node("n", "relayout", "Conv2d_NHWC", 20, ("x", "w"), ("y",), {"pads": (1, 1, 1, 1)})
            made = find_op(node).function(node, x, w)
        self.assertEqual(seen, [(x.data_ptr(), w.data_ptr(), made.data_ptr())])
        self.assertEqual(made.shape, (2, 9, 7, 4))


if __name__ == "__main__":
    unittest.main()
