#!/usr/bin/env bash
# onnxscript: its optimizer writes SAME padding as numbers and forgets the dilations
#
# Guess: with auto_pad=SAME_UPPER or SAME_LOWER the result of a Conv has ceil(extent / stride) places. The optimizer of onnxscript replaces
# the attribute by pads, and computes these from the kernel's shape without its dilations. So a dilated Conv gives fewer places. The
# output's declared shape stays what it was.
#
#     findings/same_padding_that_onnxscript_writes.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnxscript 0.7.2 with onnx 1.23.2: (1, 1, 5, 5) before and (1, 1, 3, 3) after, both by the reference evaluator;
# OpenVINO 2026.4.1 and tract 0.23.9 agree. With dilations=[1,1] nothing changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxscript==0.7.2 onnx-ir==1.1.0 openvino==2026.4.1 tract==0.23.9 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnx, onnxscript.optimizer, openvino, tract
from onnx import parser
from onnx.reference import ReferenceEvaluator


def model(text):
    return parser.parse_model(text)


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


for name in ("onnxscript", "openvino", "tract", "onnx", "numpy"):
    print(name, version(name))

text = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1,1,5,5] x) => (float[a,b,c,d] y) <float[1,1,2,2] w = {1,2,3,4}> { y = Conv<dilations=[%d,%d], auto_pad="SAME_%s">(x, w) }"""
feeds = {"x": np.random.default_rng(0).standard_normal((1, 1, 5, 5)).astype(np.float32)}
for side in ("UPPER", "LOWER"):
    for dilation in (1, 3):
        made = model(text % (dilation, dilation, side))
        onnx.checker.check_model(made, full_check=True)
        before = [way(made, feeds)[0] for way in (reference, with_openvino, with_tract)]
        other = onnxscript.optimizer.optimize(model(text % (dilation, dilation, side)))
        after = [way(other, feeds)[0] for way in (reference, with_openvino, with_tract)]
        pads = [list(a.ints) for node in other.graph.node for a in node.attribute if a.name == "pads"]
        print(side, "dilation", dilation, before[0].shape, "becomes", after[0].shape, "pads", pads)
        assert all(y.shape == (1, 1, 5, 5) and np.allclose(y, before[0], atol=1e-5) for y in before)
        assert all(y.shape == after[0].shape for y in after) and (after[0].shape == (1, 1, 5, 5)) == (dilation == 1)
PYTHON
