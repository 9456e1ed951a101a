#!/usr/bin/env python3
"""Time `relayout optimize` on networks of more and more nodes: residual blocks, one after another, each with weights of its own.

    python tools/bench_wide.py [--nodes 1000 10000 100000] [--target nhwc] [--bin target/release/relayout]

A block is Conv, Relu, Conv, Add, Relu in channels-first order between a Transpose from and one to channels-last, as exports of
TensorFlow have it, so that there is something to decide at every node. Printed per size: nodes, seconds of the process on the clock
and on all processors, peak memory, microseconds of a processor per node, what was moved before and after. These are figures of
growth, and no comparison: tools/timing.py has no part in it. Needs numpy and onnx.
"""
import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CHANNELS = 8


def network(nodes):
    """A chain of blocks with at least so many nodes."""
    generator = np.random.default_rng(0)
    graph, weights, x = [], [], "x"

    def add(op, *inputs, **attributes):
        y = f"v{len(graph)}"
        graph.append(helper.make_node(op, list(inputs), [y], name=f"n{len(graph)}", **attributes))
        return y

    def conv(x):
        numbers = generator.standard_normal((CHANNELS, CHANNELS, 3, 3), np.float32) / 32
        weights.append(numpy_helper.from_array(numbers, f"w{len(weights)}"))
        return add("Conv", x, weights[-1].name, pads=[1, 1, 1, 1])

    while len(graph) < nodes:
        first = add("Transpose", x, perm=[0, 3, 1, 2])
        inner = add("Relu", conv(first))
        outer = add("Relu", add("Add", conv(inner), first))
        x = add("Transpose", outer, perm=[0, 2, 3, 1])
    shape = [1, 28, 28, CHANNELS]
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)] for name in ("x", x)]
    made = helper.make_graph(graph, "wide", *ends, weights)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", nargs="+", type=int, default=[1000, 10000, 100000])
    parser.add_argument("--target", default="nhwc")
    parser.add_argument("--bin", default="target/release/relayout")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for nodes in args.nodes:
            path, out, report = (Path(folder) / name for name in ("in.onnx", "out.onnx", "report.json"))
            model = network(nodes)
            onnx.save(model, path)
            start = time.perf_counter()
            command = [args.bin, "optimize", path, "-o", out, "--target", args.target, "--report", report]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - start
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise SystemExit(f"{args.bin} failed on {nodes} nodes")
            told = json.loads(report.read_text())
            count, busy = len(model.graph.node), usage.ru_utime + usage.ru_stime
            print(
                f"{count:8} nodes  {seconds:7.2f} s  {busy:7.2f} s busy  {usage.ru_maxrss / 1e6:6.2f} GB  {busy / count * 1e6:6.1f} us per node  "
                f"moves {told['before']['nodes']} -> {told['after']['nodes']}",
                flush=True,
            )


if __name__ == "__main__":
    main()
