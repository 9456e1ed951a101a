"""The made cases of tools/fuzz_files.py: small models that are hostile, broken or absurd in one way each.

cases() yields (group, name, function that writes the case into a folder and returns the input's path, whether it must be
refused). Nothing here is checked by onnx: most of it would not pass. Whatever the protobuf library will not write is
written byte by byte with field().
"""
import numpy as np
from onnx import AttributeProto, TensorProto
from onnx import helper as h
from onnx import numpy_helper

F, I64 = TensorProto.FLOAT, TensorProto.INT64
HUGE = 1 << 62


def value(name, shape=(1, 8, 6, 6), ty=F):
    return h.make_tensor_value_info(name, ty, shape)


def const(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def ints(name, values):
    return const(name, np.array(values, np.int64))


def model(nodes, initializers=(), inputs=None, outputs=None, functions=(), opset=18):
    graph = h.make_graph(list(nodes), "g", [value("x")] if inputs is None else inputs,
                         [value("y", ["a", "b", "c", "d"])] if outputs is None else outputs, list(initializers))
    imports = [h.make_opsetid("", opset), h.make_opsetid("local", 1), h.make_opsetid("vendor.custom", 1)]
    return h.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=9)


def node(op, inputs=("x",), outputs=("y",), **attributes):
    return h.make_node(op, list(inputs), list(outputs), **attributes)


def raw_attribute(name, ty, **fields):
    """An attribute whose declared type and content need not agree."""
    attribute = AttributeProto(name=name, type=ty)
    for key, content in fields.items():
        field = getattr(attribute, key)
        if isinstance(content, (list, tuple)):
            field.extend(content)
        else:
            setattr(attribute, key, content)
    return attribute


def with_attribute(made, attribute):
    made.attribute.append(attribute)
    return made


def weight(shape=(8, 8, 3, 3)):
    return const("w", np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape))


def surrounded(*nodes):
    """The nodes, from `a` to `b`, between two Transposes, so that an optimizer has a reason to look at them."""
    return [node("Transpose", ["x"], ["a"], perm=[0, 2, 3, 1]), *nodes, node("Transpose", ["b"], ["y"], perm=[0, 3, 1, 2])]


# ---- the wire format, for what the library refuses to write -----------------------------------------------------------

def varint(number):
    out = bytearray()
    while number > 0x7f:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, content):
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    content = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(content)) + content


def wire_model(graph):
    return field(1, 9) + field(7, graph) + field(8, field(1, "") + field(2, 18))


def nested(depth):
    """If inside If inside If, `depth` deep."""
    output = field(12, value("y", (1,)).SerializeToString())
    graph = field(1, field(1, "x") + field(2, "y") + field(4, "Identity")) + field(2, "g") + output
    for level in range(depth):
        branch = lambda name: field(5, field(1, name) + field(6, graph if name == "then_branch" else leaf) + field(20, 5))
        leaf = field(1, field(1, "x") + field(2, "y") + field(4, "Identity")) + field(2, "leaf") + output
        made = field(1, "c") + field(2, "y") + field(3, f"if{level}") + branch("then_branch") + branch("else_branch") + field(4, "If")
        graph = field(1, made) + field(2, "g") + output
    inputs = field(11, value("x", (1,)).SerializeToString()) + field(11, value("c", (), TensorProto.BOOL).SerializeToString())
    return wire_model(graph + inputs)


def nested_types(depth):
    """An input of type sequence of sequence of ... of tensor."""
    ty = field(1, field(1, 1))
    for _ in range(depth):
        ty = field(4, field(1, ty))
    graph = field(1, field(1, "x") + field(2, "y") + field(4, "Relu")) + field(2, "g") + field(11, value("x").SerializeToString())
    return wire_model(graph + field(11, field(1, "s") + field(2, ty)) + field(12, value("y").SerializeToString()))


# ---- groups -----------------------------------------------------------------------------------------------------------

def external_cases():
    def write(location, prepare=lambda folder: None, **entries):
        def make(folder):
            prepare(folder)
            made = model([node("Conv", ["x", "w"]), ], [weight()])
            tensor = made.graph.initializer[0]
            data = tensor.raw_data
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            place = location(folder) if callable(location) else location
            for key, content in {"location": place, **entries}.items():
                if content is not None:
                    tensor.external_data.add(key=key, value=str(content))
            target = folder / "weights.bin"
            if not target.is_symlink() and not target.exists():
                target.write_bytes(data)
            # Outside the folder of the model: it must not be read.
            (folder.parent / "outside.bin").write_bytes(data)
            path = folder / "in.onnx"
            path.write_bytes(made.SerializeToString())
            return path
        return make

    good, size = "weights.bin", 8 * 8 * 9 * 4
    yield "good", write(good), False
    yield "missing", write("no-such-file.bin"), True
    yield "parent", write("../outside.bin"), True
    yield "parent-hidden", write("./sub/../../outside.bin"), True
    yield "absolute", write(lambda folder: str(folder.parent / "outside.bin")), True
    yield "absolute-device", write("/dev/zero"), True
    yield "symlink", write(good, lambda folder: (folder / good).symlink_to("../outside.bin")), True
    yield "symlink-absolute", write(good, lambda folder: (folder / good).symlink_to("/etc/hostname")), True
    yield "symlink-to-itself", write(good, lambda folder: (folder / good).symlink_to(good)), True
    yield "symlinked-folder", write("sub/outside.bin", lambda folder: (folder / "sub").symlink_to("..")), True
    yield "folder", write("sub", lambda folder: (folder / "sub").mkdir()), True
    yield "itself", write("in.onnx"), False
    yield "empty-location", write(""), True
    yield "no-location", write(None), True
    yield "newline-in-location", write("no\nsuch\nfile"), True
    yield "zero-byte-in-location", write("weights.bin\0.txt"), True
    yield "offset-past-end", write(good, offset=1 << 40), True
    yield "offset-negative", write(good, offset=-4), True
    yield "offset-overflows", write(good, offset=(1 << 64) - 8), True
    yield "offset-no-number", write(good, offset="many"), True
    yield "length-past-end", write(good, length=1 << 40), True
    yield "length-too-short", write(good, length=size - 4), True
    yield "length-negative", write(good, length=-1), True
    yield "offset-and-length-overflow", write(good, offset=(1 << 63) - 1, length=(1 << 63) - 1), True


def graph_cases():
    relu = node("Relu", ["a"], ["b"])
    yield "empty-graph", model([], outputs=[value("x")])
    yield "no-outputs", model([node("Relu")], outputs=[])
    yield "no-graph", h.make_model(h.make_graph([], "", [], []))
    yield "cycle", model([node("Add", ["x", "b"], ["a"]), relu, node("Relu", ["b"])])
    yield "cycle-of-one", model([node("Add", ["x", "y"])])
    yield "cycle-through-transposes", model(surrounded(node("Add", ["a", "b"], ["b"])))
    yield "unsorted", model([node("Relu", ["a"]), node("Relu", ["x"], ["a"])])
    yield "output-twice", model([node("Relu", ["x"], ["a"]), node("Neg", ["x"], ["a"]), node("Abs", ["a"])])
    yield "output-twice-in-one-node", model([node("Split", ["x"], ["a", "a"], axis=1, num_outputs=2), node("Abs", ["a"])])
    yield "output-is-input", model([node("Relu", ["x"], ["x"]), node("Relu")])
    yield "duplicate-node-names", model([node("Relu", ["x"], ["a"], name="n"), node("Neg", ["a"], name="n")])
    yield "duplicate-inputs", model([node("Relu")], inputs=[value("x"), value("x")])
    yield "duplicate-graph-outputs", model([node("Relu")], outputs=[value("y", None), value("y", None)])
    yield "duplicate-initializers", model([node("Conv", ["x", "w"])], [weight(), weight((8, 8, 1, 1))])
    yield "initializer-is-node-output", model([node("Relu", ["x"], ["w"]), node("Conv", ["x", "w"])], [weight()])
    yield "value-nobody-makes", model([node("Add", ["x", "nowhere"])])
    yield "output-nobody-makes", model([node("Relu", ["x"], ["a"])])
    yield "custom-op-between", model(surrounded(h.make_node("Mystery", ["a"], ["b"], domain="vendor.custom", level=3)))
    yield "custom-op-of-unknown-domain", model(surrounded(h.make_node("Mystery", ["a"], ["b"], domain="nobody.imported")))
    yield "unknown-standard-op", model(surrounded(node("Reluu", ["a"], ["b"])))
    yield "empty-op-type", model([node("")])
    yield "node-without-outputs", model([node("Relu", ["x"], []), node("Relu")])
    yield "node-without-inputs", model(surrounded(node("Relu", [], ["b"])))
    yield "too-many-inputs", model(surrounded(node("Relu", ["a"] * 500, ["b"])))
    yield "empty-names", model([node("Relu", ["x"], [""]), node("Add", ["", "x"])])
    yield "newline-in-names", model([node("Conv", ["x", "w\nw"], ["y"], name="two\nlines", group=0)], [const("w\nw", np.ones((8, 8, 3, 3), np.float32))])
    yield "terminal-codes-in-names", model([node("Conv", ["x", "nowhere"], ["y"], name="\x1b[2J\x07bell")])
    yield "very-long-name", model([node("Add", ["x", "n" * 1_000_000])])
    yield "chain-of-20000", model([node("Transpose", [f"v{i}" if i else "x"], [f"v{i + 1}"], perm=[0, 2, 3, 1]) for i in range(20000)],
                                  outputs=[value("v20000", None)])
    yield "fan-of-5000", model([node("Transpose", ["x"], ["t"], perm=[0, 2, 3, 1]),
                                *[node("Relu", ["t"], [f"r{i}"]) for i in range(5000)],
                                node("Sum", [f"r{i}" for i in range(5000)])])
    yield "doubling-40-times", model([node("Concat", [f"v{i}" if i else "x"] * 2, [f"v{i + 1}"], axis=0) for i in range(40)],
                                     outputs=[value("v40", None)])
    yield "no-opset", model([node("Relu")], opset=0)
    yield "huge-opset", model([node("Relu")], opset=HUGE)
    yield "old-opset", model([node("Relu")], opset=1)
    huge_ir = model([node("Relu")])
    huge_ir.ir_version = HUGE
    yield "huge-ir-version", huge_ir
    typeless = model([node("Relu")])
    typeless.graph.input[0].ClearField("type")
    yield "input-without-type", typeless
    lying = model(surrounded(relu))
    lying.graph.value_info.append(value("a", (7, 7)))
    yield "value-info-lies", lying
    inner = h.make_graph([node("Relu", ["x"], ["z"])], "b", [], [value("z")])
    two = h.make_graph([node("Split", ["x"], ["p", "q"], axis=1, num_outputs=2)], "b", [], [value("p"), value("q")])
    condition = const("c", np.array(True))
    yield "branches-disagree", model([node("If", ["c"], ["y"], then_branch=inner, else_branch=two)], [condition])
    yield "branch-missing", model([node("If", ["c"], ["y"], then_branch=inner)], [condition])
    yield "branch-shadows", model([node("Relu", ["x"], ["z"]), node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)], [condition])
    body = h.make_graph([node("Identity", ["v"], ["w"])], "b", [value("v")], [value("w")])
    yield "loop-body-too-few", model([node("Loop", ["n", "c", "x"], ["y"], body=body)], [condition, ints("n", HUGE)])
    yield "scan-absurd-counts", model([node("Scan", ["x"], ["y"], body=body, num_scan_inputs=HUGE)])
    endless = h.make_graph([node("Identity", ["k"], ["k2"]), node("Identity", ["v"], ["w"])], "b",
                           [value("i", (), I64), value("k", (), TensorProto.BOOL), value("v")], [value("k2", (), TensorProto.BOOL), value("w")])
    yield "loop-2-to-the-62", model([node("Loop", ["n", "c", "one"], ["a"], body=endless), node("Add", ["x", "a"])],
                                    [condition, ints("n", HUGE), const("one", np.ones((1, 8, 6, 6), np.float32))])
    for name, calls in [("function-calls-itself", {"A": "A"}), ("functions-in-a-ring", {"A": "B", "B": "A"})]:
        functions = [h.make_function("local", f, ["x"], ["y"], [h.make_node(g, ["x"], ["y"], domain="local")],
                                     [h.make_opsetid("", 18), h.make_opsetid("local", 1)]) for f, g in calls.items()]
        yield name, model([h.make_node("A", ["x"], ["y"], domain="local")], functions=functions)
    doubling = [h.make_function("local", f"F{i}", ["x"], ["y"],
                                [h.make_node(f"F{i + 1}", ["x"], ["t"], domain="local"), h.make_node(f"F{i + 1}", ["t"], ["y"], domain="local")]
                                if i < 40 else [node("Relu")], [h.make_opsetid("", 18), h.make_opsetid("local", 1)]) for i in range(41)]
    yield "functions-that-double-40-times", model([h.make_node("F0", ["x"], ["y"], domain="local")], functions=doubling)
    shadow = h.make_function("", "Relu", ["x"], ["y"], [node("Neg")], [h.make_opsetid("", 18)])
    yield "function-named-as-standard-op", model([node("Relu")], functions=[shadow])


def attribute_cases():
    conv = lambda **attributes: model([node("Conv", ["x", "w"], ["y"], **attributes)], [weight()])
    absurd = {
        "group-0": {"group": 0}, "group-negative": {"group": -1}, "group-huge": {"group": HUGE}, "group-3": {"group": 3},
        "kernel-negative": {"kernel_shape": [-3, -3]}, "kernel-zero": {"kernel_shape": [0, 0]}, "kernel-huge": {"kernel_shape": [HUGE, HUGE]},
        "kernel-of-rank-1": {"kernel_shape": [3]}, "kernel-of-rank-300": {"kernel_shape": [3] * 300},
        "pads-huge": {"pads": [HUGE] * 4}, "pads-negative": {"pads": [-HUGE] * 4}, "pads-of-three": {"pads": [1, 1, 1]},
        "pads-larger-than-memory": {"pads": [1 << 20] * 4}, "strides-zero": {"strides": [0, 0]}, "strides-negative": {"strides": [-1, -1]},
        "strides-huge": {"strides": [HUGE, HUGE]}, "dilations-zero": {"dilations": [0, 0]}, "dilations-huge": {"dilations": [HUGE, HUGE]},
        "auto-pad-unknown": {"auto_pad": "SIDEWAYS"}, "attribute-unknown": {"colour": "blue"},
    }
    for name, attributes in absurd.items():
        yield f"conv-{name}", conv(**attributes)
    for shape in [(), (8,), (8, 8), (8, 8, 3, 3, 3), (0, 8, 3, 3), (8, 0, 3, 3), (8, 7, 3, 3)]:
        yield "conv-weight-" + ("x".join(map(str, shape)) or "scalar"), model([node("Conv", ["x", "w"])], [weight(shape)])
    for name, perm in {"repeats": [0, 1, 1, 2], "too-short": [0, 1], "too-long": [0, 1, 2, 3, 4], "out-of-range": [0, 1, 2, HUGE],
                       "negative": [0, 1, 2, -1], "most-negative": [-(1 << 63), 1, 2, 3], "of-1000": list(range(1000))}.items():
        yield f"perm-{name}", model([node("Transpose", perm=perm)])
        yield f"perm-{name}-of-constant", model([node("Transpose", ["w"], ["v"], perm=perm), node("Conv", ["x", "v"])], [weight()])
    for axis in (HUGE, -HUGE, -(1 << 63), (1 << 63) - 1, 4, -5):
        for op in ("Softmax", "Flatten", "LogSoftmax", "Hardmax", "ArgMax"):
            yield f"{op.lower()}-axis-{axis}", model(surrounded(node(op, ["a"], ["b"], axis=axis)))
        yield f"concat-axis-{axis}", model(surrounded(node("Concat", ["a", "a"], ["b"], axis=axis)))
        yield f"gather-axis-{axis}", model(surrounded(node("Gather", ["a", "i"], ["b"], axis=axis)), [ints("i", [0])])
        yield f"split-axis-{axis}", model(surrounded(node("Split", ["a"], ["b", "c"], axis=axis, num_outputs=2)))
        yield f"squeeze-axes-{axis}", model(surrounded(node("Squeeze", ["a", "i"], ["b"])), [ints("i", [axis])])
        yield f"unsqueeze-axes-{axis}", model(surrounded(node("Unsqueeze", ["a", "i"], ["b"])), [ints("i", [axis, axis])])
        yield f"reduce-axes-{axis}", model(surrounded(node("ReduceMean", ["a", "i"], ["b"])), [ints("i", [axis])])
    A = AttributeProto
    wrong = {
        "perm-is-string": ("Transpose", raw_attribute("perm", A.STRING, s=b"0231")),
        "perm-is-float": ("Transpose", raw_attribute("perm", A.FLOAT, f=1.5)),
        "perm-is-floats": ("Transpose", raw_attribute("perm", A.FLOATS, floats=[0, 2, 3, 1])),
        "perm-is-int": ("Transpose", raw_attribute("perm", A.INT, i=3)),
        "perm-is-graph": ("Transpose", raw_attribute("perm", A.GRAPH)),
        "perm-is-tensor": ("Transpose", raw_attribute("perm", A.TENSOR)),
        "perm-has-no-type": ("Transpose", raw_attribute("perm", A.UNDEFINED, ints=[0, 2, 3, 1])),
        "perm-says-ints-has-floats": ("Transpose", raw_attribute("perm", A.INTS, floats=[0.5])),
        "perm-refers-outside-function": ("Transpose", raw_attribute("perm", A.INTS, ref_attr_name="p")),
        "axis-is-float": ("Softmax", raw_attribute("axis", A.FLOAT, f=1.0)),
        "axis-is-ints": ("Softmax", raw_attribute("axis", A.INTS, ints=[1, 2])),
        "to-is-string": ("Cast", raw_attribute("to", A.STRING, s=b"float")),
        "to-is-99": ("Cast", raw_attribute("to", A.INT, i=99)),
        "to-is-huge": ("Cast", raw_attribute("to", A.INT, i=HUGE)),
        "value-is-empty": ("Constant", raw_attribute("value", A.TENSOR)),
        "body-is-missing": ("Loop", raw_attribute("body", A.GRAPH)),
    }
    for name, (op, attribute) in wrong.items():
        yield name, model(surrounded(with_attribute(node(op, ["a"], ["b"]), attribute)))
    twice = with_attribute(with_attribute(node("Transpose"), h.make_attribute("perm", [0, 2, 3, 1])), h.make_attribute("perm", [0, 1, 2, 3]))
    yield "attribute-twice", model([twice])
    for name, equation in {"empty": "", "garbage": "\x00->->,,", "repeated-output": "abcd->aa", "unknown-output": "abcd->z", "dots": "...a......b->...",
                           "long": "abcd->" + "a" * 100000}.items():
        yield f"einsum-{name}", model(surrounded(node("Einsum", ["a"], ["b"], equation=equation)))
    for blocksize in (0, -1, HUGE, 5):
        yield f"depth-to-space-{blocksize}", model(surrounded(node("DepthToSpace", ["a"], ["b"], blocksize=blocksize)))
        yield f"space-to-depth-{blocksize}", model(surrounded(node("SpaceToDepth", ["a"], ["b"], blocksize=blocksize)))
    for kernel in ([0, 0], [-1, 2], [HUGE, HUGE], [2]):
        yield f"pool-kernel-{kernel[0]}-{len(kernel)}", model(surrounded(node("MaxPool", ["a"], ["b"], kernel_shape=kernel)))


def size_cases():
    for dims in ([HUGE], [HUGE, HUGE], [-1, 8], [1 << 32, 1 << 32], [1 << 31, 0], [(1 << 63) - 1] * 8, [1] * 5000):
        name = "x".join(map(str, dims)) if len(dims) < 8 else f"{len(dims)}-dims-of-{dims[0]}"
        tensor = TensorProto(name="w", data_type=F, dims=dims)
        yield f"initializer-{name}-without-data", model(surrounded(node("Add", ["a", "w"], ["b"])), [tensor])
        tensor = TensorProto(name="w", data_type=F, dims=dims, raw_data=b"\0" * 16)
        yield f"initializer-{name}-with-little-data", model(surrounded(node("Mul", ["a", "w"], ["b"])), [tensor])
        yield f"input-{name}", model([node("Transpose", ["x"], ["a"]), node("Relu", ["a"])], inputs=[value("x", dims)])
    folding = {
        "constant-of-shape": (node("ConstantOfShape", ["s"], ["k"]), [ints("s", [1 << 20, 1 << 20])]),
        "constant-of-shape-huge": (node("ConstantOfShape", ["s"], ["k"]), [ints("s", [HUGE, HUGE])]),
        "constant-of-shape-negative": (node("ConstantOfShape", ["s"], ["k"]), [ints("s", [-3])]),
        "expand": (node("Expand", ["one", "s"], ["k"]), [ints("s", [1 << 20, 1 << 20])]),
        "tile": (node("Tile", ["one", "s"], ["k"]), [ints("s", [1 << 40])]),
        "tile-negative": (node("Tile", ["one", "s"], ["k"]), [ints("s", [-1])]),
        "range": (node("Range", ["zero", "s", "step"], ["k"]), [ints("zero", 0), ints("s", HUGE), ints("step", 1)]),
        "range-step-0": (node("Range", ["zero", "s", "step"], ["k"]), [ints("zero", 0), ints("s", 7), ints("step", 0)]),
        "pad": (node("Pad", ["one", "s"], ["k"]), [ints("s", [1 << 40, 1 << 40])]),
        "pad-negative": (node("Pad", ["one", "s"], ["k"]), [ints("s", [-5, -5])]),
        "reshape-huge": (node("Reshape", ["one", "s"], ["k"]), [ints("s", [HUGE, 4, 1])]),
        "reshape-two-unknown": (node("Reshape", ["one", "s"], ["k"]), [ints("s", [-1, -1])]),
        "reshape-minus-two": (node("Reshape", ["one", "s"], ["k"]), [ints("s", [-2])]),
        "reshape-zero-and-unknown": (node("Reshape", ["one", "s"], ["k"]), [ints("s", [0, -1, 0])]),
        "slice-step-0": (node("Slice", ["one", "s", "s", "zero", "zero"], ["k"]), [ints("s", [0]), ints("zero", [0])]),
        "slice-huge": (node("Slice", ["one", "lo", "hi", "zero", "hi"], ["k"]), [ints("lo", [-(1 << 63)]), ints("hi", [(1 << 63) - 1]), ints("zero", [0])]),
        "one-hot": (node("OneHot", ["i", "s", "v"], ["k"]), [ints("i", [0]), ints("s", HUGE), const("v", np.array([0, 1], np.float32))]),
        "gather-out-of-range": (node("Gather", ["one", "s"], ["k"]), [ints("s", [HUGE, -HUGE])]),
        "divide-by-zero": (node("Div", ["s", "zero"], ["k"]), [ints("s", [-(1 << 63)]), ints("zero", [0])]),
        "divide-overflows": (node("Div", ["s", "m"], ["k"]), [ints("s", [-(1 << 63)]), ints("m", [-1])]),
        "mod-by-zero": (node("Mod", ["s", "zero"], ["k"]), [ints("s", [7]), ints("zero", [0])]),
        "multiply-overflows": (node("Mul", ["s", "s"], ["k"]), [ints("s", [HUGE])]),
        "float-to-int": (node("Cast", ["f"], ["k"], to=I64), [const("f", np.array([np.nan, np.inf, 1e30], np.float32))]),
        "split-negative": (node("Split", ["one", "s"], ["k"]), [ints("s", [-1])]),
        "top-k": (node("TopK", ["one", "s"], ["k", "j"]), [ints("s", [HUGE])]),
    }
    for name, (made, constants) in folding.items():
        nodes = [made, node("Cast", ["k"], ["kf"], to=F), node("Shape", ["kf"], ["ks"]), node("ReduceSum", ["kf"], ["kr"], keepdims=0),
                 node("Transpose", ["x"], ["a"], perm=[0, 2, 3, 1]), node("Add", ["a", "kr"], ["b"]), node("Transpose", ["b"], ["y"], perm=[0, 3, 1, 2])]
        yield f"fold-{name}", model(nodes, [*constants, const("one", np.ones(1, np.float32))], outputs=[value("y", None), value("ks", None, I64)])
    yield "resize-huge", model(surrounded(node("Resize", ["a", "", "s"], ["b"])), [const("s", np.array([1, 1e30, 1e30, 1], np.float32))])
    yield "resize-nan", model(surrounded(node("Resize", ["a", "", "s"], ["b"])), [const("s", np.array([1, np.nan, -1, 0], np.float32))])
    for name, change in {
        "type-99": {"data_type": 99}, "type-0": {"data_type": 0}, "type-string-with-raw": {"data_type": 8}, "raw-too-short": {"raw_data": b"\1" * 7},
        "raw-too-long": {"raw_data": b"\1" * 99999}, "raw-and-floats": {"float_data": [1.0] * 7}, "dims-disagree": {"dims": [9, 9]},
        "segment": {"segment": TensorProto.Segment(begin=HUGE, end=-HUGE)},
    }.items():
        tensor = weight()
        for key, content in change.items():
            if isinstance(content, list):
                tensor.ClearField(key)
                getattr(tensor, key).extend(content)
            elif isinstance(content, TensorProto.Segment):
                tensor.segment.CopyFrom(content)
            else:
                setattr(tensor, key, content)
        yield f"tensor-{name}", model([node("Conv", ["x", "w"])], [tensor])
    yield "tensor-ints-in-floats", model(surrounded(node("Add", ["a", "w"], ["b"])), [TensorProto(name="w", data_type=F, dims=[4], int64_data=[1, 2, 3, 4])])
    for block in (0, -1, HUGE, 3):
        quantized = [const("q", np.zeros((8, 8), np.int8)), const("s", np.ones((8, 2), np.float32))]
        yield f"dequantize-block-{block}", model([node("DequantizeLinear", ["q", "s"], ["y"], axis=1, block_size=block)], quantized, opset=21)


def file_cases():
    ordinary = model(surrounded(node("Relu", ["a"], ["b"])), opset=18).SerializeToString()
    yield "empty", b""
    yield "one-byte", b"\x08"
    yield "text", b"This is not a model.\n" * 50
    yield "zeros", b"\0" * 4096
    yield "ones", b"\xff" * 4096
    yield "archive", b"PK\x03\x04" + b"\0" * 100
    yield "length-beyond-end", field(1, 9) + varint(7 << 3 | 2) + varint(1 << 40) + b"abc"
    yield "length-of-2-to-the-64", varint(7 << 3 | 2) + b"\xff" * 9 + b"\x01"
    yield "varint-too-long", b"\x08" + b"\x80" * 40 + b"\x01"
    yield "wire-type-7", b"\x0f\x01"
    yield "group-never-closed", b"\x0b" * 100000
    yield "field-number-0", b"\x02\x00"
    yield "unknown-fields", ordinary + field(4000, b"future") + field(4001, 7)
    yield "graph-twice", ordinary + ordinary
    yield "names-not-utf-8", ordinary.replace(b"Relu", b"\xff\xfe\xfd\xfc")
    for depth in (10, 60, 200, 2000):
        yield f"nested-{depth}-subgraphs", nested(depth)
    for depth in (10, 90, 5000):
        yield f"nested-{depth}-types", nested_types(depth)


def cases():
    def plain(data):
        def make(folder):
            path = folder / "in.onnx"
            path.write_bytes(data if isinstance(data, bytes) else data.SerializeToString())
            return path
        return make

    for name, write, must_refuse in external_cases():
        yield "external", f"external-{name}", write, must_refuse
    for group, made in [("graph", graph_cases), ("attribute", attribute_cases), ("size", size_cases), ("file", file_cases)]:
        for name, content in made():
            yield group, f"{group}-{name}", plain(content), False
