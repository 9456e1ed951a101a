"""What docs/python-tools.md and the notebook show, with PyTorch, Olive and Jupyter."""

import re
import shutil
from pathlib import Path

import onnxruntime as ort
import pytest

import relayout

pytestmark = pytest.mark.filterwarnings("default")
ROOT = Path(__file__).parents[2]


def network():
    """Images channels first, and a scale that works channels last, as ConvNeXt has it."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Conv2d(3, 16, 3, padding=1)
            self.norm = torch.nn.LayerNorm(16)
            self.second = torch.nn.Conv2d(16, 8, 3, padding=1)

        def forward(self, image):
            x = self.norm(self.first(image).permute(0, 2, 3, 1))
            x = torch.sigmoid(x).permute(0, 3, 1, 2)
            return torch.relu(self.second(x.permute(0, 2, 3, 1).permute(0, 3, 1, 2)))

    torch.manual_seed(0)
    return Net().eval()


def test_the_examples_of_the_page_run(monkeypatch, tmp_path, capsys):
    import torch

    monkeypatch.setenv("OLIVE_DISABLE_TELEMETRY", "1")
    Path("models").mkdir()
    shutil.copy("tf_unet.onnx", "models")
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python-tools.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 4
    net, image = network(), torch.rand(1, 3, 24, 24)
    for example in examples:
        text = example.replace("model.onnx", "tf_unet.onnx")
        exec(compile(text, "docs/python-tools.md", "exec"), {"net": net, "image": image})
    said = capsys.readouterr().out
    assert "1 model: 1 improved" in said and "True moves 36 -> 2" in said
    session = ort.InferenceSession("net.onnx", providers=["CPUExecutionProvider"])
    with torch.no_grad():
        want = net(image)
    [got] = session.run(None, {session.get_inputs()[0].name: image.numpy()})
    torch.testing.assert_close(torch.from_numpy(got), want, rtol=1e-3, atol=1e-4)
    [olive] = Path("olive_out").rglob("*.onnx")
    assert relayout.verify("tf_unet.onnx", olive, rms=1e-4)


def test_the_notebook_runs():
    import nbclient
    import nbformat

    notebook = nbformat.read(ROOT / "python/examples/optimize.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are left out of the file"
    done = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": "."}}).execute()
    said = "".join(output.get("text", "") for cell in done.cells for output in cell.get("outputs", []))
    assert "moves 36 -> 2" in said and "moves 36 -> 1" in said
    [page] = [output["data"]["text/html"] for cell in done.cells for output in cell.get("outputs", []) if "text/html" in output.get("data", {})]
    assert page.startswith("<iframe") and "tf_unet.onnx" in page
    assert done.cells[-1].outputs[0]["data"]["text/plain"].startswith("(1,")
