#!/usr/bin/env bash
# onnx: its parser writes one number of 4 or 2 bits where two or four belong, and the checker accepts it
#
# Guess: `int4[4] q = {-8, 7, 3, 1}` in a text for onnx.parser is a tensor of these numbers. onnx.proto wants two of them packed in each
# entry of int32_data. The parser writes one per entry. The checker accepts this, also with full_check; onnx.numpy_helper takes each entry
# for two numbers and reads other ones; ONNX Runtime refuses the file. onnx.helper.make_tensor packs them as it should be.
#
#     findings/four_bits_in_a_text.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnx 1.23.2: int4 [-8, 7, 3, 1] reads as [-8, -1, 7, 0], int2 [-2, 1, 0, 1] as [-2, -1, -1, -1]; onnxruntime 1.31.1:
# "the pre-allocated size does not match".
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnx, onnxruntime as ort
from onnx import helper, numpy_helper, parser


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


for name in ("onnxruntime", "onnx", "numpy"):
    print(name, version(name))

text = """<ir_version: %d, opset_import: ["" : %d]>
g (float[4] x) => (float[4] y) <%s[4] q = {%s}, float s = {1}> { d = DequantizeLinear(q, s) y = Add(d, x) }"""
feeds = {"x": np.zeros(4, np.float32)}
for kind, opset, ir, numbers, read in (("int4", 21, 10, [-8, 7, 3, 1], [-8, -1, 7, 0]), ("int2", 25, 13, [-2, 1, 0, 1], [-2, -1, -1, -1])):
    made = model(text % (ir, opset, kind, ",".join(map(str, numbers))))
    onnx.checker.check_model(made, full_check=True)
    tensor = made.graph.initializer[0]
    seen = numpy_helper.to_array(tensor).astype(int).tolist()
    packed = helper.make_tensor("q", tensor.data_type, [4], numbers)
    print(kind, numbers, "parser:", list(tensor.int32_data), "reads as", seen, "helper:", list(packed.int32_data or packed.raw_data))
    assert seen == read and numpy_helper.to_array(packed).astype(int).tolist() == numbers
    if kind == "int4":
        why = refused(lambda: run(made, feeds))
        print("ONNX Runtime:", why and why[-100:])
        tensor.CopyFrom(packed)
        assert why and "pre-allocated size" in why and run(made, feeds)[0].tolist() == numbers
PYTHON
