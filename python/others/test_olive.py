"""The pass of Olive, in workflows of Olive."""

import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

import relayout

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """Olive sends nothing, and has its caches in the folder of the test."""
    monkeypatch.setenv("OLIVE_DISABLE_TELEMETRY", "1")
    monkeypatch.setenv("OLIVE_CACHE_DIR", str(tmp_path / "cache"))


def workflow(**options):
    return {
        "input_model": {"type": "OnnxModel", "model_path": "tf_unet.onnx"},
        "systems": {"here": {"type": "LocalSystem", "accelerators": [{"device": "cpu", "execution_providers": ["CPUExecutionProvider"]}]}},
        "passes": {"layouts": {"type": "RelayoutOptimizer", **options}},
        "target": "here",
        "output_dir": "olive_out",
        "cache_dir": "cache",
        "evaluate_input_model": False,
    }


def transposes(path):
    return sum(node.op_type == "Transpose" for node in onnx.load(path).graph.node)


def result(folder="olive_out"):
    [path] = Path(folder).rglob("*.onnx")
    return str(path)


def test_a_workflow_runs_the_pass_and_its_result_verifies():
    import olive.workflows

    import relayout.olive

    out = olive.workflows.run(workflow(verify=True), package_config=relayout.olive.package_config())
    assert transposes("tf_unet.onnx") == 36 and transposes(result()) == 2
    assert relayout.verify("tf_unet.onnx", result(), rms=1e-4)
    assert Path(result()).read_bytes() == relayout.optimize(Path("tf_unet.onnx").read_bytes()).model
    report = out.get_best_candidate().model_config["model_attributes"]["relayout"]
    assert (report["before"]["nodes"], report["after"]["nodes"]) == (36, 2)


def test_options_are_heard():
    import olive.workflows

    import relayout.olive

    options = {"inputs": {"input:0": "NHWC->NCHW"}, "numerics": "exact", "dims": {}}
    olive.workflows.run(workflow(**options), package_config=relayout.olive.package_config())
    shape = onnx.load(result()).graph.input[0].type.tensor_type.shape
    assert [dim.dim_value for dim in shape.dim] == [1, 3, 192, 192]


def test_the_command_of_olive_runs_it():
    subprocess.run([sys.executable, "-m", "relayout.olive", "olive_config.json"], check=True)
    Path("workflow.json").write_text(json.dumps(workflow()))
    olive = Path(sys.executable).with_name("olive")
    words = [sys.executable, str(olive), "run", "--config", "workflow.json", "--package-config", "olive_config.json"]
    done = subprocess.run(words, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    assert transposes(result()) == 2


def test_weights_in_a_file_of_their_own_go_along():
    from olive.hardware import DEFAULT_CPU_ACCELERATOR
    from olive.model import ONNXModelHandler
    from olive.passes.olive_pass import create_pass_from_dict

    from relayout.olive import RelayoutOptimizer

    model = onnx.load("tf_unet.onnx")
    os.mkdir("in")
    onnx.save(model, "in/m.onnx", save_as_external_data=True, location="m.data")
    given = ONNXModelHandler(model_path="in", onnx_file_name="m.onnx", inference_settings={"x": 1})
    made = create_pass_from_dict(RelayoutOptimizer, {}, True, DEFAULT_CPU_ACCELERATOR).run(given, "made")
    assert transposes(made.model_path) == 2 and made.inference_settings == {"x": 1}
    assert relayout.verify("in/m.onnx", made.model_path, rms=1e-4)


def test_what_is_wrong_ends_the_pass():
    from olive.hardware import DEFAULT_CPU_ACCELERATOR
    from olive.model import ONNXModelHandler
    from olive.passes.olive_pass import create_pass_from_dict

    from relayout.olive import RelayoutOptimizer

    made = create_pass_from_dict(RelayoutOptimizer, {"target": "tpu"}, True, DEFAULT_CPU_ACCELERATOR)
    with pytest.raises(relayout.TargetError, match="tpu"):
        made.run(ONNXModelHandler(model_path="tf_unet.onnx"), "made")
