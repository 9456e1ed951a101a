"""What a profile of torch says: kernels that only move data, the share of moves, each move beside a copy, and which convolutions run on
tensor cores.

A profile knows kernels by their names only, so this file holds what the names of cuDNN, cuBLAS, CUTLASS, torch and Triton say.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile

_OURS = re.compile(r"^relayout(_|::move)")
_ORDERS = re.compile(r"nchw(To|2)nhwc|nhwc(To|2)nchw", re.IGNORECASE)
_LAYOUT = re.compile(r"transpos|permut|direct_copy|Memcpy DtoD|triton_\w*(clone|copy)", re.IGNORECASE)
_PRODUCT = re.compile(r"gemm|conv|fprop|dgrad|xmma|cutlass|cublas", re.IGNORECASE)
_TENSOR_CORES = re.compile(
    r"tensorop|tensor\d+x\d+x\d+|wgmma|hmma|imma|wmma|nvjet|warpgroupsize|[^a-z0-9]?[sih](884|1688|16816|16832|64x\d+x\d+)"
    r"|sm(90|100|120)_xmma|xmma_\w*(f16f16|tf32|bf16bf16|i8i8|e4m3)",
    re.IGNORECASE,
)
"""What stands in the name of a kernel that uses them: CUTLASS says `tensorop` and the shape of the instruction (`s16816`), cuDNN's xmma
kernels `tensor16x8x16` and the types of the products, those of Hopper `warpgroupsize` or `nvjet`."""
_NO_TENSOR_CORES = re.compile(r"simt|ffma|sgemm_|_sgemm|scudnn|f32f32_f32f32|fp32_fp32", re.IGNORECASE)
"""What stands in the name of one that does not, whatever else does."""
_CALLS = 5


@dataclass(frozen=True)
class Profile:
    """Figures of one call."""

    kernels: int
    """On a GPU kernels and copies; on a CPU calls of torch's ops."""
    layout_kernels: int
    """Those of them that only move data: copies, transposes, changes between channels first and last. Known by their names."""
    moves_share: float
    """Part of the time that the project's moves take."""
    moves_us: tuple[float, ...]
    """Time of each move of the project, in order; medians over some calls."""
    by_name: tuple[tuple[str, int, float], ...]
    """What runs, the longest first: its name, how often in a call, and microseconds of a call."""


def is_layout_kernel(name: str) -> bool:
    """Whether a kernel only moves data, by its name. Changes of layout inside of a library's product are part of the product."""
    if name.startswith("aten::"):
        # An op on a CPU, where aten::permute and its like are views.
        return name == "aten::copy_"
    if _OURS.search(name) or _ORDERS.search(name):
        return True
    return bool(_LAYOUT.search(name) and not _PRODUCT.search(name))


def uses_tensor_cores(name: str) -> bool:
    """Whether a kernel computes with tensor cores, by its name."""
    return bool(_TENSOR_CORES.search(name) and not _NO_TENSOR_CORES.search(name))


def without_tensor_cores(ranges: dict[str, list[str]]) -> dict[str, list[str]]:
    """Of nodes with the kernels that each started, those none of whose kernels uses tensor cores."""
    return {node: kernels for node, kernels in ranges.items() if not any(uses_tensor_cores(name) for name in kernels)}


def kernels_by_range(events: Iterable[FunctionEvent], prefix: str) -> dict[str, list[str]]:
    """The kernels that were started within each range whose name starts with `prefix`, by the rest of the name."""
    return {event.name.removeprefix(prefix): _started(event) for event in events if event.name.startswith(prefix) and _on_cpu(event)}


def profile_ranges(call: Callable[[], object], prefix: str) -> dict[str, list[str]]:
    """Profiles one call that marks ranges by `torch.profiler.record_function`, on a GPU; it must be no CUDA graph."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        call()
        torch.cuda.synchronize()
    return kernels_by_range(profiler.events(), prefix)


def profile_calls(call: Callable[[], object], cuda: bool) -> Profile:
    """Profiles some calls."""
    with profile(activities=[ProfilerActivity.CUDA if cuda else ProfilerActivity.CPU]) as profiler:
        for _ in range(_CALLS):
            call()
        if cuda:
            torch.cuda.synchronize()
    events = [event for event in profiler.events() if _is_work(event, cuda)]
    events.sort(key=lambda event: event.time_range.start)
    times = [(event.name, _time(event, cuda)) for event in events]
    total = sum(time for _, time in times)
    moves = [time for name, time in times if _OURS.search(name)]
    each = len(moves) // _CALLS
    return Profile(
        kernels=len(times) // _CALLS,
        layout_kernels=sum(is_layout_kernel(name) for name, _ in times) // _CALLS,
        moves_share=sum(moves) / total if total else 0.0,
        moves_us=tuple(statistics.median(moves[at::each]) for at in range(each)),
        by_name=_by_name(times),
    )


def _by_name(times: list[tuple[str, float]]) -> tuple[tuple[str, int, float], ...]:
    """Calls and time of each name, of one of the calls that were profiled."""
    taken: dict[str, list[float]] = {}
    for name, time in times:
        taken.setdefault(name, []).append(time)
    found = [(name, round(len(each) / _CALLS), sum(each) / _CALLS) for name, each in taken.items()]
    return tuple(sorted(found, key=lambda entry: -entry[2]))


def copies_us(sizes: list[int], device: torch.device) -> list[float]:
    """What a copy of so many bytes takes whose source was just written, as that of a move was; medians."""
    cuda = device.type == "cuda"
    times = []
    for size in sizes:
        source, destination = (torch.empty(max(size, 1), dtype=torch.uint8, device=device) for _ in range(2))
        with profile(activities=[ProfilerActivity.CUDA if cuda else ProfilerActivity.CPU]) as profiler:
            for _ in range(_CALLS):
                source.fill_(1)
                destination.copy_(source)
            if cuda:
                torch.cuda.synchronize()
        wanted = ("Memcpy", "copy") if cuda else ("aten::copy_",)
        found = [_time(event, cuda) for event in profiler.events() if any(word in event.name for word in wanted)]
        times.append(statistics.median(found) if found else 0.0)
    return times


def _started(event: FunctionEvent) -> list[str]:
    """The kernels that a call on the CPU started, itself and through what it called."""
    own = [kernel.name for kernel in event.kernels]
    return own + [name for child in event.cpu_children for name in _started(child)]


def _on_cpu(event: FunctionEvent) -> bool:
    return event.device_type == torch.autograd.DeviceType.CPU


def _is_work(event: FunctionEvent, cuda: bool) -> bool:
    return not _on_cpu(event) if cuda else _on_cpu(event) and _time(event, cuda) > 0


def _time(event: FunctionEvent, cuda: bool) -> float:
    """Microseconds; on a CPU those that no op within it took."""
    return event.time_range.elapsed_us() if cuda else event.self_cpu_time_total
