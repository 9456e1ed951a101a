#!/usr/bin/env python3
"""Write the small models that the tests of crate `relayout-verify` run.

    python tools/make_verify_models.py [testdata/verify]

The same script gives the same bytes. Needs numpy and onnx.
"""
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

OPSET = 18


def write(folder, name, nodes, inputs, outputs, initializers=(), external=()):
    graph = h.make_graph(nodes, name, inputs, outputs, [numpy_helper.from_array(v, k) for k, v in initializers])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", OPSET)], ir_version=9, producer_name="make_verify_models")
    for tensor in model.graph.initializer:
        if tensor.name in external:
            (folder / f"{name}.bin").write_bytes(tensor.raw_data)
            tensor.ClearField("raw_data")
            tensor.data_location = T.EXTERNAL
            tensor.external_data.add(key="location", value=f"{name}.bin")
    (folder / f"{name}.onnx").write_bytes(model.SerializeToString(deterministic=True))
    onnx.checker.check_model(str(folder / f"{name}.onnx"), full_check=True)


def conv(folder, name, *, around=False, scale=1.0, source="x", batch="N", external=(), extra=False):
    """Convolution and Relu; `around` puts Relu between two Transposes that cancel, which changes no bit."""
    w = (np.arange(4 * 3 * 3 * 3, dtype=np.float32).reshape(4, 3, 3, 3) % 17 - 8) / 8
    w[0, 0, 0, 0] *= np.float32(scale)
    nodes = [h.make_node("Conv", [source, "w"], ["c"], pads=[1, 1, 1, 1])]
    if around:
        nodes += [h.make_node("Transpose", ["c"], ["t"], perm=[0, 2, 3, 1]), h.make_node("Relu", ["t"], ["r"]),
                  h.make_node("Transpose", ["r"], ["y"], perm=[0, 3, 1, 2])]
    else:
        nodes.append(h.make_node("Relu", ["c"], ["y"]))
    outputs = [h.make_tensor_value_info("y", T.FLOAT, [batch, 4, 8, 8])]
    if extra:
        nodes.append(h.make_node("Neg", ["y"], ["z"]))
        outputs.append(h.make_tensor_value_info("z", T.FLOAT, [batch, 4, 8, 8]))
    write(folder, name, nodes, [h.make_tensor_value_info(source, T.FLOAT, [batch, 3, 8, 8])], outputs, [("w", w)], external)


def every_type(folder):
    """An input and an output of each type, a sequence, strings, and an index into an axis of two."""
    types = {"f16": T.FLOAT16, "bf16": T.BFLOAT16, "f32": T.FLOAT, "f64": T.DOUBLE, "i8": T.INT8, "i16": T.INT16, "i32": T.INT32,
             "i64": T.INT64, "u8": T.UINT8, "u16": T.UINT16, "u32": T.UINT32, "u64": T.UINT64, "bool": T.BOOL}
    nodes, inputs, outputs = [], [], []
    for name, ty in types.items():
        nodes.append(h.make_node("Identity", [name], [f"{name}_out"]))
        inputs.append(h.make_tensor_value_info(name, ty, ["N", "L"]))
        outputs.append(h.make_tensor_value_info(f"{name}_out", ty, ["N", "L"]))
    nodes += [
        h.make_node("Cast", ["i32"], ["words"], to=T.STRING),
        h.make_node("SplitToSequence", ["f32"], ["pieces"], axis=0),
        h.make_node("Gather", ["table", "i64"], ["looked_up"], axis=0),
        h.make_node("ReduceSum", ["f32"], ["scalar"], keepdims=0),
        h.make_node("Slice", ["f32", "zero", "zero", "one"], ["empty"]),
    ]
    outputs += [
        h.make_tensor_value_info("words", T.STRING, ["N", "L"]),
        h.make_tensor_sequence_value_info("pieces", T.FLOAT, ["P", "L"]),
        h.make_tensor_value_info("looked_up", T.FLOAT, ["N", "L", 3]),
        h.make_tensor_value_info("scalar", T.FLOAT, []),
        h.make_tensor_value_info("empty", T.FLOAT, ["N", 0]),
    ]
    table = np.arange(6, dtype=np.float32).reshape(2, 3)
    constants = [("table", table), ("zero", np.array([0], np.int64)), ("one", np.array([1], np.int64))]
    write(folder, "every_type", nodes, inputs, outputs, constants)


def arrays(folder):
    """The same six numbers in every number format that numpy stores, then types that no model input has."""
    six = np.arange(6).reshape(2, 3)
    same = {code: six.astype(code) for code in "<f2 <f4 <f8 >f2 >f4 >i8 |i1 <i2 <i4 <i8 |u1 <u2 <u4 <u8".split()}
    same["fortran"] = np.asfortranarray(six.astype("<f4"))
    other = {"bool": six % 2 == 0, "complex": six.astype("<c8"), "text": six.astype("<U1")}
    np.savez_compressed(folder / "arrays.npz", **{k.replace("<", "le_").replace(">", "be_").replace("|", ""): v
                                                  for k, v in {**same, **other}.items()})


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "testdata" / "verify")
    folder.mkdir(parents=True, exist_ok=True)
    conv(folder, "conv")
    conv(folder, "conv_around", around=True)
    conv(folder, "conv_scaled", scale=1.001)
    conv(folder, "conv_renamed", source="image")
    conv(folder, "conv_two_outputs", extra=True)
    conv(folder, "conv_external", external=("w",))
    every_type(folder)
    arrays(folder)
    text = h.make_tensor_value_info
    write(folder, "string_input", [h.make_node("Identity", ["s"], ["t"])], [text("s", T.STRING, [2])], [text("t", T.STRING, [2])])


if __name__ == "__main__":
    main()
