"""``optimize`` on models of every kind."""

import os
import pathlib

import nets
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, numpy_helper

import relayout


@pytest.fixture
def net():
    return nets.channels_last()


def same(a, b):
    """Both compute the same, where ONNX Runtime can be had."""
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        return
    feeds = {"x": np.random.default_rng(1).standard_normal((1, 12, 12, 8), dtype=np.float32)}
    for one, other in zip(nets.run(a, feeds), nets.run(b, feeds), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def transposes(model):
    return sum(node.op_type == "Transpose" for node in model.graph.node)


def test_what_comes_in_comes_out(net):
    data = net.SerializeToString()
    pathlib.Path("m.onnx").write_bytes(data)
    of_path = relayout.optimize("m.onnx", "out.onnx")
    assert of_path.model == "out.onnx" and of_path.changed
    assert (of_path.report.before.nodes, of_path.report.after.nodes) == (4, 1)
    assert relayout.optimize(pathlib.Path("m.onnx"), "out2.onnx").model == pathlib.Path("out2.onnx")
    want = pathlib.Path("out.onnx").read_bytes()
    of_bytes = relayout.optimize(data)
    assert type(of_bytes.model) is bytes and of_bytes.model == want
    assert relayout.optimize(memoryview(bytearray(data))).model == want
    of_proto = relayout.optimize(net)
    assert type(of_proto.model) is onnx.ModelProto and of_proto.model == onnx.ModelProto.FromString(want)
    of_ir = relayout.optimize(ir.serde.deserialize_model(net))
    assert type(of_ir.model) is ir.Model
    proto = ir.serde.serialize_model(of_ir.model)
    onnx.checker.check_model(proto)
    assert transposes(proto) == transposes(of_proto.model) == 1
    for result in (want, of_proto.model, proto):
        same(net, result)


def test_the_argument_is_not_changed(net):
    before = net.SerializeToString(deterministic=True)
    relayout.optimize(net).model.graph.node[0].name = "mine"
    assert net.SerializeToString(deterministic=True) == before
    model = ir.serde.deserialize_model(net)
    kept = {name: value.const_value for name, value in model.graph.initializers.items()}
    relayout.optimize(model).model.graph.name = "mine"
    assert model.graph.name == "g"
    assert all(model.graph.initializers[name].const_value is tensor for name, tensor in kept.items())


def test_an_unchanged_model_comes_back_whole():
    net = nets.settled()
    result = relayout.optimize(net)
    assert not result.changed and str(result.report) == "unchanged: nothing moves data in this model"
    assert result.model is net
    data = net.SerializeToString()
    assert relayout.optimize(data).model == data
    model = ir.serde.deserialize_model(net)
    assert relayout.optimize(model).model is model


def test_weights_that_did_not_change_are_the_same_objects(net):
    model = ir.serde.deserialize_model(net)
    array = np.random.default_rng(0).standard_normal((8, 64), dtype=np.float32)
    for name in ("rows", None):
        tensor = model.graph.initializers["rows"].const_value = ir.Tensor(array, name=name)
        result = relayout.optimize(model)
        assert result.changed and result.model.graph.initializers["rows"].const_value is tensor


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [("BFLOAT16", 16), ("FLOAT8E4M3FN", 8), ("INT4", 4), ("FLOAT16", 16), ("DOUBLE", 64), ("BOOL", 8)],
)
def test_weights_of_every_type_keep_their_bits(net, dtype, bits):
    number = getattr(TensorProto, dtype)
    raw = np.random.default_rng(3).integers(0, 2 if dtype == "BOOL" else 60, 4096, dtype=np.uint8).tobytes()
    net.opset_import[0].version = 21
    net.ir_version = 10
    net.graph.initializer.add(name="odd", data_type=number, dims=[4096 * 8 // bits], raw_data=raw)
    net.graph.node.add(op_type="Identity", input=["odd"], output=["odd_out"])
    net.graph.output.append(nets.value("odd_out", [4096 * 8 // bits], number))
    of_proto = relayout.optimize(net).model
    of_ir = ir.serde.serialize_model(relayout.optimize(ir.serde.deserialize_model(net)).model)
    for result in (of_proto, of_ir):
        [kept] = [t for t in result.graph.initializer if t.name == "odd"]
        assert (kept.raw_data, kept.data_type, list(kept.dims)) == (raw, number, [4096 * 8 // bits])


def test_messages_keep_what_is_beside_the_data():
    net = nets.channels_last(doc="of the first layer")
    net.metadata_props.add(key="mine", value="kept")
    result = relayout.optimize(net).model
    assert [t.doc_string for t in result.graph.initializer if t.name == "w"] == ["of the first layer"]
    assert {p.key: p.value for p in result.metadata_props}["mine"] == "kept"
    assert all(t.data_location != TensorProto.EXTERNAL for t in result.graph.initializer)


def test_tensors_in_attributes_have_their_data(net):
    table = numpy_helper.from_array(np.arange(12 * 12 * 8, dtype=np.float32).reshape(1, 12, 12, 8), "table")
    net.graph.node[0].input[0] = "shifted"
    net.graph.node.insert(0, onnx.helper.make_node("Constant", [], ["table"], value=table))
    net.graph.node.insert(1, onnx.helper.make_node("Add", ["x", "table"], ["shifted"]))
    same(net, relayout.optimize(net).model)
    same(net, ir.serde.serialize_model(relayout.optimize(ir.serde.deserialize_model(net)).model))


def test_external_data_is_found_beside_a_file_and_in_base_dir(net, tmp_path):
    onnx.save(net, "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    net = onnx.load("m.onnx")
    assert relayout.optimize("m.onnx", "out.onnx").changed
    same(net, "out.onnx")
    bare = onnx.load("m.onnx", load_external_data=False)
    same(net, relayout.optimize(bare, base_dir=tmp_path).model)
    same(net, relayout.optimize(bare.SerializeToString(), base_dir=tmp_path).model)
    with pytest.raises(relayout.ModelError, match='tensor "w".*missing'):
        relayout.optimize(bare, "never.onnx")
    assert not os.path.exists("never.onnx")
    with pytest.raises(relayout.OptionError, match="base_dir"):
        relayout.optimize("m.onnx", base_dir=".")


def test_data_outside_of_base_dir_is_refused(net, tmp_path):
    onnx.save(net, "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "m.data").symlink_to(tmp_path / "m.data")
    bare = onnx.load("m.onnx", load_external_data=False)
    with pytest.raises(relayout.Error, match="leads out"):
        relayout.optimize(bare, "never.onnx", base_dir=inside)
    # With data of its own, which goes along, the other way of finding data is taken.
    bare.graph.initializer.append(numpy_helper.from_array(np.zeros(2000, dtype=np.float32), "more"))
    with pytest.raises(relayout.Error, match="leads out"):
        relayout.optimize(bare, "never.onnx", base_dir=inside)
    assert not os.path.exists("never.onnx")


def test_a_model_above_2_gb_is_not_read(net, tmp_path):
    """The file is a hole: it has 3 GB, and takes no room. Its weights are neither read nor copied."""
    import resource

    with open("big.data", "wb") as file:
        file.truncate(3 << 30)
    model = ir.serde.deserialize_model(net)
    shape = ir.Shape([3 << 18, 1024])
    big = ir.ExternalTensor("big.data", 0, 3 << 30, ir.DataType.FLOAT, shape=shape, name="big", base_dir=tmp_path)
    model.graph.register_initializer(ir.Value(name="big", shape=shape, type=ir.TensorType(ir.DataType.FLOAT), const_value=big))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = relayout.optimize(model)
    assert result.report.after.nodes == 1
    assert result.model.graph.initializers["big"].const_value is big
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000, "kB"


def test_saving(net):
    pathlib.Path("m.onnx").write_bytes(net.SerializeToString())
    result = relayout.optimize("m.onnx")
    with pytest.raises(relayout.FileError, match="nothing was written yet"):
        _ = result.model
    assert result.save() == pathlib.Path("m.relayout.onnx") and result.model == "m.relayout.onnx"
    with pytest.raises(relayout.FileError, match="overwrite=True"):
        result.save()
    result.save(overwrite=True)
    for model in (net, ir.serde.deserialize_model(net)):
        path = relayout.optimize(model).save("p.onnx")
        assert transposes(onnx.load(path, load_external_data=False)) == 1 and os.listdir().count("p.onnx.data") == 0
        same(net, "p.onnx")
    with pytest.raises(relayout.OptionError, match="give `save` a path"):
        relayout.optimize(net).save()
    with pytest.raises(relayout.MissingFileError, match="nowhere"):
        result.save("nowhere/out.onnx")


def test_options_are_heard(net):
    result = relayout.optimize(net, inputs={"x": "NHWC->NCHW"}, numerics="exact", strict=True)
    assert [(io.end, io.name, io.from_, io.to) for io in result.report.io] == [("input", "x", "NHWC", "NCHW")]
    assert [d.dim_value for d in result.model.graph.input[0].type.tensor_type.shape.dim] == [1, 8, 12, 12]
    free = relayout.optimize(net, free_io=True, outputs=["y:NHWC->NCHW"])
    assert {io.name: io.chosen for io in free.report.io} == {"x": True, "y": False}
    assert relayout.optimize(net, target="ort-cpu", block=8, guard=False).report.target == "ort-cpu"
    assert "2 threads" in relayout.explain(net, target="ort-cpu", threads=2).cost_source
    sized = onnx.ModelProto()
    sized.CopyFrom(net)
    for axis, name in enumerate("NHW"):
        sized.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = name
    report = relayout.optimize(sized, dims={"N": 4, "x.1": (32, 64), "W": "8..16"}).report
    assert report.hints == {"N": 4, "H": 48, "W": 12}
    fixed = relayout.optimize(sized, dims={"N": 4}, fix_sizes=True)
    assert [d.dim_value for d in fixed.model.graph.input[0].type.tensor_type.shape.dim][0] == 4
    assert any("sizes were written" in note for note in fixed.report.notes)
    with pytest.raises(relayout.OptionError, match="H is a range"):
        relayout.optimize(sized, dims={"H": (32, 64)}, fix_sizes=True)
    assert [size.source for size in report.sizes] == ["given"] * 3
    with pytest.raises(relayout.OptionError, match="the open dims are N, H, W"):
        relayout.optimize(sized, dims={"C": 8})
    described = pathlib.Path(__file__).parents[2] / "crates/targets/src/functions/nhwc.toml"
    assert relayout.optimize(net, target=described).report.target == "nhwc"


@pytest.mark.parametrize(
    ("options", "kind", "named"),
    [
        ({"target": "tpu"}, relayout.TargetError, "tpu"),
        ({"target": pathlib.Path("none.toml")}, relayout.MissingFileError, "none.toml"),
        ({"target": "ort-cpu", "block": 12}, relayout.OptionError, "12"),
        ({"block": 8}, relayout.OptionError, "ort-cpu"),
        ({"threads": 2}, relayout.OptionError, "ort-cpu"),
        ({"target": "ort-cpu", "threads": -1}, relayout.OptionError, "-1"),
        ({"costs": "c.toml"}, relayout.OptionError, "cuda-tensorcore"),
        ({"target": "ort-cpu", "costs": "none.toml"}, relayout.MissingFileError, "none.toml"),
        ({"dims": {"N": 0}}, relayout.OptionError, "N: `0`"),
        ({"dims": {"N": 1.5}}, relayout.OptionError, "1.5"),
        ({"numerics": "loose"}, relayout.OptionError, "loose"),
        ({"inputs": ["x:NC"]}, relayout.LayoutError, "x:NC"),
        ({"inputs": {"z": "NCHW->NHWC"}}, relayout.LayoutError, "no input `z`"),
        ({"inputs": "x:NHWC->NCHW"}, relayout.OptionError, "expected layouts"),
        ({"progress": 7}, TypeError, "int"),
        ({"blocks": 8}, TypeError, "blocks"),
    ],
)
def test_what_cannot_be_had_is_named(net, options, kind, named):
    with pytest.raises(kind, match=named):
        relayout.optimize(net, "out.onnx", **options)
    assert not os.path.exists("out.onnx")


def test_models_that_are_none_are_named(net):
    with pytest.raises(relayout.MissingFileError, match=r"cannot read none\.onnx"):
        relayout.optimize("none.onnx")
    with pytest.raises(FileNotFoundError):
        relayout.optimize(pathlib.Path("none.onnx"))
    with pytest.raises(relayout.FileError, match="directory"):
        relayout.optimize(".")
    with pytest.raises(relayout.ModelError, match="cut off|damaged"):
        relayout.optimize(net.SerializeToString()[:200])
    with pytest.raises(relayout.ModelError, match="is empty"):
        relayout.optimize(b"")
    with pytest.raises(TypeError, match="expected a path.*builtins.int"):
        relayout.optimize(7)
    broken = nets.settled()
    broken.graph.node[0].input[0] = "nobody"
    with pytest.raises(relayout.ModelError, match="nobody"):
        relayout.optimize(broken)
    other = relayout.optimize(net, target="nhwc").model
    with pytest.raises(relayout.OtherTargetError, match="nhwc"):
        relayout.optimize(other, target="cuda-tensorcore")


def test_every_exception_is_an_error_of_relayout_and_documented():
    kinds = [kind for kind in vars(relayout).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(kinds) > 15
    for kind in kinds:
        assert issubclass(kind, (relayout.Error, Warning)) and kind.__doc__, kind


def test_verifying(net):
    pytest.importorskip("onnxruntime")
    for model in (net, net.SerializeToString(), ir.serde.deserialize_model(net)):
        assert relayout.optimize(model, "out.onnx", verify=True).changed
    pathlib.Path("m.onnx").write_bytes(net.SerializeToString())
    assert relayout.optimize("m.onnx", "out.onnx", verify=True).changed


def test_a_model_that_cannot_run_is_not_verified_and_nothing_is_written():
    pytest.importorskip("onnxruntime")
    net = nets.channels_last()
    net.opset_import.append(onnx.helper.make_opsetid("none.example", 1))
    net.graph.node.append(onnx.helper.make_node("Nothing", ["y"], ["z"], domain="none.example"))
    net.graph.output.append(onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, None))
    with pytest.raises(relayout.VerifyError, match="cannot load"):
        relayout.optimize(net, "out.onnx", verify=True)
    assert not os.path.exists("out.onnx")
    # What comes out as it was needs no run.
    assert not relayout.optimize(nets.stubborn(2), "out.onnx", verify=True).report.changed
    assert os.path.exists("out.onnx")
