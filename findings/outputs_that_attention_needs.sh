#!/usr/bin/env bash
# onnxscript and ONNX Runtime: an optimizer drops outputs that nobody reads, and Attention then does not run
#
# Guess: an optional output that nobody reads may be left out. Attention of opset 23 takes past keys and values and gives the present ones.
# The standard lets the latter out, the checker accepts that, and the reference evaluator and OpenVINO compute it. onnxscript's optimizer
# removes the two names where nothing reads them, and ONNX Runtime refuses such a node when it runs.
#
#     findings/outputs_that_attention_needs.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnxscript 0.7.2 with onnx 1.23.2, onnxruntime 1.31.1: "does not support past_key provided and present_key". openvino
# 2026.4.1 runs it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxscript==0.7.2 onnx-ir==1.1.0 openvino==2026.4.1 onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnx, onnxruntime as ort, onnxscript.optimizer, openvino
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


def refused(work):
    try:
        work()
    except Exception as error:
        return " ".join(str(error).split())
    return None


for name in ("onnxscript", "openvino", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))

text = """<ir_version: 11, opset_import: ["" : 23]>
g (float[1,2,3,4] q, float[1,2,3,4] k, float[1,2,3,4] v, float[1,2,2,4] past_k, float[1,2,2,4] past_v) => (float[1,2,3,4] y) {
  y, present_k, present_v = Attention<is_causal=1>(q, k, v, "", past_k, past_v)
}"""
rng = np.random.default_rng(0)
feeds = {name: rng.standard_normal((1, 2, 3, 4)).astype(np.float32) for name in "qkv"}
feeds |= {name: rng.standard_normal((1, 2, 2, 4)).astype(np.float32) for name in ("past_k", "past_v")}
before = run(model(text), feeds)[0]
other = onnxscript.optimizer.optimize(model(text))
onnx.checker.check_model(other, full_check=True)
why = refused(lambda: run(other, feeds))
print("outputs:", list(other.graph.node[0].output), "| ONNX Runtime:", why and why[-150:])
assert why and "past_key" in why
assert all(np.allclose(way(other, feeds)[0], before, atol=1e-5) for way in (reference, with_openvino))
PYTHON
