"""All figures in one go: models in every variant, prepared, timed, and held against what they have to show."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from runner.bench import Settings, bench
from runner.criteria import BREAKING, CONTROL, criteria
from runner.errors import RunnerError
from runner.variant import SETTINGS, Variant

MODELS = (*CONTROL, *BREAKING)
_COMPILED_SHARE = 0.7
"""Part of the time for the first variant, the only one with compiled modes, where there are others."""
_CORES_A_MODEL = 2
VARIANTS = (Variant("fp16", 32), Variant("tf32", 32), Variant("fp16", 1), Variant("tf32", 1))
"""In the order of what is lost if time runs out."""


@dataclass(frozen=True)
class Plan:
    """What is to be measured, and where."""

    models: Path
    """Folder of the originals, NAME.onnx each."""
    names: tuple[str, ...]
    variants: tuple[Variant, ...]
    output: Path
    """Folder of what is prepared, of figures.json and of table.txt."""
    relayout: Path
    prepared: bool = False
    """Whether what is in `output` is taken as it is."""


def figures(plan: Plan, settings: Settings) -> dict[str, Any]:
    """Prepares and times everything within `settings.seconds`; gives what it wrote to figures.json.

    A model that can't be prepared or run is in the result with a note that starts with `FAILED`.
    """
    end = time.monotonic() + settings.seconds
    missing = [name for name in plan.names if not (plan.models / f"{name}.onnx").is_file()]
    if missing:
        raise RunnerError(f"{plan.models} has no {', no '.join(f'{name}.onnx' for name in missing)}; leave models out with --only")
    result: dict[str, Any] = {**_machine(settings.device), "models": []}
    failed = _prepare_all(plan)
    for at, variant in enumerate(plan.variants):
        left = end - time.monotonic()
        rest = len(plan.variants) - at
        share = left * _COMPILED_SHARE if at == 0 and rest > 1 else left / rest
        ready = [_folder(plan, variant, name) for name in plan.names if (name, variant) not in failed]
        found = bench(ready, replace(settings, seconds=max(share, 0.0), compiled=settings.compiled and at == 0))
        result["models"] += found["models"]
        result["models"] += [_failure(name, variant, why) for (name, of), why in failed.items() if of == variant]
        if settings.device == "cuda":
            result["criteria"] = [vars(criterion) for criterion in criteria(result["models"])]
        # After each variant, so that what was measured is there if a later one never ends.
        _write(plan.output / "figures.json", json.dumps(result, indent=1) + "\n")
    return result


def _machine(device: str) -> dict[str, Any]:
    """What the figures were taken on, and with."""
    cuda = device == "cuda"
    return {
        "device": torch.cuda.get_device_name() if cuda else "cpu",
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda if cuda else None,
        "cudnn": torch.backends.cudnn.version() if cuda else None,
    }


def _folder(plan: Plan, variant: Variant, name: str) -> Path:
    return plan.output / str(variant) / name


def _prepare_all(plan: Plan) -> dict[tuple[str, Variant], str]:
    """Prepares every model in every variant, several at a time, each in a process; gives those that failed, with the reason."""
    wanted = [(name, variant) for variant in plan.variants for name in plan.names]
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // _CORES_A_MODEL)) as pool:
        whys = list(pool.map(lambda pair: _prepare(plan, *pair), wanted))
    return {pair: why for pair, why in zip(wanted, whys) if why is not None}


def _prepare(plan: Plan, name: str, variant: Variant) -> str | None:
    """Prepares one; gives the reason if that failed."""
    ready = _folder(plan, variant, name) / SETTINGS
    if plan.prepared and ready.is_file():
        return None
    command = [sys.executable, str(Path(__file__).resolve().parent), "prepare", str(plan.models / f"{name}.onnx")]
    command += ["--output", str(_folder(plan, variant, name).parent), "--batch", str(variant.batch), "--dtype", variant.dtype]
    command += ["--relayout", str(plan.relayout)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(f"runner: {name} {variant}: {'prepared' if done.returncode == 0 else 'failed'}", file=sys.stderr, flush=True)
    if done.returncode == 0 and ready.is_file():
        return None
    return done.stderr.strip() or f"prepare ended with status {done.returncode}"


def _failure(name: str, variant: Variant, why: str) -> dict[str, Any]:
    return {"model": name, "batch": variant.batch, "dtype": variant.dtype, "modes": [], "notes": [f"FAILED: {why}"]}


def _write(path: Path, text: str) -> None:
    """Puts a file in its place at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_text(text)
    beside.replace(path)
