#!/usr/bin/env bash
# onnx and onnxscript: neither converter brings GroupNormalization from opset 18 to 21
#
# Guess: in opset 18 scale and bias have an entry per group, in opset 21 one per channel. onnx.version_converter changes the number of the
# opset alone: lists of groups are left where lists of channels belong, and the file does not run. onnxscript's converter repeats the
# entries, and loses epsilon on the way, so the file runs and its numbers are other ones.
#
#     findings/group_normalization_in_a_newer_opset.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnx 1.23.2: onnxruntime 1.31.1 does not load it. onnxscript 0.7.2: epsilon=0.5 becomes 1e-5, off by 0.55.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxscript==0.7.2 onnx-ir==1.1.0 onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnx, onnx_ir, onnxruntime as ort, onnxscript.version_converter
from onnx import parser, version_converter
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


def reference(made, feeds):
    return ReferenceEvaluator(made).run(None, feeds)


def refused(work):
    try:
        work()
    except Exception as error:
        return " ".join(str(error).split())
    return None


for name in ("onnxscript", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))

text = """<ir_version: 8, opset_import: ["" : 18]>
g (float[1,6,4,4] x, float[3] s, float[3] b) => (float[1,6,4,4] y) { y = GroupNormalization<num_groups=3, epsilon=0.5>(x, s, b) }"""
rng = np.random.default_rng(0)
feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in (("x", (1, 6, 4, 4)), ("s", 3), ("b", 3))}
before = run(model(text), feeds)[0]
assert np.allclose(before, reference(model(text), feeds)[0], atol=1e-4)
why = refused(lambda: run(version_converter.convert_version(model(text), 21), feeds))
print("onnx:", why and why[:120])
other = onnx_ir.from_proto(model(text))
onnxscript.version_converter.convert_version(other, 21)
other = onnx_ir.to_proto(other)
after, node = run(other, feeds)[0], other.graph.node[-1]
off = float(abs(after - before).max())
print("onnxscript:", node.op_type, [attribute.name for attribute in node.attribute], f"off by {off:.2f}")
assert why and node.op_type == "GroupNormalization" and [attribute.name for attribute in node.attribute] == ["num_groups"] and off > 0.1
PYTHON
