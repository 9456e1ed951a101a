"""Fixtures of the tests and of the examples in docstrings, which run in a folder with the demo model."""

import shutil
from pathlib import Path

import pytest

import relayout

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "testdata" / "demo" / "tf_unet.onnx"


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch, doctest_namespace):
    """Every test and example has a folder of its own, with the demo model in it."""
    shutil.copy(DEMO, tmp_path / DEMO.name)
    monkeypatch.chdir(tmp_path)
    doctest_namespace["relayout"] = relayout
    return tmp_path
