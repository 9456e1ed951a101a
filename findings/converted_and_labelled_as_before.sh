#!/usr/bin/env bash
# onnxscript: its version converter rewrites the nodes of a ModelProto and leaves the opset as it was
#
# Guess: onnxscript.version_converter.convert_version takes an onnx.ModelProto and changes it in its place. It copies the graph back and
# not the opset imports, so the nodes are those of the new opset and the file says the old one. A DFT whose axis has become an operand does
# not load; a GridSample says "linear" where the old opset knows "bilinear" only. With an onnx_ir.Model all is well.
#
#     findings/converted_and_labelled_as_before.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnxscript 0.7.2 with onnx 1.23.2: 17 to 20 leaves opset 17. onnxruntime 1.31.1 does not load the DFT.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxscript==0.7.2 onnx-ir==1.1.0 onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnx, onnx_ir, onnxruntime as ort, onnxscript.version_converter
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


def refused(work):
    try:
        work()
    except Exception as error:
        return " ".join(str(error).split())
    return None


for name in ("onnxscript", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))

head = '<ir_version: 8, opset_import: ["" : 17]> g '
cases = {
    "(float[1,4,1] x) => (float[1,4,2] y) { y = DFT(x) }": {"x": np.arange(4, dtype=np.float32).reshape(1, 4, 1)},
    '(float[1,1,2,2] x, float[1,1,1,2] p) => (float[1,1,1,1] y) { y = GridSample<mode="bilinear">(x, p) }': {
        "x": np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2),
        "p": np.zeros((1, 1, 1, 2), np.float32),
    },
}
for text, feeds in cases.items():
    before = run(model(head + text), feeds)[0]
    proto, other = model(head + text), onnx_ir.from_proto(model(head + text))
    assert onnxscript.version_converter.convert_version(proto, 20) is None
    onnxscript.version_converter.convert_version(other, 20)
    other = onnx_ir.to_proto(other)
    why = refused(lambda: run(proto, feeds))
    print(text[text.index("{") :], "opset", proto.opset_import[0].version, "|", why and why[:150])
    assert proto.graph == other.graph and proto.opset_import[0].version == 17 and other.opset_import[0].version == 20
    assert why and np.allclose(run(other, feeds)[0], before)
PYTHON
