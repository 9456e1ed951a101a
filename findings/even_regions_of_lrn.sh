#!/usr/bin/env bash
# LRN: OpenVINO sums over one channel too few where their number is even, and ONNX Runtime refuses
#
# Guess: the standard gives the region of LRN for any size: from c - floor((size - 1) / 2) to c + ceil((size - 1) / 2). For an even size
# that is one channel more behind than in front, as many as the size says. OpenVINO has the smaller number on both sides, ONNX Runtime
# refuses even sizes, and tract follows the text. For odd sizes all agree.
#
#     findings/even_regions_of_lrn.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: openvino 2026.4.1, tract 0.23.9, onnxruntime 1.31.1 with onnx 1.23.2.
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


def refused(work):
    try:
        work()
    except Exception as error:
        return " ".join(str(error).split())
    return None


for name in ("openvino", "tract", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))

text = """<ir_version: 8, opset_import: ["" : 13]>
g (float[1,5,1,1] x) => (float[1,5,1,1] y) { y = LRN<size=%d, alpha=1.0, beta=1.0, bias=1.0>(x) }"""
feeds = {"x": np.arange(1, 6, dtype=np.float32).reshape(1, 5, 1, 1)}
x = feeds["x"].ravel()


def standard(size, before, behind):
    regions = [x[max(0, c - before) : c + behind + 1] for c in range(5)]
    return x / (1 + np.array([(region**2).sum() for region in regions]) / size)


for size, before, behind in ((3, 1, 1), (4, 1, 2)):
    right = standard(size, before, behind)
    with_less = standard(size, before, before)
    theirs, ours = (way(model(text % size), feeds)[0].ravel() for way in (with_openvino, with_tract))
    why = refused(lambda: run(model(text % size), feeds))
    print(size, "standard:", right.round(3).tolist(), "tract:", ours.round(3).tolist(), "OpenVINO:", theirs.round(3).tolist())
    print("  ONNX Runtime:", why and why[-80:])
    assert np.allclose(ours, right, atol=1e-4) and np.allclose(theirs, with_less, atol=1e-4) and bool(why) == (size == 4)
assert abs(theirs - right).max() > 0.01
PYTHON
