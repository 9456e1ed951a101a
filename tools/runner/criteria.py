"""What the figures of a GPU have to show, and whether they do."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CONTROL = ("resnet50",)
"""Networks that `channels_last` already runs as well as can be."""
BREAKING = (
    "shufflenet_v2_x1_0",
    "ghostnet_100",
    "densenet121",
    "mobilevit_s",
    "coatnet_0",
    "swin_t_slim",
    "sd_unet",
    "espcn_x3",
    "r3d_18",
    "yolov8n",
    "segformer_b0",
)
"""Those where the layout has to change on the way."""
CONVOLUTIONAL = ("resnet50", "shufflenet_v2_x1_0", "ghostnet_100", "densenet121", "espcn_x3", "r3d_18", "yolov8n")
"""Those without attention."""

_ERROR = {"fp16": 1e-2, "tf32": 2e-3, "fp32": 1e-4}
_SPEED_DTYPE, _SPEED_BATCH = "fp16", 32

Figures = dict[str, Any]


@dataclass(frozen=True)
class Criterion:
    """One line of what is asked. `holds` is None where nothing was measured that could say so."""

    what: str
    holds: bool | None
    found: str

    def __str__(self) -> str:
        return f"{ {True: 'holds', False: 'FAILS', None: 'unknown'}[self.holds]:8} {self.what}: {self.found}"


def criteria(models: list[Figures]) -> list[Criterion]:
    """Every criterion on the figures of `bench`, speeds on halves in batches of 32, everything else on whatever was measured."""
    ours = [(_label(model), mode) for model in models for mode in model["modes"] if mode["mode"] == "ours"]
    at_speed = {model["model"]: _times(model) for model in models if _is_at_speed(model) and _times(model)}
    against_last = {name: times["channels_last"] / times["ours"] for name, times in at_speed.items()}
    return [
        _all("layout kernels are the planned moves", ours, _unplanned),
        _mean_over_nchw(at_speed),
        _at_least("at least 0.99 of channels_last on every model", against_last, 0.99),
        _ahead(against_last),
        _all("moves take at most 1 % of the time", ours, lambda mode: _unless(mode["moves_share"] <= 0.01, f"{mode['moves_share']:.1%}")),
        _all("each move is at least 0.95 of a copy of its bytes", ours, _slow_moves),
        _all("every dense convolution is on tensor cores", ours, _off_tensor_cores),
        _errors(models),
    ]


def _is_at_speed(model: Figures) -> bool:
    return (model["dtype"], model["batch"]) == (_SPEED_DTYPE, _SPEED_BATCH)


def _label(model: Figures) -> str:
    return f"{model['model']} {model['dtype']} x{model['batch']}"


def _times(model: Figures) -> dict[str, float]:
    return {mode["mode"]: mode["median_ms"] for mode in model["modes"]}


def _unless(good: bool, text: str) -> str | None:
    return None if good else text


def _all(what: str, modes: list[tuple[str, Figures]], wrong: Callable[[Figures], str | None]) -> Criterion:
    """Holds if `wrong` has nothing to say of any; unknown if a mode lacks what it asks."""
    try:
        found = [f"{label}: {text}" for label, mode in modes if (text := wrong(mode)) is not None]
    except _Unknown:
        return Criterion(what, None, "not measured")
    if not modes:
        return Criterion(what, None, "not measured")
    return Criterion(what, not found, "; ".join(found) or f"all {len(modes)}")


class _Unknown(Exception):
    """A figure that was not measured."""


def _unplanned(mode: Figures) -> str | None:
    copied = f" (copies in {', '.join(mode['copied'])})" if mode["copied"] else ""
    found = f"{mode['layout_kernels']}, planned {mode['planned_moves']}{copied}"
    return _unless(mode["layout_kernels"] == mode["planned_moves"], found)


def _slow_moves(mode: Figures) -> str | None:
    slow = [f"{move['node']} {move['copy_us'] / move['us']:.2f}" for move in mode["moves"] if move["copy_us"] < 0.95 * move["us"]]
    return _unless(not slow, ", ".join(slow))


def _off_tensor_cores(mode: Figures) -> str | None:
    if mode["off_tensor_cores"] is None:
        raise _Unknown
    return _unless(not mode["off_tensor_cores"], ", ".join(mode["off_tensor_cores"]))


def _mean_over_nchw(times: dict[str, dict[str, float]]) -> Criterion:
    what = "at least 1.3 times the NCHW original in geometric mean over the convolutional networks"
    ratios = [times[name]["nchw"] / times[name]["ours"] for name in CONVOLUTIONAL if name in times]
    if len(ratios) < len(CONVOLUTIONAL):
        return Criterion(what, None, f"{len(ratios)} of {len(CONVOLUTIONAL)} were measured")
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return Criterion(what, mean >= 1.3, f"{mean:.2f}")


def _at_least(what: str, ratios: dict[str, float], least: float) -> Criterion:
    missing = [name for name in (*CONTROL, *BREAKING) if name not in ratios]
    less = [f"{name} {ratio:.2f}" for name, ratio in ratios.items() if ratio < least]
    if missing and not less:
        return Criterion(what, None, f"not measured: {', '.join(missing)}")
    return Criterion(what, not less, ", ".join(less) or f"all {len(ratios)}")


def _ahead(ratios: dict[str, float]) -> Criterion:
    ahead = [f"{name} {ratios[name]:.2f}" for name in BREAKING if ratios.get(name, 0.0) >= 1.10]
    whole = all(name in ratios for name in BREAKING)
    holds = True if len(ahead) >= 5 else False if whole else None
    return Criterion("at least 1.10 of channels_last on five of those where it breaks", holds, ", ".join(ahead) or "none")


def _errors(models: list[Figures]) -> Criterion:
    what = "off ONNX Runtime in float32 by at most 1e-2 (fp16), 2e-3 (tf32)"
    errors = [(_label(m), mode, _ERROR[m["dtype"]]) for m in models for mode in m["modes"] if mode["mode"] == "ours"]
    if not errors or any(mode["error"] is None for _, mode, _ in errors):
        return Criterion(what, None, "not measured")
    over = [f"{label} {mode['error']:.1e}" for label, mode, most in errors if not mode["error"] <= most]
    return Criterion(what, not over, ", ".join(over) or f"all {len(errors)}")
