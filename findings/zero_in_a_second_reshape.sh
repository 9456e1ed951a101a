#!/usr/bin/env bash
# onnxoptimizer: of two Reshapes the first is removed, though a 0 in the second one means its extent
#
# Guess: a 0 in the shape of a Reshape means the extent that its input has there. Of two Reshapes in a row the first may be removed only if
# the second has no such 0, or if the extent stays the same. onnxoptimizer removes it anyway, and the 0 then means an extent of the graph's
# input.
#
#     findings/zero_in_a_second_reshape.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnxoptimizer 0.4.2 (get_fuse_and_elimination_passes), run by onnxruntime 1.31.1: (2, 12) in place of (4, 6), and the
# written file still says (4, 6) where the output is declared so.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxoptimizer==0.4.2 onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
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


for name in ("onnxoptimizer", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))

made = model("""<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3,4] x) => (float[a,b] y) <int64[3] first = {4,3,2}, int64[2] second = {0,-1}> {
  t = Reshape(x, first)
  y = Reshape(t, second)
}""")
onnx.checker.check_model(made, full_check=True)
feeds = {"x": np.arange(24, dtype=np.float32).reshape(2, 3, 4)}
other = onnxoptimizer.optimize(made, onnxoptimizer.get_fuse_and_elimination_passes())
before, after = run(made, feeds)[0].shape, run(other, feeds)[0].shape
print("before:", before, "after:", after, [node.op_type for node in other.graph.node])
assert before == (4, 6) and after == (2, 12)
PYTHON
