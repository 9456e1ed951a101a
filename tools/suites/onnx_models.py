#!/usr/bin/env python3
"""The models of the onnx package: real, light, simple, and what PyTorch was once exported to.

    .relayout/venv/bin/python tools/suites/onnx_models.py [--bin target/release/relayout] [--targets onnx,..] [--kinds simple,..]

Each model runs as it is and between random Transposes, on the package's inputs where it has some, else on random ones. The package's
list of real models names the files of its light ones, whose weights are all alike; these are also filled with random weights, so that
a wrong order of axes shows. A real model whose file is not among them is named and counted as failed, as nothing is fetched. Failed
models stay in the work folder. Last line: `N passed, M failed`, counted by target; exit status 1 if any failed.
"""
import json
import random
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test.loader import DATA_DIR

from judge import judge, parser, wrapped

KINDS = ["simple", "pytorch-converted", "pytorch-operator", "light", "real"]


def given(value, path):
    """The content of an input in a file of the package."""
    data = path.read_bytes()
    if value.type.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if value.type.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(TensorProto.FromString(data))


def asked(model):
    """Inputs that have no value in the file."""
    inner = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in inner]


def drawn(model, rng):
    """Random floats for the inputs of a light model."""
    return {value.name: rng.standard_normal([dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]).astype(np.float32)
            for value in asked(model)}


def filled(model, rng):
    """A light model with random weights for those that it makes of one number. Variances stay above zero."""
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    positive = {node.input[4] for node in model.graph.node if node.op_type == "BatchNormalization"}
    made, nodes = [], []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape" or node.input[0] not in shapes:
            nodes.append(node)
            continue
        shape = [int(extent) for extent in shapes[node.input[0]]]
        # As large as keeps activations in range.
        weights = rng.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:])))
        weights = (np.abs(weights) + 0.5 if node.output[0] in positive else weights).astype(np.float32)
        made.append(numpy_helper.from_array(weights, node.output[0]))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(made)
    return model


def light(rng, stride, only):
    """The light models, with the weights of the package and with random ones."""
    for path in sorted(path for path in Path(DATA_DIR, "light").glob("*.onnx") if only in path.stem)[::stride]:
        model = onnx.load(path)
        feeds = drawn(model, rng)
        yield path.stem, model, feeds
        yield f"filled_{path.stem}", filled(onnx.load(path), rng), feeds


def listed_as_real():
    """Paths that the package's list of real models names: its light ones. Ends the script if it has no such list."""
    lists = sorted(Path(DATA_DIR, "real").glob("*/data.json"))
    if not lists:
        sys.exit(f"onnx_models.py: the package onnx has no list of real models in {DATA_DIR}")
    return [Path(DATA_DIR, "light", json.loads(path.read_text())["url"].rsplit("/", 1)[-1]) for path in lists]


def folders(kind, stride, only):
    """The models of a kind that has a folder for each, with each of its data sets."""
    for folder in sorted(path.parent for path in Path(DATA_DIR, kind).glob("*/model.onnx") if only in path.parent.name)[::stride]:
        model = onnx.load(folder / "model.onnx")
        for data in sorted(folder.glob("test_data_set_*")):
            feeds = {value.name: given(value, data / f"input_{at}.pb") for at, value in enumerate(asked(model))}
            yield f"{kind}_{folder.name}_{data.name[-1]}", model, feeds


def main():
    options = parser(__doc__, "onnx_models")
    options.add_argument("--kinds", default=",".join(KINDS))
    options.add_argument("--stride", type=int, default=1, help="each model of so many")
    options.add_argument("--only", default="", help="models with this in their names")
    args = options.parse_args()
    kinds = args.kinds.split(",")
    if set(kinds) - set(KINDS):
        options.error(f"there are only the kinds {', '.join(KINDS)}")
    held = judge(args)
    for kind in kinds:
        if kind == "real":
            for path in (path for path in listed_as_real() if not path.is_file()):
                held.count["failed"] += 1
                print(f"FAIL real: {path.name} is not in the package and has to be downloaded", flush=True)
            if "light" in kinds:
                print("real: the files of the light models, which were run with their weights and with random ones", flush=True)
                continue
        which = args.stride, args.only
        models = light(np.random.default_rng(args.seed), *which) if kind in ("light", "real") else folders(kind, *which)
        for name, model, feeds in models:
            held.judge(name, model, feeds)
            around, turned = wrapped(model, feeds, random.Random(f"{args.seed} {name}"))
            if around:
                held.judge(f"{name}_wrapped", around, turned)
        print(f"{kind}: {dict(held.count)}", flush=True)
    sys.exit(held.end(args.json))


if __name__ == "__main__":
    main()
