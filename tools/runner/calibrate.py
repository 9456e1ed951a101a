"""Measures what `relayout calibrate --target cuda-tensorcore` asks for: convolutions in both orders, moves, and passes over data.

`DIR/cases.json` lists the cases, `DIR/kernels` has the kernel of each move; `DIR/times.json` gets a time for each, in nanoseconds.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from runner.bench import time_ms
from runner.bundle import DTYPES, Node
from runner.capi import CApi, find_library
from runner.cuda import Kernels
from runner.errors import RunnerError
from runner.execute import CudaGraph
from runner.moves import Move

SCHEMA = 1
_REPEATS = 16
"""Calls in a CUDA graph, so that a launch of the graph is small beside them."""

Call = Callable[[Tensor], Tensor]


def calibrate(folder: Path, device: str, capi: Path | None) -> None:
    """Writes times.json. Fails with `RunnerError` if there is no GPU, or if the cases can't be read."""
    if device == "cuda" and not torch.cuda.is_available():
        raise RunnerError("no GPU that PyTorch can use is here")
    asked = _read(folder / "cases.json")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    library = CApi(capi or find_library()) if device == "cpu" else None
    kernels = Kernels(folder / "kernels") if device == "cuda" else None
    ns = []
    for at, case in enumerate(asked["cases"]):
        with torch.no_grad():
            ns.append(_measure(*_made(case, device, library, kernels), asked["rounds"]))
        if at % 50 == 0:
            print(f"runner: {at} of {len(asked['cases'])} cases", file=sys.stderr, flush=True)
    answer = {"schema": SCHEMA, "machine": _machine(device), "device": device, "runtime": _runtime(device), "ns": ns}
    (folder / "times.json").write_text(json.dumps(answer) + "\n")


def _read(path: Path) -> dict[str, Any]:
    try:
        asked = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise RunnerError(f"{path} lists no cases: {error}") from error
    if asked.get("schema") != SCHEMA:
        raise RunnerError(f"{path} has schema {asked.get('schema')}, not {SCHEMA}; take both from one version of relayout")
    return asked


def _made(case: dict[str, Any], device: str, capi: CApi | None, kernels: Kernels | None) -> tuple[Call, Tensor]:
    """What is called for a case, and on what."""
    ((kind, about),) = case.items()
    if kind == "conv":
        return _convolution(about, device)
    if kind == "move":
        node = Node("case", "", "Transpose", 20, ("x",), ("y",), {"perm": tuple(about["perm"])}, about["kernel"])
        move = Move(node, capi, kernels.get(about["kernel"]) if kernels else None)
        dtype = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[about["elem_bytes"]]
        return move, torch.ones(about["shape"], dtype=dtype, device=device)
    if kind == "pass":
        # Half of the bytes are read and half written.
        return torch.neg, torch.ones(max(about["bytes"] // 8, 1), device=device)
    raise RunnerError(f"a case of the kind {kind!r}, which this runner does not know; take both from one version of relayout")


def _convolution(about: dict[str, Any], device: str) -> tuple[Call, Tensor]:
    """A convolution of stride 1 that keeps pixels as many, with as many filters as channels."""
    channels, kernel, groups = about["channels"], about["kernel"], about["groups"]
    dtype = DTYPES[about["dtype"]]
    order = torch.channels_last if about["channels_last"] else torch.contiguous_format
    x = torch.randn(about["images"], channels, about["side"], about["side"], device=device).to(dtype)
    w = torch.randn(channels, channels // groups, kernel, kernel, device=device).to(dtype)
    call = partial(F.conv2d, weight=w.contiguous(memory_format=order), padding=kernel // 2, groups=groups)
    return call, x.contiguous(memory_format=order)


def _measure(call: Call, x: Tensor, rounds: int) -> int:
    """Nanoseconds of a call, the median over rounds; on a GPU of calls within a CUDA graph."""
    cuda = x.is_cuda
    repeats = _REPEATS if cuda else 1

    def calls(x: Tensor) -> tuple[Tensor, ...]:
        for _ in range(repeats - 1):
            call(x)
        return (call(x),)

    run = CudaGraph(calls, [x]).replay if cuda else partial(calls, x)
    run()
    times = [time_ms(run, 1, cuda) / repeats for _ in range(rounds)]
    return max(1, round(statistics.median(times) * 1e6))


def _machine(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else "the CPU"


def _runtime(device: str) -> str:
    """Versions of what was measured."""
    torch_version = f"PyTorch {torch.__version__}"
    if device == "cpu":
        return torch_version
    return f"{torch_version}, CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}"
