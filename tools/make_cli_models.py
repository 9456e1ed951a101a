#!/usr/bin/env python3
"""Write the small models that the tests of the binary run: testdata/cli/*.onnx.

    .relayout/venv/bin/python tools/make_cli_models.py [testdata/cli]

The same script gives the same bytes. Each model but the broken ones has Transposes around a Relu or a convolution, so that
there is something to gain. Needs numpy and onnx.
"""
import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

OUT, IN = [0, 2, 3, 1], [0, 3, 1, 2]
SHAPE = [1, 4, 6, 6]


def node(op, source, result, **attributes):
    sources = source if isinstance(source, list) else [source]
    return h.make_node(op, sources, [result], **attributes)


def port(name, shape=SHAPE, ty=T.FLOAT):
    return h.make_tensor_value_info(name, ty, shape)


def constant(name, shape):
    values = (np.arange(int(np.prod(shape)), dtype=np.float32) % 13 - 6) / 8
    return numpy_helper.from_array(values.reshape(shape), name)


def model(nodes, initializers=(), inputs=None, outputs=None, functions=(), opset=17, ir_version=8, domains=()):
    graph = h.make_graph(list(nodes), "g", inputs or [port("x")], outputs or [port("y")], list(initializers))
    imports = [h.make_opsetid("", opset), *(h.make_opsetid(domain, 1) for domain in domains)]
    return h.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=ir_version, producer_name="make_cli_models")


def there_and_back(*middle):
    """Nodes from `a` to `b`, between two Transposes that cancel."""
    return [node("Transpose", "x", "a", perm=OUT), *middle, node("Transpose", "b", "y", perm=IN)]


def relu():
    return there_and_back(node("Relu", "a", "b"))


def conv(weight="w"):
    """A convolution with Transposes around it that do not cancel, and whose weight is permuted by the graph."""
    return [node("Transpose", weight, "v", perm=[3, 2, 0, 1]), node("Transpose", "x", "a", perm=IN),
            node("Conv", ["a", "v"], "c", pads=[1, 1, 1, 1]), node("Relu", "c", "r"), node("Transpose", "r", "y", perm=OUT)]


def models():
    nhwc = {"inputs": [port("x", [1, 6, 6, 4])], "outputs": [port("y", [1, 6, 6, 4])]}
    yield "relu", model(relu())
    yield "nothing", model([node("Relu", "x", "y")])
    yield "nothing_in_halves", model([node("Cast", "x", "h", to=T.FLOAT16), node("Relu", "h", "r"), node("Cast", "r", "y", to=T.FLOAT)])
    yield "other", model([node("Neg", "x", "y")])
    yield "opset7", model(relu(), opset=7, ir_version=3)
    yield "opset26", model(relu(), opset=26, ir_version=13)
    yield "opset99", model(relu(), opset=99)
    weight = constant("w", [3, 3, 4, 4])
    yield "conv", model(conv(), [weight], **nhwc)
    # Before IR version 4 every initializer is an input too.
    yield "ir3", model(conv(), [weight], opset=9, ir_version=3, inputs=[port("x", [1, 6, 6, 4]), port("w", [3, 3, 4, 4])], outputs=nhwc["outputs"])
    yield "overridable", model(conv(), [weight], inputs=[port("x", [1, 6, 6, 4]), port("w", [3, 3, 4, 4])], outputs=nhwc["outputs"])
    yield "symbolic", model(relu(), inputs=[port("x", ["N", 4, "H", "W"])], outputs=[port("y", ["N", 4, "H", "W"])])
    custom = h.make_node("Mystery", ["m"], ["n"], domain="vendor.custom", strength=3)
    yield "custom", model([node("Transpose", "x", "a", perm=OUT), node("Relu", "a", "b"), node("Transpose", "b", "m", perm=IN), custom,
                           node("Transpose", "n", "o", perm=OUT), node("Sigmoid", "o", "p"), node("Transpose", "p", "y", perm=IN)], domains=["vendor.custom"])
    yield "custom_between", model(there_and_back(h.make_node("Mystery", ["a"], ["b"], domain="vendor.custom")), domains=["vendor.custom"])
    # Moves that nothing takes away, on both sides of a body's border; two of them are alike.
    mystery = lambda sources, result: h.make_node("Mystery", sources, [result], domain="vendor.custom")
    inside = h.make_graph([node("Transpose", "c", "inner", perm=[1, 0, 2, 3]), mystery(["inner"], "then_out")], "then", [], [port("then_out", None)])
    outside = h.make_graph([mystery(["c"], "else_out")], "else", [], [port("else_out", None)])
    yield "moves", model([h.make_node("Transpose", ["x"], ["a"], name="first", perm=OUT), h.make_node("Transpose", ["z"], ["b"], name="second", perm=OUT),
                          mystery(["a", "b"], "m"), node("Relu", "x", "c"), h.make_node("If", ["cond"], ["i"], then_branch=inside, else_branch=outside),
                          mystery(["m", "i"], "y")],
                         inputs=[port("x", [2, 64, 14, 14]), port("z", [2, 64, 14, 14], T.INT32), port("cond", [], T.BOOL)], domains=["vendor.custom"])
    yield "moves_symbolic", model([node("Transpose", "x", "a", perm=OUT), mystery(["a"], "y")],
                                  inputs=[port("x", ["N", 64, "H", "W"])], outputs=[port("y", None)], domains=["vendor.custom"])
    block = h.make_function("local", "Block", ["i"], ["o"], [node("Relu", "i", "t"), node("Neg", "t", "o")], [h.make_opsetid("", 17)])
    yield "functions", model([*relu()[:2], node("Transpose", "b", "q", perm=IN), h.make_node("Block", ["q"], ["y"], domain="local")],
                             functions=[block], domains=["local"])
    itself = h.make_function("local", "Block", ["i"], ["o"], [h.make_node("Block", ["i"], ["o"], domain="local")], [h.make_opsetid("local", 1)])
    yield "bad_recursion", model([h.make_node("Block", ["x"], ["y"], domain="local")], functions=[itself], domains=["local"])
    branch = lambda op: h.make_graph([node(op, "s", f"{op}_out")], op, [], [port(f"{op}_out")])
    yield "branches", model([*relu()[:2], node("Transpose", "b", "s", perm=IN), h.make_node("If", ["cond"], ["y"], then_branch=branch("Relu"), else_branch=branch("Neg"))],
                            inputs=[port("x"), port("cond", [], T.BOOL)])
    bias = constant("bias", [4, 6, 6])
    external = model([*relu()[:2], node("Transpose", "b", "s", perm=IN), node("Add", ["s", "bias"], "y")], [bias])
    for tensor in external.graph.initializer:
        tensor.data_location = T.EXTERNAL
        data = tensor.raw_data
        tensor.ClearField("raw_data")
        tensor.external_data.add(key="location", value="external.bin")
    yield "external", external
    yield "external.bin", data
    # The same as ONNX Runtime reads them: before operator set 11 the standard does not say which place is the nearest.
    scales, wide = numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "s"), {"outputs": [port("y", [1, 4, 12, 12])]}
    yield "upsample", model([node("Upsample", ["x", "s"], "y")], [scales], opset=9, **wide)
    as_runtime = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    yield "resize", model([node("Resize", ["x", "", "s"], "y", **as_runtime)], [scales], **wide)
    yield "bad_cycle", model(there_and_back(node("Add", ["a", "d"], "b"), node("Relu", "b", "d")))
    yield "bad_operator", model(there_and_back(node("Reluu", "a", "b")))
    yield "bad_attribute", model(there_and_back(node("Relu", "a", "b", colour="blue")))
    yield "bad_perm", model([node("Transpose", "x", "a", perm=[0, 1, 1, 2]), node("Relu", "a", "y")])
    yield "bad_input", model(there_and_back(node("Relu", "nowhere", "b")))
    yield "bad_domain", model([h.make_node("Mystery", ["x"], ["y"], domain="nobody.imported")])
    yield "bad_elements", model([node("Add", ["x", "w"], "y")], [h.make_tensor("w", T.FLOAT, [1], [0.0])])


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "testdata/cli")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in models():
        if name == "bad_elements":
            content.graph.initializer[0].dims[:] = [1 << 62]
        path = folder / (name if name.endswith(".bin") else f"{name}.onnx")
        path.write_bytes(content if isinstance(content, bytes) else content.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
