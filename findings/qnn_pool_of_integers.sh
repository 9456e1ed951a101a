#!/usr/bin/env bash
# The QNN provider of ONNX Runtime takes a MaxPool of integers and then fails to load the file
#
# Guess: MaxPool has a kernel of 8-bit integers since operator set 12, and quantizers in the QLinear style leave pools so. The provider asks for
# channels last, its partition has the pool without quantization around it, and the graph of the device is refused when it is composed: the
# session fails and the CPU does not take over. With DequantizeLinear in front of the pool and QuantizeLinear behind it the file loads.
#
#     findings/qnn_pool_of_integers.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-30: onnxruntime 1.31.1, onnxruntime-qnn 2.7.0 with the simulator of HTP for x86-64, onnx 1.23.2. No device is needed.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxruntime==1.31.1 onnxruntime-qnn==2.7.0 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnx, onnxruntime as ort, onnxruntime_qnn as plugin
from onnx import TensorProto, helper, numpy_helper

for name in ("onnxruntime", "onnxruntime-qnn", "onnx", "numpy"):
    print(name, version(name))
ort.register_execution_provider_library("QNNExecutionProvider", plugin.get_library_path())
devices = [d for d in ort.get_ep_devices() if d.ep_name == "QNNExecutionProvider"]


def model(floats):
    """Convolution, pool, convolution, in the QLinear style; the pool of integers or between quantizations."""
    rng = np.random.default_rng(0)
    constants = {"s": np.float32(0.05), "z": np.uint8(128), "ws": np.float32(0.01), "wz": np.int8(0),
                 "w": rng.integers(-90, 90, (8, 8, 3, 3)).astype(np.int8)}
    conv = lambda x, y: helper.make_node("QLinearConv", [x, "s", "z", "w", "ws", "wz", "s", "z"], [y], pads=[1, 1, 1, 1])
    pool = lambda x, y: helper.make_node("MaxPool", [x], [y], kernel_shape=[2, 2], strides=[2, 2])
    middle = [pool("a", "p")]
    if floats:
        middle = [helper.make_node("DequantizeLinear", ["a", "s", "z"], ["f"]), pool("f", "g"),
                  helper.make_node("QuantizeLinear", ["g", "s", "z"], ["p"])]
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]), conv("q", "a"), *middle, conv("p", "b"),
             helper.make_node("DequantizeLinear", ["b", "s", "z"], ["y"])]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 4, 4])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    return made.SerializeToString()


def loads(made, on_device):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    if on_device:
        options.add_provider_for_devices(devices[:1], {"backend_path": str(plugin.get_qnn_htp_path())})
    try:
        ort.InferenceSession(made, options)
        return "loads"
    except Exception as error:
        print("  ", str(error).splitlines()[0][:160])
        return "fails"


found = {(what, where): loads(model(what == "floats"), where == "QNN")
         for what in ("integers", "floats") for where in ("CPU", "QNN")}
for (what, where), how in found.items():
    print(f"a MaxPool of {what} on {where}: {how}")
expected = {("integers", "CPU"): "loads", ("integers", "QNN"): "fails", ("floats", "CPU"): "loads", ("floats", "QNN"): "loads"}
assert found == expected, found
PYTHON
