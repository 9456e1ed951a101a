#!/usr/bin/env python3
"""What generated.py promises: a seed is a network, each family is drawn, and a result that is wrong is told from one that is rounded.

    .relayout/venv/bin/python tools/suites/test_generated.py

Exit status 1, with a traceback, if it does not hold.
"""
import hashlib
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import numpy_helper

from drawn import draw
from generated import Original
from noise import as_exact, shake

SEEDS = 40


def digest():
    """A digest of some networks and their inputs."""
    found = hashlib.sha256()
    for seed in range(SEEDS):
        try:
            model, feeds = draw.network(seed)
        except draw.Rejected as why:
            found.update(str(why).encode())
            continue
        found.update(model.SerializeToString(deterministic=True))
        for each in feeds:
            for name, array in each.items():
                found.update(name.encode() + array.tobytes())
    return found.hexdigest()


def a_seed_is_a_network():
    """In another process too, whose sets have another order."""
    for order in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": order}
        command = [sys.executable, __file__, "--digest"]
        said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()
        assert said == digest(), f"other networks with the hash seed {order}"


def each_family_is_drawn():
    """A family that never fits would test nothing."""
    counts = dict.fromkeys((family for _, family in draw.FAMILIES), 0)

    def counting(family):
        def counted(net):
            family(net)
            counts[family] += 1
        return counted
    families, draw.FAMILIES = draw.FAMILIES, [(weight, counting(family)) for weight, family in draw.FAMILIES]
    for seed in range(500):
        try:
            draw.network(seed)
        except draw.Rejected:
            pass
    draw.FAMILIES = families
    never = [family.__name__ for family, count in counts.items() if not count]
    assert not never, f"never drawn: {never}"


def a_convolution():
    """A network of two convolutions, and inputs for it."""
    rng = np.random.default_rng(3)
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[1,8,6,6] x) => (float[1,12,6,6] y) { c = Conv(x, v)  r = Relu(c)  y = Conv(r, w) }""")
    for name, shape in (("v", (16, 8, 1, 1)), ("w", (12, 16, 1, 1))):
        model.graph.initializer.append(numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name))
    return model, [{"x": rng.standard_normal((1, 8, 6, 6)).astype(np.float32)} for _ in range(2)]


def changed(model, change):
    """The model with its first weights changed."""
    other = onnx.ModelProto.FromString(model.SerializeToString())
    tensor = other.graph.initializer[0]
    tensor.CopyFrom(numpy_helper.from_array(change(numpy_helper.to_array(tensor)), tensor.name))
    return other.SerializeToString()


def wrong_results_are_told_from_rounded_ones():
    model, feeds = a_convolution()
    original, rng = Original(model, feeds), np.random.default_rng(5)

    def one_number(array):
        array = array.copy()
        array[3, 2] *= 1.01
        return array
    assert original.why(model.SerializeToString()) is None
    assert original.why(changed(model, lambda array: shake(array, rng))) is None
    for change in (lambda array: array[::-1].copy(), one_number):
        why = original.why(changed(model, change))
        assert why and why.startswith("another result"), why
    renamed = onnx.ModelProto.FromString(model.SerializeToString())
    renamed.graph.node[2].input[1] = "v"
    assert original.why(renamed.SerializeToString()).startswith("does not run")


def sums_in_another_order_are_told_from_wrong_ones():
    """A sum that nearly cancels: the order in which it is made shows, and no last bit of an input does as much."""
    rng = np.random.default_rng(7)
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[1,512] x) => (float[1,4] y) { y = MatMul(x, w) }""")
    array = rng.standard_normal((512, 4)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(array, "w"))
    feeds = {"x": rng.standard_normal((1, 512)).astype(np.float32)}
    exact = [feeds["x"].astype(np.float64) @ array]
    own = [exact[0].astype(np.float32) * np.float32(1 + 2e-7)]
    for off, holds in ((0, True), (6e-7, True), (2e-6, False)):
        got = [(exact[0] * (1 + off)).astype(np.float32)]
        assert as_exact(model, feeds, own, got) is holds, off


def main():
    if "--digest" in sys.argv:
        print(digest())
        return
    for test in (a_seed_is_a_network, each_family_is_drawn, wrong_results_are_told_from_rounded_ones,
                 sums_in_another_order_are_told_from_wrong_ones):
        test()
        print(f"{test.__name__}: ok", flush=True)


if __name__ == "__main__":
    main()
