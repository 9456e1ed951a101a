"""Fixtures of the tests and of the examples in docstrings, which run in a folder with the demo model."""

import shutil
from importlib.util import find_spec
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
    # Times of kernels that nobody named a file for.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    doctest_namespace["relayout"] = relayout
    return tmp_path


def pytest_collection_modifyitems(items):
    """Examples that run models are skipped where ONNX Runtime can't be had: on CPython 3.10."""
    if find_spec("onnxruntime") is None:
        for item in items:
            if item.name in ("relayout._verify.verify", "relayout._session.session"):
                item.add_marker(pytest.mark.skip(reason="onnxruntime needs CPython 3.11 or newer"))
