"""Times a model as it was against what became of it, in one process, with the same weights and the same functions."""

from __future__ import annotations

import contextlib
import json
import math
import re
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import timing
from runner.bundle import Bundle, Node, read_bundle
from runner.compare import REFERENCE, SAMPLES, differences, seeded_inputs
from runner.errors import RunnerError
from runner.execute import CudaGraph, Runner
from runner.moves import is_move
from runner.profile import copies_us, is_layout_kernel, profile_calls, profile_ranges, without_tensor_cores
from runner.variant import SETTINGS

Call = Callable[[], tuple[Tensor, ...]]

_TOLERANCE = {"fp32": 1e-3, "tf32": 2e-2, "fp16": 5e-2}
"""How far a mode may be off the first, as rms of the differences over rms of the outputs; beyond it the figures mean nothing."""
_ROUND_MS = 5.0
"""A round repeats a call for at least so long."""
_SECONDS_A_NODE = 0.1
"""What compiling a node takes until something is known of it, in all three compiled modes together."""
_CONVOLUTION = re.compile(r"Conv(Transpose)?(\dd)?(_|$)")
_CUDA_ERROR = "CUDA error: "
"""What torch says of an error that the process's context does not recover from, unlike a lack of memory."""
_MARK, _DENSE = "relayout node ", "dense "


@dataclass(frozen=True)
class Mode:
    """A way to run the model."""

    name: str
    bundle: str
    compiled: bool = False
    channels_last: bool = False


MODES = (
    Mode("nchw", "original"),
    Mode("channels_last", "original", channels_last=True),
    Mode("ours", "ours"),
    Mode("nchw compiled", "original", compiled=True),
    Mode("channels_last compiled", "original", compiled=True, channels_last=True),
    Mode("ours compiled", "ours", compiled=True),
)


@dataclass
class Figures:
    """What was measured of a mode; times in milliseconds a call."""

    mode: str
    median_ms: float = 0.0
    rounds_ms: list[float] = field(default_factory=list)
    against: list[float] | None = None
    """Time of `channels_last`, or of its compiled mode, over this mode's: the low end, the median and the high end of `timing.Ratio`."""
    difference: float = 0.0
    error: float | None = None
    """Largest difference from ONNX Runtime in float32 over the largest magnitude; None where `prepare` left no outputs of it."""
    kernels: int = 0
    layout_kernels: int = 0
    moves_share: float = 0.0
    by_kernel: list[dict[str, Any]] = field(default_factory=list)
    """What runs by name, the longest first: how often in a pass, and microseconds of a pass."""
    planned_moves: int = 0
    moves: list[dict[str, Any]] = field(default_factory=list)
    dense_convolutions: int = 0
    """Convolutions of one group."""
    off_tensor_cores: dict[str, list[str]] | None = None
    """Those that start no kernel on tensor cores, with what they start; None where that is not known: on a CPU, and compiled."""
    copied: dict[str, list[str]] | None = None
    """Nodes that are no moves and yet start kernels that only move data, with these; None where that is not known."""


@dataclass(frozen=True)
class Settings:
    """How to measure."""

    device: str
    rounds: int
    seconds: float
    compiled: bool
    capi: Path | None


def bench(folders: list[Path], settings: Settings) -> dict[str, Any]:
    """The figures of every model, as they are written to JSON. Each folder was made by `prepare`.

    The time for all is shared evenly: a model whose compiled modes would not fit in its share is measured without them, and says so.
    """
    end = time.monotonic() + settings.seconds
    device = torch.cuda.get_device_name() if settings.device == "cuda" else "cpu"
    result: dict[str, Any] = {"device": device, "torch": torch.__version__, "models": []}
    pace = _SECONDS_A_NODE
    broken: str | None = None
    for at, folder in enumerate(folders):
        share = (end - time.monotonic()) / (len(folders) - at)
        about = _settings_of(folder)
        if broken is not None:
            result["models"].append({**about, "modes": [], "notes": [f"FAILED: {broken} ended with a CUDA error, after which no kernel starts"]})
            continue
        try:
            measured, pace = _bench_model(folder, about, settings, share, pace)
        except (RunnerError, RuntimeError) as error:
            # What one model lacks, or a GPU that is full, is no reason to lose the others.
            measured = {**about, "modes": [], "notes": [f"FAILED: {error}"]}
            if _CUDA_ERROR in str(error):
                broken = about["model"]
        result["models"].append(measured)
        print(table([measured]), flush=True)
    return result


@cache
def _start_compiler(device: str) -> None:
    """Has torch.compile make what it makes once, so that the first model's pace is that of its nodes."""
    print("runner: starting the compiler", file=sys.stderr, flush=True)
    torch.compile(lambda x: torch.relu(x) + 1)(torch.ones(64, device=device))


def table(models: list[dict[str, Any]]) -> str:
    """The figures as text: a line a mode."""
    lines = [
        f"{'model':24} {'mode':24} {'ms':>9} {'against':>8} {'interval':>13} {'kernels':>8} {'layout':>7} {'moves':>7} {'copies':>7} {'tensor':>7} "
        f"{'off':>8} {'error':>8}"
    ]
    for model in models:
        for figures in model["modes"]:
            low, against, high = figures["against"] or (None, None, None)
            moves = sum(move["us"] for move in figures["moves"])
            copies = sum(move["copy_us"] for move in figures["moves"])
            lines.append(
                f"{model['model'][:24]:24} {figures['mode']:24} {figures['median_ms']:9.3f} {f'{against:.2f}x' if against else '-':>8} "
                f"{f'{low:.2f} to {high:.2f}' if against else '-':>13} {figures['kernels']:8} "
                f"{figures['layout_kernels']:7} {figures['moves_share']:7.1%} {f'{moves / copies:.2f}x' if copies else '-':>7} "
                f"{_on_tensor_cores(figures):>7} {figures['difference']:8.1e} "
                f"{'-' if figures['error'] is None else format(figures['error'], '8.1e'):>8}"
            )
        if model["modes"]:
            lines.append(f"{model['model'][:24]:24} nchw beside itself: {timing.Ratio(*model['control'])}")
        lines += [f"{model['model'][:24]:24} {note}" for note in model["notes"]]
    return "\n".join(lines)


def _on_tensor_cores(figures: dict[str, Any]) -> str:
    """Dense convolutions on tensor cores, of all."""
    dense, off = figures["dense_convolutions"], figures["off_tensor_cores"]
    return "-" if off is None else f"{dense - len(off)}/{dense}"


def _bench_model(
    folder: Path, about: dict[str, Any], settings: Settings, share: float, pace: float
) -> tuple[dict[str, Any], float]:
    _products(about["dtype"])
    if share <= 0:
        return {**about, "modes": [], "notes": ["left out: no time was left"]}, pace
    bundles = {name: read_bundle(folder / name) for name in ("original", "ours")}
    nodes = sum(len(bundle.nodes) for bundle in bundles.values())
    notes = []
    modes = [mode for mode in MODES if settings.compiled or not mode.compiled]
    if settings.compiled and nodes * pace > share:
        modes = [mode for mode in modes if not mode.compiled]
        notes.append(
            f"compiled modes were left out: {nodes * pace:.0f} s for them are more than the {share:.0f} s of this model's share"
        )
    arrays = seeded_inputs(bundles["original"].inputs, 0, {})
    calls: dict[str, Call] = {}
    by_node: dict[str, dict[str, list[str]]] = {}
    if any(mode.compiled for mode in modes):
        _start_compiler(settings.device)
    start = time.monotonic()
    for mode in modes:
        print(f"runner: {about['model']}: {mode.name}", file=sys.stderr, flush=True)
        runner = _runner(mode, bundles[mode.bundle], settings)
        inputs = runner.prepare([torch.from_numpy(arrays[value.name]) for value in runner.bundle.inputs])
        try:
            calls[mode.name] = _call(mode, runner, inputs)
        except Exception as error:
            if not mode.compiled:
                raise
            # A compiler fails in ways of its own, which is no reason to lose the other modes.
            notes.append(f"FAILED: {mode.name}: {type(error).__name__}: {str(error).partition(chr(10))[0]}")
        if settings.device == "cuda" and not mode.compiled:
            by_node[mode.name] = _kernels_by_node(runner, inputs)
    modes = [mode for mode in modes if mode.name in calls]
    if any(mode.compiled for mode in modes):
        pace = (time.monotonic() - start) / nodes
    figures, control = _measure(calls, settings)
    _compare(calls, figures, _TOLERANCE[about["dtype"]], notes)
    _hold(calls, figures, bundles["original"], folder / REFERENCE, None if about["batch"] is None else list(SAMPLES))
    for mode in modes:
        if mode.name in by_node:
            figures[mode.name].off_tensor_cores = off_tensor_cores(by_node[mode.name])
            figures[mode.name].copied = copied(by_node[mode.name])
        _profile(mode, bundles[mode.bundle], calls[mode.name], figures[mode.name], settings)
    torch._dynamo.reset()
    return {**about, "modes": [asdict(f) for f in figures.values()], "control": list(astuple(control)), "notes": notes}, pace


def _settings_of(folder: Path) -> dict[str, Any]:
    try:
        return json.loads((folder / SETTINGS).read_bytes())
    except (OSError, ValueError) as error:
        raise RunnerError(f"{folder} is no folder that `prepare` made: {error}") from error


def _products(dtype: str) -> None:
    """Whether float32 products may use TF32; and the fastest algorithm of each convolution is looked for, in all modes."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = dtype == "tf32"
    torch.backends.cudnn.benchmark = True


def _runner(mode: Mode, bundle: Bundle, settings: Settings) -> Runner:
    moves = "kernels" if mode.bundle == "ours" else "torch"
    runner = Runner(bundle, settings.device, moves, mode.channels_last, settings.capi)
    if not runner.static:
        raise RunnerError(
            f"{bundle.folder}: extents are computed at run time; give the model a batch by `prepare --batch`, or fixed extents"
        )
    return runner


def _call(mode: Mode, runner: Runner, inputs: list[Tensor]) -> Call:
    """A function of no arguments that runs the mode once: on a GPU a CUDA graph."""
    forward: Callable[..., tuple[Tensor, ...]] = runner
    with torch.no_grad():
        if mode.compiled:
            with _own_layouts(mode):
                forward = torch.compile(runner)
                forward(*inputs)
        else:
            forward(*inputs)
            if mode.bundle == "ours" and runner.moves_run != runner.bundle.moves:
                raise RunnerError(
                    f"{runner.bundle.folder}: {runner.moves_run} moves were executed and {runner.bundle.moves} are planned"
                )
        if runner.device.type == "cuda":
            return CudaGraph(forward, inputs).replay

    def call() -> tuple[Tensor, ...]:
        with torch.no_grad(), _own_layouts(mode):
            return forward(*inputs)

    return call


def is_dense_convolution(node: Node) -> bool:
    """Whether it is a convolution of one group, of the standard or of the dialect."""
    return bool(_CONVOLUTION.match(node.op)) and node.attr("group", 1) == 1


def _kernels_by_node(runner: Runner, inputs: list[Tensor]) -> dict[str, list[str]]:
    """What each node but the moves starts, dense convolutions by a name that says so. Looked at before the graph hides what starts what."""

    def mark(node: Node) -> contextlib.AbstractContextManager[object]:
        if is_move(node):
            return contextlib.nullcontext()
        return torch.profiler.record_function(f"{_MARK}{_DENSE if is_dense_convolution(node) else ''}{node.name or node.outputs[0]}")

    runner.mark = mark
    try:
        with torch.no_grad():
            return profile_ranges(lambda: runner(*inputs), _MARK)
    finally:
        runner.mark = None


def off_tensor_cores(by_node: dict[str, list[str]]) -> dict[str, list[str]]:
    """Dense convolutions that start no kernel on tensor cores, with what they start."""
    return without_tensor_cores({name.removeprefix(_DENSE): found for name, found in by_node.items() if name.startswith(_DENSE)})


def copied(by_node: dict[str, list[str]]) -> dict[str, list[str]]:
    """Nodes that start kernels which only move data, with these."""
    moving = {name.removeprefix(_DENSE): [kernel for kernel in found if is_layout_kernel(kernel)] for name, found in by_node.items()}
    return {name: kernels for name, kernels in moving.items() if kernels}


def _own_layouts(mode: Mode) -> contextlib.AbstractContextManager[object]:
    """With Inductor's own choice of layouts off where the layouts are ours."""
    import torch._inductor.config as inductor

    return inductor.patch(layout_optimization=False) if mode.compiled and mode.bundle == "ours" else contextlib.nullcontext()


def _measure(calls: dict[str, Call], settings: Settings) -> tuple[dict[str, Figures], timing.Ratio]:
    """Times the modes in turns, by `timing.beside`. Gives the ratio of the first one beside itself as well."""
    cuda = settings.device == "cuda"
    repeats = {}
    for name, call in calls.items():
        call()
        repeats[name] = max(1, round(_ROUND_MS / max(time_ms(call, 1, cuda), 1e-3))) if cuda else 1
    runs = {name: lambda call=call, count=repeats[name]: time_ms(call, count, cuda) / 1e3 for name, call in calls.items()}
    found = timing.beside(runs, settings.rounds, warm=0)
    figures = {name: Figures(name, found.median(name) * 1e3, [1e3 * taken for taken in found.seconds(name)]) for name in calls}
    for name, entry in figures.items():
        base = "channels_last compiled" if name.endswith("compiled") else "channels_last"
        entry.against = list(astuple(found.over(base, name))) if base in calls else None
    return figures, found.control()


def time_ms(call: Call, repeats: int, cuda: bool) -> float:
    """Milliseconds a call: by CUDA events, on a CPU by its clock."""
    if not cuda:
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        return (time.perf_counter() - start) * 1e3 / repeats
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(repeats):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / repeats


def _compare(calls: dict[str, Call], figures: dict[str, Figures], tolerance: float, notes: list[str]) -> None:
    """How far each mode is off the first one whose results are finite."""
    results = {name: [x.double().cpu() for x in call()] for name, call in calls.items()}
    finite = [name for name, outputs in results.items() if all(x.isfinite().all() for x in outputs)]
    reference = results[finite[0]] if finite else next(iter(results.values()))
    for name, outputs in results.items():
        if finite and name not in finite:
            figures[name].difference = math.inf
            notes.append(f"WRONG: {name} has results that are not finite, {finite[0]} has not")
            continue
        off = [(x - y).norm() / y.norm().clamp_min(1e-30) for x, y in zip(outputs, reference, strict=True)]
        figures[name].difference = max(float(x) for x in off)
        if not figures[name].difference <= tolerance:
            notes.append(f"WRONG: {name} is off by {figures[name].difference:.1e}, more than {tolerance:.0e}")


def _hold(calls: dict[str, Call], figures: dict[str, Figures], bundle: Bundle, path: Path, samples: list[int] | None) -> None:
    """How far each mode is off ONNX Runtime on the original in float32, on the samples that `prepare` ran there; None for all."""
    if not path.is_file():
        return
    with np.load(path) as file:
        reference = dict(file)
    for name, call in calls.items():
        outputs = {value.name: x.float().cpu().numpy() for value, x in zip(bundle.outputs, call(), strict=True)}
        found = {key: x if samples is None else x[samples] for key, x in outputs.items()}
        figures[name].error = max(off.largest for off in differences(found, reference))


def _profile(mode: Mode, bundle: Bundle, call: Call, figures: Figures, settings: Settings) -> None:
    found = profile_calls(call, settings.device == "cuda")
    figures.kernels, figures.layout_kernels, figures.moves_share = found.kernels, found.layout_kernels, found.moves_share
    figures.by_kernel = [{"name": name, "calls": calls, "us": us} for name, calls, us in found.by_name]
    figures.dense_convolutions = sum(is_dense_convolution(node) for node in bundle.nodes)
    if mode.bundle != "ours":
        return
    moves = [node for node in bundle.nodes if is_move(node) and (settings.device != "cuda" or node.move is not None)]
    if len(moves) != len(found.moves_us):
        raise RunnerError(f"{bundle.folder}: the profile has {len(found.moves_us)} moves a call, the bundle {len(moves)}")
    figures.planned_moves = bundle.moves
    sizes = [_bytes(bundle, node.outputs[0] or "") for node in moves]
    for node, size, us, copy in zip(moves, sizes, found.moves_us, copies_us(sizes, torch.device(settings.device))):
        figures.moves.append({"node": node.name or node.outputs[0], "bytes": size, "us": us, "copy_us": copy})


def _bytes(bundle: Bundle, name: str) -> int:
    value = bundle.values[name]
    if value.static_shape is None:
        raise RunnerError(f"{bundle.folder}: the extents of {name!r} are not known; bench runs models of known extents")
    return torch.Size(value.static_shape).numel() * value.torch_dtype.itemsize
