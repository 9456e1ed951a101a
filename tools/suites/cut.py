#!/usr/bin/env python3
"""Make a model that a suite kept small: the fewest nodes and outputs with which a target still makes another result, or none.

    .relayout/venv/bin/python tools/suites/cut.py MODEL.onnx --target onnx [--bin target/release/relayout] [-o small.onnx]

MODEL.npz beside the model has its inputs, as the suites leave them. Nodes are taken away from both ends: a value that no node makes
any more becomes an input with what it held, and one that no node reads any more is an output. Prints the text of what is left.
"""
import argparse
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from judge import OFF, ROOT, Judge, rounding, run


def values(model, feeds):
    """What every value of the main graph holds in ONNX Runtime with rewrites off."""
    watched = onnx.ModelProto.FromString(model.SerializeToString())
    made = [name for node in model.graph.node for name in node.output if name]
    del watched.graph.output[:]
    watched.graph.output.extend(onnx.ValueInfoProto(name=name) for name in made)
    found = dict(zip(made, run(watched.SerializeToString(), feeds, OFF), strict=True))
    return {**{tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}, **feeds, **found}


def port(name, array):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def names_read(nodes):
    """Names that nodes read from outside, in their bodies as well."""
    found = set()
    for node in nodes:
        found.update(node.input)
        for graph in (attribute.g for attribute in node.attribute if attribute.type == onnx.AttributeProto.GRAPH):
            inner = {name for inside in graph.node for name in inside.output} | {value.name for value in graph.input}
            inner |= {tensor.name for tensor in graph.initializer}
            found |= (names_read(graph.node) | {value.name for value in graph.output}) - inner
    return found


def part(model, nodes, known):
    """The model of some of its nodes, and its feeds; None if it holds something that is no tensor, or gives nothing."""
    made = {name for node in nodes for name in node.output}
    ends = {value.name for value in model.graph.output} | names_read(model.graph.node)
    read = names_read(nodes) - {""}
    sparse = {tensor.values.name for tensor in model.graph.sparse_initializer}
    constants = {tensor.name for tensor in model.graph.initializer} | sparse
    inputs = sorted(read - made - constants)
    # What nobody reads in the model is read by nobody in its parts.
    outputs = [name for node in nodes for name in node.output if name and name not in read and name in ends]
    if not outputs or not all(isinstance(known[name], np.ndarray) for name in [*inputs, *outputs]):
        return None
    small = onnx.ModelProto.FromString(model.SerializeToString())
    del small.graph.node[:], small.graph.input[:], small.graph.output[:], small.graph.initializer[:], small.graph.value_info[:]
    small.graph.node.extend(nodes)
    replaced = [value for value in model.graph.input if value.name in read & constants]
    small.graph.input.extend([port(name, known[name]) for name in inputs] + replaced)
    small.graph.output.extend(port(name, known[name]) for name in outputs)
    small.graph.initializer.extend(tensor for tensor in model.graph.initializer if tensor.name in read)
    del small.graph.sparse_initializer[:]
    small.graph.sparse_initializer.extend(tensor for tensor in model.graph.sparse_initializer if tensor.values.name in read)
    return small, {name: known[name] for name in inputs}


def why(held, small, feeds, target):
    """Why a target fails on a model; None if it does not, or if nothing runs the model."""
    source = held.work / "part.onnx"
    onnx.save(small, source)
    executed = held.executed(str(source), feeds)
    return held.found(source, feeds, executed[0], target, rounding(small), executed[1]) if executed else None


def fewest(model, feeds, fails):
    """The smallest part that fails alike, by halves and then by single nodes; `fails` says of a part and its feeds why, or None."""
    known, nodes = values(model, feeds), list(model.graph.node)
    best = part(model, nodes, known)
    kind = (fails(*best) or "")[:16] if best else ""
    if not kind:
        return None
    size = max(1, len(nodes) // 2)
    while True:
        at, before = 0, len(nodes)
        while at < len(nodes):
            left = nodes[:at] + nodes[at + size:]
            smaller = part(model, left, known) if left else None
            if smaller and (fails(*smaller) or "").startswith(kind):
                nodes, best = left, smaller
            else:
                at += size
        if size == 1 and len(nodes) == before:
            return best
        size = max(1, size // 2)


def shown(model):
    """The text of a model, with the values of short constants alone."""
    short = onnx.ModelProto.FromString(model.SerializeToString())
    tensors = [a.t for node in short.graph.node for a in node.attribute if a.type == onnx.AttributeProto.TENSOR]
    for tensor in [*short.graph.initializer, *tensors]:
        if np.prod(tensor.dims) > 16:
            for field in ("raw_data", "float_data", "int32_data", "int64_data"):
                tensor.ClearField(field)
    return onnx.printer.to_text(short)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("model", type=Path)
    options.add_argument("--target", required=True)
    options.add_argument("--bin", type=Path, default=ROOT / "target/release/relayout")
    options.add_argument("--work", type=Path, default=ROOT / "target/suites/cut")
    options.add_argument("-o", "--output", type=Path, help="the model; its inputs stand beside it")
    args = options.parse_args()
    held = Judge(args.bin, [args.target], args.work)
    with np.load(args.model.with_suffix(".npz")) as file:
        best = fewest(onnx.load(args.model), dict(file), lambda small, feeds: why(held, small, feeds, args.target))
    if best is None:
        sys.exit(f"tools/suites/cut.py: {args.model} does not fail for {args.target}")
    small, feeds = best
    if args.output:
        onnx.save(small, args.output)
        np.savez(args.output.with_suffix(".npz"), **feeds)
    print(shown(small))
    print(why(held, small, feeds, args.target))


if __name__ == "__main__":
    main()
