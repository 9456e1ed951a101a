"""Makes a network from a seed: what it is held in, its inputs, its steps, and what it gives."""
import numpy as np
import onnx
from onnx import helper

from . import cuts, inner, norms, parts, rows, units, windows
from .net import Misfit, Net, Value, port

# Each family and how often it is drawn.
FAMILIES = [
    (8, windows.conv), (7, windows.pointwise), (4, windows.transposed), (4, windows.pool), (2, windows.global_pool), (3, windows.resized),
    (5, cuts.split), (6, cuts.slice_), (4, cuts.gather), (5, cuts.concat), (4, cuts.shuffle), (6, cuts.depth_to_space),
    (2, cuts.space_to_depth), (3, cuts.pad), (2, cuts.tile), (2, cuts.gather_nd), (2, cuts.squeeze), (3, cuts.turned),
    (2, cuts.rows_and_columns), (9, norms.group_norm), (4, norms.group_normalization), (3, norms.batch_norm), (2, norms.instance_norm),
    (3, norms.layer_norm), (8, norms.unary), (2, norms.prelu), (7, norms.per_channel), (6, norms.residual), (3, norms.squeeze_and_excite),
    (3, norms.reduction), (2, norms.softmax), (1, norms.lrn), (3, rows.matmul), (2, rows.gemm), (2, rows.attention), (2, rows.einsum),
    (1, rows.recurrent), (2, rows.ordered), (2, rows.concat_of_shapes), (1, rows.product_of_two), (1, rows.texts), (3, units.quantize),
    (3, units.qlinear_conv), (2, units.conv_integer), (3, units.matmul_integer), (3, units.qlinear_matmul), (3, units.unit), (2, units.blocked),
    (2, inner.branches), (2, inner.iterate), (1, inner.scanned), (2, inner.called),
    (8, parts.whole_and_part), (5, parts.cross_stage), (6, parts.upscaled), (9, parts.normed), (3, parts.inverted), (2, parts.dense),
    (4, parts.shuffled), (6, parts.scaled), (2, parts.branch),
]
OPSETS = [7, 8, 9, 10, 11, 11, 12, 13, 13, 13, 14, 15, 16, 17, 17, 17, 18, 18, 19, 20, 21, 21, 21, 22, 23, 24, 25, 26]
SPACES = ["HW"] * 6 + ["L", "DHW", "HW", "L"]


class Rejected(Exception):
    """A draw that is no network; the text says why, as the summary counts it."""


def started(seed, without):
    """A net with its version, its layout, its kind of floats and its first input."""
    net = Net(seed, without)
    net.opset = net.pick(OPSETS)
    least = helper.find_min_ir_version_for([helper.make_opsetid("", net.opset)])
    net.ir = net.pick([least, max(least, 8), max(least, 10)])
    net.last = net.once_in(4)
    net.kind = np.dtype(np.float16 if net.opset >= 13 and net.once_in(25) else np.float32)
    space = net.pick(SPACES)
    free = frozenset(net.pick(["", "", "", "", "N", "N" + space, space]))
    for _ in range(net.pick([1, 1, 1, 2])):
        entered(net, space, free)
    return net


def entered(net, space, free):
    """An image as an input."""
    largest = {1: 24, 2: 9, 3: 5}[len(space)]
    extents = {letter: net.dice.randint(2, largest) for letter in space}
    if net.once_in(2):
        extents = {letter: 2 * (size // 2) for letter, size in extents.items()}
    axes = f"N{space}C" if net.last or net.once_in(4) else f"NC{space}"
    extents |= {"N": net.pick([1, 1, 2, 3]), "C": net.pick([3, 3, net.channels()])}
    name = f"x{len(net.inputs)}"
    shape = tuple(extents[letter] for letter in axes)
    net.inputs.append((name, net.kind, shape, frozenset(axes.index(letter) for letter in free)))
    net.pool.append(Value(name, axes, shape, free))


def grow(net, count):
    """Takes steps; one that does not fit leaves nothing behind."""
    weights = [weight for weight, _ in FAMILIES]
    for _ in range(8 * count):
        if count == 0:
            return
        family = net.dice.choices(FAMILIES, weights)[0][1]
        before = [len(held) for held in (net.nodes, net.constants, net.sparse, net.pool, net.outputs, net.inputs, net.overridable, net.functions)]
        shared = dict(net.shared)
        try:
            family(net)
            count -= 1
        except Misfit:
            lists = (net.nodes, net.constants, net.sparse, net.pool, net.outputs, net.inputs, net.overridable, net.functions)
            for held, length in zip(lists, before, strict=True):
                del held[length:]
            net.shared = shared


def results(net):
    """What the network gives: what no node reads, some of which is dropped, and some of what nodes read as well."""
    made = {name for node in net.nodes for name in node.output}
    read = names_read(net.nodes)
    ends = [value for value in net.pool if value.name in made and value.name not in read]
    inside = [value for value in net.pool if value.name in made and value.name in read]
    if not ends:
        raise Rejected("nothing to give")
    kept = [value for value in ends if not net.once_in(5)] or ends[-1:]
    kept += [value for value in inside if net.once_in(8)]
    net.dice.shuffle(kept)
    return kept


def names_read(nodes):
    """Names that nodes and their bodies read."""
    found = set()
    for node in nodes:
        found.update(node.input)
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                found |= names_read(attribute.g.node) | {value.name for value in attribute.g.output}
    return found


def dims(net, shape, free, names):
    """The dims of a port: free ones get a name or none."""
    return [names.get(place) if place in free else size for place, size in enumerate(shape)]


def assembled(net, kept):
    """The model, with everything that the checker asks for."""
    # Dims of one name have one size.
    ports = [port(name, kind, dims(net, shape, free, {k: net.pick([f"d{k}_{shape[k]}", None]) for k in free})) for name, kind, shape, free in net.inputs]
    held = {tensor.name: tensor for tensor in net.constants}
    ports += [port(name, held[name].data_type, held[name].dims) for name in net.overridable]
    outs = [port(value.name, net.kind, [None if s in value.free else n for s, n in zip(value.axes, value.shape)]) for value in kept]
    made = {name for node in net.nodes for name in node.output}
    outs += [port(name, kind, None) for name, kind in net.outputs if name in made]
    graph = helper.make_graph(net.nodes, "drawn", ports, outs, initializer=net.constants, sparse_initializer=net.sparse)
    imports = [helper.make_opsetid("", net.opset)] + [helper.make_opsetid(domain, 1) for domain in {f.domain for f in net.functions}]
    return helper.make_model(graph, ir_version=net.ir, opset_imports=imports, functions=net.functions)


def dense(model):
    """The model with sparse initializers as dense ones, which inference takes alone."""
    if not model.graph.sparse_initializer:
        return model
    twin = onnx.ModelProto.FromString(model.SerializeToString())
    for tensor in twin.graph.sparse_initializer:
        array = np.zeros(int(np.prod(tensor.dims)), np.float32)
        array[onnx.numpy_helper.to_array(tensor.indices)] = onnx.numpy_helper.to_array(tensor.values)
        twin.graph.initializer.append(onnx.numpy_helper.from_array(array.reshape(tensor.dims), tensor.values.name))
    del twin.graph.sparse_initializer[:]
    return twin


def inferred(model):
    """The model with what inference says of its values."""
    try:
        return onnx.shape_inference.infer_shapes(dense(model), check_type=True, strict_mode=True, data_prop=True)
    except Exception as error:  # noqa: BLE001  # of the onnx package
        raise Rejected("inference: " + str(error).replace("\n", " ").split("(op_type:")[-1][:60]) from error


def completed(model, net):
    """The model with the shapes of all its outputs, checked; sometimes with what inference says of the values inside."""
    found = inferred(model)
    known = {value.name: value for value in found.graph.output}
    for value in model.graph.output:
        if not value.type.tensor_type.HasField("shape"):
            if not known[value.name].type.tensor_type.HasField("shape"):
                raise Rejected("an output without a shape")
            value.CopyFrom(known[value.name])
    if net.once_in(3):
        model.graph.value_info.extend(found.graph.value_info)
    try:
        onnx.checker.check_model(model)
        onnx.checker.check_model(dense(model), full_check=True)
    except Exception as error:  # noqa: BLE001  # of the onnx package
        raise Rejected("checker: " + str(error).split("==>")[0].strip()[:60]) from error
    return model


def feeds(net, model, run):
    """Inputs for a run. The second one has other sizes where the file says none, and other numbers where a default may be replaced."""
    numbers, found = np.random.default_rng([net.numbers.integers(1 << 30), run]), {}
    for name, kind, shape, free in net.inputs:
        if kind == np.bool_:
            found[name] = np.asarray(run == 0)
        elif kind == np.int64:
            found[name] = np.asarray([2, 0][run])
        else:
            sizes = [size + (2 if place else 1) * run if place in free else size for place, size in enumerate(shape)]
            found[name] = numbers.standard_normal(sizes).astype(kind)
    if run and net.ir >= 4:
        held = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        found |= {name: (held[name] * np.float32(0.75)).astype(held[name].dtype) for name in net.overridable if held[name].dtype.kind == "f"}
    return found


def network(seed, without=()):
    """The network of a seed: (model, feeds of two runs). The same for the same seed and what it is to be drawn without."""
    net = started(seed, without)
    grow(net, net.dice.randint(2, 11))
    model = completed(assembled(net, results(net)), net)
    return model, [feeds(net, model, run) for run in (0, 1)]
