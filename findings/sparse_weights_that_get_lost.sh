#!/usr/bin/env bash
# onnxscript, onnxoptimizer and onnx: a sparse initializer is dropped, and its readers stay
#
# Guess: a graph may have `sparse_initializer` beside `initializer`, and a node reads such a tensor by its name, as a dense one. ONNX
# Runtime runs such a model. onnxscript's optimizer writes a file without it, whose node reads a name that nothing makes. onnxoptimizer and
# onnx.version_converter forget it too, and fail. The checker accepts the model, and refuses it with full_check, since Add has no sparse
# operand. The reference evaluator fails.
#
#     findings/sparse_weights_that_get_lost.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnx 1.23.2, onnxoptimizer 0.4.2, onnxscript 0.7.2, onnxruntime 1.31.1; onnxsim 0.8.1 keeps it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxsim==0.8.1 onnxoptimizer==0.4.2 onnxscript==0.7.2 onnx-ir==1.1.0 onnxruntime==1.31.1 \
    onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np, onnx, onnxoptimizer, onnxruntime as ort, onnxscript.optimizer, onnxsim
from onnx import helper, parser, version_converter
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


for name in ("onnxsim", "onnxoptimizer", "onnxscript", "onnxruntime", "onnx", "numpy"):
    print(name, version(name))


def sparse():
    made = model("""<ir_version: 8, opset_import: ["" : 17]> g (float[3] x) => (float[3] y) { y = Add(x, s) }""")
    values = helper.make_tensor("s", onnx.TensorProto.FLOAT, [2], [1.0, 5.0])
    places = helper.make_tensor("places", onnx.TensorProto.INT64, [2], [0, 2])
    made.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [3]))
    return made


feeds = {"x": np.array([1, 2, 3], np.float32)}
onnx.checker.check_model(sparse())
full = refused(lambda: onnx.checker.check_model(sparse(), full_check=True))
print("ONNX Runtime:", run(sparse(), feeds)[0].tolist(), "full_check:", full)
assert run(sparse(), feeds)[0].tolist() == [2, 2, 8] and "sparse_tensor" in full
assert run(onnxsim.simplify(sparse())[0], feeds)[0].tolist() == [2, 2, 8]
print("reference:", refused(lambda: reference(sparse(), feeds)))
assert refused(lambda: reference(sparse(), feeds))
tools = {
    "onnxscript": onnxscript.optimizer.optimize,
    "onnxoptimizer": lambda made: onnxoptimizer.optimize(made, ["eliminate_identity"]),
    "onnx.version_converter": lambda made: version_converter.convert_version(made, 18),
}
for name, tool in tools.items():
    written = []
    failed = refused(lambda: written.append(tool(sparse())))
    why = failed or refused(lambda: run(written[0], feeds))
    print(name, "| fails:" if failed else "| writes a file that does not load:", why and why[:130])
    assert why
PYTHON
