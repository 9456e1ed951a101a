"""``optimize`` with ``tune``: times are kept, and results are not slower."""

import pathlib
import sys

import nets
import onnx
import onnx_ir as ir
import pytest

import relayout

ort = pytest.importorskip("onnxruntime", reason="onnxruntime needs CPython 3.11 or newer")


def quick(**more):
    return relayout.Tune(seconds=1, cache="times.json", **more)


def test_times_are_kept_and_what_was_measured_is_said():
    net = nets.channels_last()
    first = relayout.optimize(net, target="ort-cpu", tune=quick())
    assert first.tuning.timed > 0 and first.tuning.known == 0 and str(first.tuning).startswith("tuned: ")
    again = relayout.optimize(net, target="ort-cpu", tune=relayout.Tune(seconds=0, cache="times.json"))
    assert (again.tuning.timed, again.tuning.known) == (0, first.tuning.timed)
    assert again.tuning.threads == 1 and again.tuning.runtime == f"ONNX Runtime {ort.__version__}"
    assert pathlib.Path(again.tuning.cache).name == "times.json"
    for times in (first.tuning.times, again.tuning.times):
        assert times is None or times.ratio_between[1] >= 1
    assert relayout.verify(net, again.model)
    assert relayout.optimize(net, target="ort-cpu").tuning is None


def test_threads_are_those_of_the_tune():
    tuned = relayout.optimize(nets.channels_last(), target="ort-cpu", tune=quick(threads=2))
    assert tuned.tuning.threads == 2 and pathlib.Path("times.json").is_file()
    with pytest.raises(relayout.OptionError, match="leave out one of both"):
        relayout.optimize(nets.channels_last(), target="ort-cpu", tune=quick(), threads=2)


def test_standard_onnx_is_held_against_the_model():
    net = nets.channels_last()
    result = relayout.optimize(net, tune=quick(), verify=True)
    assert result.tuning.timed == 0
    assert result.changed is (result.tuning.times is not None) is not result.tuning.slower
    # Which of both it is depends on the machine.
    assert ("as fast" in result.show().html) is result.tuning.slower
    assert relayout.verify(net, result.model)


def test_models_come_in_every_kind():
    net = nets.channels_last()
    onnx.save(net, "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    net = onnx.load("m.onnx")
    kinds = ["m.onnx", net, net.SerializeToString(), ir.serde.deserialize_model(net)]
    for model in kinds:
        assert str(relayout.optimize(model, target="ort-cpu", tune=quick()).tuning).startswith("tuned: ")


def test_what_cannot_be_tuned_is_refused():
    net = nets.settled()
    for target in ("nhwc", pathlib.Path("my.toml")):
        with pytest.raises(relayout.OptionError, match="`onnx`, `ort-cpu` and `ort-nhwc`"):
            relayout.optimize(net, target=target, tune=True)
    with pytest.raises(relayout.OptionError, match="provider_library"):
        relayout.optimize(net, target="ort-nhwc", tune=True)
    plugin = relayout.Tune(provider_library="nowhere.so", provider_options={"backend_path": "libQnnHtp.so"}, cache="times.json")
    with pytest.raises(relayout.OptionError, match="CPU's own provider"):
        relayout.optimize(net, target="ort-cpu", tune=plugin)
    with pytest.raises(relayout.OptionError, match="execution provider of `nowhere.so`"):
        relayout.optimize(nets.channels_last(), tune=plugin)
    for wrong in (relayout.Tune(seconds=-1), relayout.Tune(seconds=float("nan")), relayout.Tune(threads=-1)):
        with pytest.raises(relayout.OptionError, match="between 0 and"):
            relayout.optimize(net, tune=wrong)
    with pytest.raises(TypeError, match="relayout.Tune"):
        relayout.optimize(net, tune=3)
    pathlib.Path("notes.txt").write_text("times of trains")
    with pytest.raises(relayout.FileError, match="not a file with times of kernels"):
        relayout.optimize(net, target="ort-cpu", tune=relayout.Tune(cache="notes.txt"))
    net = nets.channels_last()
    relayout.optimize(net, target="ort-cpu", tune=quick())
    text = pathlib.Path("times.json").read_text()
    pathlib.Path("times.json").write_text(text.replace('"ONNX Runtime ', '"ONNX Runtime 9', 1))
    with pytest.raises(relayout.OptionError, match="another host"):
        relayout.optimize(net, target="ort-cpu", tune=quick())


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a shell script")
def test_a_python_runs_the_model_and_its_results_on_a_provider():
    python = pathlib.Path("python").absolute()
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@" --on CPUExecutionProvider\n')
    python.chmod(0o755)
    net = pathlib.Path(__file__).parents[2] / "testdata/cases/gain/shuffles_channels_for_a_convolution.onnx"
    result = relayout.optimize(net, "out.onnx", provider="cuda", tune=relayout.Tune(python=python, cache="times.json"))
    exported = [candidate for candidate in result.tuning.candidates if not candidate.optimized]
    assert [candidate.session for candidate in exported] == ["prefer_nhwc=1", "prefer_nhwc=0"]
    assert all(candidate.ms > 0 for candidate in result.tuning.candidates)
    assert result.tuning.provider.startswith("CPUExecutionProvider on ")
    assert result.changed is (result.tuning.times is not None) is not result.tuning.slower
    assert relayout.verify(net, "out.onnx")


def test_a_python_without_the_provider_is_refused():
    net = nets.channels_last()
    with pytest.raises(relayout.OptionError, match="option of target `ort-nhwc`"):
        relayout.optimize(net, tune=relayout.Tune(python=sys.executable))
    for python, says in ((sys.executable, "CUDAExecutionProvider"), ("no/such/python", "cannot start no/such/python")):
        with pytest.raises(relayout.OptionError, match=says):
            relayout.optimize(net, provider="cuda", tune=relayout.Tune(python=python, cache="times.json"))


def test_a_caller_can_stop_it():
    class Enough(Exception):
        pass

    def stop(at):
        if at.step == "tuning":
            raise Enough

    with pytest.raises(Enough):
        relayout.optimize(nets.channels_last(), "out.onnx", target="ort-cpu", tune=quick(), progress=stop)
    assert not pathlib.Path("out.onnx").exists()
