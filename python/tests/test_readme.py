"""The examples of README.md, which is the page of the package, and of docs/python.md."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["python/README.md", "docs/python.md", "README.md"])
def test_the_examples_run(page, capsys):
    pytest.importorskip("onnxruntime")
    examples = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    assert examples
    for example in examples:
        exec(compile(example.replace("model.onnx", "tf_unet.onnx"), page, "exec"), {})
    assert "moves 36 -> 2" in capsys.readouterr().out
