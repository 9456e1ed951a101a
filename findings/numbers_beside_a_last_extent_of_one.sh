#!/usr/bin/env bash
# ONNX Runtime: a number beside a value whose last extent is 1 is many times as slow as the same number with two axes
#
# Guess: x * c with a constant c of one element takes the same time whether c has the shape [], [1] or [1, 1], since all mean the same.
# The CPU provider runs such an op in spans of the innermost axes in which its operands are alike. A c of fewer than two axes beside an x
# of shape [..., 1] leaves spans of one element, about 12 ns each. Keras leaves such values wherever an image, a sound or a sequence has
# one channel, channels last.
#
#     findings/numbers_beside_a_last_extent_of_one.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-29: onnxruntime 1.31.1, one thread, all optimizations, a Zen 3 with AVX2, floats [1, 172, 309, 1], least of 200 runs:
# Mul 652 us for [] and [1], 17 us for [1, 1] and [1, 1, 1, 1]; Add, Sub, Div and Max alike. For [1, 172, 309, 8] the four are equal.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
"$work/venv/bin/python" - <<'PYTHON'
import time

import numpy as np, onnx, onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

RUNS = 200


def microseconds(op, extents, of_number):
    """The least of some runs, in turns of their own."""
    number = numpy_helper.from_array(np.full(of_number, 1.5, np.float32), "c")
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, extents) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node(op, ["x", "c"], ["y"])], "g", ends[:1], ends[1:], [number])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(0).random(extents, np.float32)
    best, results = 1.0, None
    for _ in range(RUNS):
        begin = time.perf_counter()
        results = session.run(None, {"x": x})
        best = min(best, time.perf_counter() - begin)
    return best * 1e6, results[0]


print("onnxruntime", ort.__version__)
for op in ("Mul", "Add", "Sub", "Div", "Max"):
    for extents in ([1, 172, 309, 1], [1, 172, 309, 8]):
        found = [microseconds(op, extents, shape) for shape in ([], [1], [1, 1], [1, 1, 1, 1])]
        print(f"{op} {extents}, number of shape [], [1], [1, 1], [1, 1, 1, 1]:", ", ".join(f"{time:.0f} us" for time, _ in found))
        assert all(np.array_equal(found[0][1], result) for _, result in found)
        slow, fast = min(found[0][0], found[1][0]), max(found[2][0], found[3][0])
        assert (slow > 5 * fast) == (extents[-1] == 1), (slow, fast)
PYTHON
