"""``verify`` and ``session``."""

import hashlib
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import nets
import numpy as np
import onnx
import onnx_ir as ir
import pytest

import relayout
from relayout import _runtime

ort = pytest.importorskip("onnxruntime", reason="onnxruntime needs CPython 3.11 or newer")


def louder(net):
    """The same with larger weights."""
    other = onnx.ModelProto()
    other.CopyFrom(net)
    rows = next(t for t in other.graph.initializer if t.name == "rows")
    rows.raw_data = (np.frombuffer(rows.raw_data, np.float32) * np.float32(1.01)).tobytes()
    return other


def test_models_that_compute_the_same_hold():
    net = nets.channels_last()
    other = relayout.optimize(net).model
    for model in (other, other.SerializeToString(), ir.serde.deserialize_model(other)):
        comparison = relayout.verify(net, model, rounds=2)
        assert comparison and comparison.holds and comparison.rounds == 2
        assert [output.name for output in comparison.outputs] == ["y"] and str(comparison).startswith("output `y`: ")


def test_a_difference_is_no_error_and_has_figures():
    net = nets.channels_last()
    comparison = relayout.verify(net, louder(net))
    assert not comparison and comparison.rms == pytest.approx(0.01, rel=0.01)
    assert relayout.verify(net, louder(net), rms=0.02)
    assert not relayout.verify(net, louder(net), exact=True)
    assert relayout.verify(net, net, exact=True).exact


def test_what_cannot_be_compared_does_not_hold():
    text = "<ir_version: 9, opset_import: ['' : 18]> g (float[N,4] x) => (float[N,4] y) { r = RandomNormalLike(x) y = OP(x, r) }"
    plus, minus = (onnx.parser.parse_model(text.replace("'", '"').replace("OP", op)) for op in ("Add", "Sub"))
    comparison = relayout.verify(plus, minus)
    assert not comparison and comparison.answer == "not-compared"
    assert "differs from itself" in comparison.outputs[0].why and len(comparison.inputs) == 3


def test_inputs_can_be_given():
    net, x = nets.channels_last(), np.zeros((1, 12, 12, 8), np.float32)
    assert relayout.verify(net, louder(net), inputs={"x": x}).exact, "zeros are zeros in both"
    np.savez("inputs.npz", x=x)
    assert relayout.verify(net, louder(net), inputs="inputs.npz").exact
    with pytest.raises(relayout.VerifyError, match="no array `x`"):
        relayout.verify(net, net, inputs={"z": x})
    with pytest.raises(relayout.OptionError, match="`Q`"):
        relayout.verify(net, net, dims={"Q": 4})


def test_files_with_external_data_are_compared():
    onnx.save(nets.channels_last(), "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    net, bare = onnx.load("m.onnx"), onnx.load("m.onnx", load_external_data=False)
    assert relayout.verify("m.onnx", net)
    assert relayout.verify(bare, "m.onnx", base_dir=".")
    with pytest.raises(relayout.MissingFileError, match="none"):
        relayout.verify("none.onnx", "m.onnx")


def test_a_runtime_that_is_none_is_named():
    script = "import relayout; relayout.verify('tf_unet.onnx', 'tf_unet.onnx')"
    environment = {**os.environ, "ORT_DYLIB_PATH": "/none/libonnxruntime.so"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert "OnnxRuntimeError" in done.stderr and "/none/libonnxruntime.so" in done.stderr


def image():
    return np.random.default_rng(1).standard_normal((1, 12, 12, 8), dtype=np.float32)


def test_a_session_runs_what_fits_this_host():
    net = nets.channels_last()
    relayout.optimize(net, "here.onnx", target="ort-cpu")
    session = relayout.session("here.onnx", providers=["CPUExecutionProvider"])
    assert isinstance(session, ort.InferenceSession)
    x = image()
    np.testing.assert_allclose(session.run(None, {"x": x})[0], nets.run(net, {"x": x})[0], rtol=1e-4, atol=1e-4)


def test_a_session_runs_what_was_made_of_the_model_and_kept(caplog):
    net, x = nets.channels_last(), image()
    Path("net.onnx").write_bytes(net.SerializeToString())
    options = {"providers": ["CPUExecutionProvider"], "optimize": True, "cache": "cache", "patience": None}
    caplog.set_level(logging.INFO, logger="relayout")
    for said in ("optimized now", "optimized before"):
        caplog.clear()
        session = relayout.session("net.onnx", **options)
        np.testing.assert_allclose(session.run(None, {"x": x})[0], nets.run(net, {"x": x})[0], rtol=1e-4, atol=1e-4)
        assert said in caplog.text
    assert Path(session._model_path).resolve().is_relative_to(Path("cache").resolve())


def test_a_session_loads_the_model_as_it_is_where_nothing_can_be_made_of_it(caplog):
    net, x = nets.channels_last(), image()
    Path("net.onnx").write_bytes(net.SerializeToString())
    caplog.set_level(logging.INFO, logger="relayout")
    disabled = ort.SessionOptions()
    disabled.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = relayout.session("net.onnx", optimize=True, sess_options=disabled, providers=["CPUExecutionProvider"])
    assert session._model_path == "net.onnx" and "the level of optimization asks for it" in caplog.text
    # A file where the cache would be: the result is in memory.
    Path("file").write_text("no folder")
    session = relayout.session("net.onnx", optimize=True, cache="file", patience=None, providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"x": x})[0], nets.run(net, {"x": x})[0], rtol=1e-4, atol=1e-4)
    assert "nothing is kept" in caplog.text
    with pytest.raises(relayout.OptionError):
        relayout.session("net.onnx", optimize=True, patience=-1.0, providers=["CPUExecutionProvider"])


def test_a_session_refuses_what_was_made_for_another_host():
    from relayout import _relayout

    here, _ = _relayout.host()
    for block in (8, 16):
        relayout.optimize("tf_unet.onnx", f"{block}.onnx", target="ort-cpu", block=block, guard=False)
    other = 24 - here
    with pytest.raises(relayout.HostError, match=rf"blocks of {other} channels.*blocks of {here} here"):
        relayout.session(f"{other}.onnx")
    with pytest.raises(relayout.HostError, match="CUDAExecutionProvider"):
        relayout.session(f"{here}.onnx", providers=["CUDAExecutionProvider"])
    with pytest.raises(relayout.MissingFileError):
        relayout.session("none.onnx")
    with pytest.raises(relayout.ModelError):
        relayout.session(__file__)


def test_the_command_line_takes_the_runtime_of_this_environment():
    environment = {name: text for name, text in os.environ.items() if name != "ORT_DYLIB_PATH"}
    words = [sys.executable, "-m", "relayout", "verify", "tf_unet.onnx", "tf_unet.onnx", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, env={**environment, "PATH": "/nowhere"})
    assert done.returncode == 0 and json.loads(done.stdout)["exact"], done.stderr


def test_a_process_that_ends_is_a_message_and_ends_no_other(monkeypatch):
    net = nets.channels_last()
    monkeypatch.setattr(_runtime, "_START", "import os; os.abort()")
    with pytest.raises(relayout.VerifyError, match="ended the process that ran it, while starting"):
        relayout.verify(net, net)
    with pytest.raises(relayout.VerifyError, match="ended the process that ran it, while starting"):
        relayout.optimize(net, "verified.onnx", verify=True)
    assert not Path("verified.onnx").exists()


def test_a_model_in_memory_is_no_file_in_messages():
    with pytest.raises(relayout.VerifyError, match="cannot load `the model`") as refused:
        relayout.verify(b"no model", nets.channels_last())
    assert ".onnx" not in str(refused.value)


def test_where_no_interpreter_can_be_started_models_run_in_this_process(monkeypatch):
    net = nets.channels_last()
    monkeypatch.setattr(sys, "executable", "")
    assert relayout.verify(net, net).exact


def test_models_that_are_proved_say_how_and_others_what_is_left():
    net = nets.channels_last()
    verdict = relayout.prove(net, relayout.optimize(net).model)
    assert verdict and verdict.holds and str(verdict).startswith("PROVED"), verdict
    onnx.save(net, "net.onnx")
    other = relayout.prove("net.onnx", louder(net).SerializeToString(), run=False)
    assert not other and other.verdict == "undecided" and other.why and str(other).startswith("UNDECIDED: ")
    assert other.cut and other.cut.value == "y" and other.ran is None
    digest = hashlib.sha256(Path("net.onnx").read_bytes()).hexdigest()
    assert other.models[0].sha256 == digest and other.version == relayout.__version__ and other.same is None
    left = relayout.prove("net.onnx", louder(net).SerializeToString(), run=False, pieces="left").pieces
    assert left and onnx.load(left["input"]).graph.output == onnx.load(left["result"]).graph.output
    with pytest.raises(relayout.OptionError, match="pieces"):
        relayout.prove("net.onnx", "net.onnx", proof="proof.json", pieces="left")
    linked = relayout.prove("net.onnx", "net.onnx", links=True)
    assert linked and linked.same and linked.same[-1] == relayout.Link("y", "y", by_lemma=False) and linked.readings == []
    assert relayout.prove("net.onnx", "net.onnx", reading="onnx").reading == "onnx" and linked.reading == "onnxruntime"
    with pytest.raises(relayout.OptionError, match="reading"):
        relayout.prove("net.onnx", "net.onnx", reading="mine")
    relayout.optimize(net, "out.onnx", proof="proof.json")
    claimed = relayout.prove(net, "out.onnx", proof="proof.json")
    assert claimed and claimed.links > 0
    refused = relayout.prove(louder(net), "out.onnx", proof="proof.json")
    assert not refused and refused.verdict == "refused" and str(refused).startswith("REFUSED: ")
    with pytest.raises(relayout.MissingFileError):
        relayout.prove("net.onnx", "none.onnx")
    with pytest.raises(relayout.ModelError):
        relayout.prove("net.onnx", b"no model")
