#!/usr/bin/env bash
# onnxsim, onnxslim and onnxoptimizer: two sources of random numbers become one
#
# Guess: two nodes RandomNormalLike without a seed make two tensors of independent numbers, so their difference is not 0, and its variance
# is 2. Tools that join nodes of the same op with the same operands must leave out such ops. These three do not: one node is left, and the
# difference is 0 everywhere, so noise of a sampler that is drawn twice is drawn once. onnxscript and ONNX Runtime keep both nodes. ONNX
# Runtime joins two Bernoulli, though, at the level ORT_ENABLE_BASIC.
#
#     findings/random_numbers_that_are_one.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnxsim 0.8.1, onnxslim 0.1.98 and onnxoptimizer 0.4.2, run by onnxruntime 1.31.1.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxsim==0.8.1 onnxslim==0.1.98 onnxoptimizer==0.4.2 onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnx, onnxoptimizer, onnxruntime as ort, onnxsim, onnxslim
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


for name in ("onnxsim", "onnxslim", "onnxoptimizer", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))

text = """<ir_version: 8, opset_import: ["" : 17]>
g (float[4096] x) => (float[4096] y) { a = %s(x) b = %s(x) y = Sub(a, b) }"""
tools = {
    "none": lambda made: made,
    "onnxsim": lambda made: onnxsim.simplify(made)[0],
    "onnxslim": onnxslim.slim,
    "onnxoptimizer": lambda made: onnxoptimizer.optimize(made, onnxoptimizer.get_fuse_and_elimination_passes()),
}
x = np.full(4096, 0.5, np.float32)
spread = {}
for name, tool in tools.items():
    spread[name] = float(run(tool(model(text % (("RandomNormalLike",) * 2))), {"x": x})[0].var())
print("variance of the difference:", spread)
bernoulli = model(text % (("Bernoulli",) * 2))
flips = {level: float(run(bernoulli, {"x": x}, level)[0].var()) for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC")}
print("of two Bernoulli in ONNX Runtime:", flips)
assert 1.5 < spread.pop("none") < 2.5 and set(spread.values()) == {0.0}
assert 0.3 < flips["ORT_DISABLE_ALL"] < 0.7 and flips["ORT_ENABLE_BASIC"] == 0
PYTHON
