"""Breaks results and proofs in many ways and holds the checker to account.

    python tools/mutations.py --bin target/debug/relayout --target nhwc MODEL...
    python tools/mutations.py --bin target/debug/relayout --made FOLDER MODEL...

With `--made` the results are files of another optimizer, of the names of the models, as tools/suites/proves.py makes them; there is no proof then.

Each model is optimized, with `--numerics exact` unless it is told otherwise, and its proof is written. Every mutation changes the result, or the proof, in one
place. ONNX Runtime runs the model and the mutated result on three seeds, at several sizes of what the inputs leave open. If any output differs,
or the mutated result no longer loads, the mutation changes the meaning, and `relayout prove` has to refuse it. What it says of some sizes is
held at these. A false claim of a proof has to be refused too. The
unmutated result has to be proved. Mutations that change nothing are counted, and may be refused or proved.

Exit status 1 if the checker accepts a change of meaning, or refuses an unmutated result.
"""

import argparse
import copy
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

SEEDS = 3
# What the inputs leave open has this size, and others where the model runs with them.
SIZE = 32
SIZES = [
    lambda at, name: SIZE,
    lambda at, name: 1,
    lambda at, name: (2, 3, 5, 7, 11)[at % 5],
    lambda at, name: 64 if at else 3,
    lambda at, name: 48 if at % 2 else 2,
]
# Ops that compute extents of extents.
OF_SHAPES = {"Gather", "Slice", "Concat", "Add", "Sub", "Mul", "Div", "Cast", "Unsqueeze", "Squeeze", "Reshape", "ReduceProd", "Range", "Floor",
             "Ceil", "Min", "Max"}
# A difference that rounding alone can't make: results of the same arithmetic are far closer.
TOLERANCE = 1e-6


class Place:
    """A model that is to be broken, and where it can be."""

    def __init__(self, model, rng):
        self.model, self.rng = model, rng
        self.graph = model.graph
        self.nodes = list(self.graph.node)
        self.graphs = [self.graph]
        self.everywhere = []
        for body in [self.nodes, *(f.node for f in model.functions)]:
            self.enter(body)
        self.read = {name for n in self.everywhere for name in n.input}

    def enter(self, nodes):
        """Counts nodes in, and those of their bodies."""
        for node in nodes:
            self.everywhere.append(node)
            for a in node.attribute:
                for body in [*([a.g] if a.type == onnx.AttributeProto.GRAPH else []), *a.graphs]:
                    self.graphs.append(body)
                    self.enter(body.node)

    def initializers(self):
        return [t for graph in self.graphs for t in graph.initializer]

    def pick(self, found):
        found = list(found)
        return self.rng.choice(found) if found else None

    def of(self, *ops, everywhere=True):
        return [n for n in (self.everywhere if everywhere else self.nodes) if n.op_type in ops]

    def attribute(self, name, kind=None):
        found = []
        for node in self.everywhere:
            for a in node.attribute:
                if a.name == name and not a.ref_attr_name and (kind is None or a.type == kind):
                    found.append(a)
        return self.pick(found)

    def weights(self, rank=None, floats=True, least=2):
        found = []
        for t in self.initializers():
            array_like = t.data_type == onnx.TensorProto.FLOAT if floats else t.data_type in (2, 3)
            size = int(np.prod(t.dims)) if t.dims else 1
            if t.name in self.read and array_like and size >= least and (rank is None or len(t.dims) == rank):
                found.append(t)
        return found

    def lists(self):
        found = [t for t in self.initializers() if t.data_type == onnx.TensorProto.INT64 and len(t.dims) == 1]
        return [t for t in found if t.name in self.read and t.dims[0] > 0]

    def integers(self):
        """Scalars, such as an index of a Gather."""
        kinds = (onnx.TensorProto.INT64, onnx.TensorProto.INT32)
        return [t for t in self.initializers() if t.data_type in kinds and not t.dims and t.name in self.read]


def rewrite(tensor, change):
    """Puts another array in the place of a tensor's; False if that is the same one."""
    array = numpy_helper.to_array(tensor)
    other = np.ascontiguousarray(change(array.copy())).astype(array.dtype).reshape(array.shape)
    if other.tobytes() == array.tobytes():
        return False
    tensor.CopyFrom(numpy_helper.from_array(other, tensor.name))
    return True


def on_weight(change, rank=None, floats=True):
    def mutate(place):
        found = place.weights(rank, floats)
        place.rng.shuffle(found)
        return any(rewrite(t, lambda a: change(a, place.rng)) for t in found)

    return mutate


def one_value(array, rng):
    array.reshape(-1)[rng.randrange(array.size)] *= 1.5
    return array


def one_byte(array, rng):
    flat = array.reshape(-1).view(np.uint8)
    # The highest byte of a little-endian number, so that the change is no rounding.
    at = rng.randrange(array.size) * array.itemsize + array.itemsize - 1
    flat[at] ^= 1 << rng.randrange(6)
    return array


def a_zero(array, rng):
    """One of the zeros of an array becomes another number."""
    flat = array.reshape(-1)
    zeros = np.flatnonzero(flat == 0)
    if zeros.size:
        flat[rng.choice(list(zeros))] = 0.75
    return array


def swapped_rows(array, rng):
    a, b = rng.sample(range(array.shape[0]), 2) if array.shape[0] > 1 else (0, 0)
    array[[a, b]] = array[[b, a]]
    return array


def other_order(array, rng):
    axes = rng.sample(range(array.ndim), array.ndim)
    return array.transpose(axes)


def swapped_inner(array, rng):
    return array.swapaxes(-1, -2)


def rolled(array, rng):
    return np.roll(array, 1, axis=rng.randrange(array.ndim))


def other_block(array, rng):
    flat = array.reshape(-1)
    half = flat.size // 2
    return np.concatenate([flat[half:], flat[:half]])


def on_ints(name, change):
    def mutate(place):
        a = place.attribute(name, onnx.AttributeProto.INTS)
        if a is None:
            return False
        before = list(a.ints)
        after = change(list(before), place.rng)
        del a.ints[:]
        a.ints.extend(after)
        return before != after

    return mutate


def on_int(name, change):
    def mutate(place):
        a = place.attribute(name, onnx.AttributeProto.INT)
        if a is None:
            return False
        a.i = change(a.i)
        return True

    return mutate


def on_float(name, change):
    def mutate(place):
        a = place.attribute(name, onnx.AttributeProto.FLOAT)
        if a is None:
            return False
        a.f = change(a.f)
        return True

    return mutate


def on_floats(name):
    def mutate(place):
        a = place.attribute(name, onnx.AttributeProto.FLOATS)
        if a is None or not a.floats:
            return False
        a.floats[0] += 0.25
        return True

    return mutate


def no_summand(place):
    node = place.pick(n for n in place.of("Conv") if len(n.input) > 3)
    if node is None:
        return False
    del node.input[3:]
    return True


def swap_two(values, rng):
    at = [i for i in range(len(values) - 1) if values[i] != values[i + 1]]
    if at:
        i = rng.choice(at)
        values[i], values[i + 1] = values[i + 1], values[i]
    return values


def add_one(values, rng):
    i = rng.randrange(len(values))
    values[i] += 1
    return values


def rotate(values, rng):
    return values[1:] + values[:1]


def one_extent(values, rng):
    """What is taken over or found out is a number that holds at one size, or the other way round."""
    at = rng.randrange(len(values))
    values[at] = rng.choice([SIZE, 1]) if values[at] in (-1, 0) else rng.choice([-1, 0])
    return values


def swap_operands(*ops):
    def mutate(place):
        node = place.pick(n for n in place.of(*ops) if len(n.input) >= 2 and n.input[0] != n.input[1])
        if node is None:
            return False
        node.input[0], node.input[1] = node.input[1], node.input[0]
        return True

    return mutate


def rename(**other):
    def mutate(place):
        node = place.pick(place.of(*other))
        if node is None:
            return False
        node.op_type = other[node.op_type]
        return True

    return mutate


def bypass(*ops):
    def mutate(place):
        node = place.pick(place.of(*ops))
        if node is None:
            return False
        node.op_type = "Identity"
        node.domain = ""
        del node.input[1:], node.attribute[:]
        return True

    return mutate


def negate(place):
    node = place.pick(n for n in place.nodes if n.op_type in ("Relu", "Conv", "Add", "Gemm", "MatMul") and n.output)
    if node is None:
        return False
    name = node.output[0]
    node.output[0] = name + ".mutated"
    at = place.nodes.index(node)
    place.graph.node.insert(at + 1, helper.make_node("Neg", [name + ".mutated"], [name]))
    return True


def on_list(change):
    def mutate(place):
        found = place.lists()
        place.rng.shuffle(found)
        return any(rewrite(t, lambda a: np.array(change(list(a), place.rng))) for t in found)

    return mutate


def integer(place):
    """An index or a count is another one."""
    found = place.integers()
    place.rng.shuffle(found)
    return any(rewrite(t, lambda a: a + place.rng.choice([-1, 1])) for t in found)


def other_shape(place):
    """A node reads a list of integers of another one."""
    lists = {t.name for t in place.lists()}
    found = [(node, at) for node in place.everywhere for at, name in enumerate(node.input) if name in lists]
    if len(found) < 2:
        return False
    node, at = place.rng.choice(found)
    others = sorted({other.input[i] for other, i in found} - {node.input[at]})
    if not others:
        return False
    node.input[at] = place.rng.choice(others)
    return True


def other_extent(place):
    """A node reads what another one computes of the shape of something."""
    made = set()
    for node in place.nodes:
        if node.op_type in ("Shape", "Size") or (node.op_type in OF_SHAPES and made.intersection(node.input)):
            made.update(node.output)
    readers = [(node, at) for node in place.nodes for at, name in enumerate(node.input) if name in made]
    if not readers:
        return False
    node, at = place.rng.choice(readers)
    before = place.nodes[: place.nodes.index(node)]
    others = sorted({name for other in before for name in other.output if name in made} - {node.input[at]})
    if not others:
        return False
    node.input[at] = place.rng.choice(others)
    return True


def other_value(place):
    """A node reads another value that was made before it, of any kind."""
    node = place.pick(n for n in place.nodes if n.input)
    if node is None:
        return False
    before = [name for n in place.nodes[: place.nodes.index(node)] for name in n.output if name]
    others = sorted(set(before) - set(node.input))
    if not others:
        return False
    node.input[place.rng.randrange(len(node.input))] = place.rng.choice(others)
    return True


def other_operand(place):
    """A node reads another value that some node before it reads too."""
    nodes = [n for n in place.nodes if n.input]
    node = place.pick(nodes[1:])
    if node is None:
        return False
    before = [n for n in nodes[: nodes.index(node)] if n.op_type == node.op_type and n.input[0] != node.input[0]]
    other = place.pick(before)
    if other is None:
        return False
    node.input[0] = other.input[0]
    return True


def swap_results(place):
    node = place.pick(n for n in place.nodes if n.op_type == "Split" and len(n.output) >= 2)
    if node is None:
        return False
    node.output[0], node.output[1] = node.output[1], node.output[0]
    return True


def scalar(floats):
    def mutate(place):
        found = place.weights(0, floats, least=1) + [t for t in place.weights(1, floats, least=1) if t.dims[0] == 1]
        place.rng.shuffle(found)
        return any(rewrite(t, lambda a: a + a.dtype.type(1)) for t in found)

    return mutate


def text(name, *values):
    def mutate(place):
        a = place.attribute(name, onnx.AttributeProto.STRING)
        if a is None:
            return False
        a.s = place.rng.choice([v for v in values if v != a.s])
        return True

    return mutate


def on_node(change, *ops):
    """Changes a node of the standard's domain."""

    def mutate(place):
        node = place.pick(n for n in place.nodes if n.domain in ("", "ai.onnx") and n.input and (not ops or n.op_type in ops))
        if node is None:
            return False
        change(node)
        return True

    return mutate


def other_kind(place):
    found = [a for n in place.nodes if n.domain in ("", "ai.onnx") for a in n.attribute if a.type == onnx.AttributeProto.INT]
    a = place.pick(found)
    if a is None:
        return False
    value = a.i
    a.ClearField("i")
    a.f, a.type = float(value), onnx.AttributeProto.FLOAT
    return True


def dead(op, domain="", operand=None, **attributes):
    """A node that nothing reads."""

    def mutate(place):
        names = [i.name for i in place.graph.input]
        if not names:
            return False
        place.graph.node.append(helper.make_node(op, [operand or names[0]], ["dead.mutated"], domain=domain, **attributes))
        if domain and all(o.domain != domain for o in place.model.opset_import):
            place.model.opset_import.append(helper.make_opsetid(domain, 1))
        return True

    return mutate


def one_name(place):
    if len(place.nodes) < 2:
        return False
    for node in place.rng.sample(place.nodes, 2):
        node.name = "one.name"
    return True


def no_operator_set(place):
    del place.model.opset_import[:]
    return True


def other_declaration(place):
    output = place.pick(o for o in place.graph.output if o.type.tensor_type.elem_type)
    if output is None:
        return False
    kind = output.type.tensor_type
    kind.elem_type = onnx.TensorProto.DOUBLE if kind.elem_type != onnx.TensorProto.DOUBLE else onnx.TensorProto.FLOAT
    return True


def made_twice(place):
    made = [name for n in place.nodes for name in n.output if name]
    if not made or not place.graph.input:
        return False
    place.graph.node.append(helper.make_node("Identity", [place.graph.input[0].name], [place.rng.choice(made)]))
    return True


def on_any(kind, change):
    """Changes an attribute of this kind, whatever its name is."""

    def mutate(place):
        found = [a for n in place.everywhere for a in n.attribute if a.type == kind and not a.ref_attr_name]
        place.rng.shuffle(found)
        return any(change(a, place.rng) for a in found)

    return mutate


def other_truth(a, rng):
    if a.i not in (0, 1):
        return False
    a.i = 1 - a.i
    return True


def other_number(a, rng):
    a.i = rng.choice([a.i + 1, a.i - 1, -a.i - 1])
    return True


def other_numbers(a, rng):
    if not a.ints:
        return False
    at = rng.randrange(len(a.ints))
    a.ints[at] += rng.choice([1, -1])
    return True


def other_float(a, rng):
    a.f = rng.choice([a.f * 1.5 + 0.25, -a.f - 0.25, 0.0 if a.f else 1.0])
    return True


# Words that stand for another way, by attribute.
WORDS = {
    "approximate": ["none", "tanh"],
    "auto_pad": ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"],
    "coordinate_transformation_mode": ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"],
    "direction": ["forward", "reverse", "LEFT", "RIGHT"],
    "mode": ["nearest", "linear", "cubic", "constant", "reflect", "edge", "DCR", "CRD", "circular"],
    "nearest_mode": ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"],
    "reduction": ["none", "add", "mul", "max", "min"],
}


def other_word(a, rng):
    words = [word for word in WORDS.get(a.name, []) if word.encode() != a.s]
    if not words:
        return False
    a.s = rng.choice(words).encode()
    return True


def other_operator_set(place):
    found = place.pick(o for o in place.model.opset_import if o.domain in ("", "ai.onnx"))
    if found is None:
        return False
    found.version = place.rng.choice([v for v in (10, 11, 13, 17, 18, 20, 21, 23) if v != found.version])
    return True


def other_type_of_a_cast(place):
    a = place.attribute("to", onnx.AttributeProto.INT)
    if a is None:
        return False
    a.i = place.rng.choice([kind for kind in (1, 6, 7, 10, 11) if kind != a.i])
    return True


def two_operands_of_any(place):
    node = place.pick(n for n in place.everywhere if len({name for name in n.input if name}) >= 2)
    if node is None:
        return False
    a, b = place.rng.sample(range(len(node.input)), 2)
    before = list(node.input)
    node.input[a], node.input[b] = node.input[b], node.input[a]
    return before != list(node.input)


def no_optional_operand(place):
    node = place.pick(n for n in place.everywhere if len(n.input) > 2 and n.op_type not in ("Concat", "QLinearConcat"))
    if node is None:
        return False
    at = place.rng.randrange(2, len(node.input))
    node.input[at] = ""
    return True


def no_number(array, rng):
    array.reshape(-1)[rng.randrange(array.size)] = rng.choice([np.nan, np.inf])
    return array


def no_list(place):
    tensor = place.pick(t for t in place.lists() if list(t.dims) == [1])
    if tensor is None:
        return False
    del tensor.dims[:]
    return True


def on_scalars(kinds, change):
    """Changes a constant of one element, such as a scale or a zero point."""

    def mutate(place):
        found = [t for t in place.initializers() if t.name in place.read and t.data_type in kinds and list(t.dims) in ([], [1])]
        tensor = place.pick(found)
        return tensor is not None and change(tensor)

    return mutate


def other_sign(tensor):
    return rewrite(tensor, lambda array: -array)


def signed_for_unsigned(tensor):
    tensor.data_type = {onnx.TensorProto.UINT8: onnx.TensorProto.INT8}.get(tensor.data_type, onnx.TensorProto.UINT8)
    return True


RESULTS = {
    "two axes of a Transpose": on_ints("perm", swap_two),
    "a Transpose turned on": on_ints("perm", rotate),
    "a Transpose left out": bypass("Transpose"),
    "a move left out": bypass("Relayout", "Relayout_2", "Relayout_3"),
    "the next axis": on_int("axis", lambda axis: axis + 1),
    "the axis before": on_int("axis", lambda axis: axis - 1),
    "other axes": on_ints("axes", add_one),
    "one value of a weight": on_weight(one_value),
    "one byte of a weight": on_weight(one_byte),
    "one byte of a re-laid weight": on_weight(one_byte, rank=4),
    "two rows of a weight": on_weight(swapped_rows),
    "the order of a weight": on_weight(other_order, rank=4),
    "inner axes of a weight": on_weight(swapped_inner, rank=4),
    "the order of a matrix": on_weight(other_order, rank=2),
    "a weight rolled": on_weight(rolled),
    "a wrong block of a weight": on_weight(other_block),
    "one value of a list of numbers": on_weight(one_value, rank=1),
    "a list of numbers rolled": on_weight(rolled, rank=1),
    "one byte of a quantized weight": on_weight(one_byte, floats=False),
    "a scalar": scalar(True),
    "a zero point": scalar(False),
    "pads moved": on_ints("pads", rotate),
    "more pads": on_ints("pads", add_one),
    "a stride": on_ints("strides", add_one),
    "a dilation": on_ints("dilations", add_one),
    "a window": on_ints("kernel_shape", add_one),
    "a group": on_int("group", lambda group: group * 2),
    "operands of a difference swapped": swap_operands("Sub", "Div", "Pow"),
    "operands of a product swapped": swap_operands("MatMul", "Gemm"),
    "operands of a Concat swapped": swap_operands("Concat", "QLinearConcat"),
    "operands of a sum swapped": swap_operands("Add", "Mul"),
    "another operand": other_operand,
    "another activation": rename(Relu="LeakyRelu", Sigmoid="HardSigmoid", Tanh="Sigmoid", Erf="Tanh", HardSwish="Relu"),
    "another pool": rename(MaxPool="AveragePool", AveragePool="MaxPool", GlobalAveragePool="GlobalMaxPool", ReduceMean="ReduceMax"),
    "an activation left out": bypass("Relu", "Sigmoid", "Clip", "HardSwish", "Erf", "Softmax"),
    "a minus": negate,
    "an epsilon": on_float("epsilon", lambda e: e + 0.5),
    "a shape in another order": on_list(swap_two),
    "one number of a list of integers": on_list(add_one),
    "an extent that holds at one size": on_list(one_extent),
    "an integer": integer,
    "another list of integers": other_shape,
    "another extent": other_extent,
    "another value": other_value,
    "results of a Split swapped": swap_results,
    "padding counted": on_int("count_include_pad", lambda n: 1 - n),
    "windows rounded up": on_int("ceil_mode", lambda n: 1 - n),
    "another activation of a convolution": text("activation", b"Relu", b"Tanh", b"Sigmoid"),
    "a parameter of an activation": on_floats("activation_params"),
    "channels that come out of blocks": on_int("channels", lambda channels: channels - 1),
    "what a slot of a weight holds": on_weight(a_zero, rank=4),
    "what a slot of a bias holds": on_weight(a_zero, rank=1),
    "a summand of a convolution left out": no_summand,
    "a turned operand": on_int("transB", lambda n: 1 - n),
    "the heads of an attention": on_int("num_heads", lambda n: n * 2),
    "the scale of an attention": on_float("scale", lambda s: s * 1.5),
    "an unknown attribute": on_node(lambda node: node.attribute.append(helper.make_attribute("no_such_attribute", 1))),
    "an attribute of another kind": other_kind,
    "an operand too many": on_node(lambda node: node.input.extend([node.input[0]] * 9), "Relu", "Transpose", "Conv", "Add", "MatMul", "Sigmoid"),
    "a result too many": on_node(lambda node: node.output.append("one.too.many"), "Relu", "Transpose", "Conv", "Add", "MatMul", "Sigmoid"),
    "no operand": on_node(lambda node: node.ClearField("input"), "Relu", "Transpose", "Conv", "Add", "MatMul", "Sigmoid"),
    "a dead node of an unknown op": dead("NoSuchOp"),
    "a dead node of an unknown domain": dead("NoSuchOp", domain="no.such.domain"),
    "a dead node of the runtime's domain": dead("NoSuchOp", domain="com.microsoft"),
    "a dead node with an operand that nothing makes": dead("Neg", operand="no.such.value"),
    "a dead node that casts to no type": dead("Cast", to=257),
    "two nodes of one name": one_name,
    "no operator set": no_operator_set,
    "an output of another type": other_declaration,
    "a value made twice": made_twice,
    "a truth value": on_any(onnx.AttributeProto.INT, other_truth),
    "a number of an attribute": on_any(onnx.AttributeProto.INT, other_number),
    "numbers of an attribute": on_any(onnx.AttributeProto.INTS, other_numbers),
    "a float of an attribute": on_any(onnx.AttributeProto.FLOAT, other_float),
    "a word of an attribute": on_any(onnx.AttributeProto.STRING, other_word),
    "another operator set": other_operator_set,
    "another type of a Cast": other_type_of_a_cast,
    "two operands of any node swapped": two_operands_of_any,
    "an optional operand left out": no_optional_operand,
    "a weight that is no number": on_weight(no_number),
    "a number in the place of a list": no_list,
    "the sign of a scale": on_scalars((onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16), other_sign),
    "the type of a zero point": on_scalars((onnx.TensorProto.UINT8, onnx.TensorProto.INT8), signed_for_unsigned),
    "how an image is resized": text("mode", b"nearest", b"linear", b"cubic", b"reflect", b"edge", b"constant"),
}


def extents(model):
    """The extents of each value, as far as onnx infers them; a dim without a number is 0."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    dims = lambda value: [d.dim_value for d in value.type.tensor_type.shape.dim]
    return {value.name: dims(value) for value in [*graph.input, *graph.value_info, *graph.output]}


def claim(change):
    def mutate(proof, rng, shapes):
        values = proof["values"]
        rng.shuffle(order := list(range(len(values))))
        return any(change(values, at, rng, shapes) for at in order)

    return mutate


def another_value(values, at, rng, shapes):
    others = [v.get("is", v["value"]) for v in values if v.get("is", v["value"]) != values[at].get("is", values[at]["value"])]
    if not others:
        return False
    values[at]["is"] = rng.choice(others)
    return True


def places(dim, axes):
    """How many places the digits of a dim count, of an axis with these extents."""
    count = 1
    for axis, extent, stride in dim:
        count *= axes[axis] // stride if extent == -1 else extent
    return count


def another_order(values, at, rng, shapes):
    lies, axes = values[at].get("lies"), shapes.get(values[at].get("is", values[at]["value"]))
    # A claim is about elements in their order: a dim of one place may stand anywhere. How many one has is not known without the extent.
    if not lies or len(lies) < 2 or not axes or {0, 1} & {places(lies[-1], axes), places(lies[-2], axes)}:
        return False
    before = copy.deepcopy(lies)
    lies[-1], lies[-2] = lies[-2], lies[-1]
    return before != lies


def a_stride(values, at, rng, shapes):
    digits = [d for dim in values[at].get("lies") or [] for d in dim if d[1] > 1]
    if not digits:
        return False
    rng.choice(digits)[2] += 1
    return True


def no_value(values, at, rng, shapes):
    values[at]["is"] = "no such value"
    return True


PROOFS = {
    "a claim about another value": claim(another_value),
    "a claim about another order": claim(another_order),
    "a claim about another stride": claim(a_stride),
    "a claim about no value": claim(no_value),
}


def feeds(session, seed, size):
    """Inputs of one size; dims of one name have one extent."""
    rng, known = np.random.default_rng(seed), {}
    kinds = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}
    values = {}
    for i in session.get_inputs():
        shape = []
        for at, d in enumerate(i.shape):
            name = d or f"{i.name}[{at}]"
            shape.append(d if isinstance(d, int) else known.setdefault(name, size(len(known), name)))
        if i.type in kinds:
            values[i.name] = rng.standard_normal(shape).astype(kinds[i.type])
        else:
            kind = {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": bool}[i.type]
            values[i.name] = rng.integers(0, 2, shape).astype(kind)
    return values


def session(path):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    # Results are compared with those of the same arithmetic: nothing is fused.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def outputs(path, given):
    running = session(path)
    return [running.run(None, values) for values in given]


def runnable(path, asked):
    """What to feed: three seeds at the first size, and the other sizes; those with which the model runs. `asked` are sizes that it asks for."""
    running, given = session(path), []
    of_model = [lambda at, name: asked.get(name, 1), lambda at, name: asked.get(name, 2), lambda at, name: 2 * asked.get(name, 1)]
    fixed = all(isinstance(d, int) for i in running.get_inputs() for d in i.shape)
    for seed, size in enumerate(SIZES[:1] * SEEDS + ([] if fixed else SIZES[1:] + of_model)):
        values = feeds(running, seed, size)
        try:
            running.run(None, values)
            given.append(values)
        except Exception:  # noqa: BLE001 - a size that the model does not take
            pass
    return given


def feeds_of(path, said):
    """What to feed for each set of sizes that a verdict names; None if it is about all."""
    found = re.search(r"FOR SIZES(?: WITH LEMMAS)? \((.*?)\):", said)
    if not found:
        return None
    sets = [{name: int(size) for name, size in (pair.rsplit("=", 1) for pair in one.split(", "))} for one in found.group(1).split("; ")]
    # Batches of hundreds of images take gigabytes.
    small = [one for one in sets if math.prod(one.values()) <= 1 << 18]
    running = session(path)
    return [feeds(running, seed, lambda at, name, one=one: one.get(name, 1)) for seed, one in enumerate(small)]


def differs(wanted, path, given):
    """Whether a model computes anything else, on any seed."""
    try:
        found = outputs(path, given)
    except Exception:  # noqa: BLE001 - any failure to load or to run is another meaning
        return True
    for one, other in zip(wanted, found):
        for a, b in zip(one, other):
            if a.shape != b.shape:
                return True
            a, b = a.astype(np.float64), b.astype(np.float64)
            scale = max(np.abs(a[np.isfinite(a)]).max(initial=0), 1e-30)
            if not np.array_equal(np.isnan(a), np.isnan(b)) or np.nanmax(np.abs(a - b), initial=0) > TOLERANCE * scale:
                return True
    return False


def prove(binary, model, result, proof):
    options = ["--proof", proof] if proof else []
    ran = subprocess.run([binary, "prove", model, result, *options], capture_output=True, text=True)
    said = (ran.stdout + ran.stderr).strip()
    if ran.returncode not in (0, 3, 4):
        # A file that can't be read is refused as well, with a reason of its own.
        return False, said
    return ran.returncode == 0, said


def check(a, path, folder):
    """Counts of one model: refused, unchanged in meaning, not to be had, and what the checker got wrong."""
    checker, only, seed = a.checker or a.bin, a.only, a.seed
    if a.made:
        result, proof = a.made / path.name, None
    else:
        result, proof = folder / "result.onnx", folder / "proof.json"
        call = [a.bin, "optimize", path, "--target", a.target, "--numerics", a.numerics, "-o", result, "--proof", proof]
        subprocess.run(call, check=True, capture_output=True)
    holds, said = prove(checker, path, result, proof)
    counts, wrong = {"refused": 0, "same": 0, "absent": 0}, []
    if not holds:
        return counts, [f"the unmutated result: {said}"]
    given = runnable(path, json.loads(proof.read_text()).get("sizes", {}) if proof else {})
    if not given:
        return counts, ["the model runs at none of the sizes"]
    wanted = outputs(result, given)
    names = random.Random(seed).sample(sorted(RESULTS), only) if only else list(RESULTS)
    for name in names:
        rng = random.Random(f"{seed}/{name}")
        model = onnx.load(result)
        if not RESULTS[name](Place(model, rng)):
            counts["absent"] += 1
            continue
        mutated = folder / "mutated.onnx"
        onnx.save(model, mutated)
        holds, said = prove(checker, path, mutated, proof)
        if not holds:
            counts["refused"] += 1
        elif (listed := feeds_of(path, said)) and not differs(outputs(result, listed), mutated, listed):
            counts["same"] += 1
        elif differs(wanted, mutated, given):
            wrong.append(f"{name}: {said}")
        else:
            counts["same"] += 1
    shapes = extents(onnx.load(path))
    for name, mutate in PROOFS.items() if proof else ():
        claims = json.loads(proof.read_text())
        if not mutate(claims, random.Random(f"{seed}/{name}"), shapes):
            counts["absent"] += 1
            continue
        mutated = folder / "mutated.json"
        mutated.write_text(json.dumps(claims))
        holds, said = prove(checker, path, result, mutated)
        if holds:
            wrong.append(f"{name}: {said}")
        else:
            counts["refused"] += 1
    return counts, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--bin", required=True, help="the program")
    parser.add_argument("--checker", help="the program that proves, if it is another one")
    parser.add_argument("--target", default="nhwc")
    parser.add_argument("--made", type=pathlib.Path, help="folder with results of another optimizer")
    parser.add_argument("--numerics", default="exact", help="as `optimize` takes it; results that only other numerics allow need them")
    parser.add_argument("--only", type=int, help="so many mutations of results for each model, drawn")
    parser.add_argument("--seed", type=int, default=0)
    a = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for path in a.models:
            counts, wrong = check(a, path, pathlib.Path(folder))
            print(path.stem, *(f"{count} {what}" for what, count in counts.items()), f"{len(wrong)} wrong", flush=True)
            for line in wrong:
                print("   ", line, flush=True)
            failed = failed or bool(wrong)
    sys.exit(failed)


if __name__ == "__main__":
    main()
