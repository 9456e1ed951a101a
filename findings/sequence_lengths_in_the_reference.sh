#!/usr/bin/env bash
# onnx: its reference evaluator reads neither sequence_lens nor clip of LSTM, GRU and RNN
#
# Guess: sequence_lens says how many steps each sequence of a batch has. Steps behind the end are 0 in Y, Y_h is the state at the end, and
# a reverse pass starts there. `clip` bounds what goes into the activations. The reference evaluator takes both and ignores them, without a
# word, so it can't judge such a model. ONNX Runtime and OpenVINO follow the standard.
#
#     findings/sequence_lengths_in_the_reference.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnx 1.23.2 against onnxruntime 1.31.1 without rewrites and openvino 2026.4.1: with lengths 3 and 1 the reference
# gives the same bits as without lengths, and with clip=0.1 the same as without clip.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q openvino==2026.4.1 onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnx, onnxruntime as ort, openvino
from onnx import parser
from onnx.reference import ReferenceEvaluator


def model(text):
    return parser.parse_model(text)


def session(made, level):
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    return ort.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(made, feeds, level="ORT_DISABLE_ALL"):
    return session(made, level).run(None, feeds)


def with_openvino(made, feeds):
    onnx.save(made, "model.onnx")
    core = openvino.Core()
    compiled = core.compile_model(core.read_model("model.onnx"), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled(feeds)
    return [np.array(results[i]) for i in range(len(made.graph.output))]


def reference(made, feeds):
    return ReferenceEvaluator(made).run(None, feeds)


for name in ("openvino", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))

text = """<ir_version: 8, opset_import: ["" : 14]>
g (float[3,2,4] x, float[1,%d,4] w, float[1,%d,3] r, int32[2] n) => (float[a,b,c,d] y, float[e,f,h] z) {
  y, z = %s<hidden_size=3%s>(x, w, r%s)
}"""
rng = np.random.default_rng(0)
for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
    shapes = {"x": (3, 2, 4), "w": (1, 3 * gates, 4), "r": (1, 3 * gates, 3)}
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    feeds["n"] = np.array([3, 1], np.int32)

    def far(a, b):
        return max(float(abs(x - y).max()) for x, y in zip(a, b))

    def variant(clip, lengths):
        return model(text % (3 * gates, 3 * gates, op, clip, lengths))

    plain = reference(variant("", ""), feeds)
    for name, made in (("lengths", variant("", ', "", n')), ("clip", variant(", clip=0.1", ""))):
        true, seen = run(made, feeds), reference(made, feeds)
        used = {key: value for key, value in feeds.items() if key != "n" or name == "lengths"}
        gap = far(with_openvino(made, used), true)
        print(op, name, "reference as without:", far(seen, plain) == 0, f"off by {far(seen, true):.2f}, OpenVINO by {gap:.0e}")
        assert far(seen, plain) == 0 and far(seen, true) > 0.05 and gap < 1e-4
PYTHON
