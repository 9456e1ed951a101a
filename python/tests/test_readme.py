"""The examples of README.md, which is the page of the package."""

import re
from pathlib import Path

import pytest


def test_the_examples_run(capsys):
    pytest.importorskip("onnxruntime")
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert examples
    for example in examples:
        exec(compile(example.replace("model.onnx", "tf_unet.onnx"), "README.md", "exec"), {})
    assert "moves 36 -> 2" in capsys.readouterr().out
