#!/usr/bin/env python3
"""Gives the graphs of this corpus weights: the same numbers on every machine, with every version of NumPy.

    python hydrate.py resnet18.onnx.gz resnet18.onnx      a graph
    python hydrate.py --all FOLDER                        all of manifest.json, into a folder

A tensor without weights refers to external data at a location `hydrate:KIND`. Beside it stand the seed and what the kind needs:

    normal     mean, std     nearly normal numbers, none farther from the mean than 3.47 deviations
    uniform    low, high     numbers from low on, below high
    randint    low, high     whole numbers from low to high, both included
    const      value         the same number everywhere

Numbers come from the bits of PCG64, whose seed is the digest of the tensor's seed, and are made with sums and products of doubles that
round nowhere else than on other machines. `feeds` makes inputs in the same way. Needs numpy and onnx.
"""
import argparse
import gzip
import hashlib
import json
import math
import sys
from pathlib import Path

import numpy as np
import onnx

HERE = Path(__file__).resolve().parent
MARK = "hydrate:"
# A sum of four 16-bit numbers: its mean, and its deviation.
MEAN, DEVIATION = 131070, 37837.227


def bits(seed, count):
    """So many random words of 64 bits."""
    start = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "little")
    return np.random.PCG64(start).random_raw(count)


def uniform(seed, count):
    """Numbers from 0 on, below 1."""
    return (bits(seed, count) >> np.uint64(11)).astype(np.float64) * (1.0 / (1 << 53))


def normal(seed, count):
    """Numbers of mean 0 and deviation 1."""
    quarters = np.asarray(bits(seed, count), "<u8").view("<u2").reshape(count, 4)
    return (quarters.sum(axis=1, dtype=np.int64) - MEAN).astype(np.float64) * (1.0 / DEVIATION)


def numbers(kind, told, seed, count):
    """Doubles, or whole numbers."""
    if kind == "normal":
        return float(told.get("mean", 0)) + float(told.get("std", 1)) * normal(seed, count)
    if kind == "uniform":
        low, high = float(told["low"]), float(told["high"])
        return low + (high - low) * uniform(seed, count)
    if kind == "randint":
        low, high = int(told["low"]), int(told["high"])
        return low + np.floor((high - low + 1) * uniform(seed, count)).astype(np.int64)
    if kind == "const":
        return np.full(count, float(told["value"]))
    raise ValueError(f"there is no kind {kind}")


def halved(values):
    """bfloat16 as 16-bit words: the upper half of a float, rounded to even."""
    words = values.astype("<f4").view("<u4")
    return ((words + np.uint32(0x7FFF) + ((words >> 16) & 1)) >> 16).astype("<u2")


def stored(values, code):
    """The bytes of a tensor of this type of ONNX."""
    if code == onnx.TensorProto.BFLOAT16:
        return halved(values).tobytes()
    dtype = onnx.helper.tensor_dtype_to_np_dtype(code)
    if dtype.kind in "iu" and values.dtype.kind == "f":
        range_of = np.iinfo(dtype)
        values = np.clip(np.rint(values), range_of.min, range_of.max)
    return values.astype(dtype.newbyteorder("<")).tobytes()


def of_nodes(nodes):
    for node in nodes:
        for attribute in node.attribute:
            yield from [attribute.t] if attribute.HasField("t") else []
            yield from attribute.tensors
            for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                yield from of_graph(graph)


def of_graph(graph):
    yield from graph.initializer
    yield from of_nodes(graph.node)


def tensors(model):
    """All tensors of a model, those of bodies and functions included."""
    yield from of_graph(model.graph)
    for function in model.functions:
        yield from of_nodes(function.node)


def hydrate(model):
    """Gives a model its weights; how many tensors had none."""
    filled = 0
    for tensor in tensors(model):
        told = {entry.key: entry.value for entry in tensor.external_data}
        if not told.get("location", "").startswith(MARK):
            continue
        values = numbers(told["location"].removeprefix(MARK), told, told["seed"], math.prod(tensor.dims))
        del tensor.external_data[:]
        tensor.ClearField("data_location")
        tensor.raw_data = stored(values, tensor.data_type)
        filled += 1
    return filled


def feeds(entry, seed=0):
    """Inputs of a model, as its entry in the manifest asks for them."""
    arrays = {}
    for port in entry["inputs"]:
        told = port["fill"]
        values = numbers(told["kind"], told, f"feed/{seed}/{port['name']}", math.prod(port["shape"]))
        arrays[port["name"]] = values.astype(port["dtype"]).reshape(port["shape"])
    return arrays


def load(path):
    """A graph without its weights, compressed or not."""
    data = Path(path).read_bytes()
    return onnx.load_model_from_string(gzip.decompress(data) if str(path).endswith(".gz") else data)


def save(model, path):
    Path(path).write_bytes(model.SerializeToString(deterministic=True))


def manifest():
    """The entries of manifest.json."""
    return json.loads((HERE / "manifest.json").read_text())["models"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("out", type=Path)
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()
    if args.all == bool(args.model):
        parser.error("name a graph and a file, or --all and a folder")
    jobs = [(args.model, args.out)]
    if args.all:
        args.out.mkdir(parents=True, exist_ok=True)
        jobs = [(HERE / entry["file"], args.out / f"{entry['name']}.onnx") for entry in manifest()]
    for source, out in jobs:
        model = load(source)
        filled = hydrate(model)
        save(model, out)
        print(f"{out}: {filled} tensors")


if __name__ == "__main__":
    sys.exit(main())
