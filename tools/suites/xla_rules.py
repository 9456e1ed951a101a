#!/usr/bin/env python3
"""Rules of XLA's algebraic simplifier that TensorRight has, spelt in ONNX: what `relayout prove A B --no-run` decides of them.

    .relayout/venv/bin/python tools/suites/xla_rules.py --bin target/debug/relayout [--only slice] [--work FOLDER] [--show]

TensorRight (Arora and others, POPL 2025, github.com/ADAPT-uiuc/TensorRight) has 118 of 175 rules of XLA in its language and proves 115. The
names of rules here are its files and numbers; every model is written here. A rule is a pair of small models, at two sets of sizes and with
symbolic dims, and a near miss: a pair that breaks the rule's condition, or computes something else where there is none. ONNX Runtime runs all
pairs of given sizes on random inputs: both sides of a rule have to agree, and those of a near miss have to differ.

Printed are the rules that are not proved, those that have no meaning in ONNX with the reason, and the counts. Exit status 1 if a near miss
is proved, or a pair does not compute what is said here. With --show the verdict of each rule is printed too.
"""
import argparse
import collections
import dataclasses
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

SIZES = [{"p": 6, "q": 4, "r": 5, "t": 3}, {"p": 8, "q": 6, "r": 7, "t": 5}]
KINDS = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "b": TensorProto.BOOL}
TYPES = {"f": np.float32, "i": np.int64, "b": np.bool_}
FAR = 1 << 62
INTERIOR = "Pad of ONNX has no padding between elements"


@dataclasses.dataclass
class Rule:
    """A rule. `inputs` is `A=p,q B=p:i`: names, dims, and a letter for the type if it is no float. `near` is the right side of a near miss, or both."""

    name: str
    says: str
    inputs: str = ""
    left: Callable[..., str] | None = None
    right: Callable[..., str] | None = None
    near: Any = None
    #: Inputs of the near miss, if they are others.
    near_inputs: str = ""
    #: Why it has no meaning in ONNX.
    none: str = ""


class Net:
    """A model in the making: `net.Add(a, b)` is a node. Operands are names, numbers, lists of integers, and arrays."""

    def __init__(self, inputs, sizes):
        self.sizes, self.nodes, self.constants, self.inputs, self.places = sizes, [], [], [], {}
        for word in inputs.split():
            name, dims, kind = re.fullmatch(r"(\w+)=([\w,]*)(?::(\w))?", word).groups()
            dims = [dim if dim.isalpha() else int(dim) for dim in dims.split(",") if dim]
            self.inputs.append((name, dims, kind or "f"))
            for axis, dim in enumerate(dims):
                self.places.setdefault(dim, (name, axis))

    def __getattr__(self, op):
        def node(*operands, **attrs):
            name = f"v{len(self.nodes)}"
            self.nodes.append(helper.make_node(op, [self.operand(one) for one in operands], [name], **attrs))
            return name

        return node

    def operand(self, one):
        if one is None or isinstance(one, str):
            return one or ""
        array = np.asarray(one)
        array = array.astype(np.float32) if array.dtype == np.float64 else array
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def dims(self, *dims):
        """A shape: a list, or what the model computes of the shapes of its inputs where these are symbolic."""
        if self.sizes is not None:
            return [self.sizes.get(dim, dim) for dim in dims]
        one = [self.Gather(self.Shape(self.places[dim][0]), [self.places[dim][1]], axis=0) if dim in self.places else [dim] for dim in dims]
        return self.Concat(*one, axis=0) if any(isinstance(dim, str) for dim in one) else list(dims)

    def size(self, dim):
        """One of them as a number."""
        if self.sizes is not None:
            return self.sizes.get(dim, dim)
        return self.Gather(self.Shape(self.places[dim][0]), self.places[dim][1], axis=0) if dim in self.places else dim

    def filled(self, number, *dims):
        return self.Expand(number, self.dims(*dims))

    def count(self, dim):
        """The numbers from zero on: an iota of one axis."""
        return self.Range(0, self.size(dim), 1)

    def reverse(self, x, *axes):
        return self.Slice(x, [-1] * len(axes), [-FAR] * len(axes), list(axes), [-1] * len(axes))

    def part(self, x, start, end, axis=0, step=1):
        return self.Slice(x, [start], [end], [axis], [step])

    def dynamic(self, x, start, length, axis=0):
        """A slice whose start is a value of the graph: a list of one number."""
        return self.Slice(x, start, self.Add(start, [length]), [axis])

    def updated(self, x, rows, start, dims):
        """`x` with other rows from a start on that is a value of the graph."""
        places = self.Unsqueeze(self.Add(self.Range(0, self.size(dims[0]), 1), start), [1])
        return self.ScatterElements(x, self.Expand(places, self.dims(*dims)), rows, axis=0)

    def pad(self, x, low, high, value=0.0):
        return self.Pad(x, [*low, *high], value)

    def clamp(self, low, x, high):
        return self.Min(self.Max(x, low), high)

    def made(self, side):
        """The model that one side of a rule is."""
        result = side(self, *(name for name, _, _ in self.inputs))
        self.nodes.append(helper.make_node("Identity", [result], ["y"]))
        shape = lambda dims: dims if self.sizes is None else self.dims(*dims)
        ports = [helper.make_tensor_value_info(name, KINDS[kind], shape(dims)) for name, dims, kind in self.inputs]
        draft = helper.make_graph(self.nodes, "g", ports, [helper.make_empty_tensor_value_info("y")], self.constants)
        model = helper.make_model(draft, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        known = onnx.shape_inference.infer_shapes(model)
        model.graph.output[0].type.tensor_type.elem_type = known.graph.output[0].type.tensor_type.elem_type
        # Of symbolic dims only the type of the result is declared.
        if self.sizes is not None:
            model.graph.output[0].CopyFrom(known.graph.output[0])
            onnx.checker.check_model(model)
        return model


def sums():
    yield Rule(
        "add 1", "(A + c) + d = A + (c + d)", "A=p,q",
        lambda n, a: n.Add(n.Add(a, 1.5), 2.25),
        lambda n, a: n.Add(a, n.Add(1.5, 2.25)),
        lambda n, a: n.Add(a, n.Add(1.5, 2.5)),
    )
    yield Rule("add 2", "A + 0 = A", "A=p,q", lambda n, a: n.Add(a, 0.0), lambda n, a: a, (lambda n, a: n.Add(a, 0.5), lambda n, a: a))
    yield Rule("add 3", "0 + A = A", "A=p,q", lambda n, a: n.Add(0.0, a), lambda n, a: a, (lambda n, a: n.Add(0.5, a), lambda n, a: a))
    yield Rule(
        "add 4", "c + A = A + c", "A=p,q",
        lambda n, a: n.Add(1.5, a),
        lambda n, a: n.Add(a, 1.5),
        (lambda n, a: n.Sub(1.5, a), lambda n, a: n.Sub(a, 1.5)),
    )
    yield Rule("sub 0", "A - 0 = A", "A=p,q", lambda n, a: n.Sub(a, 0.0), lambda n, a: a, (lambda n, a: n.Sub(a, 0.5), lambda n, a: a))
    yield Rule("sub 1", "A - c = A + (-c)", "A=p,q", lambda n, a: n.Sub(a, 1.5), lambda n, a: n.Add(a, -1.5), lambda n, a: n.Add(a, 1.5))
    yield Rule(
        "sub 2", "A - A = 0, of integers", "A=p,q:i",
        lambda n, a: n.Sub(a, a),
        lambda n, a: n.filled(0, "p", "q"),
        lambda n, a: n.filled(0.0, "p", "q"),
        "A=p,q",
    )
    yield Rule("max 1", "Max(A, -inf) = A", "A=p,q", lambda n, a: n.Max(a, -np.inf), lambda n, a: a, (lambda n, a: n.Max(a, -0.5), lambda n, a: a))
    yield Rule("max 2", "Min(A, inf) = A", "A=p,q", lambda n, a: n.Min(a, np.inf), lambda n, a: a, (lambda n, a: n.Min(a, 0.5), lambda n, a: a))
    yield Rule("not 1", "Not(Not(A)) = A", "A=p,q:b", lambda n, a: n.Not(n.Not(a)), lambda n, a: a, lambda n, a: n.Not(a))
    yield Rule("not 2", "-(-A) = A", "A=p,q", lambda n, a: n.Neg(n.Neg(a)), lambda n, a: a, lambda n, a: n.Neg(a))


def products():
    yield Rule("mul 1", "A 1 = A", "A=p,q", lambda n, a: n.Mul(a, 1.0), lambda n, a: a, (lambda n, a: n.Mul(a, 1.5), lambda n, a: a))
    yield Rule("mul 2", "1 A = A", "A=p,q", lambda n, a: n.Mul(1.0, a), lambda n, a: a, (lambda n, a: n.Mul(1.5, a), lambda n, a: a))
    zero = lambda n, a: n.filled(0, "p", "q")
    yield Rule(
        "mul 3", "A 0 = 0, of integers", "A=p,q:i",
        lambda n, a: n.Mul(a, 0),
        zero,
        (lambda n, a: n.Mul(a, 0.0), lambda n, a: n.filled(0.0, "p", "q")),
        "A=p,q",
    )
    yield Rule(
        "mul 4", "0 A = 0, of integers", "A=p,q:i",
        lambda n, a: n.Mul(0, a),
        zero,
        (lambda n, a: n.Mul(0.0, a), lambda n, a: n.filled(0.0, "p", "q")),
        "A=p,q",
    )
    yield Rule(
        "mul 5", "(A c) (B d) = (A B) (c d)", "A=p,q B=p,q",
        lambda n, a, b: n.Mul(n.Mul(a, 1.5), n.Mul(b, 2.5)),
        lambda n, a, b: n.Mul(n.Mul(a, b), n.Mul(1.5, 2.5)),
        lambda n, a, b: n.Mul(n.Mul(a, b), n.Mul(1.5, 3.5)),
    )
    yield Rule(
        "mul 6", "(A c) d = A (c d)", "A=p,q",
        lambda n, a: n.Mul(n.Mul(a, 1.5), 2.5),
        lambda n, a: n.Mul(a, n.Mul(1.5, 2.5)),
        lambda n, a: n.Mul(a, n.Mul(1.5, 3.5)),
    )
    wide = lambda n, b: n.Expand(n.Unsqueeze(b, [1]), n.dims("p", "q"))
    yield Rule(
        "mul 7", "(A c) Broadcast(B) = Broadcast(B c) A", "A=p,q B=p",
        lambda n, a, b: n.Mul(n.Mul(a, 1.5), wide(n, b)),
        lambda n, a, b: n.Mul(wide(n, n.Mul(b, 1.5)), a),
        lambda n, a, b: n.Mul(wide(n, n.Mul(b, 2.5)), a),
    )
    yield Rule(
        "mul 8", "A C + B C = (A + B) C", "A=p,q B=p,q C=p,q",
        lambda n, a, b, c: n.Add(n.Mul(a, c), n.Mul(b, c)),
        lambda n, a, b, c: n.Mul(n.Add(a, b), c),
        lambda n, a, b, c: n.Mul(n.Add(a, c), b),
    )
    yield Rule(
        "mul 9", "|A| |A| = A A", "A=p,q",
        lambda n, a: n.Mul(n.Abs(a), n.Abs(a)),
        lambda n, a: n.Mul(a, a),
        (lambda n, a: n.Mul(n.Abs(a), a), lambda n, a: n.Mul(a, a)),
    )
    yield Rule(
        "mul 10", "exp(A) exp(B) = exp(A + B)", "A=p,q B=p,q",
        lambda n, a, b: n.Mul(n.Exp(a), n.Exp(b)),
        lambda n, a, b: n.Exp(n.Add(a, b)),
        lambda n, a, b: n.Exp(n.Mul(a, b)),
    )


def quotients():
    def rem(n, a, b):
        return n.Mod(a, b, fmod=1)

    def iota(n):
        return n.Unsqueeze(n.count("p"), [1])

    wide = lambda n, x: n.Expand(x, n.dims("p", "q"))
    yield Rule("divmod 1", "A / 1 = A", "A=p,q", lambda n, a: n.Div(a, 1.0), lambda n, a: a, (lambda n, a: n.Div(a, 1.5), lambda n, a: a))
    yield Rule(
        "divmod 2", "A / c = A (1 / c)", "A=p,q",
        lambda n, a: n.Div(a, 3.0),
        lambda n, a: n.Mul(a, n.Div(1.0, 3.0)),
        lambda n, a: n.Mul(a, n.Div(1.0, 3.5)),
    )
    four = "A=p,q B=p,q C=p,q D=p,q"
    yield Rule(
        "divmod 3", "(A / B) / (C / D) = (A D) / (B C)", four,
        lambda n, a, b, c, d: n.Div(n.Div(a, b), n.Div(c, d)),
        lambda n, a, b, c, d: n.Div(n.Mul(a, d), n.Mul(b, c)),
        lambda n, a, b, c, d: n.Div(n.Mul(a, c), n.Mul(b, d)),
    )
    yield Rule(
        "divmod 4", "A / (B / C) = (A C) / B", "A=p,q B=p,q C=p,q",
        lambda n, a, b, c: n.Div(a, n.Div(b, c)),
        lambda n, a, b, c: n.Div(n.Mul(a, c), b),
        lambda n, a, b, c: n.Div(n.Mul(a, b), c),
    )
    yield Rule(
        "divmod 5", "Rem(Rem(A, B), B) = Rem(A, B)", "A=p,q:i B=p,q:i",
        lambda n, a, b: rem(n, rem(n, a, b), b),
        rem,
        lambda n, a, b: n.Mod(a, b),
    )
    yield Rule(
        "divmod 6", "Rem(Iota, c) = Iota, of at most c places", "A=p,q",
        lambda n, a: wide(n, rem(n, iota(n), 64)),
        lambda n, a: wide(n, iota(n)),
        (lambda n, a: wide(n, rem(n, iota(n), 3)), lambda n, a: wide(n, iota(n))),
    )
    both = lambda c: (lambda n, a: wide(n, rem(n, n.Add(iota(n), c), c)), lambda n, a: wide(n, rem(n, iota(n), c)))
    yield Rule("divmod 7", "Rem(Iota + c, c) = Rem(Iota, c), c at least 0", "A=p,q", *both(3), both(-3))
    both_of = lambda x, c: (lambda n, a: rem(n, n.Add(n.filled(x, "p", "q"), c), c), lambda n, a: rem(n, n.filled(x, "p", "q"), c))
    yield Rule("divmod 8", "Rem(x + c, c) = Rem(x, c), x and x + c of one sign", "A=p,q", *both_of(5, 3), both_of(-1, 3))


def compared():
    ops = [("1", "Greater", False), ("2", "Less", False), ("3", "Ne", False), ("4", "GreaterOrEqual", True), ("5", "LessOrEqual", True), ("6", "Equal", True)]
    for number, op, value in ops:
        left = (lambda n, a: n.Not(n.Equal(a, a))) if op == "Ne" else (lambda n, a, op=op: getattr(n, op)(a, a))
        right = lambda n, a, value=value: n.filled(value, "p", "q")
        # Of floats some hold for numbers only, and the others always.
        near = (lambda n, a: n.filled(True, "p", "q")) if number in "12" else right
        yield Rule(f"compare {number}", f"{op}(A, A) = {value}, of integers", "A=p,q:i", left, right, (left, near), "A=p,q")


def truths():
    yes, no = (lambda n, a, value=value: n.filled(value, "p", "q") for value in (True, False))
    same = lambda n, a: a
    one = [("1", "Or", True, yes), ("3", "Or", False, same), ("5", "And", True, same), ("7", "And", False, no)]
    for number, op, value, right in one:
        of = "A=p,q:b"
        kept = lambda n, a, op=op: n.And(a, n.filled(True, "p", "q")) if op == "Or" else n.Or(a, n.filled(False, "p", "q"))
        near = (lambda n, a: n.Not(a)) if right is same else kept
        says = "A" if right is same else str(value)
        yield Rule(f"logical {number}", f"{op}(A, {value}) = {says}", of, lambda n, a, op=op, value=value: getattr(n, op)(a, value), right, near)
        yield Rule(
            f"logical {int(number) + 1}", f"{op}({value}, A) = {says}", of,
            lambda n, a, op=op, value=value: getattr(n, op)(value, a),
            right,
            near,
        )
    less = lambda n, a, c: n.Less(a, c)
    yield Rule(
        "logical 9", "A < c and d > A = A < Min(c, d)", "A=p,q",
        lambda n, a: n.And(less(n, a, 0.5), n.Greater(0.25, a)),
        lambda n, a: less(n, a, n.Min(0.5, 0.25)),
        lambda n, a: less(n, a, n.Max(0.5, 0.25)),
    )
    yield Rule(
        "logical 10", "Max(A, B) > B = A > B", "A=p,q B=p,q",
        lambda n, a, b: n.Greater(n.Max(a, b), b),
        lambda n, a, b: n.Greater(a, b),
        lambda n, a, b: n.Greater(b, a),
    )
    yield Rule(
        "logical 11", "Max(A, B) > A = B > A", "A=p,q B=p,q",
        lambda n, a, b: n.Greater(n.Max(a, b), a),
        lambda n, a, b: n.Greater(b, a),
        lambda n, a, b: n.Greater(a, b),
    )
    three = "P=p,q:b A=p,q B=p,q"
    yield Rule(
        "select 1", "Select(P, A, A) = A", "P=p,q:b A=p,q",
        lambda n, p, a: n.Where(p, a, a),
        lambda n, p, a: a,
        (lambda n, p, a: n.Where(p, a, n.Neg(a)), lambda n, p, a: a),
    )
    yield Rule(
        "select 2", "Select(True, A, B) = A", three,
        lambda n, p, a, b: n.Where(n.filled(True, "p", "q"), a, b),
        lambda n, p, a, b: a,
        lambda n, p, a, b: b,
    )
    yield Rule(
        "select 3", "Select(False, A, B) = B", three,
        lambda n, p, a, b: n.Where(n.filled(False, "p", "q"), a, b),
        lambda n, p, a, b: b,
        lambda n, p, a, b: a,
    )
    yield Rule(
        "select 4", "Select(Not(P), A, B) = Select(P, B, A)", three,
        lambda n, p, a, b: n.Where(n.Not(p), a, b),
        lambda n, p, a, b: n.Where(p, b, a),
        lambda n, p, a, b: n.Where(p, a, b),
    )


def clamps():
    three = "A=p,q C=p,q D=p,q"
    yield Rule(
        "clamp 1", "Clamp(c, Clamp(c, A, d), d) = Clamp(c, A, d)", three,
        lambda n, a, c, d: n.clamp(c, n.clamp(c, a, d), d),
        lambda n, a, c, d: n.clamp(c, a, d),
        (lambda n, a, c, d: n.clamp(d, n.clamp(c, a, d), c), lambda n, a, c, d: n.clamp(c, a, d)),
    )
    turned = lambda c, d: (lambda n, a: n.Max(c, n.Min(a, d)), lambda n, a: n.Clip(a, c, d))
    yield Rule("clamp 2", "Max(c, Min(A, d)) = Clamp(c, A, d), c less than d", "A=p,q", *turned(-0.5, 0.75), turned(0.75, -0.5))
    yield Rule(
        "clamp 3", "Min(d, Max(A, c)) = Clamp(c, A, d)", "A=p,q",
        lambda n, a: n.Min(0.75, n.Max(a, -0.5)),
        lambda n, a: n.Clip(a, -0.5, 0.75),
        lambda n, a: n.Clip(a, -0.5, 0.5),
    )


def broadcasts():
    for number, op in [("1", "Add"), ("2", "Mul")]:
        on = lambda n, a, b, op=op: getattr(n, op)(a, b)
        wide = lambda n, x: n.Expand(x, n.dims(5, "p"))
        yield Rule(
            f"broadcast {number}", f"{op}(Broadcast(A), Broadcast(B)) = Broadcast({op}(A, B))", "A=p B=p",
            lambda n, a, b, on=on, wide=wide: on(n, wide(n, a), wide(n, b)),
            lambda n, a, b, on=on, wide=wide: wide(n, on(n, a, b)),
            lambda n, a, b, on=on, wide=wide: wide(n, on(n, a, a)),
        )
    yield Rule(
        "broadcast 3", "Transpose(Broadcast(c)) = Broadcast(c)", "A=p,q",
        lambda n, a: n.Transpose(n.filled(1.5, "p", "q"), perm=[1, 0]),
        lambda n, a: n.filled(1.5, "q", "p"),
        lambda n, a: n.filled(2.5, "q", "p"),
    )
    yield Rule(
        "broadcast 4", "Reverse(Broadcast(c)) = Broadcast(c)", "A=p,q",
        lambda n, a: n.reverse(n.filled(1.5, "p", "q"), 0),
        lambda n, a: n.filled(1.5, "p", "q"),
        lambda n, a: n.filled(2.5, "p", "q"),
    )
    for name in ("broadcast 5", "slice 2"):
        yield Rule(
            name, "Slice(Broadcast(c)) = Broadcast(c)", "A=p,q",
            lambda n, a: n.part(n.filled(1.5, 9, "q"), 1, 8, 0, 2),
            lambda n, a: n.filled(1.5, 4, "q"),
            lambda n, a: n.filled(2.5, 4, "q"),
        )
    yield Rule(
        "broadcast 6", "DynamicSlice(Broadcast(c)) = Broadcast(c)", "A=p,q S=1:i",
        lambda n, a, s: n.dynamic(n.filled(1.5, 9, "q"), s, 3),
        lambda n, a, s: n.filled(1.5, 3, "q"),
        lambda n, a, s: n.filled(2.5, 3, "q"),
    )
    rows = lambda n, a: n.Div(n.Reshape(n.Range(0, n.Mul(n.size("p"), n.size("q")), 1), n.dims("p", "q")), n.size("q"))
    columns = lambda n, a: n.Mod(n.Reshape(n.Range(0, n.Mul(n.size("p"), n.size("q")), 1), n.dims("p", "q")), n.size("q"))
    yield Rule(
        "broadcast 7", "Broadcast(Iota) = Iota", "A=p,q",
        lambda n, a: n.Expand(n.Unsqueeze(n.count("p"), [1]), n.dims("p", "q")),
        rows,
        columns,
    )
    yield Rule(
        "broadcast 8", "Broadcast(Broadcast(A)) = Broadcast(A)", "A=p",
        lambda n, a: n.Expand(n.Expand(a, n.dims(5, "p")), n.dims(3, 5, "p")),
        lambda n, a: n.Expand(a, n.dims(3, 5, "p")),
        lambda n, a: n.Expand(n.Neg(a), n.dims(3, 5, "p")),
    )
    yield Rule(
        "iota 1", "Iota = 0 along an axis of one place", "A=p,q",
        lambda n, a: n.Expand(n.Unsqueeze(n.count(1), [1]), n.dims(1, "q")),
        lambda n, a: n.filled(0, 1, "q"),
        (lambda n, a: n.Expand(n.Unsqueeze(n.count(2), [1]), n.dims(2, "q")), lambda n, a: n.filled(0, 2, "q")),
    )


def joined():
    three = "A=p,q B=r,q C=t,q"
    cat = lambda n, *parts: n.Concat(*parts, axis=0)
    # The same with one extent, so that the order of parts can be another one.
    other = (lambda n, a, b, c: cat(n, a, b, c), lambda n, a, b, c: cat(n, a, c, b))
    yield Rule("concat 1", "ConcatList(A, B) = Concat(A, B)", none="Concat of ONNX takes any number of operands, so both sides are one node")
    yield Rule(
        "concat 2", "Concat(A, Concat(B, C)) = Concat(Concat(A, B), C)", three,
        lambda n, a, b, c: cat(n, a, cat(n, b, c)),
        lambda n, a, b, c: cat(n, cat(n, a, b), c),
        (lambda n, a, b, c: cat(n, a, cat(n, b, c)), lambda n, a, b, c: cat(n, cat(n, a, c), b)),
        "A=p,q B=p,q C=p,q",
    )
    yield Rule(
        "concat 3", "ConcatList(A, B, C) = Concat(A, Concat(B, C))", three,
        lambda n, a, b, c: cat(n, a, b, c),
        lambda n, a, b, c: cat(n, a, cat(n, b, c)),
        other,
        "A=p,q B=p,q C=p,q",
    )
    yield Rule(
        "concat 7", "Concat(A, Concat(B, C)) = ConcatList(A, B, C)", three,
        lambda n, a, b, c: cat(n, a, cat(n, b, c)),
        lambda n, a, b, c: cat(n, a, b, c),
        other,
        "A=p,q B=p,q C=p,q",
    )
    halves = lambda at: lambda n, a: cat(n, n.part(a, 1, 3), n.part(a, at, at + 2))
    yield Rule(
        "concat 4", "Concat(Slice(A), Slice(A)) = Slice(A), where one ends as the other begins", "A=p,q",
        halves(3),
        lambda n, a: n.part(a, 1, 5),
        (halves(2), lambda n, a: n.part(a, 1, 5)),
    )
    for number, low, high, says in [("5", 2, 0, "Concat(Broadcast(c), B)"), ("6", 0, 2, "Concat(B, Broadcast(c))")]:
        def left(n, a, low=low):
            more = n.filled(1.5, 2, "q")
            return cat(n, more, a) if low else cat(n, a, more)

        yield Rule(
            f"concat {number}", f"{says} = Pad(B, c)", "A=p,q",
            left,
            lambda n, a, low=low, high=high: n.pad(a, [low, 0], [high, 0], 1.5),
            lambda n, a, low=low, high=high: n.pad(a, [high, 0], [low, 0], 1.5),
        )


def padded():
    yield Rule(
        "pad 1", "Pad(A, 0, 0) = A", "A=p,q",
        lambda n, a: n.pad(a, [0, 0], [0, 0], 1.5),
        lambda n, a: a,
        (lambda n, a: n.part(n.pad(a, [1, 0], [0, 0], 1.5), 0, -1), lambda n, a: a),
    )
    yield Rule("pad 2", "padding between the elements of an axis of one place is none", none=INTERIOR)
    yield Rule(
        "pad 3", "Pad(Broadcast(A)) = Broadcast(Pad(Broadcast(A))), along axes without padding", "A=p",
        lambda n, a: n.pad(n.Expand(a, n.dims(3, 5, "p")), [0, 1, 2], [0, 1, 2], 1.5),
        lambda n, a: n.Expand(n.pad(n.Expand(a, n.dims(5, "p")), [1, 2], [1, 2], 1.5), n.Concat([3, 7], n.Add(n.dims("p"), [4]), axis=0)),
        lambda n, a: n.Expand(n.pad(n.Expand(a, n.dims(5, "p")), [2, 2], [0, 2], 1.5), n.Concat([3, 7], n.Add(n.dims("p"), [4]), axis=0)),
    )
    yield Rule(
        "pad 4", "Pad by less than nothing = Slice(Pad(A))", "A=p,q,r,t",
        lambda n, a: n.pad(a, [1, 2, -1, -1], [2, -1, 1, -1], 1.5),
        lambda n, a: n.Slice(n.pad(a, [1, 2, 0, 0], [2, 0, 1, 0], 1.5), [0, 0, 1, 1], [FAR, -1, FAR, -1]),
        lambda n, a: n.Slice(n.pad(a, [1, 2, 0, 0], [2, 0, 1, 0], 1.5), [0, 0, 1, 0], [FAR, -1, FAR, -2]),
    )
    yield Rule(
        "relabel 1", "Transpose(Transpose(A)) = Transpose(A)", "A=p,q,r",
        lambda n, a: n.Transpose(n.Transpose(a, perm=[1, 2, 0]), perm=[1, 0, 2]),
        lambda n, a: n.Transpose(a, perm=[2, 1, 0]),
        lambda n, a: n.Transpose(n.Neg(a), perm=[2, 1, 0]),
    )
    yield Rule(
        "relabel 2", "Transpose(A) = A, in the order of its axes", "A=p,p",
        lambda n, a: n.Transpose(a, perm=[0, 1]),
        lambda n, a: a,
        (lambda n, a: n.Transpose(a, perm=[1, 0]), lambda n, a: a),
    )


def reversed_():
    yield Rule("reverse 1", "Reverse(A) = A, along an axis of one place", "A=1,q", lambda n, a: n.reverse(a, 0), lambda n, a: a, None, "A=2,q")
    yield Rule(
        "reverse 2", "Reverse(Reverse(A)) = A", "A=p,q",
        lambda n, a: n.reverse(n.reverse(a, 0), 0),
        lambda n, a: a,
        lambda n, a: n.reverse(a, 0),
    )
    yield Rule(
        "reverse 3", "Reverse(Reverse(A, 0 1), 1 2) = Reverse(A, 0 2)", "A=p,q,r",
        lambda n, a: n.reverse(n.reverse(a, 0, 1), 1, 2),
        lambda n, a: n.reverse(a, 2, 0),
        lambda n, a: n.reverse(a, 0, 1, 2),
    )
    vector = np.asarray([[1.5, -2.5, 0.5, 3.5]], np.float32)
    yield Rule(
        "reverse 4", "Reverse(A + c) = Reverse(A) + c", "A=p,4",
        lambda n, a: n.reverse(n.Add(a, 1.5), 1),
        lambda n, a: n.Add(n.reverse(a, 1), 1.5),
        (lambda n, a: n.reverse(n.Add(a, vector), 1), lambda n, a: n.Add(n.reverse(a, 1), vector)),
    )


def sliced():
    cat = lambda n, *parts: n.Concat(*parts, axis=0)
    yield Rule(
        "slice 1", "Slice(A) = A, of all places", "A=p,q",
        lambda n, a: n.part(a, 0, n.sizes["p"] if n.sizes else FAR),
        lambda n, a: a,
        (lambda n, a: n.pad(n.part(a, 1, FAR), [0, 0], [1, 0]), lambda n, a: a),
    )
    yield Rule(
        "slice 3", "Slice(Broadcast(A)) = Broadcast(Slice(A))", "A=p",
        lambda n, a: n.Slice(n.Expand(a, n.dims(7, "p")), [1, 1], [6, 5], [0, 1], [2, 2]),
        lambda n, a: n.Expand(n.part(a, 1, 5, 0, 2), [3, 2]),
        lambda n, a: n.Expand(n.part(a, 0, 4, 0, 2), [3, 2]),
    )
    yield Rule(
        "slice 4", "Slice(Pad(A)) = A, without padding between elements", "A=p,q",
        lambda n, a: n.part(n.pad(a, [2, 0], [1, 0], 1.5), 2, -1),
        lambda n, a: a,
        (lambda n, a: n.part(n.pad(a, [2, 0], [1, 0], 1.5), 1, -2), lambda n, a: a),
    )
    yield Rule(
        "slice 5", "Slice(Pad(A, c)) = Broadcast(c), of padding alone", "A=p,q",
        lambda n, a: n.part(n.pad(a, [4, 0], [1, 0], 1.5), 0, 3),
        lambda n, a: n.filled(1.5, 3, "q"),
        (lambda n, a: n.part(n.pad(a, [2, 0], [1, 0], 1.5), 0, 3), lambda n, a: n.filled(1.5, 3, "q")),
    )
    yield Rule(
        "slice 6", "Slice(Pad(A, c)) = Slice(A), without padding", "A=p,q",
        lambda n, a: n.part(n.pad(a, [2, 0], [1, 0], 1.5), 3, 6),
        lambda n, a: n.part(a, 1, 4),
        (lambda n, a: n.part(n.pad(a, [3, 0], [1, 0], 1.5), 2, 5), lambda n, a: n.part(a, 0, 3)),
    )
    yield Rule(
        "slice 7", "Slice(Slice(A)) = Slice(A)", "A=p,q",
        lambda n, a: n.part(n.part(a, 1, -1), 1, -1),
        lambda n, a: n.part(a, 2, -2),
        lambda n, a: n.part(a, 1, -3),
    )
    two = "A=p,q B=p,q"
    yield Rule(
        "slice 8", "Slice(Concat(A, B)) = B, where B is", two,
        lambda n, a, b: n.Slice(cat(n, a, b), n.dims("p"), [FAR], [0]),
        lambda n, a, b: b,
        lambda n, a, b: a,
    )
    yield Rule(
        "slice 9", "Slice(Broadcast(A)) = Broadcast(A)", "A=p",
        lambda n, a: n.part(n.Expand(n.Unsqueeze(a, [1]), n.dims("p", 7)), 1, 6, 1, 2),
        lambda n, a: n.Expand(n.Unsqueeze(a, [1]), n.dims("p", 3)),
        lambda n, a: n.Expand(n.Unsqueeze(n.Neg(a), [1]), n.dims("p", 3)),
    )
    yield Rule(
        "slice 10", "Slice(Concat(A, B)) = Slice(A), where A is", "A=5,q B=p,q",
        lambda n, a, b: n.part(cat(n, a, b), 1, 4),
        lambda n, a, b: n.part(a, 1, 4),
        (lambda n, a, b: n.part(cat(n, a, b), 3, 6), lambda n, a, b: n.part(cat(n, b, a), 3, 6)),
    )
    yield Rule(
        "slice 11", "Slice(Concat(A, B)) = Slice(B), where B is", "A=5,q B=6,q",
        lambda n, a, b: n.part(cat(n, a, b), 6, 9),
        lambda n, a, b: n.part(b, 1, 4),
        (lambda n, a, b: n.part(cat(n, a, b), 4, 7), lambda n, a, b: n.part(b, 0, 3)),
    )
    yield Rule(
        "slice 12", "Slice(Concat(A, B, C)) = Slice(Concat(B, C))", "A=5,q B=6,q C=p,q",
        lambda n, a, b, c: n.part(cat(n, a, b, c), 7, 13),
        lambda n, a, b, c: n.part(cat(n, b, c), 2, 8),
        (lambda n, a, b, c: n.part(cat(n, a, b, c), 4, 10), lambda n, a, b, c: n.part(cat(n, b, c), 0, 6)),
    )
    yield Rule(
        "slice 13", "Slice(Reverse(A)) = Reverse(Slice(A))", "A=p,q",
        lambda n, a: n.part(n.reverse(a, 0), 1, -1),
        lambda n, a: n.reverse(n.part(a, 1, -1), 0),
        lambda n, a: n.part(a, 1, -1),
    )


def dynamic():
    two = "A=p,q S=1:i"
    rows = lambda n, x, start, end: n.Gather(x, n.Range(start, end, 1), axis=0)
    yield Rule(
        "dyslice 1", "DynamicSlice(A, s) = Slice(A, s), of a known start", "A=p,q",
        lambda n, a: rows(n, a, 1, 4),
        lambda n, a: n.part(a, 1, 4),
        lambda n, a: n.part(a, 2, 5),
    )
    yield Rule(
        "dyslice 2", "DynamicSlice(A) = A, of all places", "A=p,q",
        lambda n, a: rows(n, a, 0, n.size("p")),
        lambda n, a: a,
        (lambda n, a: rows(n, a, -1, n.Sub(n.size("p"), 1)), lambda n, a: a),
    )
    yield Rule(
        "dyslice 3", "DynamicSlice(Broadcast(A)) = Broadcast(DynamicSlice(A))", "A=p S=1:i U=1:i",
        lambda n, a, s, u: n.dynamic(n.dynamic(n.Expand(a, n.dims(9, "p")), u, 3, 0), s, 3, 1),
        lambda n, a, s, u: n.Expand(n.dynamic(a, s, 3), [3, 3]),
        lambda n, a, s, u: n.Expand(n.dynamic(a, u, 3), [3, 3]),
    )
    turned = lambda n, x: n.Transpose(x, perm=[1, 0])
    yield Rule(
        "dyslice 4", "DynamicSlice(Transpose(A)) = Transpose(DynamicSlice(A))", two,
        lambda n, a, s: n.dynamic(turned(n, a), s, 3, 1),
        lambda n, a, s: turned(n, n.dynamic(a, s, 3)),
        lambda n, a, s: turned(n, n.dynamic(a, n.Add(s, [1]), 3)),
    )
    yield Rule(
        "dyslice 5", "DynamicSlice(DynamicSlice(A)) = DynamicSlice(A)", "A=p,q S=1:i U=1:i",
        lambda n, a, s, u: n.dynamic(n.dynamic(a, s, 5), u, 3),
        lambda n, a, s, u: n.dynamic(a, n.Add(s, u), 3),
        lambda n, a, s, u: n.dynamic(a, n.Add(u, u), 3),
    )
    of = "A=p,q B=3,q S=1:i"
    yield Rule(
        "dyupslice 1", "A + DynamicUpdateSlice(0, B) = DynamicUpdateSlice(A, B + DynamicSlice(A))", of,
        lambda n, a, b, s: n.Add(a, n.updated(n.filled(0.0, "p", "q"), b, s, (3, "q"))),
        lambda n, a, b, s: n.updated(a, n.Add(b, n.dynamic(a, s, 3)), s, (3, "q")),
        lambda n, a, b, s: n.updated(a, b, s, (3, "q")),
    )
    room = lambda n, s: n.Concat(s, [0], n.Sub(n.Sub(n.dims("p"), [3]), s), [0], axis=0)
    yield Rule(
        "dyupslice 2", "DynamicUpdateSlice(Broadcast(c), B) = Pad(B, c)", of,
        lambda n, a, b, s: n.updated(n.filled(1.5, "p", "q"), b, s, (3, "q")),
        lambda n, a, b, s: n.Pad(b, room(n, s), 1.5),
        lambda n, a, b, s: n.Pad(b, room(n, s), 2.5),
    )
    yield Rule(
        "dyupslice 3", "DynamicUpdateSlice(A, B, 0) = B, of one size", "A=p,q B=p,q",
        lambda n, a, b: n.updated(a, b, [0], ("p", "q")),
        lambda n, a, b: b,
        lambda n, a, b: a,
    )
    inner = "A=p,q B=2,q S=1:i U=1:i"
    yield Rule(
        "dyupslice 4", "DynamicUpdateSlice(A, DynamicUpdateSlice(DynamicSlice(A), B)) = DynamicUpdateSlice(A, B)", inner,
        lambda n, a, b, s, u: n.updated(a, n.updated(n.dynamic(a, s, 4), b, u, (2, "q")), s, (4, "q")),
        lambda n, a, b, s, u: n.updated(a, b, n.Add(s, u), (2, "q")),
        lambda n, a, b, s, u: n.updated(a, b, n.Add(u, u), (2, "q")),
    )


def reduced():
    total = lambda n, x, *axes: n.ReduceSum(x, list(axes), keepdims=0)
    yield Rule(
        "reduce 1", "Sum(X) Sum(Y) = Sum(Broadcast(X) Broadcast(Y))", "X=p Y=q",
        lambda n, x, y: n.Mul(total(n, x, 0), total(n, y, 0)),
        lambda n, x, y: total(n, n.Mul(n.Unsqueeze(x, [1]), y), 0, 1),
        lambda n, x, y: total(n, n.Add(n.Unsqueeze(x, [1]), y), 0, 1),
    )
    kept = lambda n, x: n.ReduceSum(x, [0], keepdims=1)
    yield Rule(
        "reduce 2", "Sum(Concat(Sum(X), Sum(Y))) = Sum(Concat(X, Y))", "X=p,q Y=r,q",
        lambda n, x, y: total(n, n.Concat(kept(n, x), kept(n, y), axis=0), 0),
        lambda n, x, y: total(n, n.Concat(x, y, axis=0), 0),
        lambda n, x, y: total(n, n.Concat(x, n.Neg(y), axis=0), 0),
    )
    yield Rule(
        "reduce 3", "c Sum(X) = Sum(c X)", "X=p,q",
        lambda n, x: n.Mul(1.5, total(n, x, 0)),
        lambda n, x: total(n, n.Mul(1.5, x), 0),
        (lambda n, x: n.Add(1.5, total(n, x, 0)), lambda n, x: total(n, n.Add(1.5, x), 0)),
    )
    yield Rule(
        "reduce 4", "Sum(Transpose(X)) = Transpose(Sum(X))", "X=p,q,r",
        lambda n, x: total(n, n.Transpose(x, perm=[2, 0, 1]), 1),
        lambda n, x: n.Transpose(total(n, x, 0), perm=[1, 0]),
        lambda n, x: n.Transpose(n.ReduceMean(x, [0], keepdims=0), perm=[1, 0]),
    )
    yield Rule(
        "reduce 5", "Sum(Sum(X)) = Sum(X)", "X=p,q,r",
        lambda n, x: total(n, total(n, x, 0), 0),
        lambda n, x: total(n, x, 0, 1),
        lambda n, x: n.ReduceMean(x, [0, 1], keepdims=0),
    )
    two = "X=p,q,r Y=p,q,t"
    yield Rule(
        "reduce 6", "Sum(Dot(X, Y)) = Dot(X, Y), over an axis of both", two,
        lambda n, x, y: total(n, n.Einsum(x, y, equation="pqr,pqt->qrt"), 0),
        lambda n, x, y: n.Einsum(x, y, equation="pqr,pqt->rt"),
        (
            lambda n,
            x,
            y: total(n, n.Einsum(x, y, equation="pqr,pqt->qrt"), 0),
            lambda n, x, y: n.Einsum(total(n, x, 1), total(n, y, 1), equation="pr,pt->rt"),
        ),
    )
    yield Rule(
        "reduce 7", "Sum(X) = Reshape(X), over an axis of one place", "X=1,q",
        lambda n, x: total(n, x, 0),
        lambda n, x: n.Squeeze(x, [0]),
        (lambda n, x: total(n, x, 0), lambda n, x: n.Squeeze(n.part(x, 0, 1), [0])),
        "X=2,q",
    )
    yield Rule(
        "reduce 8", "Sum(Transpose(X)) = Reshape(X), over an axis of one place", "X=1,q",
        lambda n, x: total(n, n.Transpose(x, perm=[1, 0]), 1),
        lambda n, x: n.Squeeze(x, [0]),
        (lambda n, x: total(n, n.Transpose(x, perm=[1, 0]), 1), lambda n, x: n.Squeeze(n.part(x, 0, 1), [0])),
        "X=2,q",
    )


def multiplied():
    four = "X=p,q Y=p,r C=q,t D=r,t"
    dot = lambda n, a, b: n.MatMul(a, b)
    whole = lambda n, x, y, c, d: dot(n, n.Concat(x, y, axis=1), n.Concat(c, d, axis=0))
    parts = lambda n, x, y, c, d: n.Concat(n.Unsqueeze(dot(n, x, c), [0]), n.Unsqueeze(dot(n, y, d), [0]), axis=0)
    yield Rule(
        "dot 1", "Dot(Concat(X, Y), Concat(C, D)) = Sum(Concat(Dot(X, C), Dot(Y, D)))", four,
        whole,
        lambda n, *of: n.ReduceSum(parts(n, *of), [0], keepdims=0),
        lambda n, *of: n.ReduceMean(parts(n, *of), [0], keepdims=0),
    )
    yield Rule(
        "dot 2", "Dot(A, B) = Dot(B, A)", "A=p,q,r B=p,q,t",
        lambda n, a, b: n.Einsum(a, b, equation="pqr,pqt->qrt"),
        lambda n, a, b: n.Transpose(n.Einsum(b, a, equation="pqt,pqr->qtr"), perm=[0, 2, 1]),
        lambda n, a, b: n.Transpose(n.Einsum(b, n.reverse(a, 0), equation="pqt,pqr->qtr"), perm=[0, 2, 1]),
    )
    yield Rule(
        "dot 3", "Dot(A, Dot(B, C)) = Dot(Dot(A, B), C)", "A=p,q B=q,q C=q,r",
        lambda n, a, b, c: dot(n, a, dot(n, b, c)),
        lambda n, a, b, c: dot(n, dot(n, a, b), c),
        lambda n, a, b, c: dot(n, dot(n, a, n.Transpose(b, perm=[1, 0])), c),
    )
    yield Rule(
        "dot 4", "Dot(A, B) = Broadcast(A) Broadcast(B), where nothing is summed", "A=p,q B=p,r",
        lambda n, a, b: n.Einsum(a, b, equation="pq,pr->pqr"),
        lambda n, a, b: n.Mul(n.Unsqueeze(a, [2]), n.Unsqueeze(b, [1])),
        lambda n, a, b: n.Add(n.Unsqueeze(a, [2]), n.Unsqueeze(b, [1])),
    )
    yield Rule("dot 5", "Dot(A, B) = 0, over no places", "A=p,0 B=0,q", dot, lambda n, a, b: n.filled(0.0, "p", "q"), None, "A=p,1 B=1,q")
    yield Rule(
        "dot 6", "Dot(A, B) = Sum(A Broadcast(B)), where B has no axis of its own", "A=p,q,r B=p,r",
        lambda n, a, b: n.Einsum(a, b, equation="pqr,pr->pq"),
        lambda n, a, b: n.ReduceSum(n.Mul(a, n.Unsqueeze(b, [1])), [2], keepdims=0),
        lambda n, a, b: n.ReduceMean(n.Mul(a, n.Unsqueeze(b, [1])), [2], keepdims=0),
    )
    wide = lambda n, x, value: n.pad(x, [0, 0, 1, 2], [0, 0, 2, 1], value)
    conv = "X=2,3,p,q W=4,3,2,3"
    yield Rule(
        "conv 0", "Conv(Pad(X, 0), W) = Conv(X, W) with more padding, without padding between elements", conv,
        lambda n, x, w: n.Conv(wide(n, x, 0.0), w, pads=[1, 0, 0, 1]),
        lambda n, x, w: n.Conv(x, w, pads=[2, 2, 2, 2]),
        (lambda n, x, w: n.Conv(wide(n, x, 0.5), w, pads=[1, 0, 0, 1]), lambda n, x, w: n.Conv(x, w, pads=[2, 2, 2, 2])),
    )
    # Padding between elements: an axis of one place more, which gets a second one.
    spread = lambda n, w, value: n.Slice(n.Reshape(n.pad(n.Unsqueeze(w, [3]), [0, 0, 0, 0], [0, 0, 0, 1], value), [4, 3, 6]), [0], [5], [2])
    line = "X=2,3,p W=4,3,3"
    yield Rule(
        "conv 1", "Conv(X, W with zeros between) = Conv(X, W) with dilations", line,
        lambda n, x, w: n.Conv(x, spread(n, w, 0.0), pads=[1, 2]),
        lambda n, x, w: n.Conv(x, w, pads=[1, 2], dilations=[2]),
        (lambda n, x, w: n.Conv(x, spread(n, w, 0.5), pads=[1, 2]), lambda n, x, w: n.Conv(x, w, pads=[1, 2], dilations=[2])),
    )
    yield Rule(
        "conv 3", "Conv(A, W) = Dot(A, W), of windows of one place or of all", "A=2,3,4,p W=5,3,4,1",
        lambda n, a, w: n.Conv(a, w),
        lambda n, a, w: n.Unsqueeze(n.Einsum(a, n.Squeeze(w, [3]), equation="bcts,oct->bos"), [2]),
        lambda n, a, w: n.Unsqueeze(n.Einsum(n.reverse(a, 2), n.Squeeze(w, [3]), equation="bcts,oct->bos"), [2]),
    )


FAMILIES = [sums, products, quotients, compared, truths, clamps, broadcasts, joined, padded, reversed_, sliced, dynamic, reduced, multiplied]


def rules(only):
    found = [rule for family in FAMILIES for rule in family() if rule.name.startswith(only)]
    assert len({rule.name for rule in found}) == len(found), "a rule stands twice"
    return found


def fed(inputs, sizes, seed, special):
    """Random inputs: floats with one that is no number and one that is infinite if these are asked for; integers that divide."""
    rng, feeds = np.random.default_rng(seed), {}
    for name, dims, kind in Net(inputs, sizes).inputs:
        shape = [sizes.get(dim, dim) for dim in dims]
        if kind == "i":
            # A list of one number is the start of a slice.
            feeds[name] = rng.integers(0, 2, shape) if shape == [1] else rng.choice([-7, -5, -3, -2, -1, 1, 2, 3, 5, 7], shape)
        elif kind == "b":
            feeds[name] = rng.random(shape) < 0.5
        else:
            feeds[name] = rng.standard_normal(shape).astype(np.float32)
            if special and feeds[name].size > 1:
                feeds[name].flat[:2] = [np.nan, np.inf]
        feeds[name] = feeds[name].astype(TYPES[kind])
    return feeds


def agree(models, inputs, sizes, special=False):
    """Whether both compute the same, within rounding, on three random inputs."""
    sessions = [onnxruntime.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"]) for m in models]
    for seed in range(3):
        feeds = fed(inputs, sizes, seed, special)
        a, b = (s.run(None, {port.name: feeds[port.name] for port in s.get_inputs()})[0] for s in sessions)
        if a.shape != b.shape or not np.allclose(a, b, rtol=1e-3, atol=1e-4, equal_nan=True):
            return False
    return True


class Suite:
    def __init__(self, binary, work):
        self.binary, self.work, self.wrong = binary, work, []

    def verdict(self, name, models):
        paths = [self.work / f"{name.replace(' ', '_')}_{side}.onnx" for side in "ab"]
        for path, model in zip(paths, models):
            onnx.save(model, path)
        done = subprocess.run([self.binary, "prove", *map(str, paths), "--no-run"], capture_output=True, text=True, timeout=120, check=False)
        return " ".join((done.stdout or done.stderr).split())

    def rule(self, rule):
        """What is decided of a rule: with symbolic dims, and of the given sizes."""
        said = []
        for at, sizes in enumerate(SIZES):
            pair = [Net(rule.inputs, sizes).made(side) for side in (rule.left, rule.right)]
            if not agree(pair, rule.inputs, sizes):
                self.wrong.append(f"{rule.name}: its sides do not compute the same")
            said.append(self.verdict(f"{rule.name} {at}", pair))
        said.append(self.verdict(f"{rule.name} open", [Net(rule.inputs, None).made(side) for side in (rule.left, rule.right)]))
        self.near(rule)
        return said

    def near(self, rule):
        near, inputs = rule.near, rule.near_inputs or rule.inputs
        sides = near if isinstance(near, tuple) else (rule.left, near or rule.right)
        for sizes in (SIZES[0], None):
            pair = [Net(inputs, sizes).made(side) for side in sides]
            if sizes and agree(pair, inputs, sizes, special=bool(rule.near_inputs) and ":i" in rule.inputs):
                self.wrong.append(f"{rule.name}: its near miss computes the same")
            said = self.verdict(f"{rule.name} near", pair)
            if said.startswith("PROVED"):
                self.wrong.append(f"{rule.name}: its near miss is proved: {said}")


def kind(said):
    """What three verdicts say of a rule: two sets of sizes, then symbolic dims."""
    if not all(one.startswith("PROVED") for one in said[:2]):
        return "undecided"
    lemmas = " WITH LEMMAS" if any("WITH LEMMAS" in one for one in said) else ""
    return ("every size" if said[2].startswith("PROVED") and "FOR SIZES" not in said[2] else "given sizes") + lemmas


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--bin", default="target/release/relayout")
    options.add_argument("--only", default="", help="rules whose name begins so")
    options.add_argument("--work", type=Path, help="a folder that keeps the models")
    options.add_argument("--show", action="store_true")
    args = options.parse_args()
    onnxruntime.set_default_logger_severity(4)
    with tempfile.TemporaryDirectory() as made:
        work = args.work or Path(made)
        work.mkdir(parents=True, exist_ok=True)
        suite, counts = Suite(args.bin, work), collections.Counter()
        for rule in rules(args.only):
            said = [] if rule.none else suite.rule(rule)
            what = "no meaning" if rule.none else kind(said)
            counts[what] += 1
            if rule.none or what == "undecided" or args.show:
                print(f"{rule.name}: {rule.says}: {what}: {rule.none or (said[0] if what == 'undecided' else said[2])}"[:400], flush=True)
    for line in suite.wrong:
        print(f"wrong: {line}")
    print(f"{sum(counts.values())} rules: {', '.join(f'{count} {what}' for what, count in sorted(counts.items()))}")
    return 1 if suite.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
