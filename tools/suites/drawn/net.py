"""A network that grows: its nodes, its constants, and what is known of its values.

Letters name axes: N the batch, C the channels, and D, H, W or L the rest. A value with the axes "NHWC" is an image whose channels
lie last. Each constant is written in one of the ways that ONNX has for it.
"""
import random
from dataclasses import dataclass

import numpy as np
from onnx import helper, numpy_helper

# Few of them fill a block of 8 or 16.
CHANNELS = [12, 20, 28, 36, 44, 60, 12, 20, 28, 3, 58, 16, 32, 24, 8, 64, 48, 4, 6, 1, 5, 9, 40]


class Misfit(Exception):
    """A family has no place in this network, or not for this value."""


@dataclass(frozen=True)
class Value:
    """What flows between nodes. `free` has the letters whose extents the file does not say."""
    name: str
    axes: str
    shape: tuple
    free: frozenset = frozenset()

    def size(self, letter):
        return self.shape[self.axes.index(letter)]

    def at(self, letter):
        return self.axes.index(letter)

    @property
    def space(self):
        """The letters that are neither batch nor channels."""
        return "".join(letter for letter in self.axes if letter not in "NC")


class Net:
    """Nodes so far. Everything random is drawn from `dice` (structure) and `numbers` (weights)."""

    def __init__(self, seed, without=()):
        self.dice, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.nodes, self.constants, self.sparse, self.functions = [], [], [], []
        self.inputs, self.outputs, self.pool = [], [], []
        self.counted, self.overridable, self.shared = 0, [], {}
        self.without = without
        self.opset, self.ir, self.last, self.kind = 17, 8, False, np.dtype(np.float32)

    # What is drawn.

    def once_in(self, times):
        return self.dice.randrange(times) == 0

    def pick(self, choices):
        return self.dice.choice(choices)

    def channels(self):
        return self.pick(CHANNELS) if not self.once_in(8) else self.dice.randint(1, 64)

    def since(self, opset):
        """Ends a family that the network's opset does not have."""
        if self.opset < opset:
            raise Misfit

    def any(self, fits=lambda value: True):
        """A value that fits: the last one most often, so that networks are deep and some values have several readers."""
        fitting = [value for value in self.pool if fits(value)]
        if not fitting:
            raise Misfit
        return fitting[-1] if self.dice.random() < 0.6 else self.pick(fitting[-6:])

    # What is written.

    def name(self):
        self.counted += 1
        return f"v{self.counted}"

    def op(self, kind, inputs, outputs=1, domain="", **attributes):
        """Adds a node; the name of its result, or a list of their names. Inputs are values or names."""
        names = [value.name if isinstance(value, Value) else value for value in inputs]
        made = [self.name() for _ in range(outputs)]
        attributes = {name: value for name, value in attributes.items() if value is not None}
        label = f"{kind}_{self.counted}" if self.dice.random() < 0.5 else ""
        self.nodes.append(helper.make_node(kind, names, made, name=label, domain=domain, **attributes))
        return made[0] if outputs == 1 else made

    def constant(self, array, plain=False):
        """A constant: an initializer, one that is an input as well, a sparse one, or a node. `plain` ones can't be fed by callers."""
        array = np.asarray(array)
        name = self.name()
        way = self.dice.random()
        if way < 0.12 and (self.opset >= 9 or array.dtype == np.float32):
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array)))
        elif way < 0.125 and array.dtype == np.float32 and array.ndim and array.any() and self.opset >= 11 and "sparse" not in self.without:
            self.sparse.append(sparse(name, array))
        else:
            self.constants.append(numpy_helper.from_array(array, name))
            if self.ir < 4 or (way > 0.97 and not plain and "overridable" not in self.without):
                self.overridable.append(name)
        return name

    def ints(self, numbers):
        return self.constant(np.asarray(numbers, np.int64), plain=True)

    def floats(self, shape, low=0.5, high=1.5):
        """Numbers between two limits, each another one."""
        return self.constant(self.numbers.uniform(low, high, shape).astype(self.kind))

    def weights(self, shape, fan):
        """Weights that keep the size of what a product of `fan` terms makes. Now and then those of a node before."""
        key = (tuple(shape), fan)
        if key in self.shared and self.once_in(6):
            return self.shared[key]
        array = self.numbers.standard_normal(shape) / np.sqrt(max(1, fan))
        self.shared[key] = self.constant(array.astype(self.kind))
        return self.shared[key]

    def keep(self, value):
        """Adds a value to those that later nodes may read."""
        if not all(value.shape) or np.prod(value.shape) > 40_000:
            raise Misfit
        self.pool.append(value)
        return value

    def like(self, name, value, **changes):
        """A value with the axes of another one, and other extents of some, which are as little known as before."""
        shape = tuple(changes.get(letter, extent) for letter, extent in zip(value.axes, value.shape, strict=True))
        return Value(name, value.axes, shape, value.free)

    def fixed(self, name, value, **changes):
        """The same, where the file says the new extents."""
        made = self.like(name, value, **changes)
        return Value(name, made.axes, made.shape, value.free - set(changes))

    def map(self, kind, value, others=(), **attributes):
        """An elementwise op."""
        return self.like(self.op(kind, [value, *others], **attributes), value)

    def turn(self, value, axes):
        """A value with its axes in another order."""
        if value.axes == axes:
            return value
        perm = [value.at(letter) for letter in axes]
        name = self.op("Transpose", [value], perm=perm)
        return Value(name, axes, tuple(value.shape[k] for k in perm), value.free)

    def first(self, value):
        """Channels behind the batch, as ONNX wants images."""
        return self.turn(value, "NC" + "".join(sorted(value.space)))

    def final(self, value):
        """Channels last."""
        return self.turn(value, "N" + "".join(sorted(value.space)) + "C")

    def back(self, value):
        """An image as this network holds images: exporters of channels-last frameworks put a Transpose behind each op."""
        return self.final(value) if self.last and not self.once_in(12) else value

    def reshape(self, value, axes, parts):
        """Other axes: each part is the letters of the value's axes that it merges, or a number."""
        extents, wanted, inferred = [], [], False
        for place, part in enumerate(parts):
            if isinstance(part, int):
                extents.append(part)
                wanted.append(part)
                continue
            extents.append(int(np.prod([value.size(letter) for letter in part])))
            whole = len(part) == 1 and place == value.axes.index(part)
            if whole and (part in value.free or self.once_in(2)):
                wanted.append(0)
            elif set(part) & value.free or (not inferred and self.once_in(4)):
                if inferred:
                    raise Misfit
                wanted.append(-1)
                inferred = True
            else:
                wanted.append(extents[-1])
        if inferred and any(set(part) & value.free and want > 0 for part, want in zip(parts, wanted) if isinstance(part, str)):
            raise Misfit
        if int(np.prod(extents)) != int(np.prod(value.shape)):
            raise Misfit
        free = frozenset(letter for letter, part in zip(axes, parts) if isinstance(part, str) and set(part) & value.free)
        return Value(self.op("Reshape", [value, self.ints(wanted)]), axes, tuple(extents), free)

    def shaped_as(self, name, value):
        """A Reshape to the shape that another value has: constant, or computed by Shape where it is not known."""
        if value.free or self.once_in(4):
            return self.like(self.op("Reshape", [name, self.op("Shape", [value])]), value)
        return self.like(self.op("Reshape", [name, self.ints(value.shape)]), value)

    def along(self, value, letter, spread=0):
        """The shape of a constant with a number for each index of a letter, as broadcasting wants it."""
        rest = len(value.axes) - 1 - value.at(letter)
        shape = [value.size(letter)] + [1] * rest
        return [1] * (len(value.axes) - len(shape)) + shape if spread else shape

    def reduced(self, kind, value, letters, keep=1, **attributes):
        """A reduction over letters, with its axes as the opset has them."""
        axes = [value.at(letter) - (len(value.axes) if self.once_in(4) and self.opset >= 11 else 0) for letter in letters]
        given = self.opset >= (13 if kind == "ReduceSum" else 18)
        inputs = [value, self.ints(axes)] if given else [value]
        name = self.op(kind, inputs, axes=None if given else axes, keepdims=keep, **attributes)
        if keep:
            return self.fixed(name, value, **dict.fromkeys(letters, 1))
        left = [letter for letter in value.axes if letter not in letters]
        return Value(name, "".join(left), tuple(value.size(letter) for letter in left), value.free - set(letters))

    def with_axes(self, kind, value, axes):
        """Squeeze or Unsqueeze; the name."""
        if self.opset < 13:
            return self.op(kind, [value], axes=axes)
        return self.op(kind, [value, self.ints(axes)])

    def cut(self, value, letter, start, end, step=1):
        """A part of the indices of a letter."""
        axis, extent = value.at(letter), value.size(letter)
        count = len(range(extent)[start:end:step])
        if self.opset < 10:
            if step != 1:
                raise Misfit
            name = self.op("Slice", [value], axes=[axis], starts=[start], ends=[end])
        else:
            end = -(2 ** 62) if end is None else end
            steps = [self.ints([step])] if step != 1 or self.once_in(2) else []
            name = self.op("Slice", [value, self.ints([start]), self.ints([end]), self.ints([axis]), *steps])
        return self.fixed(name, value, **{letter: count})

    def splits(self, value, letter, sizes):
        """A value in parts."""
        axis = value.at(letter)
        if self.opset < 13:
            names = self.op("Split", [value], len(sizes), axis=axis, split=sizes)
        elif len(set(sizes)) == 1 and self.once_in(2):
            names = self.op("Split", [value], len(sizes), axis=axis, num_outputs=len(sizes) if self.opset >= 18 else None)
        else:
            names = self.op("Split", [value, self.ints(sizes)], len(sizes), axis=axis)
        names = [names] if len(sizes) == 1 else names
        return [self.fixed(name, value, **{letter: size}) for name, size in zip(names, sizes, strict=True)]


def sparse(name, array):
    """The same numbers as a sparse tensor, without its zeros."""
    places = np.flatnonzero(array)
    values = numpy_helper.from_array(array.reshape(-1)[places], name)
    indices = numpy_helper.from_array(places.astype(np.int64))
    return helper.make_sparse_tensor(values, indices, list(array.shape))


def tensor_type(kind):
    return helper.np_dtype_to_tensor_dtype(np.dtype(kind))


def port(name, kind, shape):
    return helper.make_tensor_value_info(name, kind if isinstance(kind, int) else tensor_type(kind), shape)
