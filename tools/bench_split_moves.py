#!/usr/bin/env python3
"""Time Transposes that ONNX Runtime is slow at beside what `optimize --target ort-cpu` makes of them.

    python tools/bench_split_moves.py --bin target/release/relayout [--threads 1] [--rounds 21] [--check]

16 MB of f32 a case, both models in one process, in turns (tools/timing.py), the file as it stands (`off`) and with every
optimization on load (`all`). Results are checked before anything is timed, and a file that stayed as it was is not timed. Printed for
each case: median milliseconds of both, their ratio with its interval of 95 %, the ratio of the first beside itself, and the
Transposes that the runtime keeps of the split one. With --check the exit status is 1 if a ratio is below 1.5, a file stayed as it
was, or the runtime merged the Transposes on load. Needs numpy, onnx and onnxruntime.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import timing

CASES = [
    ([1, 64, 256, 256], [0, 3, 2, 1]),
    ([128, 256, 128], [2, 1, 0]),
    ([64, 32, 64, 32], [1, 0, 3, 2]),
    ([64, 32, 64, 32], [3, 2, 1, 0]),
    ([1, 64, 128, 2, 128, 2], [0, 3, 5, 1, 2, 4]),
    ([256, 1, 16384], [2, 1, 0]),
]
LEVELS = {
    "off": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}


def model(shape, perm):
    value = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
    output = value("y", [shape[axis] for axis in perm])
    node = helper.make_node("Transpose", ["x"], ["y"], perm=perm)
    graph = helper.make_graph([node], "bench", [value("x", shape)], [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def session(path, level, threads, kept=None):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = LEVELS[level]
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    # Else the threads of the session that has just run spin on the cores of the other one.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    if kept:
        options.optimized_model_filepath = str(kept)
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def perms(path):
    nodes = onnx.load(path).graph.node
    return [list(a.ints) for n in nodes if n.op_type == "Transpose" for a in n.attribute if a.name == "perm"]


def bound(runner, source, target):
    binding = runner.io_binding()
    binding.bind_ortvalue_input("x", source)
    binding.bind_ortvalue_output("y", target)
    return lambda: runner.run_with_iobinding(binding)


def case(args, folder, shape, perm, level):
    before, after, kept = folder / "before.onnx", folder / "after.onnx", folder / "kept.onnx"
    onnx.save(model(shape, perm), before)
    command = [args.bin, "optimize", str(before), "-o", str(after), "--target", "ort-cpu"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    name = lambda numbers, by: by.join(map(str, numbers))
    title = f"{name(shape, 'x'):>20}  {name(perm, ' '):<12} {level}"
    if timing.identical(before, after):
        print(f"{title}  stayed as it was", flush=True)
        return False
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    source = onnxruntime.OrtValue.ortvalue_from_numpy(x)
    wanted = np.ascontiguousarray(x.transpose(perm))
    runs = {}
    for path in (before, after):
        target = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros_like(wanted))
        run = bound(session(path, level, args.threads, kept if path == after else None), source, target)
        run()
        if not np.array_equal(target.numpy(), wanted):
            sys.exit(f"{shape} {perm}: {path.name} gives a wrong result at level {level}")
        runs[path.stem] = run
    found = timing.beside(runs, args.rounds)
    old, new = (found.median(path) * 1e3 for path in runs)
    ratio, left = found.over("before", "after"), perms(kept)
    print(f"{title}  {old:7.2f} {new:7.2f}  {ratio}  {found.control()}  {' then '.join(name(p, ' ') for p in left)}", flush=True)
    return ratio.median >= 1.5 and left == perms(after)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="target/release/relayout")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    print("shape, perm, level, Transpose ms, split ms, ratio, Transpose beside itself, Transposes that the runtime keeps")
    with tempfile.TemporaryDirectory() as folder:
        good = [case(args, Path(folder), *c, level) for c in CASES for level in LEVELS]
    return 1 if args.check and not all(good) else 0


if __name__ == "__main__":
    sys.exit(main())
