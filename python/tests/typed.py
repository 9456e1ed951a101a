"""What type checkers make of calls. It is checked by mypy, and not run."""

from pathlib import Path

import numpy as np
import onnx
import onnx_ir
from typing_extensions import assert_type

import relayout


def kinds(proto: onnx.ModelProto, model: onnx_ir.Model, data: bytes, path: Path) -> None:
    """What comes in comes out."""
    assert_type(relayout.optimize("m.onnx").model, str)
    assert_type(relayout.optimize(path, "out.onnx", dims={"N": (1, 32)}).model, Path)
    assert_type(relayout.optimize(data, target="ort-cpu", block=8).model, bytes)
    assert_type(relayout.optimize(proto, inputs={"x": "NCHW->NHWC"}).model, onnx.ModelProto)
    assert_type(relayout.optimize(model, progress=lambda at: print(at.done)).model, onnx_ir.Model)
    relayout.optimize(7)  # type: ignore[type-var]
    relayout.optimize(path, numerics="loose")  # type: ignore[arg-type]
    relayout.optimize(path, blocks=8)  # type: ignore[call-arg]
    relayout.optimize(path, provider="webgpu", proof="p.json", for_this_machine=True)


def reports(model: str) -> None:
    """Reports are typed to the last field."""
    assert_type(relayout.optimize(model).report, relayout.Report)
    explained = relayout.explain(model)
    assert_type(explained.moves[0].ways[0].more_ns, int | None)
    assert_type(relayout.audit(model).audited[0].path, str)
    assert_type(bool(relayout.verify(model, model)), bool)
    assert_type([target.name for target in relayout.targets()], list[str])


def arrays(array: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> None:
    """An array comes back as what it was."""
    assert_type(relayout.permute(array, [1, 0]), np.ndarray[tuple[int, int], np.dtype[np.float32]])
