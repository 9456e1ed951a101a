#!/usr/bin/env bash
# ONNX Runtime: a layer normalization that is written as ops is fused past the Cast in front of it, and the file does not load
#
# ReduceMean, Sub, Pow, ReduceMean, Add, Sqrt, Div, Mul and Add are joined to a LayerNormalization. Where a Cast stands right in front of them, one
# expects the fused op to read its result. It reads what the Cast reads, while its weights keep the other type: the graph is no longer valid, and
# the session is not made. That is so for each pair of types that were tried. An op in between, such as Abs, is enough for the file to load.
#
#     findings/casts_in_front_of_a_normalization.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-28: onnxruntime 1.31.1: all of these load with ORT_DISABLE_ALL. From ORT_ENABLE_BASIC on those that change the type do not, and
# the Cast that does not change it does, as does each with an Abs behind the Cast.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import onnx, onnxruntime as ort
from onnx import parser

print("onnxruntime", ort.__version__, "onnx", onnx.__version__)
TYPES = {"float": 1, "float16": 10, "double": 11, "int32": 6, "uint8": 2}


def loads(source, wide, between, level):
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g ({source}[2,5,4] x) => ({wide}[2,5,4] y) <{wide} two = {{2}}, {wide} e = {{0.001}}, {wide}[4] w = {{1,1,1,1}}, {wide}[4] b = {{0,0,0,0}}> {{
      k = Cast<to={TYPES[wide]}>(x)
      c = {between}(k)
      m = ReduceMean<axes=[2], keepdims=1>(c)
      s = Sub(c, m)
      p = Pow(s, two)
      v = ReduceMean<axes=[2], keepdims=1>(p)
      u = Add(v, e)
      q = Sqrt(u)
      d = Div(s, q)
      f = Mul(d, w)
      y = Add(f, b)
    }}"""
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    model = parser.parse_model(text)
    try:
        ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:
        return False
    return True


for wide in ("float", "double"):
    for source in TYPES:
        seen = [loads(source, wide, between, level) for between in ("Identity", "Abs") for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC")]
        print(f"{source} to {wide}: loads without rewrites and at BASIC: {seen[:2]}, with an Abs in between: {seen[2:]}")
        assert seen == [True, source == wide, True, True], seen
PYTHON
