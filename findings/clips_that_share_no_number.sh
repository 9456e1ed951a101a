#!/usr/bin/env bash
# onnxscript: two Clips whose ranges share no number are joined to a wrong one
#
# Guess: Clip to [-3, -1] and Relu behind it make 0 of every number, and so do two Clips to [-3, -1] and [0, 5]. The optimizer of
# onnxscript joins them by the larger lower bound and the smaller upper bound. That is right only if the ranges meet: else the result is a
# Clip whose lower bound is above its upper bound, and that one makes -1 of every number. torch.onnx.export calls this optimizer by
# default, so torch's clamp(-3, -1) and clamp(0, 5) behind it are exported wrong.
#
#     findings/clips_that_share_no_number.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnxscript 0.7.2 with onnx 1.23.2, run by onnxruntime 1.31.1: -1 in place of 0 in both graphs. torch 2.15.0 exports
# the second one so (dynamo=True), and right with optimize=False; this script does not install it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxscript==0.7.2 onnx-ir==1.1.0 onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnx, onnxruntime as ort, onnxscript, onnxscript.optimizer
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


for name in ("onnxscript", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))

head = """<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x) => (float[4] y) <float a = {-3}, float b = {-1}, float c = {0}, float d = {5}>"""
x = np.array([-5, -2, 0, 9], np.float32)
seen = {}
for body in ("t = Clip(x, a, b) y = Relu(t)", "t = Clip(x, a, b) y = Clip(t, c, d)"):
    before = run(model(f"{head} {{ {body} }}"), {"x": x})[0].tolist()
    made = onnxscript.optimizer.optimize(model(f"{head} {{ {body} }}"))
    after = run(made, {"x": x})[0].tolist()
    print(body, "|", before, "becomes", after, [node.op_type for node in made.graph.node])
    seen[body] = (before, after)
first, second = seen.values()
assert first == second == ([0] * 4, [-1] * 4)
PYTHON
