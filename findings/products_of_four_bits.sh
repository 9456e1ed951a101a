#!/usr/bin/env bash
# ONNX Runtime: a Transpose behind a DequantizeLinear says how exact a product with its result is
#
# Weights of 4 bits may be stored as they are read, or turned with a Transpose behind their DequantizeLinear: one guesses that both give
# the same sums. Without the Transpose the runtime makes one op of DequantizeLinear and MatMul, which by default also makes bytes of the
# floats that are multiplied. With the Transpose they stay floats. The option `session.qdq_matmulnbits_accuracy_level` set to 1 keeps
# floats in both.
#
#     findings/products_of_four_bits.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-28: onnxruntime 1.31.1: off by half a percent of the largest number without the Transpose, by 1e-7 with it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6 ml_dtypes==0.6.0
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import ml_dtypes, numpy as np, onnx, onnxruntime as ort
from onnx import helper, numpy_helper

print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
rng = np.random.default_rng(0)
weights, x = rng.integers(-8, 8, (64, 64)), rng.standard_normal((3, 64)).astype(np.float32)
wanted = x.astype(np.float64) @ (weights * 0.5)


def off(turned, accuracy):
    """How far the product is off, as a part of its largest number."""
    nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["d"])]
    nodes += [helper.make_node("Transpose", ["d"], ["t"], perm=[1, 0])] if turned else []
    nodes += [helper.make_node("MatMul", ["x", "t" if turned else "d"], ["y"])]
    ports = [helper.make_tensor_value_info(name, 1, [3, 64]) for name in "xy"]
    stored = (weights.T if turned else weights).astype(ml_dtypes.int4)
    held = [numpy_helper.from_array(stored, "w"), numpy_helper.from_array(np.float32(0.5), "s")]
    model = helper.make_model(helper.make_graph(nodes, "g", ports[:1], ports[1:], held), opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    if accuracy:
        options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", accuracy)
    made = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    return float(np.abs(made - wanted).max() / np.abs(wanted).max())


found = {(turned, accuracy): off(turned, accuracy) for turned in (True, False) for accuracy in (None, "1")}
for (turned, accuracy), far in found.items():
    print(f"{'with' if turned else 'without'} a Transpose, accuracy level {accuracy or 'as it is'}: off by {far:.1e}")
assert found[False, None] > 1e-3 and all(far < 1e-5 for key, far in found.items() if key != (False, None))
PYTHON
