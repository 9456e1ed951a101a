"""What a profile of torch says of layouts: kernels that only move data, the share of moves, and each move beside a copy."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.profiler import ProfilerActivity, profile

_OURS = re.compile(r"^relayout(_|::move)")
_ORDERS = re.compile(r"nchw(To|2)nhwc|nhwc(To|2)nchw", re.IGNORECASE)
_LAYOUT = re.compile(r"transpos|permut|direct_copy|Memcpy DtoD|triton_\w*(clone|copy)", re.IGNORECASE)
_PRODUCT = re.compile(r"gemm|conv|fprop|dgrad|xmma|cutlass|cublas", re.IGNORECASE)
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


def is_layout_kernel(name: str) -> bool:
    """Whether a kernel only moves data, by its name. Changes of layout inside of a library's product are part of the product."""
    if name.startswith("aten::"):
        # An op on a CPU, where aten::permute and its like are views.
        return name == "aten::copy_"
    if _OURS.search(name) or _ORDERS.search(name):
        return True
    return bool(_LAYOUT.search(name) and not _PRODUCT.search(name))


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
    )


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


def _is_work(event: torch.autograd.profiler_util.FunctionEvent, cuda: bool) -> bool:
    on_gpu = event.device_type == torch.autograd.DeviceType.CUDA
    return on_gpu if cuda else not on_gpu and _time(event, cuda) > 0


def _time(event: torch.autograd.profiler_util.FunctionEvent, cuda: bool) -> float:
    """Microseconds; on a CPU those that no op within it took."""
    return event.time_range.elapsed_us() if cuda else event.self_cpu_time_total
