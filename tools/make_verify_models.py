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


def parsed(text, weights=(), opset=18):
    """The model of a graph in onnx's text form; `weights` are its initializers, which are inputs with a default if the graph names them."""
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}], producer_name: "make_verify_models">\n{text}')
    model.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in dict(weights).items())
    return model


def pair(folder, name, a, b, weights=(), opset=18, own=((), ())):
    """Two models of the same weights, and those that each has alone."""
    for suffix, text, more in [("a", a, own[0]), ("b", b, own[1])]:
        model = parsed(text, {**dict(weights), **dict(more)}, opset)
        used = {name for node in model.graph.node for name in node.input} | {port.name for port in model.graph.output}
        used |= {port.name for port in model.graph.input}
        keep = [t for t in model.graph.initializer if t.name in used]
        del model.graph.initializer[:]
        model.graph.initializer.extend(keep)
        onnx.checker.check_model(model, full_check=True)
        (folder / f"{name}.{suffix}.onnx").write_bytes(model.SerializeToString(deterministic=True))


def steady(*shape, scale=1.0):
    """Numbers of mean 0 and variance 1, always the same."""
    return (np.random.default_rng(list(shape)).standard_normal(shape) * scale).astype(np.float32)


IMAGE = "g (float[N,3,8,8] x) => (float[N,4,8,8] y)"
ROWS = "g (float[N,16] x) => (float[N,16] y)"
FILTERS = {"w": steady(4, 3, 3, 3), "c": steady(4)}


def differing(folder):
    """Pairs that do not compute the same, each for a reason of its own."""
    mask = np.where(np.arange(16) == 3, -1e9, 0).astype(np.float32)
    w = steady(16, 16)
    pair(folder, "weights_reversed_beside_a_mask", ROWS + "{ h = MatMul(x, w) y = Add(h, m) }", ROWS + "{ h = MatMul(x, v) y = Add(h, m) }",
         {"w": w, "m": mask, "v": w[::-1].copy()})
    huge = np.zeros(16, np.float32)
    huge[5] = 3e38
    pair(folder, "a_sign_beside_a_huge_number", ROWS + "{ y = Add(x, m) }", ROWS + "{ n = Neg(x) y = Add(n, m) }", {"m": huge})
    half = np.where(np.arange(16) % 2 == 0, -1e9, 0).astype(np.float32)
    pair(folder, "weights_reversed_where_half_is_masked", ROWS + "{ h = MatMul(x, w) y = Add(h, m) }",
         ROWS + "{ h = MatMul(x, v) y = Add(h, m) }", {"w": w, "m": half, "v": w[::-1].copy()})
    small = FILTERS["w"].copy()
    small[2] *= 1e-6
    pair(folder, "a_channel_of_small_numbers", IMAGE + "{ y = Conv<pads=[1,1,1,1]>(x, w) }", IMAGE + "{ y = Conv<pads=[1,1,1,1]>(x, v) }",
         {"w": small, "v": np.where(np.arange(4).reshape(4, 1, 1, 1) == 2, -small, small).astype(np.float32)})
    one = FILTERS["c"].copy()
    one[1] += 2e-3
    pair(folder, "one_bias", IMAGE + "{ y = Conv<pads=[1,1,1,1]>(x, w, c) }", IMAGE + "{ y = Conv<pads=[1,1,1,1]>(x, w, d) }",
         {**FILTERS, "d": one})
    pair(folder, "nothing_but_nan", ROWS + "{ h = Mul(x, o) y = Div(h, o) }", ROWS + "{ n = Neg(x) h = Mul(n, o) y = Div(h, o) }",
         {"o": np.zeros(16, np.float32)})
    far = "g (float[N,16] x) => (int64[2,M] y)"
    pair(folder, "nothing_at_all", far + "{ g = Greater(x, o) y = NonZero(g) }", far + "{ n = Neg(x) g = Greater(n, o) y = NonZero(g) }",
         {"o": np.float32(1000)})
    pair(folder, "nan_in_one_place", ROWS + "{ y = Mul(x, o) }", ROWS + "{ y = Mul(x, m) }",
         {"o": np.ones(16, np.float32), "m": np.where(np.arange(16) == 7, np.nan, 1).astype(np.float32)})
    pair(folder, "infinity_of_the_other_sign", ROWS + "{ y = Add(x, o) }", ROWS + "{ y = Add(x, m) }",
         {"o": np.where(np.arange(16) == 7, np.inf, 0).astype(np.float32), "m": np.where(np.arange(16) == 7, -np.inf, 0).astype(np.float32)})
    pair(folder, "images_mixed", "g (float[N,4] x) => (float[M] y) { y = Reshape(x, s) }",
         "g (float[N,4] x) => (float[M] y) { t = Transpose<perm=[1,0]>(x) y = Reshape(t, s) }", {"s": np.array([-1])})
    pair(folder, "height_and_width", "g (float[1,2,H,W] x) => (float[A,B,C,D] y) { y = Relu(x) }",
         "g (float[1,2,H,W] x) => (float[A,B,C,D] y) { t = Transpose<perm=[0,1,3,2]>(x) y = Relu(t) }")
    pair(folder, "integers_squared", "g (int64[N,8] x) => (int64[N,8] y) { y = Identity(x) }", "g (int64[N,8] x) => (int64[N,8] y) { y = Mul(x, x) }")
    pair(folder, "integers_without_sign", "g (int64[N,8] x) => (int64[N,8] y) { y = Identity(x) }", "g (int64[N,8] x) => (int64[N,8] y) { y = Abs(x) }")
    pair(folder, "rows_of_a_table", "g (int64[N,8] x) => (float[N,8,4] y) { y = Gather(t, x) }", "g (int64[N,8] x) => (float[N,8,4] y) { y = Gather(u, x) }",
         {"t": steady(100, 4), "u": np.concatenate([steady(100, 4)[:50], steady(100, 4)[:49:-1]])})
    over = "g (float[N,16] x, float[16] w) => (float[N,16] y)"
    pair(folder, "a_default_made_constant", over + "{ y = Mul(x, w) }", ROWS + "{ y = Mul(x, v) }", {"w": steady(16)}, own=[{}, {"v": steady(16)}])
    pair(folder, "a_default_not_read", over + "{ y = Mul(x, w) }", over + "{ y = Mul(x, v) }", {"w": steady(16)}, own=[{}, {"v": steady(16)}])
    pair(folder, "at_least_for_more_than", "g (int32[N,8] x) => (bool[N,8] y) { y = Greater(x, o) }",
         "g (int32[N,8] x) => (bool[N,8] y) { y = GreaterOrEqual(x, o) }", {"o": np.array(1, np.int32)})
    pair(folder, "the_smallest_for_the_largest", "g (float[N,16] x) => (int64[N,1] y) { y = ArgMax<axis=1>(x) }",
         "g (float[N,16] x) => (int64[N,1] y) { y = ArgMin<axis=1>(x) }")
    steps = "g (float[N,16] x) => (uint8[N,16] y)"
    pair(folder, "bytes_a_step_up", steps + "{ y = QuantizeLinear(x, s, z) }", steps + "{ h = Add(x, s) y = QuantizeLinear(h, s, z) }",
         {"s": np.float32(0.05), "z": np.uint8(128)})
    pair(folder, "bytes_of_another_zero", steps + "{ y = QuantizeLinear(x, s, z) }", steps + "{ y = QuantizeLinear(x, s, v) }",
         {"s": np.float32(0.05), "z": np.uint8(128), "v": np.uint8(125)})
    pair(folder, "other_words", "g (int32[N,8] x) => (string[N,8] y) { y = Cast<to=8>(x) }", "g (int32[N,8] x) => (string[N,8] y) { h = Mul(x, x) y = Cast<to=8>(h) }")
    pair(folder, "doubles_through_singles", "g (double[N,8] x) => (double[N,8] y) { y = Exp(x) }",
         "g (double[N,8] x) => (double[N,8] y) { h = Cast<to=1>(x) d = Cast<to=11>(h) y = Exp(d) }")
    pair(folder, "another_type", "g (float[N,8] x) => (float[N,8] y) { y = Relu(x) }", "g (float[N,8] x) => (double[N,8] y) { h = Relu(x) y = Cast<to=11>(h) }")
    pair(folder, "another_shape", "g (float[N,8] x) => (float[N,8] y) { y = Relu(x) }", "g (float[N,8] x) => (float[N,8,1] y) { h = Relu(x) y = Unsqueeze(h, i) }",
         {"i": np.array([2])})
    pair(folder, "a_bound_of_six", "g (float[N,3,8,8] x) => (float[N,3,8,8] y) { y = Relu(x) }", "g (float[N,3,8,8] x) => (float[N,3,8,8] y) { y = Clip(x, l, h) }",
         {"l": np.float32(0), "h": np.float32(6)})
    pair(folder, "edges_padded_otherwise", "g (float[N,3,8,8] x) => (float[N,3,10,10] y) { y = Pad<mode=\"edge\">(x, p) }",
         "g (float[N,3,8,8] x) => (float[N,3,10,10] y) { y = Pad<mode=\"reflect\">(x, p) }", {"p": np.array([0, 0, 1, 1, 0, 0, 1, 1])})
    pool = "g (float[N,3,8,8] x) => (float[N,3,8,8] y)"
    pair(folder, "padding_counted", pool + "{ y = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(x) }",
         pool + "{ y = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1>(x) }")
    pair(folder, "softmax_along_the_other_axis", "g (float[4,4] x) => (float[4,4] y) { y = Softmax<axis=1>(x) }", "g (float[4,4] x) => (float[4,4] y) { y = Softmax<axis=0>(x) }")
    halves = "g (float16[N,16] x) => (float16[N,16] y)"
    pair(folder, "halves_off_by_a_tenth", halves + "{ y = MatMul(x, w) }", halves + "{ y = MatMul(x, v) }",
         {"w": w.astype(np.float16), "v": (w * np.where(np.arange(16) == 2, 1.1, 1)).astype(np.float16)})
    norm = "{ y = LayerNormalization<epsilon=%s>(x, s) }"
    pair(folder, "another_epsilon", ROWS + norm % "1e-5", ROWS + norm % "1e-3", {"s": np.ones(16, np.float32)})
    pair(folder, "weights_turned", ROWS + "{ y = MatMul(x, w) }", ROWS + "{ y = MatMul(x, v) }", {"w": w, "v": w.T.copy()})
    pair(folder, "pieces_exchanged", "g (float[N,8] x) => (seq(float[N,4]) y) { y = SplitToSequence<axis=1>(x, i) }",
         "g (float[N,8] x) => (seq(float[N,4]) y) { a, b = Split<axis=1, num_outputs=2>(x) y = SequenceConstruct(b, a) }", {"i": np.array(4)})
    pair(folder, "dark_bytes_only", "g (uint8[N,8] x) => (float[N,8] y) { y = Cast<to=1>(x) }",
         "g (uint8[N,8] x) => (float[N,8] y) { s = Cast<to=3>(x) y = Cast<to=1>(s) }")
    units = "g (float[1,4,8,8] x) => (float[1,8,8,4] y) { q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z)"
    pair(folder, "runs_only_without_rewrites", units + " h = Mish(d) y = Transpose<perm=[0,2,3,1]>(h) }",
         units + " h = Transpose<perm=[0,2,3,1]>(d) y = Mish(h) }", {"s": np.float32(0.05), "z": np.int8(0)}, opset=21)
    pair(folder, "chance", ROWS + "{ r = RandomNormalLike(x) y = Add(x, r) }", ROWS + "{ r = RandomNormalLike(x) y = Sub(x, r) }")

    pair(folder, "small_probabilities", ROWS + "{ h = MatMul(x, w) s = Sub(h, o) y = Sigmoid(s) }", ROWS + "{ h = MatMul(x, v) s = Sub(h, o) y = Sigmoid(s) }",
         {"w": w / 4, "v": w / 4 * np.float32(1.02), "o": np.float32(9)})

def alike(folder):
    """Pairs that compute the same in another way, each with noise of its own."""
    pair(folder, "sigmoid_that_saturates", ROWS + "{ h = MatMul(x, w) s = Mul(h, k) y = Sigmoid(s) }",
         ROWS + "{ h = MatMul(x, v) y = Sigmoid(h) }", {"w": steady(16, 16), "k": np.float32(300), "v": steady(16, 16) * np.float32(300)})
    moments = "m = ReduceMean(h, i) q = Mul(h, h) n = ReduceMean(q, i) p = Mul(m, m) v = Sub(n, p) t = Add(v, e) r = Sqrt(t) c = Sub(h, m)"
    pair(folder, "norm_that_cancels", "g (float[N,256,4] x) => (float[N,4,256] y) { u = Add(x, o) h = Transpose<perm=[0,2,1]>(u) " + moments + " y = Div(c, r) }",
         "g (float[N,256,4] x) => (float[N,4,256] y) { h = Add(x, o) " + moments + " d = Div(c, r) y = Transpose<perm=[0,2,1]>(d) }",
         {"o": np.float32(10), "e": np.float32(1e-5)}, own=[{"i": np.array([2])}, {"i": np.array([1])}])
    norm = {"g": np.abs(steady(4)) + 1, "b": steady(4), "m": steady(4), "v": np.abs(steady(4)) + np.float32(0.5)}
    scale = norm["g"] / np.sqrt(norm["v"] + np.float32(1e-5))
    pair(folder, "normalization_in_filters", IMAGE + "{ h = Conv<pads=[1,1,1,1]>(x, w) y = BatchNormalization(h, g, b, m, v) }",
         IMAGE + "{ y = Conv<pads=[1,1,1,1]>(x, f, d) }", {**FILTERS, **norm},
         own=[{}, {"f": FILTERS["w"] * scale.reshape(4, 1, 1, 1), "d": norm["b"] - norm["m"] * scale}])
    pair(folder, "sums_in_another_order", "g (float[N,512] x) => (float[N,16] y) { y = MatMul(x, w) }",
         "g (float[N,512] x) => (float[N,16] y) { a, b = Split<axis=1, num_outputs=2>(x) h = MatMul(b, v) i = MatMul(a, u) y = Add(h, i) }",
         {"w": steady(512, 16), "u": steady(512, 16)[:256], "v": steady(512, 16)[256:]})
    pair(folder, "weights_of_tokens", "g (int64[N,8] x) => (float[N,8,16] y) { h = Gather(t, x) y = MatMul(h, w) }",
         "g (int64[N,8] x) => (float[N,8,16] y) { y = Gather(u, x) }", {"t": steady(50, 16), "w": steady(16, 16), "u": steady(50, 16) @ steady(16, 16)})
    mask = np.where(np.arange(16) % 3 == 0, -1e9, 0).astype(np.float32)
    pair(folder, "mask_before_the_scale", ROWS + "{ h = MatMul(x, w) s = Mul(h, k) y = Add(s, m) }", ROWS + "{ h = MatMul(x, v) y = Add(h, m) }",
         {"w": steady(16, 16), "k": np.float32(0.125), "v": steady(16, 16) * np.float32(0.125), "m": mask})
    pair(folder, "halves_in_another_order", "g (float16[N,64] x) => (float16[N,16] y) { y = MatMul(x, w) }",
         "g (float16[N,64] x) => (float16[N,16] y) { a, b = Split<axis=1, num_outputs=2>(x) h = MatMul(b, v) i = MatMul(a, u) y = Add(h, i) }",
         {"w": steady(64, 16).astype(np.float16), "u": steady(64, 16)[:32].astype(np.float16), "v": steady(64, 16)[32:].astype(np.float16)})
    pair(folder, "no_elements_by_declaration", "g (float[N,16] x) => (float[N,0] y, float[N,16] z) { y = Slice(x, a, a, i) z = Relu(x) }",
         "g (float[N,16] x) => (float[N,0] y, float[N,16] z) { z = Relu(x) y = Slice(z, a, a, i) }", {"a": np.array([4]), "i": np.array([1])})
    pair(folder, "a_default_that_is_read", "g (float[N,16] x, float[16] w) => (float[N,16] y) { y = Mul(x, w) }",
         "g (float[N,16] x, float[16] w) => (float[N,16] y) { y = Mul(w, x) }", {"w": steady(16)})
    pair(folder, "nearly_equal_arguments", "g (float[N,16] x) => (int64[N,1] y) { h = MatMul(x, w) y = ArgMax<axis=1>(h) }",
         "g (float[N,16] x) => (int64[N,1] y) { h = Gemm(x, w) y = ArgMax<axis=1>(h) }", {"w": steady(16, 16)})
    pair(folder, "bytes_of_sums", "g (float[N,64] x) => (uint8[N,16] y) { h = MatMul(x, w) y = QuantizeLinear(h, s, z) }",
         "g (float[N,64] x) => (uint8[N,16] y) { h = Gemm(x, w) y = QuantizeLinear(h, s, z) }",
         {"w": steady(64, 16), "s": np.float32(0.05), "z": np.uint8(128)})
    pair(folder, "sigmoid_near_zero", "g (float[N,512] x) => (float[N,16] y) { h = MatMul(x, w) s = Sub(h, o) y = Sigmoid(s) }",
         "g (float[N,512] x) => (float[N,16] y) { a, b = Split<axis=1>(x, p) h = MatMul(b, v) i = MatMul(a, u) j = Add(h, i) s = Sub(j, o) y = Sigmoid(s) }",
         {"w": steady(512, 16, scale=0.2), "u": steady(512, 16, scale=0.2)[:200], "v": steady(512, 16, scale=0.2)[200:],
          "p": np.array([200, 312]), "o": np.float32(25)})
    rows, steps = "g (float[N,2000,16] x) => (float[N,2000,16] y) ", "t = Mul(s, f) r = Floor(t) d = Mul(r, e) y = Add(s, d) }"
    pair(folder, "a_scale_in_front_of_steps", rows + "{ h = MatMul(x, w) s = Mul(h, k) " + steps, rows + "{ s = MatMul(x, v) " + steps,
         {"w": steady(16, 16), "k": np.float32(0.3), "v": steady(16, 16) * np.float32(0.3), "f": np.float32(1000), "e": np.float32(5e-4)})


def stepped(folder):
    """A pair that computes the same in another way, whose results round to steps far above rounding."""
    pair(folder, "sums_in_front_of_steps", "g (float[256,32] x) => (float[256,16] y) { h = MatMul(x, w) q = QuantizeLinear(h, s, z) y = DequantizeLinear(q, s, z) }",
         "g (float[256,32] x) => (float[256,16] y) { t = Gather<axis=1>(x, r) h = MatMul(t, v) q = QuantizeLinear(h, s, z) y = DequantizeLinear(q, s, z) }",
         {"w": steady(32, 16, scale=0.2), "v": steady(32, 16, scale=0.2)[::-1].copy(), "r": np.arange(32)[::-1].copy(),
          "s": np.float32(1e-4), "z": np.int16(0)}, opset=21)


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
    for name, make in [("differing", differing), ("alike", alike), ("stepped", stepped)]:
        (folder / name).mkdir(exist_ok=True)
        make(folder / name)
    text = h.make_tensor_value_info
    write(folder, "string_input", [h.make_node("Identity", ["s"], ["t"])], [text("s", T.STRING, [2])], [text("t", T.STRING, [2])])


if __name__ == "__main__":
    main()
