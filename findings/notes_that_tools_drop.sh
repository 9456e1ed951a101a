#!/usr/bin/env bash
# Five tools: metadata of nodes and weights, quantization annotations and meanings of axes are gone
#
# Guess: a model, its graph, nodes, inputs and weights may each have metadata_props, an input says what its axes mean (DATA_BATCH,
# DATA_CHANNEL), and quantization_annotation says which scale belongs to which tensor. None of this is data that a tool has to understand,
# so it can hand it on. These five drop it though nothing else changes: who relies on such notes, for layouts or for units, finds them
# nowhere. onnxscript and shape inference keep all of them.
#
#     findings/notes_that_tools_drop.sh        exit status 1 if the behaviour is another one
#
# Seen on 2026-11-27: onnxoptimizer 0.4.2, onnxslim 0.1.98, onnxsim 0.8.1, onnx-graphsurgeon 0.6.1 (of the model too) and onnx 1.23.2's
# version converter.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxoptimizer==0.4.2 onnxslim==0.1.98 onnxsim==0.8.1 onnx-graphsurgeon==0.6.1 onnxruntime==1.31.1 \
    onnxscript==0.7.2 onnx-ir==1.1.0 onnx==1.23.2 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import onnx, onnx_graphsurgeon, onnxoptimizer, onnxscript.optimizer, onnxsim, onnxslim
from onnx import parser, shape_inference, version_converter


def model(text):
    return parser.parse_model(text)


for name in ("onnxoptimizer", "onnxslim", "onnxsim", "onnx-graphsurgeon", "onnxruntime", "onnxscript", "onnx", "numpy"):
    print(name, version(name))


def noted():
    made = model("""<ir_version: 10, opset_import: ["" : 21]>
    g (float[2,3] x) => (float[2,3] y) <float[3] s = {1,2,3}> { t = Add(x, s) y = Relu(t) }""")
    graph = made.graph
    for place in (made, graph, graph.node[0], graph.input[0], graph.initializer[0]):
        note = place.metadata_props.add()
        note.key, note.value = "key", "value"
    graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    annotation = graph.quantization_annotation.add()
    annotation.tensor_name = "y"
    scale = annotation.quant_parameter_tensor_names.add()
    scale.key, scale.value = "SCALE_TENSOR", "s"
    return made


def left(made):
    graph = made.graph
    places = {"model": made, "graph": graph, "node": graph.node[0], "input": graph.input[0], "weight": graph.initializer[0]}
    found = [name for name, place in places.items() if any(note.key == "key" for note in place.metadata_props)]
    found += ["axis"] * bool(graph.input[0].type.tensor_type.shape.dim[0].denotation)
    return found + ["annotation"] * bool(graph.quantization_annotation)


everything = ["model", "graph", "node", "input", "weight", "axis", "annotation"]
passes = onnxoptimizer.get_fuse_and_elimination_passes()
surgeon = onnx_graphsurgeon
tools = {
    "none": lambda made: made,
    "shape_inference": shape_inference.infer_shapes,
    "onnxscript": onnxscript.optimizer.optimize,
    "onnxsim": lambda made: onnxsim.simplify(made)[0],
    "onnxoptimizer": lambda made: onnxoptimizer.optimize(made, passes),
    "onnxslim": onnxslim.slim,
    "onnx-graphsurgeon": lambda made: surgeon.export_onnx(surgeon.import_onnx(made)),
    "version_converter": lambda made: version_converter.convert_version(made, 22),
}
kept = {name: left(tool(noted())) for name, tool in tools.items()}
for name, notes in kept.items():
    print(name, "keeps", notes)
assert kept["none"] == kept["shape_inference"] == kept["onnxscript"] == everything
assert "graph" not in kept["onnxsim"] and "model" not in kept["onnx-graphsurgeon"]
for name in ("onnxoptimizer", "onnxslim", "onnx-graphsurgeon", "version_converter"):
    assert not {"graph", "node", "axis", "annotation"} & set(kept[name]), name
PYTHON
