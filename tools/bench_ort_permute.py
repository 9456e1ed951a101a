#!/usr/bin/env python3
"""Time the op Relayout of the custom-op library beside ONNX Runtime's own Transpose, in one process, interleaved.

    python tools/bench_ort_permute.py [--library target/release/librelayout_ortop.so] [--threads 1 2] [--rounds 21] [--check]

16 MB of f32 a case. Both sessions and a plain copy of as many bytes on one thread take turns (tools/timing.py), on the same input,
into outputs that were allocated before. Printed for each case: median milliseconds of ONNX Runtime and of Relayout, their ratio with
its interval of 95 %, the ratio of ONNX Runtime beside itself, GB/s (bytes read and written) of Relayout and its rate over the
copy's. Results are checked before anything is timed. With --check the exit status is 1 if the ratio of a case is below 1, or below 5
where ONNX Runtime has no fast path. Needs numpy, onnx and onnxruntime, and `cargo build --release -p relayout-ortop` before.
"""
import argparse
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

import timing

# Shape, permutation, and whether ONNX Runtime's Transpose falls off its fast paths.
CASES = [
    ([1, 64, 256, 256], [0, 2, 3, 1], False),
    ([1, 256, 256, 64], [0, 3, 1, 2], False),
    ([1, 64, 256, 256], [0, 3, 2, 1], True),
    ([128, 256, 128], [2, 1, 0], True),
    ([64, 32, 64, 32], [1, 0, 3, 2], True),
    ([8, 1024, 8, 64], [0, 2, 1, 3], False),
    ([1, 64, 128, 2, 128, 2], [0, 3, 5, 1, 2, 4], True),
]


def session(domain, op, shape, perm, threads, library):
    node = helper.make_node(op, ["x"], ["y"], domain=domain, perm=perm)
    output = [shape[axis] for axis in perm]
    value = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
    graph = helper.make_graph([node], "bench", [value("x", shape)], [value("y", output)])
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("relayout", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Else the threads of the session that has just run spin on the cores of the other one.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.register_custom_ops_library(str(library))
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def bound(session, source, target):
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", source)
    binding.bind_ortvalue_output("y", target)
    return lambda: session.run_with_iobinding(binding)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", type=Path, default=Path("target/release/librelayout_ortop.so"))
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    if not args.library.is_file():
        raise SystemExit(f"no library at {args.library}: run cargo build --release -p relayout-ortop, or set --library")
    library, missed = args.library.resolve(), []
    print(f"onnxruntime {onnxruntime.__version__}, {args.rounds} rounds")
    print("threads  shape                      perm                  ORT ms  Relayout ms  ratio                    ORT beside itself       GB/s  of a copy")
    for threads in args.threads:
        for shape, perm, slow in CASES:
            x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
            source = onnxruntime.OrtValue.ortvalue_from_numpy(x)
            target = onnxruntime.OrtValue.ortvalue_from_shape_and_type([shape[axis] for axis in perm], np.float32)
            ort, ours = (
                bound(session(domain, op, shape, perm, threads, library), source, target)
                for domain, op in [("", "Transpose"), ("relayout", "Relayout")]
            )
            for run in ort, ours:
                target.update_inplace(np.zeros(target.shape(), np.float32))
                run()
                if not np.array_equal(target.numpy(), x.transpose(perm)):
                    raise SystemExit(f"{shape} by {perm}: wrong result")
            copied = np.empty_like(x)
            found = timing.beside({"ort": ort, "ours": ours, "copy": lambda: np.copyto(copied, x)}, args.rounds, warm=2)
            a, b = found.median("ort"), found.median("ours")
            ratio = found.over("ort", "ours")
            if ratio.median < (5 if slow else 1):
                missed.append(f"{threads} threads, {shape} by {perm}: {ratio}")
            print(
                f"{threads:7}  {str(shape):25}  {str(perm):20}  {a * 1e3:6.2f}  {b * 1e3:11.2f}  {str(ratio):23}  {str(found.control()):20}  "
                f"{2 * x.nbytes / b / 1e9:6.1f}  {found.over('copy', 'ours').median:9.2f}",
                flush=True,
            )
    if args.check and missed:
        sys.exit("below the bar: " + "; ".join(missed))


if __name__ == "__main__":
    main()
