#!/usr/bin/env bash
# onnx: its reference evaluator normalizes as many channels of an LRN as there are images
#
# Guess: LRN divides each channel by what its neighbours say. The reference evaluator of onnx counts channels by the first axis, that of
# images: of a batch of one image it normalizes the first channel and hands on all others as they are. A batch of at least as many images
# as channels is right, which is what the op's own tests have.
#
#     findings/channels_of_lrn_in_the_reference.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnx 1.23.2: of 5 channels of one image 1 changes, of two images 2; onnxruntime 1.31.1, openvino 2026.4.1 and tract
# 0.23.9 agree with the formula.
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


for name in ("openvino", "tract", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))

text = """<ir_version: 8, opset_import: ["" : 13]>
g (float[n,5,1,1] x) => (float[n,5,1,1] y) { y = LRN<size=3, alpha=1.0, beta=1.0, bias=1.0>(x) }"""
for images in (1, 2, 5):
    feeds = {"x": np.tile(np.arange(1, 6, dtype=np.float32).reshape(1, 5, 1, 1), (images, 1, 1, 1))}
    x = feeds["x"][0].ravel()
    right = x / (1 + np.array([(x[max(0, c - 1) : c + 2] ** 2).sum() for c in range(5)]) / 3)
    made = model(text.replace("n,", f"{images},"))
    seen = {way.__name__: way(made, feeds)[0][0].ravel() for way in (reference, run, with_openvino, with_tract)}
    print(images, "images:", {name: y.round(3).tolist() for name, y in seen.items()})
    theirs = seen.pop("reference")
    assert all(np.allclose(y, right, atol=1e-4) for y in seen.values())
    assert np.allclose(theirs[:images], right[:images], atol=1e-4) and (theirs[images:] == x[images:]).all()
PYTHON
