#!/usr/bin/env bash
# ONNX Runtime and onnxoptimizer: zeros that a Pad adds are gone where a MaxPool reads them
#
# Guess: a Pad of zeros in front of a pool may become the pool's own padding only if that pads with zeros too. A MaxPool pads with what is
# smaller than all numbers. Both join the two nodes all the same: where all numbers of a window are negative, the largest one comes out in
# place of 0. With ceil_mode even the shape is another one, for AveragePool too. Where the pads are as large as the window the file does
# not load any more. A Pad whose value is written as -0.0 stays, and so does one that names axes.
#
#     findings/zero_pads_before_a_max_pool.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnxruntime 1.31.1: right with ORT_DISABLE_ALL, with ORT_ENABLE_BASIC -1 in place of 0 at each border. onnxoptimizer
# 0.4.2 (get_fuse_and_elimination_passes) writes the same into the file.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxruntime==1.31.1 onnxoptimizer==0.4.2 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnx, onnxoptimizer, onnxruntime as ort
from onnx import parser


def model(text):
    return parser.parse_model(text)


def session(made, level):
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    return ort.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(made, feeds, level="ORT_DISABLE_ALL"):
    return session(made, level).run(None, feeds)


def refused(work):
    try:
        work()
    except Exception as error:
        return " ".join(str(error).split())
    return None


for name in ("onnxruntime", "onnxoptimizer", "onnx", "numpy"):
    print(name, version(name))

text = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1,1,3,3] x) => (float[a,b,c,d] y) <int64[8] pads = {0,0,%d,%d,0,0,%d,%d}, float zero = {%s}> {
  p = Pad(x, pads, zero)
  y = %s<kernel_shape=[2,2]%s>(p)
}"""
x = -np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3)


def padded(pads=1, zero="0.0", op="MaxPool", ceil=""):
    return model(text % (pads, pads, pads, pads, zero, op, ceil))


image = np.pad(x[0, 0], 1)
right = np.array([[image[i : i + 2, j : j + 2].max() for j in range(4)] for i in range(4)])
plain, basic = (run(padded(), {"x": x}, level)[0][0, 0] for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC"))
other = onnxoptimizer.optimize(padded(), onnxoptimizer.get_fuse_and_elimination_passes())
written = run(other, {"x": x})[0][0, 0]
print("right:", right[0].tolist(), "ORT_DISABLE_ALL:", plain[0].tolist(), "ORT_ENABLE_BASIC:", basic[0].tolist())
print("onnxoptimizer:", [node.op_type for node in other.graph.node], written[0].tolist())
assert (plain == right).all() and basic[0].tolist() == written[0].tolist() == [-1, -1, -2, -3]
for op in ("MaxPool", "AveragePool"):
    made = padded(op=op, ceil=", strides=[2,2], ceil_mode=1")
    shapes = [run(made, {"x": x}, level)[0].shape[2:] for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC")]
    why = refused(lambda: run(padded(pads=3, op=op), {"x": x}, "ORT_ENABLE_BASIC"))
    print(op, "with ceil_mode:", shapes, "with large pads:", why and why[-40:])
    assert shapes == [(3, 3), (2, 2)] and "smaller than kernel" in why
    run(padded(pads=3, op=op), {"x": x})
assert (run(padded(zero="-0.0"), {"x": x}, "ORT_ENABLE_BASIC")[0][0, 0] == right).all()
PYTHON
