#!/usr/bin/env bash
# onnx: its own inference refuses MeanVarianceNormalization without axes
#
# Guess: MeanVarianceNormalization has one attribute, `axes`, and a default for it: [0, 2, 3]. The function that defines the op hands the
# attribute on to a Constant, and without the attribute inference finds a Constant without a value. So onnx.checker with full_check and
# strict inference refuse the plainest model of this op. ONNX Runtime, OpenVINO, tract and the reference evaluator run it.
#
#     findings/mean_variance_that_is_not_checked.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnx 1.23.2: "One and only one of the attributes"; with axes=[0,2,3] written out all is well. onnxruntime 1.31.1,
# openvino 2026.4.1 and tract 0.23.9 run both.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q openvino==2026.4.1 tract==0.23.9 onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnx, onnxruntime as ort, openvino, tract
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


def with_tract(made, feeds):
    onnx.save(made, "model.onnx")
    read = tract.onnx().load("model.onnx")
    for i, value in enumerate(feeds.values()):
        read.set_input_fact(i, ",".join(map(str, value.shape)) + ",f32")
    return [result.to_numpy() for result in read.into_model().into_runnable().run(list(feeds.values()))]


def reference(made, feeds):
    return ReferenceEvaluator(made).run(None, feeds)


def refused(work):
    try:
        work()
    except Exception as error:
        return " ".join(str(error).split())
    return None


for name in ("openvino", "tract", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))

text = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1,2,2,2] x) => (float[1,2,2,2] y) { y = MeanVarianceNormalization%s(x) }"""
feeds = {"x": np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)}
results = []
for attribute in ("", "<axes=[0,2,3]>"):
    made = model(text % attribute)
    onnx.checker.check_model(made)
    why = refused(lambda: onnx.checker.check_model(made, full_check=True))
    strict = refused(lambda: onnx.shape_inference.infer_shapes(made, strict_mode=True))
    results += [way(made, feeds)[0] for way in (run, with_openvino, with_tract, reference)]
    print(attribute or "no axes", "| full_check:", why and why[-150:])
    assert bool(why) == bool(strict) == (not attribute)
    assert not why or "One and only one of the attributes" in why
print("farthest apart:", max(float(abs(y - results[0]).max()) for y in results))
assert all(np.allclose(y, results[0], atol=1e-4) for y in results)
PYTHON
