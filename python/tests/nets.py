"""Small models, built by hand."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def model(nodes, inputs, outputs, weights):
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def value(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def channels_last(channels=8, doc="") -> onnx.ModelProto:
    """A convolution between Transposes, as TensorFlow's exporter leaves it; no layout touches the weight `rows`."""
    rng = np.random.default_rng(0)
    weight = numpy_helper.from_array(rng.standard_normal((channels, 8, 3, 3), dtype=np.float32), "w")
    rows = numpy_helper.from_array(rng.standard_normal((channels, 64), dtype=np.float32), "rows")
    weight.doc_string = doc
    nodes = [
        helper.make_node("Transpose", ["x"], ["x_first"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["x_first", "w"], ["conv"], pads=[1, 1, 1, 1], name="conv"),
        helper.make_node("Transpose", ["conv"], ["last"], perm=[0, 2, 3, 1]),
        helper.make_node("Relu", ["last"], ["relu"]),
        helper.make_node("Transpose", ["relu"], ["first"], perm=[0, 3, 1, 2]),
        helper.make_node("Transpose", ["first"], ["again"], perm=[0, 2, 3, 1]),
        helper.make_node("MatMul", ["again", "rows"], ["y"]),
    ]
    return model(nodes, [value("x", [1, 12, 12, 8])], [value("y", [1, 12, 12, 64])], [weight, rows])


def grouped() -> onnx.ModelProto:
    """A normalization over groups of channels between convolutions, which devices read channels last; large enough for CUDA to do so, too."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal((8, 8, 3, 3), dtype=np.float32), name) for name in ("w", "v")]
    ones, zeros = (numpy_helper.from_array(np.full(2, n, np.float32), name) for n, name in ((1, "ones"), (0, "zeros")))
    shapes = [numpy_helper.from_array(np.array(dims), name) for dims, name in (([0, 2, -1], "groups"), ([1, 8, 512, 512], "image"))]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["conv"], pads=[1, 1, 1, 1]),
        helper.make_node("Reshape", ["conv", "groups"], ["parts"]),
        helper.make_node("InstanceNormalization", ["parts", "ones", "zeros"], ["normal"]),
        helper.make_node("Reshape", ["normal", "image"], ["whole"]),
        helper.make_node("Conv", ["whole", "v"], ["y"], pads=[1, 1, 1, 1]),
    ]
    return model(nodes, [value("x", [1, 8, 512, 512])], [value("y", [1, 8, 512, 512])], [*weights, ones, zeros, *shapes])


def settled() -> onnx.ModelProto:
    """A model in which nothing moves."""
    return model([helper.make_node("Relu", ["x"], ["y"])], [value("x", [2, 3])], [value("y", [2, 3])], [])


def stubborn(count) -> onnx.ModelProto:
    """A model with so many moves that all stay: an op through which no layout passes stands after each."""
    nodes, infos, last = [], [], "x"
    for i in range(count):
        nodes.append(helper.make_node("Transpose", [last], [f"t{i}"], perm=[0, 2, 1]))
        nodes.append(helper.make_node("Opaque", [f"t{i}"], [f"o{i}"], domain="custom"))
        last = f"o{i}"
        infos.append(value(last, [1, 8 + i % 5, 8 + i % 5]))
    graph = helper.make_graph(nodes, "g", [value("x", [1, 8, 8])], infos[-1:], value_info=infos[:-1])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("custom", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def run(model, feeds):
    """What ONNX Runtime computes, without its own rewrites."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    data = model if isinstance(model, (bytes, str)) else model.SerializeToString()
    return ort.InferenceSession(data, options, providers=["CPUExecutionProvider"]).run(None, feeds)
