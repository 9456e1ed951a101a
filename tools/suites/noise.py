"""Whether two results are the same, element by element, as far as the model's own noise tells them apart."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, version_converter
from onnx.reference import ReferenceEvaluator

from cut import names_read
from judge import HALVES, OFF, ON, run

# Rounding that is always allowed: of the number itself, and of the root of the mean square of its tensor.
OWN, MEAN = 2e-5, 5e-6
# Last bits of floats that are drawn anew, as a part of the number, and how often.
SHAKEN, TIMES = 4e-7, 12
# How many times the noise that was seen a result may be off, and the noise that makes a network unsteady.
MARGIN, UNSTEADY = 4, 1e-3
# The operator set in which the reference of the onnx package knows most ops.
REFERENCE = 21


def size(array):
    """The root of the mean square of the finite numbers."""
    finite = array[np.isfinite(array)].astype(np.float64)
    return float(np.sqrt(np.mean(finite ** 2))) if finite.size else 0.0


def apart(a, b, halves=False):
    """How far each element is off beyond rounding, as a part of the tensor's size; infinite where it is another thing."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return np.full(1, np.inf)
    if a.dtype.kind != "f":
        return (a != b).astype(np.float64)
    x, y = a.astype(np.float64), b.astype(np.float64)
    strange = ~(np.isfinite(x) & np.isfinite(y))
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    whole = max(size(x), 1e-30)
    rough = HALVES / MEAN if halves or a.dtype == np.float16 else 1
    with np.errstate(invalid="ignore"):
        off = np.abs(x - y)
        off = np.where(off <= rough * (OWN * np.abs(x) + MEAN * whole), 0, off / whole)
    return np.where(strange, np.where(same, 0, np.inf), off)


def worst(wanted, got, halves=False):
    """The largest difference of all outputs, and how many elements are off."""
    if len(wanted) != len(got):
        return np.inf, 1
    found = [apart(a, b, halves) for a, b in zip(wanted, got, strict=True)]
    return max((float(off.max(initial=0)) for off in found), default=0.0), sum(int((off > 0).sum()) for off in found)


def shake(array, rng):
    """Floats with other last bits, also halves, which have fewer bits. Everything else stays as it is, and so do whole and half numbers:
    they may be factors of a Resize."""
    if array.dtype.kind != "f" or (2 * array == np.round(2 * array)).all():
        return array
    step = max(SHAKEN, float(np.finfo(array.dtype).eps))
    # Of a scalar numpy makes a number, which ONNX Runtime does not take.
    return np.asarray(array * (1 + step * rng.uniform(-1, 1, array.shape)), array.dtype)


def shaken(model, feeds, level=OFF, times=TIMES):
    """Results of a model whose inputs and weights differ in their last bits."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    weights = [(tensor, numpy_helper.to_array(tensor)) for tensor in model.graph.initializer]
    rng = np.random.default_rng(0)
    for _ in range(times):
        for tensor, array in weights:
            tensor.CopyFrom(numpy_helper.from_array(shake(array, rng), tensor.name))
        yield run(model.SerializeToString(), {name: shake(value, rng) for name, value in feeds.items()}, level)


def widened(graph, narrow=TensorProto.FLOAT16, wide=TensorProto.FLOAT):
    """Makes a graph of halves one of floats, or one of other numbers one of wider ones; bodies too."""
    kind = helper.tensor_dtype_to_np_dtype(wide)
    tensors, types = list(graph.initializer), [value.type for value in (*graph.input, *graph.output, *graph.value_info)]
    for node in graph.node:
        for attribute in node.attribute:
            tensors += [attribute.t] if attribute.HasField("t") else []
            if attribute.name in ("to", "dtype") and attribute.i == narrow:
                attribute.i = wide
            for body in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
                widened(body, narrow, wide)
    for tensor in (tensor for tensor in tensors if tensor.data_type == narrow):
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(kind), tensor.name))
    for given in (given.tensor_type for given in types if given.tensor_type.elem_type == narrow):
        given.elem_type = wide


def in_doubles(model, feeds):
    """Results of a model whose floats are doubles, by the reference of the onnx package: what it computes without roundings."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    dense = [numpy_helper.from_array(of_sparse(tensor), tensor.values.name) for tensor in model.graph.sparse_initializer]
    model.graph.initializer.extend(dense)
    del model.graph.sparse_initializer[:]
    # The reference lacks some ops of old operator sets.
    if max((each.version for each in model.opset_import if not each.domain), default=REFERENCE) < REFERENCE:
        model = version_converter.convert_version(model, REFERENCE)
    widened(model.graph, TensorProto.FLOAT, TensorProto.DOUBLE)
    feeds = {name: value.astype(np.float64) if value.dtype == np.float32 else value for name, value in feeds.items()}
    return [np.asarray(array) for array in ReferenceEvaluator(model).run(None, feeds)]


def of_sparse(tensor):
    """The array that a sparse constant stands for."""
    values, places = numpy_helper.to_array(tensor.values), numpy_helper.to_array(tensor.indices)
    dense = np.zeros(list(tensor.dims), values.dtype)
    if places.ndim == 1:
        dense.reshape(-1)[places] = values
    else:
        dense[tuple(places.T)] = values
    return dense


def as_exact(model, feeds, wanted, got):
    """Whether a result is as near to what the model computes without roundings as the model's own is, and that is near. Sums in another
    order are, which no last bit of an input or of a weight shows. Not for numbers that are counted or rounded on the way."""
    try:
        exact = in_doubles(model, feeds)
    except Exception:  # noqa: BLE001  # whatever the reference lacks
        return False

    for own, ours, exactly in zip(wanted, got, exact, strict=True):
        if own.dtype.kind != "f":
            if not np.array_equal(own, ours):
                return False
            continue
        if own.shape != exactly.shape:
            return False
        off = [float(np.abs(each - exactly).max(initial=0)) / max(size(exactly), 1e-30) for each in (own, ours)]
        if not (off[1] <= MARGIN * off[0] and off[0] <= UNSTEADY):
            return False
    return True


def rounded(node, halves):
    """A node of floats, and what rounds those of its results that were halves to halves."""
    made = onnx.NodeProto.FromString(node.SerializeToString())
    for at, name in enumerate(node.output):
        made.output[at] = name + ".exact" if name in halves else name
    yield made
    for name in halves.intersection(node.output):
        yield helper.make_node("Cast", [name + ".exact"], [name + ".half"], to=TensorProto.FLOAT16)
        yield helper.make_node("Cast", [name + ".half"], [name], to=TensorProto.FLOAT)


def in_floats(model, feeds, wanted):
    """Results of a model of halves, computed in floats: once without a rounding, once with one behind each node. The runtime is between
    the two, since it leaves out some of them."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    known = onnx.shape_inference.infer_shapes(model).graph
    halves = {value.name for value in (*known.value_info, *known.output) if value.type.tensor_type.elem_type == TensorProto.FLOAT16}
    widened(model.graph)
    nodes = list(model.graph.node)
    feeds = {name: value.astype(np.float32) if value.dtype == np.float16 else value for name, value in feeds.items()}
    for names in (set(), halves):
        del model.graph.node[:]
        model.graph.node.extend(each for node in nodes for each in rounded(node, names))
        got = run(model.SerializeToString(), feeds, OFF)
        yield [array.astype(like.dtype) for array, like in zip(got, wanted, strict=True)]


def jittered(model, feeds, level=OFF, times=TIMES):
    """Results of a model in which each float that a node makes is off by its last bits, as another kernel would round it. Sums of many
    numbers have less noise of what they are made of than of their own."""
    known = onnx.shape_inference.infer_shapes(model).graph
    floats = {value.name for value in (*known.value_info, *known.output) if value.type.tensor_type.elem_type == TensorProto.FLOAT}
    nodes = list(model.graph.node)
    for seed in range(times):
        jittered = onnx.ModelProto.FromString(model.SerializeToString())
        del jittered.graph.node[:]
        for node in nodes:
            made = onnx.NodeProto.FromString(node.SerializeToString())
            names = [name for name in node.output if name in floats and node.op_type not in ("Constant", "ConstantOfShape")]
            for at, name in enumerate(node.output):
                made.output[at] = name + ".exact" if name in names else name
            jittered.graph.node.append(made)
            for name in names:
                like = dict(low=1 - SHAKEN, high=1 + SHAKEN, seed=float(seed * len(nodes) + len(jittered.graph.node)))
                jittered.graph.node.extend([
                    helper.make_node("RandomUniformLike", [name + ".exact"], [name + ".off"], **like),
                    helper.make_node("Mul", [name + ".exact", name + ".off"], [name]),
                ])
        yield run(jittered.SerializeToString(), feeds, level)


def living(model):
    """A model without the nodes that no output needs. They keep the runtime from rewrites that it makes without them."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    needed, nodes = {value.name for value in model.graph.output}, []
    for node in reversed(model.graph.node):
        if needed.intersection(node.output):
            needed |= names_read([node])
            nodes.append(node)
    nodes.reverse()
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def noise(model, feeds, wanted, halves=False):
    """The model's own noise, by element: what its last bits, those of its nodes and the runtime's rewrites change at most, also where no dead node is in their
    way, and of one of halves what its roundings do. (largest, elements)"""
    largest, elements = 0.0, 0
    others = list(shaken(model, feeds))
    try:
        others.extend(jittered(model, feeds))
    except Exception:  # noqa: BLE001  # whatever the runtime says of a body that reads a value which is off
        pass
    if halves:
        try:
            others.extend(in_floats(model, feeds, wanted))
        except Exception:  # noqa: BLE001  # whatever the runtime says of a model that has more of halves than types
            pass
    for each in (model, living(model)):
        try:
            others.append(run(each.SerializeToString(), feeds, ON))
        except Exception:  # noqa: BLE001  # whatever the runtime says
            pass
    for other in others:
        off, count = worst(wanted, other, halves)
        largest, elements = max(largest, off), max(elements, count)
    return largest, elements
