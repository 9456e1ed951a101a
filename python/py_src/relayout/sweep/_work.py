"""What is done with one model, in a process of its own."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import relayout
from relayout import _models, _relayout

from ._find import MISSING, Seen

#: Models are digested piece by piece.
_PIECE = 1 << 20


def work(task: dict[str, Any]) -> dict[str, Any]:
    """Does what a task says; what went wrong is in the answer."""
    return _told({"optimize": _optimize, "data_of": _data_of}[task["do"]], task)


def _told(call: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """What a call gives, or what went wrong."""
    try:
        return call(*arguments)
    except relayout.Error as error:
        return failed(type(error).__name__, str(error))
    except MemoryError:
        return failed("MemoryError", "there is not enough memory")
    except Exception as error:
        return failed(type(error).__name__, f"{type(error).__name__}: {error}")


def failed(error: str, message: str) -> dict[str, Any]:
    """The answer for a model that has no result."""
    return {"status": "failed", "error": error, "message": message}


def _data_of(task: dict[str, Any]) -> dict[str, Any]:
    return {"status": "ok", "files": data_of(task["path"])}


def data_of(path: str) -> list[str]:
    """The files that have the data of a model, as it names them."""
    import onnx

    try:
        model = onnx.load_model(path, load_external_data=False)
    except Exception:
        # What is wrong with it is said by the optimizer.
        return []
    tensors = [*_models._initializers(model.graph), *_models._attribute_tensors(model)]
    return sorted({location for tensor in tensors if (location := _models._location(tensor))})


def _optimize(task: dict[str, Any]) -> dict[str, Any]:
    files = [tuple(seen) for seen in task["files"]] or _seen(task["path"])
    digest = _digest(task["path"], [name for name, size, _ in files if size != MISSING[0]])
    row = {"files": files, "sha256": digest}
    if digest == task["known"]:
        return {**row, "status": "same"}
    return {**row, **_told(_optimized, task["path"], task["output"], task["settings"])}


def _optimized(path: str, output: str | None, settings: dict[str, Any]) -> dict[str, Any]:
    if output is not None:
        os.makedirs(os.path.dirname(output), exist_ok=True)
    result = relayout.optimize(
        path,
        output,
        target=Path(settings["target"]) if settings["target_sha256"] else settings["target"],
        dims={name: settings["dims"][name] for name in _relayout.open_dims(path, list(settings["dims"]))},
        numerics=settings["numerics"],
        verify=settings["verify"],
    )
    row = {"status": "ok", **_figures(result.report)}
    row["verified"] = True if settings["verify"] else None
    # Two files that are the same are no comparison.
    if settings["time"] and output is not None and result.report.changed:
        from ._time import beside

        row["before_ns"], row["after_ns"] = beside(path, output, settings["dims"])
    return row


def _figures(report: relayout.Report) -> dict[str, Any]:
    return {
        "changed": report.changed,
        "summary": report.summary,
        "moves_before": report.before.nodes,
        "moves_after": report.after.nodes,
        "bytes_before": report.before.bytes,
        "bytes_after": report.after.bytes,
        "constants": report.folded,
        "cost_ns": report.solve.cost_ns,
        "bound_ns": report.solve.bound_ns,
        "optimal": report.solve.optimal,
    }


def _seen(path: str) -> list[Seen]:
    """The files of a local model."""
    folder = os.path.dirname(path)
    return [_seen_file(folder, name) for name in [os.path.basename(path), *data_of(path)]]


def _seen_file(folder: str, name: str) -> Seen:
    try:
        stat = os.stat(os.path.join(folder, name))
    except OSError:
        return name, *MISSING
    return name, stat.st_size, str(stat.st_mtime)


def _digest(path: str, names: list[str]) -> str:
    """SHA-256 of all files of a model and of their names."""
    total = hashlib.sha256()
    for name in names:
        one = hashlib.sha256()
        with open(os.path.join(os.path.dirname(path), name), "rb") as file:
            while piece := file.read(_PIECE):
                one.update(piece)
        total.update(f"{name}\0{one.hexdigest()}\n".encode())
    return total.hexdigest()
