"""Times permutations by themselves: the project's kernels beside copies of the same bytes and beside what PyTorch makes of them."""

from __future__ import annotations

import datetime
import math
import subprocess
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import onnx
import torch
from onnx import TensorProto, helper
from torch import Tensor

import timing
from runner.bench import time_ms
from runner.bundle import Node, read_bundle
from runner.capi import CApi, find_library
from runner.cuda import Kernels
from runner.errors import RunnerError
from runner.execute import CudaGraph
from runner.moves import Move, kernel_folder, kernel_of

_RING = {"cuda": 256 << 20, "cpu": 96 << 20}
"""Bytes of the pairs of buffers that take turns: several times what the caches hold."""
_ROUND_MS = 4.0
_OPSET = 20
DTYPES = {"u8": TensorProto.UINT8, "f16": TensorProto.FLOAT16, "f32": TensorProto.FLOAT}


@dataclass(frozen=True)
class Case:
    """What is moved: extents of the source, outermost first, and for each axis of the result that of the source."""

    what: str
    shape: tuple[int, ...]
    perm: tuple[int, ...]


CASES = (
    Case("matrices, 64 M", (64, 1024, 1024), (0, 2, 1)),
    Case("matrices, 16 M", (16, 1024, 1024), (0, 2, 1)),
    Case("matrices, 4 M", (4, 1024, 1024), (0, 2, 1)),
    Case("outer axes, 64 M", (512, 512, 256), (1, 0, 2)),
    Case("outer axes, 16 M", (512, 128, 256), (1, 0, 2)),
    Case("odd extents", (4099, 4093), (1, 0)),
    Case("powers of two", (4096, 4096), (1, 0)),
    Case("NCHW to NHWC", (32, 64, 56, 56), (0, 2, 3, 1)),
    Case("NHWC to NCHW", (32, 56, 56, 64), (0, 3, 1, 2)),
    Case("NCHW to NHWC, 14x14", (32, 256, 14, 14), (0, 2, 3, 1)),
    Case("pictures to NHWC", (32, 3, 224, 224), (0, 2, 3, 1)),
    Case("pictures to NCHW", (32, 224, 224, 3), (0, 3, 1, 2)),
    Case("channel shuffle", (32, 2, 58, 28, 28), (0, 2, 1, 3, 4)),
    Case("channel shuffle, NHWC", (32, 28, 28, 2, 58), (0, 1, 2, 4, 3)),
    Case("heads of attention", (32, 197, 12, 64), (0, 2, 1, 3)),
    Case("heads, for a product", (32, 197, 12, 64), (0, 2, 3, 1)),
    Case("windows", (32, 8, 7, 8, 7, 96), (0, 1, 3, 2, 4, 5)),
    Case("NCDHW to NDHWC", (4, 64, 16, 56, 56), (0, 2, 3, 4, 1)),
)


def permute(folder: Path, relayout: Path, dtypes: tuple[str, ...], device: str, rounds: int, capi: Path | None) -> dict[str, Any]:
    """A row for each case and element type. `folder` gets the model of all of them and its bundle.

    Fails with `RunnerError` if `relayout` fails, if a move has no kernel, or if one moves wrongly.
    """
    moves = _moves(folder, relayout, dtypes, device, capi)
    rows = []
    for (case, dtype), move in zip(((case, dtype) for case in CASES for dtype in dtypes), moves, strict=True):
        rows.append({"case": case.what, "dtype": dtype, "shape": case.shape, "perm": case.perm, **_measured(case, move, dtype, device, rounds)})
        print(line(rows[-1]), flush=True)
    return {
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "torch": torch.__version__,
        "rows": rows,
    }


HEAD = f"{'case':24} {'type':4} {'MB':>7} {'copy GB/s':>10} {'ours GB/s':>10} {'of a copy':>20} {'over PyTorch':>22}"


def line(row: dict[str, Any]) -> str:
    """A row of the table whose first line is `HEAD`."""
    copy, ours = (2e-9 * row["bytes"] / row[f"{name}_s"] for name in ("copy", "ours"))
    ratios = (str(timing.Ratio(*row[name])) for name in ("of_a_copy", "over_torch"))
    return f"{row['case']:24} {row['dtype']:4} {row['bytes'] / 1e6:7.1f} {copy:10.0f} {ours:10.0f} {next(ratios):>20} {next(ratios):>22}"


def _moves(folder: Path, relayout: Path, dtypes: tuple[str, ...], device: str, capi: Path | None) -> list[Move]:
    """The cases by element types, as moves of one model."""
    folder.mkdir(parents=True, exist_ok=True)
    nodes, inputs, outputs = [], [], []
    for case in CASES:
        for dtype in dtypes:
            at = len(nodes)
            nodes.append(helper.make_node("Transpose", [f"x{at}"], [f"y{at}"], name=f"move{at}", perm=case.perm))
            inputs.append(helper.make_tensor_value_info(f"x{at}", DTYPES[dtype], case.shape))
            outputs.append(helper.make_tensor_value_info(f"y{at}", DTYPES[dtype], [case.shape[axis] for axis in case.perm]))
    graph = helper.make_graph(nodes, "permute", inputs, outputs)
    model = folder / "permute.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=10), str(model))
    command = [str(relayout), "optimize", str(model), "--target", "cuda-tensorcore", "--emit", "bundle", "-o", str(folder / "bundle")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RunnerError(f"{' '.join(command)}:\n{done.stderr.strip()}")
    bundle = read_bundle(folder / "bundle")
    library = CApi(capi or find_library()) if device == "cpu" else None
    kernels = Kernels(kernel_folder(bundle.folder)) if device == "cuda" else None
    by_output: dict[str | None, Node] = {node.outputs[0]: node for node in bundle.nodes}
    wanted = [by_output[value.name] for value in bundle.outputs]
    return [Move(node, library, kernel_of(node, kernels)) for node in wanted]


def _measured(case: Case, move: Move, dtype: str, device: str, rounds: int) -> dict[str, Any]:
    """Seconds of each contender, and how ours compares, over buffers that are in no cache."""
    size = math.prod(case.shape) * {"u8": 1, "f16": 2, "f32": 4}[dtype]
    pairs = max(2, -(-_RING[device] // (2 * size)))
    # Numbers that are as random as their bytes, as integers of the width: copies and comparisons then know no NaN.
    kind = {"u8": torch.uint8, "f16": torch.int16, "f32": torch.int32}[dtype]
    sources = [torch.randint(0, 256, (size,), dtype=torch.uint8, device=device).view(kind).view(case.shape) for _ in range(pairs)]
    results = [x.new_empty([case.shape[axis] for axis in case.perm]) for x in sources]
    move.into(sources[0], results[0])
    if not torch.equal(results[0], sources[0].permute(case.perm)):
        raise RunnerError(f"{case.what}, {dtype}: the kernel moves {case.shape} by {case.perm} wrongly")
    each: dict[str, Callable[[Tensor, Tensor], object]] = {
        "ours": move.into,
        "copy": lambda x, y: y.view(-1).copy_(x.view(-1)),
        "torch": lambda x, y: y.copy_(x.permute(case.perm)),
    }
    cuda = device == "cuda"
    runs = {name: _run(call, sources, results, cuda) for name, call in each.items()}
    found = timing.beside(runs, rounds, warm=1)
    return {
        "bytes": size,
        **{f"{name}_s": found.median(name) / pairs for name in runs},
        "of_a_copy": astuple(found.over("copy", "ours")),
        "over_torch": astuple(found.over("torch", "ours")),
        "control": astuple(found.control()),
    }


def _run(call: Callable[[Tensor, Tensor], object], sources: list[Tensor], results: list[Tensor], cuda: bool) -> Callable[[], float]:
    """Seconds of a turn over all pairs; on a GPU of a CUDA graph, by its events."""

    def turn(*_: Tensor) -> tuple[Tensor, ...]:
        for x, y in zip(sources, results):
            call(x, y)
        return ()

    forward = CudaGraph(turn, []).replay if cuda else turn
    repeats = max(1, round(_ROUND_MS / max(time_ms(forward, 1, cuda), 1e-3)))
    return partial(_seconds, forward, repeats, cuda)


def _seconds(forward: Callable[[], tuple[Tensor, ...]], repeats: int, cuda: bool) -> float:
    return time_ms(forward, repeats, cuda) / 1e3
