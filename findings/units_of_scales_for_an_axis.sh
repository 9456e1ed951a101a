#!/usr/bin/env bash
# ONNX Runtime: quantized units with a scale for each channel are joined into ops that take a single scale
#
# At ORT_ENABLE_ALL the runtime joins a DequantizeLinear, an op and a QuantizeLinear into one op of quantized numbers. It does not look whether the
# DequantizeLinear has one scale or one for each channel. The joined ops take a single scale and zero point, so a valid model does not load, or
# loads and does not run. A ReduceMean in the same place is not joined and runs.
#
#     findings/units_of_scales_for_an_axis.sh        exit status 1 if the behaviour is another one
#
# Seen: onnxruntime 1.31.1: all of these run with ORT_DISABLE_ALL. With ORT_ENABLE_ALL LeakyRelu, Sigmoid, Softmax, AveragePool, Add and Concat do not
# load, and GlobalAveragePool does not run.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import numpy as np, onnx, onnxruntime as ort
from onnx import parser

print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
OPS = {
    "LeakyRelu": "LeakyRelu<alpha=0.2>(d)", "Sigmoid": "Sigmoid(d)", "Softmax": "Softmax(d)",
    "AveragePool": "AveragePool<kernel_shape=[2,2]>(d)", "Add": "Add(d, e)", "Concat": "Concat<axis=1>(d, e)",
    "GlobalAveragePool": "GlobalAveragePool(d)", "ReduceMean": "ReduceMean<axes=[2,3]>(d)",
}


def outcome(call, level):
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (uint8[1,4,5,5] x) => (uint8 y) <float[4] s = {{0.1,0.2,0.3,0.4}}, uint8[4] z = {{120,121,122,123}}, float r = {{0.05}}, uint8 o = {{128}}> {{
      d = DequantizeLinear<axis=1>(x, s, z)
      e = DequantizeLinear(x, r, o)
      v = {call}
      y = QuantizeLinear(v, r, o)
    }}"""
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    model = parser.parse_model(text)
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:
        return "does not load"
    try:
        session.run(None, {"x": np.arange(100, dtype=np.uint8).reshape(1, 4, 5, 5)})
    except Exception:
        return "does not run"
    return "runs"


seen = {name: (outcome(call, "ORT_DISABLE_ALL"), outcome(call, "ORT_ENABLE_ALL")) for name, call in OPS.items()}
print(seen)
assert all(off == "runs" for off, _ in seen.values())
joined = {name: on for name, (_, on) in seen.items()}
assert joined == {name: "does not load" for name in OPS} | {"GlobalAveragePool": "does not run", "ReduceMean": "runs"}
PYTHON
