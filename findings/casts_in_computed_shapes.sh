#!/usr/bin/env bash
# onnx: data propagation does not cut what a Cast to a smaller integer cuts
#
# Guess: with data_prop inference computes shapes that come from Shape, and follows a Cast among integers. The standard says that bits
# which do not fit are discarded, so 300 as uint8 is 44. Inference hands the number on as it is and writes 300 for the extent, in strict
# mode too. All runtimes, and onnx's own reference evaluator, make 44.
#
#     findings/casts_in_computed_shapes.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnx 1.23.2 infers 300 by way of uint8 and 70000 by way of uint16; its reference, onnxruntime 1.31.1 and openvino
# 2026.4.1 make 44 and 4464.
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

text = """<ir_version: 9, opset_import: ["" : 19]> g (float[%d] x) => (float[n] y) {
  s = Shape(x)
  c = Cast<to=%d>(s)
  i = Cast<to=7>(c)
  y = ConstantOfShape(i)
}"""
for extent, kind, right in ((300, onnx.TensorProto.UINT8, 44), (70000, onnx.TensorProto.UINT16, 4464)):
    made = model(text % (extent, kind))
    inferred = onnx.shape_inference.infer_shapes(made, strict_mode=True, data_prop=True)
    written = inferred.graph.output[0].type.tensor_type.shape.dim[0].dim_value
    feeds = {"x": np.zeros(extent, np.float32)}
    seen = {way.__name__: way(made, feeds)[0].shape[0] for way in (reference, run, with_openvino)}
    print(extent, "through", onnx.TensorProto.DataType.Name(kind), "inferred:", written, seen)
    assert written == extent and set(seen.values()) == {right}
PYTHON
