#!/usr/bin/env python3
"""Write the small models that the tests of the optimizer snapshot and run: testdata/cases/THEME/NAME.onnx.

    python tools/make_cases.py [testdata/cases]

The same script gives the same bytes. Needs numpy and onnx. A case is one call of `case` below; one that starts with `not_`
is the near miss of its neighbours: the optimizer leaves it as it is, or leaves a move, and says why.
"""
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import numpy_helper, parser, shape_inference

TO = "Transpose <perm = [0,2,3,1]>"  # NCHW to NHWC
BACK = "Transpose <perm = [0,3,1,2]>"
TYPES = {"f32": "float", "f16": "float16", "i64": "int64", "i32": "int32", "u8": "uint8", "i8": "int8", "b": "bool"}
CASES = []


def f32(*shape):
    n = int(np.prod(shape))
    return ((np.arange(n, dtype=np.float32) * 7 % 19 - 9) / 8).reshape(shape)


def i64(*values):
    return np.array(values, np.int64)


def at(value):
    return np.array(value, np.int64)


def port(text):
    """`x:2,3,4,5` or `x:i64:2` as the parser spells it; `c:b:` is a scalar; without a shape it is left to inference."""
    name, *rest = text.strip().split(":")
    dtype = TYPES[rest.pop(0)] if rest and rest[0] in TYPES else "float"
    if rest == [""]:
        return f"{dtype} {name}"
    return f"{dtype}[{rest[0] if rest else ''}] {name}"


def case(theme, name, ports, body, opset=13, ir=None, inputs_too=False, declare=True, functions=(), **constants):
    """`functions` are texts of functions of domain `local`, of the operator set `opset` unless a text says otherwise."""
    CASES.append((theme, name, ports, body, opset, ir, inputs_too, declare, functions, constants))


def model(name, ports, body, opset, ir, inputs_too, declare, functions, constants):
    ins, outs = (", ".join(port(p) for p in side.split(";") if p.strip()) for side in ports.split("->"))
    ir = ir or (10 if opset > 20 else 8)
    local = ', "local" : 1' if functions else ""
    text = f'<ir_version: {ir}, opset_import: ["" : {opset}{local}]> {name} ({ins}) => ({outs}) {{ {body} }}'
    for function in functions:
        own = "" if function.startswith("<") else f'<domain: "local", opset_import: ["" : {opset}, "local" : 1]> '
        text += f"\n{own}{function}"
    parsed = parser.parse_model(text)
    tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    parsed.graph.initializer.extend(tensors)
    if inputs_too:
        parsed.graph.input.extend(onnx.helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in tensors)
    for i, node in enumerate(parsed.graph.node):
        node.name = f"{node.op_type.lower()}_{i}"
    known = shape_inference.infer_shapes(parsed, check_type=True, data_prop=True).graph
    for out, inferred in zip(parsed.graph.output, known.output):
        if not out.type.tensor_type.HasField("shape"):
            out.CopyFrom(inferred)
    if declare:
        parsed.graph.value_info.extend(known.value_info)
    onnx.checker.check_model(parsed, full_check=True)
    return parsed


def main(folder):
    shutil.rmtree(folder, ignore_errors=True)
    for theme, name, *rest in CASES:
        path = folder / theme / f"{name}.onnx"
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            made = model(name, *rest)
        except Exception as e:
            raise SystemExit(f"{theme}/{name}: {e}") from e
        assert not path.exists(), path
        path.write_bytes(made.SerializeToString(deterministic=True))
    print(f"{len(CASES)} cases")


# Pairs of Transposes: they go where nothing between them asks for an order of axes.
for opset in (9, 13, 21):
    case("cancel_pair", f"around_relu_opset_{opset}", "x:2,3,4,5 -> y", f"t = {TO}(x) r = Relu(t) y = {BACK}(r)", opset=opset)
case("cancel_pair", "around_a_chain", "x:2,3,4,5 -> y",
     f"t = {TO}(x) a = Relu(t) b = Neg(a) c = Identity(b) d = Abs(c) y = {BACK}(d)")
case("cancel_pair", "around_cast_and_not", "x:b:2,3,4,5 -> y:i32",
     f"t = {TO}(x) n = Not(t) c = Cast <to = 6>(n) y = {BACK}(c)")
case("cancel_pair", "default_perm_reverses", "x:2,3,4 -> y", "t = Transpose(x) r = Relu(t) y = Transpose(r)")
case("cancel_pair", "inner_and_outer_pairs", "x:2,3,4,5 -> y",
     f"t = {TO}(x) r = Relu(t) u = {BACK}(r) p = MaxPool <kernel_shape = [2,2]>(u) v = {TO}(p) s = Neg(v) y = {BACK}(s)")
case("cancel_pair", "three_make_one_round", "x:2,3,4,5 -> y",
     "a = Transpose <perm = [1,2,3,0]>(x) b = Relu(a) c = Transpose <perm = [1,2,3,0]>(b) d = Neg(c) y = Transpose <perm = [2,3,0,1]>(d)")
case("cancel_pair", "operands_both_transposed", "x:2,3,4,5; z:2,3,4,5 -> y", f"a = {TO}(x) b = {TO}(z) y = Add(a, b)")
case("cancel_pair", "residual_around_the_pair", "x:2,3,4,5 -> y",
     f"t = {TO}(x) r = Relu(t) u = {BACK}(r) y = Add(u, x)")
case("cancel_pair", "not_the_inverse_composes", "x:2,3,4,5 -> y", f"t = {TO}(x) r = Relu(t) y = {TO}(r)")
case("cancel_pair", "not_alone", "x:2,3,4,5 -> y", f"t = {TO}(x) y = Relu(t)")
case("cancel_pair", "not_one_operand_of_two", "x:2,3,4,5; z:2,4,5,3 -> y", f"a = {TO}(x) y = Add(a, z)")
case("cancel_pair", "not_around_coordinates", "x:3,4 -> y:i64", "t = Transpose <perm = [1,0]>(x) n = NonZero(t) y = Transpose <perm = [1,0]>(n)")
case("cancel_pair", "not_around_max_pool", "x:2,3,4,5 -> y",
     f"t = {TO}(x) p = MaxPool <kernel_shape = [2,2]>(t) y = {BACK}(p)")
case("cancel_pair", "not_around_tuples_of_indices", "x:2,3,4 -> y",
     "t = Transpose <perm = [0,2,1]>(x) i = IsNaN(t) f = Cast <to = 1>(i) g = GatherND <batch_dims = 0>(t, k) h = Add(f, g) y = Transpose <perm = [0,2,1]>(h)",
     k=np.zeros((2, 4, 3, 3), np.int64))

# Broadcasting: an operand of lower rank is aligned at its end, so it is raised where that end moves.
case("broadcast", "channels_last_bias", "x:2,3,4,5 -> y", f"t = {TO}(x) a = Add(t, c) y = {BACK}(a)", c=f32(3))
case("broadcast", "two_trailing_axes", "x:2,3,4,5 -> y", f"t = {TO}(x) a = Mul(t, c) y = {BACK}(a)", c=f32(5, 3))
case("broadcast", "extent_1_on_the_left", "x:2,3,4,5 -> y", f"t = {TO}(x) a = Sub(c, t) y = {BACK}(a)", c=f32(1, 1, 1, 3))
case("broadcast", "one_number", "x:2,3,4,5 -> y", f"t = {TO}(x) a = Mul(t, c) b = Add(a, d) y = {BACK}(b)", c=f32(1), d=np.float32(2))
case("broadcast", "constant_shared_by_two_layouts", "x:2,3,4,5; z:2,4,5,3 -> y; w",
     f"t = {TO}(x) a = Add(t, c) y = {BACK}(a) w = Add(z, c)", c=f32(3))
case("broadcast", "constant_shared_by_three_adds", "x:2,3,4,5 -> y",
     f"t = {TO}(x) a = Add(t, c) b = Mul(a, c) d = Sub(b, c) y = {BACK}(d)", c=f32(3))
case("broadcast", "input_of_lower_rank", "x:2,30,40,50; c:30 -> y", f"t = {TO}(x) a = Add(t, c) y = {BACK}(a)")
case("broadcast", "input_of_full_rank", "x:2,30,40,50; c:1,1,1,30 -> y", f"t = {TO}(x) a = Add(t, c) y = {BACK}(a)")
case("broadcast", "slopes_opset_9", "x:2,3,4,5 -> y", f"t = {TO}(x) a = PRelu(t, c) y = {BACK}(a)", opset=9, c=f32(3))
case("broadcast", "slopes_opset_16", "x:2,3,4,5 -> y", f"t = {TO}(x) a = PRelu(t, c) y = {BACK}(a)", opset=16, c=f32(1, 1, 3))
case("broadcast", "three_operands", "x:2,3,4,5; b:b:2,3,4,5 -> y",
     f"t = {TO}(x) u = {TO}(b) a = Where(u, t, c) y = {BACK}(a)", c=f32(3))
case("broadcast", "variadic_max", "x:2,3,4,5 -> y", f"t = {TO}(x) a = Max(t, c, d) y = {BACK}(a)", c=f32(3), d=f32(4, 1, 1))
case("broadcast", "result_of_higher_rank", "x:3,4,5; z:2,4,5,3 -> y",
     f"t = Transpose <perm = [1,2,0]>(x) a = Add(t, z) y = {BACK}(a)")
case("broadcast", "not_where_the_raised_operand_costs_more", "x:1,3,2,2; c:3 -> y", f"t = {TO}(x) y = Add(t, c)")

# Axes that ops name by number, at the first and last operator sets of each form.
def axes(name, op, opset=13, ports="x:2,3,4,5 -> y", back=BACK, **constants):
    case("axes", name, ports, f"t = {TO}(x) o = {op} y = {back}(o)", opset=opset, **constants)


axes("concat", "Concat <axis = 3>(t, t)")
axes("concat_from_the_end", "Concat <axis = -1>(t, c)", c=f32(2, 4, 5, 2))
axes("concat_opset_9", "Concat <axis = 1>(t, t, t)", opset=9)
case("axes", "split_opset_11", "x:2,3,4,5 -> y; z", f"t = {TO}(x) a, b = Split <axis = 3, split = [1,2]>(t) y = {BACK}(a) z = {BACK}(b)", opset=11)
case("axes", "split_opset_13", "x:2,3,4,5 -> y; z", f"t = {TO}(x) a, b = Split <axis = -1>(t, s) y = {BACK}(a) z = {BACK}(b)", s=i64(2, 1))
case("axes", "split_opset_18", "x:2,4,4,5 -> y; z", f"t = {TO}(x) a, b = Split <axis = 3, num_outputs = 2>(t) y = {BACK}(a) z = {BACK}(b)", opset=18)
axes("slice_opset_9", "Slice <starts = [1,0], ends = [4,2], axes = [2,3]>(t)", opset=9)
axes("slice_opset_9_without_axes", "Slice <starts = [0,1,2], ends = [2,4,5]>(t)", opset=9)
axes("slice", "Slice(t, s, e, a, p)", s=i64(4, 0), e=i64(-9, 2), a=i64(2, -1), p=i64(-2, 1))
axes("slice_without_axes", "Slice(t, s, e)", s=i64(0, 1, 2, 0), e=i64(2, 4, 5, 2))
axes("pad_opset_9", "Pad <pads = [0,1,0,2,0,0,3,0]>(t)", opset=9)
axes("pad_opset_11", "Pad <mode = \"reflect\">(t, p)", opset=11, p=i64(0, 1, 2, 0, 0, 0, 1, 2))
axes("pad_opset_18", "Pad(t, p, v, a)", opset=18, p=i64(1, 2, 0, 3), v=np.float32(0.5), a=i64(3, -3))
axes("reduce_kept_opset_11", "ReduceMax <axes = [1,2], keepdims = 1>(t)", opset=11)
axes("reduce_kept_opset_18", "ReduceMax(t, a)", opset=18, a=i64(1, -2))
axes("reduce_all_kept", "ReduceMean(t)", opset=18)
case("axes", "reduce_dropped", "x:2,3,4,5 -> y", f"t = {TO}(x) y = ReduceMax <axes = [1,2], keepdims = 0>(t)")
case("axes", "reduce_dropped_then_transposed", "x:2,3,4,5 -> y",
     f"t = {TO}(x) r = ReduceMax <axes = [1], keepdims = 0>(t) y = Transpose <perm = [0,2,1]>(r)")
axes("reduce_sum_by_operand", "ReduceSum <keepdims = 1>(t, a)", a=i64(3))
axes("reduce_nothing", "ReduceSum <noop_with_empty_axes = 1>(t)")
axes("softmax_last", "Softmax <axis = 3>(t)")
axes("not_softmax_last_opset_11", "Softmax <axis = 3>(t)", opset=11)
axes("softmax_default_axis", "LogSoftmax(t)", opset=18)
axes("arg_max_kept", "ArgMax <axis = 3, keepdims = 1>(t)", ports="x:2,3,4,5 -> y:i64")
case("axes", "arg_max_dropped", "x:2,3,4,5 -> y:i64", f"t = {TO}(x) y = ArgMax <axis = -1, keepdims = 0>(t)")
case("axes", "top_k_opset_9", "x:2,3,4,5 -> y; z:i64", f"t = {TO}(x) a, b = TopK <axis = 3, k = 2>(t) y = {BACK}(a) z = {BACK}(b)", opset=9)
case("axes", "top_k_opset_11", "x:2,3,4,5 -> y; z:i64", f"t = {TO}(x) a, b = TopK <axis = -1>(t, k) y = {BACK}(a) z = {BACK}(b)", opset=11, k=i64(2))
axes("gather_a_vector", "Gather <axis = 3>(t, i)", i=i64(2, 0))
case("axes", "gather_one", "x:2,3,4,5 -> y", f"t = {TO}(x) g = Gather <axis = 1>(t, i) y = Transpose <perm = [0,2,1]>(g)", i=at(2))
case("axes", "gather_a_matrix", "x:2,3,4,5 -> y",
     f"t = {TO}(x) g = Gather <axis = 3>(t, i) y = Transpose <perm = [0,3,4,1,2]>(g)", i=np.array([[2, 0], [1, 1]]))
axes("gather_elements", "GatherElements <axis = 3>(t, i)", i=np.ones((2, 4, 5, 2), np.int64))
axes("scatter_elements", "ScatterElements <axis = 3>(t, i, u)", i=np.zeros((2, 4, 5, 1), np.int64), u=f32(2, 4, 5, 1))
axes("expand", "Expand(t, s)", ports="x:2,3,1,5 -> y", s=i64(2, 4, 5, 3))
axes("tile", "Tile(t, r)", r=i64(1, 2, 1, 3))
axes("cum_sum", "CumSum(t, a)", a=at(3))
axes("cum_sum_axis_from_the_end", "CumSum <reverse = 1>(t, a)", a=i64(-1))
axes("lp_normalization", "LpNormalization <axis = 3, p = 1>(t)")
axes("resize_by_scales", "Resize <mode = \"nearest\">(t, , s)", s=np.array([1, 2, 3, 1], np.float32))
axes("resize_linear", "Resize <mode = \"linear\">(t, , s)", s=np.array([1, 2, 3, 1], np.float32))
axes("not_resize_of_channels", "Resize <mode = \"cubic\">(t, , s)", s=np.array([1, 1, 2, 3], np.float32))
axes("expand_to_a_higher_rank", "Expand(t, s)", back="Transpose <perm = [0,1,4,2,3]>", s=i64(2, 1, 1, 1, 1))
axes("not_softmax_of_coerced_axes", "Softmax <axis = 1>(t)", opset=11)
axes("not_depth_to_space", "DepthToSpace <blocksize = 2>(t)", ports="x:2,3,4,4 -> y")
axes("not_axes_at_run_time", "Slice(t, s, s, a)", ports="x:2,3,4,5; s:i64:1; a:i64:1 -> y")
axes("not_reduced_axes_at_run_time", "ReduceMax(t, a)", opset=18, ports="x:2,3,4,5; a:i64:1 -> y:A,B,C,D")
axes("not_layer_norm_of_last", "LayerNormalization <axis = 3>(t, c)", opset=17, c=f32(3))

# Reshapes, Squeezes and Unsqueezes as views.
case("views", "merge_neighbours", "x:2,3,4,5 -> y", f"t = {TO}(x) r = Reshape(t, s) y = Transpose <perm = [0,2,1]>(r)", s=i64(2, 20, 3))
case("views", "merge_with_0_and_minus_1", "x:2,3,4,5 -> y", f"t = {TO}(x) r = Reshape(t, s) y = Transpose <perm = [0,2,1]>(r)", s=i64(0, -1, 3))
case("views", "split_an_axis", "x:2,3,20 -> y", f"t = Transpose <perm = [0,2,1]>(x) r = Reshape(t, s) y = {BACK}(r)", s=i64(2, 4, 5, 3))
case("views", "squeeze_opset_11", "x:2,3,1,5 -> y", f"t = {TO}(x) r = Squeeze <axes = [1]>(t) y = Transpose <perm = [0,2,1]>(r)", opset=11)
case("views", "squeeze_opset_13", "x:2,3,1,5 -> y", f"t = {TO}(x) r = Squeeze(t, a) y = Transpose <perm = [0,2,1]>(r)", a=i64(-3))
case("views", "unsqueeze_opset_9", "x:2,3,5 -> y", f"t = Transpose <perm = [0,2,1]>(x) r = Unsqueeze <axes = [1]>(t) y = {BACK}(r)", opset=9)
case("views", "unsqueeze_opset_21", "x:2,3,5 -> y", f"t = Transpose <perm = [0,2,1]>(x) r = Unsqueeze(t, a) y = {BACK}(r)", opset=21, a=i64(1))
case("views", "flatten_after_pooling", "x:2,3,4,5 -> y", f"p = GlobalAveragePool(x) t = {TO}(p) y = Flatten(t)")
case("views", "flatten_of_extent_1", "x:2,3,1,5 -> y", "t = Transpose <perm = [0,2,1,3]>(x) y = Flatten <axis = 1>(t)")
case("views", "reshape_between_identities", "x:2,3,4,5 -> y",
     f"t = {TO}(x) i = Identity(t) r = Reshape(i, s) j = Identity(r) y = Transpose <perm = [0,2,1]>(j)", s=i64(2, 20, 3))
case("views", "only_extent_1_moves", "x:2,3,1,1 -> y", f"y = {TO}(x)")
case("views", "only_extent_1_moves_before_an_op", "x:1,3,4,1 -> y", "t = Transpose <perm = [3,1,2,0]>(x) r = Transpose <perm = [1,0,3,2]>(t) y = Relu(r)")
case("views", "not_extent_1_but_symbol", "x:2,3,N,1 -> y", f"y = {TO}(x)")
case("views", "not_merged_across_the_channels", "x:2,3,4,5 -> y", f"t = {TO}(x) r = Reshape(t, s) y = Relu(r)", s=i64(2, 60))
case("views", "not_a_channel_shuffle", "x:2,6,4,5 -> y",
     "r = Reshape(x, s) t = Transpose <perm = [0,2,1,3,4]>(r) y = Reshape(t, u)", s=i64(2, 2, 3, 4, 5), u=i64(2, 6, 4, 5))
case("views", "not_cut_elsewhere", "x:2,3,4,5 -> y", f"t = {TO}(x) r = Reshape(t, s) y = Transpose <perm = [1,0]>(r)", s=i64(24, 5))
case("views", "not_a_shape_at_run_time", "x:2,3,4,5; p:i64:3 -> y:A,B,C",
     f"z = Mul(p, zero) s = Add(z, k) t = {TO}(x) r = Reshape(t, s) y = Transpose <perm = [0,2,1]>(r)", zero=at(0), k=i64(2, 20, 3))

# One value, several readers.
case("sharing", "all_readers_cancel", "x:2,3,4,5 -> y; z",
     f"t = {TO}(x) a = Relu(t) b = Neg(t) y = {BACK}(a) z = {BACK}(b)")
case("sharing", "one_copy_for_those_that_need_it", "x:2,3,4,5 -> y; z; w",
     f"t = {TO}(x) a = Relu(t) y = {BACK}(a) z = Softmax <axis = 3>(t) w = LogSoftmax <axis = 3>(t)")
case("sharing", "equal_transposes_become_one", "x:2,3,4,5 -> y; z", f"s = {TO}(x) t = {TO}(x) y = Flatten(s) z = Flatten <axis = 2>(t)")
case("sharing", "output_that_is_also_read", "x:2,3,4,5 -> t; y", f"t = {TO}(x) a = Relu(t) y = {BACK}(a)")
case("sharing", "not_an_output_of_an_input", "x:2,3,4,5 -> y", f"y = {TO}(x)")
case("sharing", "pair_straight_to_the_output", "x:2,3,4,5 -> y", f"t = {TO}(x) y = {BACK}(t)")
case("sharing", "two_outputs_of_one_value", "x:2,3,4,5 -> y; z", f"r = Relu(x) t = {TO}(r) y = {BACK}(t) u = {TO}(r) z = {BACK}(u)")
case("sharing", "dead_nodes_stay", "x:2,3,4,5 -> y", f"t = {TO}(x) d = Neg(t) r = Relu(t) y = {BACK}(r)")
case("sharing", "dead_transpose_goes_into_its_dead_reader", "x:2,3,4,5 -> y", f"d = {TO}(x) e = Neg(d) y = Relu(x)")

# Constants are re-laid when the model is compiled.
case("constants", "weight_of_a_matmul", "x:2,3 -> y", "t = Transpose <perm = [1,0]>(c) y = MatMul(x, t)", c=f32(4, 3))
case("constants", "weight_behind_a_reshape", "x:2,12 -> y", "r = Reshape(c, s) t = Transpose <perm = [1,0]>(r) y = MatMul(x, t)", c=f32(5, 3, 4), s=i64(5, 12))
case("constants", "weight_of_a_conv", "x:2,3,6,6 -> y", "t = Transpose <perm = [3,2,0,1]>(c) y = Conv(x, t)", c=f32(3, 3, 3, 4))
case("constants", "constant_node", "x:2,3 -> y", "c = Constant <value = float[2,3] {1,2,3,4,5,6}>() t = Transpose <perm = [1,0]>(c) y = MatMul(x, t)")
case("constants", "read_both_ways", "x:3,3; z:3,3 -> y; w", "t = Transpose <perm = [1,0]>(c) y = MatMul(x, t) w = MatMul(z, c)", c=f32(3, 3))
case("constants", "two_transposes_of_one", "x:3,3; z:3,3 -> y; w",
     "s = Transpose <perm = [1,0]>(c) t = Transpose <perm = [1,0]>(c) y = MatMul(x, s) w = Add(z, t)", c=f32(3, 3))
case("constants", "chain_of_views", "x:2,3 -> y", "a = Transpose <perm = [1,0]>(c) b = Unsqueeze(a, i) d = Transpose <perm = [0,2,1]>(b) e = Squeeze(d, i) f = Transpose <perm = [1,0]>(e) y = MatMul(x, f)", c=f32(4, 3), i=i64(0))
case("constants", "half_precision", "x:f16:2,3 -> y:f16", "t = Transpose <perm = [1,0]>(c) y = Mul(x, t)", c=f32(3, 2).astype(np.float16))
case("constants", "through_dequantization", "x:2,3,6,6 -> y",
     "d = DequantizeLinear <axis = 3>(c, s, z) t = Transpose <perm = [3,2,0,1]>(d) y = Conv(x, t)",
     c=(np.arange(3 * 3 * 3 * 4) % 23 - 11).astype(np.int8).reshape(3, 3, 3, 4), s=np.abs(f32(4)) + np.float32(0.5), z=np.zeros(4, np.int8))
case("constants", "initializers_are_inputs_too", "x:2,3,4,5 -> y", f"t = {TO}(x) a = Add(t, c) y = {BACK}(a)", opset=8, ir=3, inputs_too=True, c=f32(3))
# An opset whose Gemm needs a summand, so that the product can not read the default by columns.
case("constants", "not_a_default_that_callers_may_set", "x:2,3 -> y", "t = Transpose <perm = [1,0]>(c) y = MatMul(x, t)", opset=10, inputs_too=True, c=f32(4, 3))
case("constants", "as_an_output", "x:2,3 -> y; t", "t = Transpose <perm = [1,0]>(c) y = MatMul(x, t)", c=f32(4, 3))

# Quantization: per tensor a layout passes, per axis the axis is renumbered, by blocks it does not.
Q1 = {"s": np.float32(0.0625), "z": np.uint8(120)}
Q3 = {"s": np.array([0.0625, 0.125, 0.25], np.float32), "z": np.array([120, 121, 122], np.uint8)}
case("quantized", "pair_per_tensor", "x:2,3,4,5 -> y", f"t = {TO}(x) q = QuantizeLinear(t, s, z) d = DequantizeLinear(q, s, z) y = {BACK}(d)", opset=10, **Q1)
case("quantized", "transpose_inside_the_pair", "x:2,3,4,5 -> y", f"q = QuantizeLinear(x, s, z) t = {TO}(q) d = DequantizeLinear(t, s, z) r = Relu(d) y = {BACK}(r)", **Q1)
case("quantized", "pair_per_axis", "x:2,3,4,5 -> y", f"t = {TO}(x) q = QuantizeLinear <axis = 3>(t, s, z) d = DequantizeLinear <axis = -1>(q, s, z) y = {BACK}(d)", **Q3)
case("quantized", "pair_per_axis_opset_21", "x:2,3,4,5 -> y", f"t = {TO}(x) q = QuantizeLinear <axis = 3>(t, s, z) d = DequantizeLinear <axis = 3>(q, s, z) y = {BACK}(d)", opset=21, **Q3)
case("quantized", "moves_where_elements_are_small", "x:2,3,4,5 -> y:u8", f"t = {TO}(x) y = QuantizeLinear(t, s, z)", **Q1)
case("quantized", "dynamic", "x:2,3,4,5 -> y:u8; s; z:u8", f"t = {TO}(x) q, s, z = DynamicQuantizeLinear(t) y = {BACK}(q)", opset=11)
case("quantized", "by_blocks", "x:2,4,4,4 -> y", f"t = {TO}(x) q = QuantizeLinear <axis = 3, block_size = 2>(t, s) d = DequantizeLinear <axis = 3, block_size = 2>(q, s) y = {BACK}(d)", opset=21, s=np.abs(f32(2, 4, 4, 2)) + np.float32(0.25))
case("quantized", "not_around_a_pool_of_bytes", "x:2,4,4,4 -> y", f"t = {TO}(x) q = QuantizeLinear(t, s) m = MaxPool <kernel_shape = [2,2]>(q) d = DequantizeLinear(m, s) y = {BACK}(d)", s=np.float32(0.05))

# Nothing is left between two units where the Transposes were; another scale is other integers.
UNITS = f"q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) t = {TO}(d) r = QuantizeLinear(t, u, z) e = DequantizeLinear(r, u, z) b = {BACK}(e) y = Relu(b)"
for name, scale in {"moves_between_units": 0.0625, "units_of_two_scales": 0.125}.items():
    case("quantized", name, "x:2,3,4,5 -> y", UNITS, s=np.float32(0.0625), u=np.float32(scale), z=np.int8(-8))

# What is quantized first has two readers, so one target says these bytes unsigned; no other does.
case("quantized", "not_signed_bytes_around_a_sum", "x:2,3,4,5 -> y",
     "q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) m = Mul(d, d) r = QuantizeLinear(m, s, z) e = DequantizeLinear(r, s, z) "
     "a = Add(d, e) t = QuantizeLinear(a, s, z) y = DequantizeLinear(t, s, z)", s=np.float32(0.0625), z=np.int8(-8))

# Symbolic dims.
case("symbolic", "batch", "x:N,3,4,5 -> y", f"t = {TO}(x) a = Add(t, c) y = {BACK}(a)", c=f32(3))
case("symbolic", "every_axis", "x:N,C,H,W -> y", f"t = {TO}(x) a = Relu(t) y = {BACK}(a)")
case("symbolic", "shape_of_a_transposed_value", "x:N,3,H,W -> y:N,K",
     f"t = {TO}(x) r = Relu(t) h = Shape(r) n = Gather <axis = 0>(h, zero) k = Concat <axis = 0>(n, rest) u = {BACK}(r) y = Reshape(u, k)",
     zero=i64(0), rest=i64(-1))
case("symbolic", "shape_of_some_axes", "x:N,3,H,W -> y; h:i64", f"t = {TO}(x) r = Relu(t) h = Shape <start = 1, end = 3>(r) y = {BACK}(r)", opset=15)
case("symbolic", "size", "x:N,3,H,W -> y; n:i64", f"t = {TO}(x) n = Size(t) r = Relu(t) y = {BACK}(r)")
case("symbolic", "merged_by_its_own_shape", "x:N,3,H,W -> y:N,3,K",
     f"t = {TO}(x) h = Shape(t) n = Gather <axis = 0>(h, zero) k = Concat <axis = 0>(n, rest, three) r = Reshape(t, k) y = Transpose <perm = [0,2,1]>(r)",
     zero=i64(0), rest=i64(-1), three=i64(3))
case("symbolic", "pads_at_run_time", "x:N,3,4,5; p:i64:8 -> y:N,B,C,D", f"t = {TO}(x) a = Pad(t, p) y = {BACK}(a)", opset=11, declare=False)
case("symbolic", "expanded_to_a_shape", "x:N,3,1,5; z:N,4,5,3 -> y:N,3,4,5", f"t = {TO}(x) h = Shape(z) e = Expand(t, h) y = {BACK}(e)")
case("symbolic", "symbols_stay_at_their_place", "x:A,B,C -> y:C,B,A,1",
     "t = Transpose <perm = [2,0,1]>(x) h = Shape(t) r = Reshape(t, h) s = Unsqueeze(r, one) y = Transpose <perm = [0,3,2,1]>(s)", one=i64(1))
# As exporters write the keys of an attention: heads are merged with the batch, turned, and taken apart.
case("symbolic", "keys_of_heads", "x:N,S,4,32 -> y:N,4,32,S",
     "t = Transpose <perm = [0,2,1,3]>(x) h = Shape(x) s = Gather <axis = 0>(h, one) n = Gather <axis = 0>(h, zero) k = Concat <axis = 0>(rest, s, d) "
     "r = Reshape(t, k) u = Transpose <perm = [0,2,1]>(r) l = Concat <axis = 0>(n, four, d, s) v = Reshape(u, l) y = Relu(v)",
     zero=i64(0), one=i64(1), rest=i64(-1), four=i64(4), d=i64(32))
case("symbolic", "not_split_symbol", "x:N,C,4 -> y:N,2,K,4",
     "t = Transpose <perm = [0,2,1]>(x) r = Reshape(t, s) y = Transpose <perm = [0,2,3,1]>(r)", s=i64(0, 4, 2, -1))
case("symbolic", "rank_at_run_time_behind", "x:2,3,4,5; p:i64:K -> y:A",
     f"t = {TO}(x) a = Relu(t) u = {BACK}(a) z = Mul(p, zero) s = Add(z, open) y = Reshape(u, s)", zero=at(0), open=at(-1))

# Bodies are graphs of their own; what they read from outside is row-major.
THEN = f"then_branch = inner () => (float[2,3,4,5] u) {{ a = {TO}(x) b = Relu(a) u = {BACK}(b) }}"
case("bodies", "pair_in_a_branch", "x:2,3,4,5; c:b: -> y", f"y = If <{THEN}, else_branch = other () => (float[2,3,4,5] v) {{ v = Neg(x) }}>(c)")
case("bodies", "pair_around_with_capture", "x:2,3,4,5; c:b: -> y; z",
     f"t = {TO}(x) r = Relu(t) z = {BACK}(r) y = If <then_branch = a () => (float[2,4,5,3] u) {{ u = Neg(r) }}, else_branch = b () => (float[2,4,5,3] v) {{ v = Abs(r) }}>(c)")
case("bodies", "pair_in_a_loop", "x:2,3,4,5; n:i64: -> y:2,3,4,5",
     f"y = Loop <body = step (int64 i, bool go, float[2,3,4,5] s) => (bool on, float[2,3,4,5] o) {{ a = {TO}(s) b = Add(a, k) o = {BACK}(b) on = Identity(go) }}>(n, yes, x)",
     k=f32(3), yes=np.array(True))
case("bodies", "pair_in_a_scan", "x:2,3,4,5 -> y:2,3,4,5",
     f"y = Scan <num_scan_inputs = 1, body = step (float[3,4,5] s) => (float[3,4,5] o) {{ a = Transpose <perm = [1,2,0]>(s) b = Relu(a) o = Transpose <perm = [2,0,1]>(b) }}>(x)")
case("bodies", "across_the_border", "x:2,3,4,5; c:b: -> y",
     f"t = {TO}(x) y = If <then_branch = a () => (float[2,3,4,5] u) {{ u = {BACK}(t) }}, else_branch = b () => (float[2,3,4,5] v) {{ v = {BACK}(t) }}>(c)")
case("bodies", "constant_transposed_in_a_branch", "x:2,3; c:b: -> y",
     "y = If <then_branch = a () => (float[2,4] u) { w = Constant <value = float[4,3] {1,2,3,4,5,6,7,8,9,10,11,12}>() t = Transpose <perm = [1,0]>(w) u = MatMul(x, t) }, else_branch = b () => (float[2,4] v) { v = MatMul(x, k) }>(c)", k=f32(3, 4))

case("bodies", "state_of_a_loop", "x:1,5,6,4; k:1,5,6,4; n:i64: -> y:1,4,5,6; z:T,1,5,6,4",
     "g = Relu(k) s, z = Loop <body = step (int64 i, bool a, float[1,5,6,4] u) => (bool b, float[1,5,6,4] v, float[1,5,6,4] r) { t = Transpose <perm = [0,3,1,2]>(u) c = Conv <pads = [1,1,1,1]>(t, w) o = Transpose <perm = [0,2,3,1]>(c) v = Add(o, g) b = Identity(a) r = Relu(v) }>(n, yes, x) t = Transpose <perm = [0,3,1,2]>(s) y = Conv <pads = [1,1,1,1]>(t, w)",
     w=f32(4, 4, 3, 3), yes=np.array(True))

case("bodies", "raised_once_outside_of_a_loop", "x:1,5,6,4; k:4; n:i64: -> y:1,4,5,6",
     "s = Loop <body = step (int64 i, bool a, float[1,5,6,4] u) => (bool b, float[1,5,6,4] v) { t = Transpose <perm = [0,3,1,2]>(u) c = Conv <pads = [1,1,1,1]>(t, w) o = Transpose <perm = [0,2,3,1]>(c) v = Add(o, k) b = Identity(a) }>(n, yes, x) t = Transpose <perm = [0,3,1,2]>(s) y = Relu(t)",
     w=f32(4, 4, 3, 3), yes=np.array(True))
# What is kept and what is not: a change must gain.
case("gain", "sinks_below_a_reduction", "x:8,3,40,50 -> y", f"t = {TO}(x) y = ReduceMax <axes = [0], keepdims = 1>(t)")
case("gain", "sinks_below_a_slice", "x:2,3,40,50 -> y", f"t = {TO}(x) y = Slice(t, s, e, a)", s=i64(0), e=i64(2), a=i64(1))
case("gain", "rises_above_a_pad", "x:2,3,4,5 -> y", f"p = Pad(x, d) y = {TO}(p)", d=i64(0, 0, 9, 9, 0, 0, 9, 9))
case("gain", "rises_above_an_expand", "x:2,3,1,5 -> y", f"e = Expand(x, s) y = {TO}(e)", s=i64(2, 3, 64, 5))
case("gain", "sinks_below_a_cast_to_bytes", "x:2,3,4,5 -> y:i8", f"t = {TO}(x) y = Cast <to = 3>(t)")
case("gain", "not_below_a_cast_to_doubles", "x:2,3,4,5 -> y", f"t = {TO}(x) c = Cast <to = 11>(t) d = Abs(c) y = Cast <to = 1>(d)")
BATCH_NORM = dict(s=f32(5) + 2, b=f32(5), m=f32(5) / 3, v=np.abs(f32(5)) + 1)
NORM = "n = BatchNormalization(t, s, b, m, v)"
case("gain", "scales_channels_that_lie_innermost", "x:2,7,30,5 -> y", f"t = {BACK}(x) {NORM} y = {TO}(n)", **BATCH_NORM)
case("gain", "scales_channels_of_steps", "x:N,S,5 -> y",
     "t = Transpose <perm = [0,2,1]>(x) n = BatchNormalization(t, s, b, m, v) y = Transpose <perm = [0,2,1]>(n)", **BATCH_NORM)
case("gain", "not_scales_for_one_move", "x:2,5,7,30 -> y", f"a = Abs(x) t = Relu(a) {NORM} y = {TO}(n)", **BATCH_NORM)
SHUFFLE = "a = Reshape(x, split) t = Transpose <perm = [0,2,1,3,4]>(a) c = Reshape(t, join)"
case("gain", "shuffles_channels_for_a_convolution", "x:N,6,7,9 -> y", f"{SHUFFLE} y = Conv(c, w, b)",
     split=i64(0, 2, 3, 7, 9), join=i64(0, 6, 7, 9), w=f32(4, 6, 3, 3), b=f32(4))
case("gain", "shuffles_channels_of_three_parts", "x:2,12,7,9 -> y",
     "a = Reshape(x, split) t = Transpose <perm = [0,3,1,2,4,5]>(a) c = Reshape(t, join) y = Conv(c, w)",
     split=i64(2, 2, 3, 2, 7, 9), join=i64(2, 12, 7, 9), w=f32(4, 12, 3, 3))
case("gain", "not_shuffles_for_groups", "x:2,6,7,9 -> y", f"{SHUFFLE} y = Conv <group = 2>(c, w)",
     split=i64(0, 2, 3, 7, 9), join=i64(0, 6, 7, 9), w=f32(4, 3, 3, 3))
case("gain", "not_shuffles_that_others_read", "x:2,6,7,9 -> y; z", f"{SHUFFLE} y = Conv(c, w) z = Sigmoid(c)",
     split=i64(0, 2, 3, 7, 9), join=i64(0, 6, 7, 9), w=f32(4, 6, 3, 3))
case("gain", "not_for_a_tie", "x:2,3,4,5 -> y", f"a = Relu(x) t = {TO}(a) b = Neg(t) y = Abs(b)")
case("gain", "not_below_a_concat_of_others", "x:2,3,4,5; z:2,4,5,60 -> y", f"t = {TO}(x) y = Concat <axis = 3>(t, z)")
case("gain", "concat_of_two_transposes", "x:2,3,4,5; z:2,6,4,5 -> y", f"s = {TO}(x) t = {TO}(z) y = Concat <axis = 3>(s, t)")
case("gain", "softmax_along_an_outer_axis", "x:2,30,40,50 -> y", f"t = {TO}(x) s = Softmax <axis = 3>(t) r = Relu(s) y = {BACK}(r)")
case("gain", "not_softmax_pulls_a_move_above_a_reduction", "x:2,2,2,4 -> y",
     f"s = Softmax <axis = 1>(x) r = Relu(s) m = ReduceMean <axes = [0]>(r) t = {TO}(m) y = Softmax <axis = 3>(t)")
case("gain", "not_softmax_between_plain_values", "x:2,30,40,50 -> y", "s = Softmax <axis = 1>(x) y = Relu(s)")

# Calls of a model's own functions: written out where that gains, left as they are elsewhere.
ROUND = f"round (x) => (y) {{ t = {TO}(x) r = Relu(t) y = {BACK}(r) }}"
RELU = "activate (x) => (y) { r = Relu(x) y = Neg(r) }"
SCALED = "scaled <alpha>(x) => (y) { e = Elu <alpha : float = @alpha>(x) y = Abs(e) }"
case("functions", "pair_around_a_call", "x:2,3,4,5 -> y:2,3,4,5", f"t = {TO}(x) a = local.activate(t) y = {BACK}(a)", functions=[RELU])
case("functions", "pair_within_a_call", "x:2,3,4,5 -> y:2,3,4,5", "a = local.round(x) y = Neg(a)", functions=[ROUND])
case("functions", "half_of_a_pair_within", "x:2,3,4,5 -> y:2,3,4,5", f"a = local.turn(x) y = {BACK}(a)",
     functions=[f"turn (x) => (y) {{ r = Relu(x) y = {TO}(r) }}"])
case("functions", "only_the_call_that_gains_is_written_out", "x:2,3,4,5 -> y:2,3,4,5",
     f"t = {TO}(x) a = local.activate(t) b = {BACK}(a) c = local.round(b) y = local.activate(c)", functions=[RELU, ROUND])
case("functions", "attributes_of_the_call", "x:2,3,4,5 -> y:2,3,4,5",
     f"t = {TO}(x) a = local.scaled <alpha = 0.5>(t) y = {BACK}(a)", functions=[SCALED])
case("functions", "a_call_within_a_call", "x:2,3,4,5 -> y:2,3,4,5", f"t = {TO}(x) a = local.both(t) y = {BACK}(a)",
     functions=["both (x) => (y) { a = local.activate(x) y = local.activate(a) }", RELU])
case("functions", "a_call_in_a_body", "x:2,3,4,5; c:b: -> y:2,3,4,5",
     f"t = {TO}(x) u = If <then_branch = a () => (float[2,4,5,3] v) {{ v = local.activate(t) }}, else_branch = b () => (float[2,4,5,3] w) {{ w = Abs(t) }}>(c) y = {BACK}(u)",
     functions=[RELU])
case("functions", "a_call_that_speaks_of_axes", "x:2,3,4,5 -> y:2,3,4,5", f"t = {TO}(x) a = local.normal(t) y = {BACK}(a)",
     functions=["normal (x) => (y) { y = Softmax <axis = -1>(x) }"])
case("functions", "not_a_call_beside", "x:2,3,4,5 -> y:2,4,5,3; z:2,3,4,5", f"y = {TO}(x) z = local.activate(x)", functions=[RELU])
case("functions", "not_of_another_operator_set", "x:2,3,4,5 -> y:2,3,4,5", f"t = {TO}(x) a = local.activate(t) y = {BACK}(a)",
     opset=14, functions=['<domain: "local", opset_import: ["" : 17]> ' + RELU])

# Whole pieces of networks, where several rules meet.
case("pieces", "channels_last_convolution", "x:2,3,8,8 -> y",
     f"t = {TO}(x) u = {BACK}(t) c = Conv <pads = [1,1,1,1]>(u, w) v = {TO}(c) a = Add(v, b) r = Clip(a, lo, hi) y = {BACK}(r)",
     w=f32(4, 3, 3, 3), b=f32(4), lo=np.float32(0), hi=np.float32(6))
BLOCK = f"t = {TO}(x) m = ReduceMean <axes = [-1]>(t) c = Sub(t, m) h = MatMul(c, w) g = Relu(h) o = MatMul(g, v) s = Mul(o, k) u = {BACK}(s) y = Add(u, x)"
case("pieces", "convnext_block", "x:2,8,4,4 -> y", BLOCK, w=f32(8, 16), v=f32(16, 8), k=f32(8))
case("pieces", "not_convnext_block_of_computed_weights", "x:2,8,4,4; w:8,16 -> y", BLOCK, v=f32(16, 8), k=f32(8))
case("pieces", "squeeze_and_excitation_channels_last", "x:2,4,6,6 -> y",
     f"t = {TO}(x) m = ReduceMean <axes = [1,2], keepdims = 1>(t) n = {BACK}(m) c = Conv(n, w) d = {TO}(c) e = HardSigmoid(d) s = Mul(t, e) y = {BACK}(s)",
     w=f32(4, 4, 1, 1))
case("pieces", "not_attention_heads", "x:2,6,8 -> y",
     "q = Reshape(x, s) k = Reshape(x, s) a = Transpose <perm = [0,2,1,3]>(q) b = Transpose <perm = [0,2,3,1]>(k) m = MatMul(a, b) p = Softmax <axis = -1>(m) o = MatMul(p, a) t = Transpose <perm = [0,2,1,3]>(o) y = Reshape(t, u)",
     s=i64(0, 0, 2, 4), u=i64(0, 0, 8))
case("pieces", "not_detection_head", "x:2,6,4,5; z:2,6,2,3 -> y",
     f"s = {TO}(x) a = Reshape(s, m) t = {TO}(z) b = Reshape(t, m) y = Concat <axis = 1>(a, b)", m=i64(2, -1, 3))

if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "testdata" / "cases")
