"""What the functions say: typed, and as the command line says it."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys

import nets
import pytest

import relayout


def command(*words):
    done = subprocess.run([sys.executable, "-m", "relayout", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_reports_print_as_the_command_line_does():
    assert f"{relayout.optimize('tf_unet.onnx').report}\n" == command("optimize", "tf_unet.onnx", "-o", "out.onnx")
    assert f"{relayout.explain('tf_unet.onnx')}\n" == command("explain", "tf_unet.onnx")
    assert str(relayout.optimize("tf_unet.onnx").explanation).startswith("moves 36 -> 2")
    assert f"{relayout.audit('tf_unet.onnx')}\n" == command("audit", "tf_unet.onnx")
    assert f"{relayout.why('tf_unet.onnx', 'input:0')}\n" == command("explain", "tf_unet.onnx", "--why", "input:0")
    targets = json.loads(command("targets", "--json"))
    assert [dataclasses.asdict(target) for target in relayout.targets()] == targets


def test_the_json_is_that_of_the_command_line():
    explained = relayout.explain("tf_unet.onnx")
    assert json.loads(explained.json) == json.loads(command("explain", "tf_unet.onnx", "--json"))
    [audited] = json.loads(command("audit", "tf_unet.onnx", "--json"))
    assert json.loads(relayout.audit("tf_unet.onnx").json) == audited["audit"]


def test_what_a_device_runs_is_said_of_results_for_a_provider():
    turned = str(pathlib.Path(__file__).parents[2] / "testdata/cases/axes/scatter_elements.onnx")
    report = relayout.optimize(turned, provider="cuda").report
    nothing = relayout.OnDevice(transposes=0, elements=0, refused=0)
    other = relayout.OtherSession("prefer_nhwc=0", nothing, 0)
    assert report.device == relayout.Device(relayout.OnDevice(2, 240, 0), nothing, "prefer_nhwc=1", 0, other)
    assert relayout.optimize("tf_unet.onnx").report.device is None


def check(data, value):
    if dataclasses.is_dataclass(value):
        names = {"from_": "from", "audited": "list"}
        fields = {names.get(f.name, f.name): getattr(value, f.name) for f in dataclasses.fields(value)}
        for key, one in data.items():
            assert key in fields, f"{type(value).__name__} has no {key}"
            check(one, fields[key])
    elif isinstance(data, list) and value and dataclasses.is_dataclass(value[0]):
        for one, other in zip(data, value, strict=True):
            check(one, other)
    else:
        assert data == value


def test_every_field_of_the_json_is_a_field_of_the_class():
    """A field that the library adds is to be added to the class."""
    model = "tf_unet.onnx"
    of_opaque = relayout.optimize(nets.stubborn(3)).report
    assert of_opaque.graphs[0].opaque
    of_ends = relayout.optimize(nets.channels_last(), inputs={"x": "NHWC->NCHW"}).report
    assert of_ends.io
    reports = [relayout.explain(model), relayout.audit(model), relayout.why(model, "input:0"), relayout.plan(model)]
    for report in [*reports, of_opaque, of_ends]:
        check(json.loads(report.json), report)


def test_moves_are_typed():
    explained = relayout.explain("tf_unet.onnx")
    assert explained.summary.startswith("moves 36 -> 2") and explained.solve.optimal
    first = explained.moves[0]
    assert (first.value, first.from_, first.to, first.bytes) == ("input:0", "NHWC", "NCHW", 442368)
    assert first.cost_ns and first.ways[0].missing
    audit = relayout.audit("tf_unet.onnx")
    assert len(audit.audited) == audit.moves.nodes == 36 and audit.excess_percent > 0
    assert {move.fate for move in audit.audited} <= {"goes", "folds", "rewritten", "stays"}
    assert explained == relayout.explain("tf_unet.onnx")
    with pytest.raises(dataclasses.FrozenInstanceError):
        explained.target = "other"


def test_a_plan_names_values_and_nodes_of_the_model():
    net = nets.channels_last()
    plan = relayout.plan(net)
    assert plan.changed and sorted(entry["node"] for entry in plan.nodes) == list(range(len(net.graph.node)))
    assert {entry["value"] for entry in plan.values} >= {"x", "w", "rows", "conv", "y"}
    moved = {net.graph.node[entry["node"]].op_type for entry in plan.nodes if entry["action"]["kind"] in ("move", "alias")}
    assert moved == {"Transpose"}


def test_what_has_no_plan_says_why():
    with pytest.raises(relayout.PlanError, match="ort-cpu"):
        relayout.plan("tf_unet.onnx", target="ort-cpu")
    with pytest.raises(relayout.UnknownValueError, match="no value `nobody`"):
        relayout.why("tf_unet.onnx", "nobody")


def test_what_fits_this_machine_is_what_the_command_says(monkeypatch):
    pytest.importorskip("onnxruntime")
    from relayout import _runtime

    environment = dict(os.environ, ORT_DYLIB_PATH=_runtime.find())
    said = subprocess.run([sys.executable, "-m", "relayout", "doctor", "--json"], env=environment, capture_output=True, text=True, check=True)
    fits = json.loads(said.stdout)["fits"]
    options = relayout.for_this_machine()
    assert options == {name: fits[name] for name in ("target", "block", "machine", "threads", "provider", "runtime") if name in fits}
    report = relayout.explain("tf_unet.onnx", for_this_machine=True)
    assert (report.target, report.for_this_machine.why) == (fits["target"], fits["why"])
    monkeypatch.setattr(_runtime, "find", lambda: None)
    assert relayout.for_this_machine() == {"target": "onnx"}
