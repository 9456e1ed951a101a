"""Families with graphs inside: If, Loop and Scan that read values from outside, and functions of the model itself."""
import numpy as np
from onnx import TensorProto, helper

from . import norms
from .net import Misfit, port
from .windows import convolved

# Names that a writer of functions may want as well.
NAMES = [("local", "Part")] * 5 + [("relayout", "Conv2d_NHWC_B"), ("relayout", "Resize_NHWC"), ("relayout", "Relu")]


def same(net):
    """A convolution that keeps the extents and the channels."""
    value = net.any(lambda v: v.space)
    return convolved(net, value, out=value.size("C"), group=1, simple=True)


KEEPING = [same, same, norms.unary, norms.per_channel, norms.group_norm, norms.batch_norm, norms.prelu, norms.residual]


def steps(net, value, count):
    """Runs families that keep axes and extents on a value, in a list of nodes of its own: (nodes, result)."""
    nodes, pool, outputs, shared = net.nodes, net.pool, net.outputs, net.shared
    net.nodes, net.pool, net.outputs, net.shared = [], [value], [], {}
    try:
        for _ in range(count):
            before = net.pool[-1]
            try:
                net.pick(KEEPING)(net)
            except Misfit:
                net.pool[:] = [value, before]
        made = net.turn(net.pool[-1], value.axes)
        if made.shape != value.shape:
            raise Misfit
        if made == value:
            made = net.map("Relu", value)
        return net.nodes, made
    finally:
        net.nodes, net.pool, net.outputs, net.shared = nodes, pool, outputs, shared


def declared(net, name, value):
    return port(name, net.kind, [None if letter in value.free else size for letter, size in zip(value.axes, value.shape)])


def branches(net):
    """An If whose branches read a value from outside."""
    value = net.any()
    graphs = []
    for way in ("then", "else"):
        nodes, made = steps(net, value, net.pick([1, 1, 2]))
        graphs.append(helper.make_graph(nodes, way, [], [declared(net, made.name, made)]))
    name = net.name()
    condition = f"c{name}"
    net.inputs.append((condition, np.bool_, (), frozenset()))
    net.nodes.append(helper.make_node("If", [condition], [name], then_branch=graphs[0], else_branch=graphs[1]))
    return net.keep(net.like(name, value))


def iterate(net):
    """A Loop of 0 to 3 rounds that carries a value, and may collect what it was."""
    value = net.any()
    net.since(8)
    state, count, going = f"s{net.counted}", f"i{net.counted}", f"k{net.counted}"
    inner = net.like(state, value)
    nodes, made = steps(net, inner, net.pick([1, 2]))
    on = f"{going}_on"
    nodes.append(helper.make_node("Identity", [going], [on]))
    collects = net.once_in(2)
    outs = [port(on, TensorProto.BOOL, []), declared(net, made.name, made)]
    if collects:
        kept = f"{state}_kept"
        turned = list(made.axes)
        net.dice.shuffle(turned)
        source = state if net.once_in(2) else made.name
        nodes.append(helper.make_node("Transpose", [source], [kept], perm=[made.at(s) for s in turned]))
        extents = dict(zip(made.axes, made.shape))
        outs.append(port(kept, net.kind, [None if s in made.free else extents[s] for s in turned]))
    ins = [port(count, TensorProto.INT64, []), port(going, TensorProto.BOOL, []), declared(net, state, inner)]
    body = helper.make_graph(nodes, "body", ins, outs)
    rounds = net.constant(np.asarray(net.pick([0, 1, 2, 2, 3]), np.int64), True)
    if net.once_in(3):
        rounds = f"m{net.counted}"
        net.inputs.append((rounds, np.int64, (), frozenset()))
    names = [net.name() for _ in range(1 + collects)]
    net.nodes.append(helper.make_node("Loop", [rounds, net.constant(np.asarray(True), True), value.name], names, body=body))
    if collects:
        net.outputs.append((names[1], net.kind))
    return net.keep(net.like(names[0], value))


def scanned(net):
    """A Scan over rows, with a state that sums up, and a captured constant."""
    net.since(9)
    value = net.any(lambda v: len(v.axes) > 1 and len(v.axes) < 4 and v.axes[0] not in v.free)
    part, state = f"p{net.counted}", f"s{net.counted}"
    shape = [None if s in value.free else size for s, size in zip(value.axes[1:], value.shape[1:])]
    if None in shape:
        raise Misfit
    factor = net.constant(np.asarray(0.5, net.kind), True)
    total, row = f"{part}_total", f"{part}_row"
    nodes = [helper.make_node("Mul", [state, factor], [f"{part}_half"]), helper.make_node("Add", [f"{part}_half", part], [total]),
             helper.make_node("Tanh", [total], [row])]
    ins = [port(state, net.kind, shape), port(part, net.kind, shape)]
    body = helper.make_graph(nodes, "body", ins, [port(total, net.kind, shape), port(row, net.kind, shape)])
    start = net.constant(np.zeros(shape, net.kind), True)
    names = [net.name() for _ in range(2)]
    net.nodes.append(helper.make_node("Scan", [start, value.name], names, body=body, num_scan_inputs=1))
    return net.keep(net.like(names[1], value))


def called(net):
    """A function of the model, called once or twice."""
    if net.ir < 8 or net.functions:
        raise Misfit
    value = net.any()
    nodes, made = steps(net, value, net.pick([1, 2, 3]))
    inside = {name for node in nodes for name in node.output}
    read = dict.fromkeys(name for node in nodes for name in node.input if name and name not in inside)
    held = {tensor.name: tensor for tensor in net.constants}
    known = [name for name in read if name in held and name not in net.overridable and net.once_in(2)]
    nodes = [helper.make_node("Constant", [], [name], value=held[name]) for name in known] + list(nodes)
    inputs = [value.name, *(name for name in read if name not in known and name != value.name)]
    domain, name = net.pick(NAMES)
    imports = [helper.make_opsetid("", net.opset)]
    net.functions.append(helper.make_function(domain, name, inputs, [made.name], nodes, imports))
    result = net.keep(net.like(net.op(name, inputs, domain=domain), value))
    alike = [other for other in net.pool if (other.axes, other.shape, other.free) == (value.axes, value.shape, value.free)]
    if net.once_in(2):
        result = net.keep(net.like(net.op(name, [net.pick(alike).name, *inputs[1:]], domain=domain), value))
    return result
