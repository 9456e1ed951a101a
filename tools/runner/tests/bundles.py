"""Bundles for tests, written by hand: what `relayout optimize --emit bundle` would write of small graphs."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

DTYPES = {"float32": "f32", "float16": "f16", "int64": "i64", "int32": "i32", "uint8": "u8", "int8": "i8", "bool": "bool"}


def attribute(value: Any) -> dict[str, Any]:
    """An attribute in the form of graph.json."""
    if isinstance(value, np.ndarray):
        data = base64.b64encode(value.tobytes()).decode()
        return {"type": "tensor", "value": {"dtype": DTYPES[str(value.dtype)], "shape": list(value.shape), "data": data}}
    if isinstance(value, list):
        return {"type": "floats" if value and isinstance(value[0], float) else "ints", "value": value}
    return {"type": {int: "int", float: "float", str: "string"}[type(value)], "value": value}


def node(op: str, inputs: list[str | None], outputs: list[str], domain: str = "", opset: int = 20, **more: Any) -> dict[str, Any]:
    """A node; `move`, `no_kernel` and `overload` are fields, everything else is an attribute."""
    fields = {name: more.pop(name) for name in ("move", "no_kernel", "overload") if name in more}
    attributes = {name: attribute(value) for name, value in more.items()}
    named = {"name": f"the {op}", "domain": domain, "op": op, "opset": opset}
    return {**named, "inputs": inputs, "outputs": outputs, "attributes": attributes, **fields}


def value(name: str, shape: list[int | str | None] | None, dtype: str = "f32") -> dict[str, Any]:
    """A value in the form of graph.json."""
    return {"name": name, "dtype": dtype, "shape": shape, "layout": None, "logical": None}


def write(
    folder: Path,
    nodes: list[dict[str, Any]],
    inputs: list[dict[str, Any]],
    outputs: list[str],
    constants: dict[str, np.ndarray] | None = None,
    values: list[dict[str, Any]] | None = None,
    moves: int | None = None,
) -> Path:
    """Writes a bundle; gives its folder. `moves` is what the manifest counts, by default what there is."""
    constants = constants or {}
    folder.mkdir(parents=True, exist_ok=True)
    graph = {
        "schema": 1,
        "name": "test",
        "opsets": {"": 20, "relayout": 1},
        "inputs": inputs,
        "outputs": [value(name, None) for name in outputs],
        "values": values or [],
        "constants": [value(name, list(x.shape), DTYPES[str(x.dtype)]) for name, x in constants.items()],
        "nodes": nodes,
    }
    (folder / "graph.json").write_text(json.dumps(graph))
    save_file(constants, folder / "weights.safetensors", {"format": "relayout"})
    files = []
    for path in ("graph.json", "weights.safetensors", *_kernels(folder, nodes)):
        data = (folder / path).read_bytes()
        files.append({"path": path, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()})
    with_kernel = sum("move" in entry for entry in nodes) if moves is None else moves
    without = sum("no_kernel" in entry for entry in nodes)
    manifest = {"schema": 1, "relayout": "0", "target": "cuda-tensorcore", "model": "test", "files": files}
    manifest |= {"moves": with_kernel, "moves_without_kernel": without}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def _kernels(folder: Path, nodes: list[dict[str, Any]]) -> list[str]:
    """Writes a source and a launch for each kernel that a node names; gives their paths. A CPU runs none of them."""
    names = sorted({entry["move"] for entry in nodes if "move" in entry})
    if names:
        (folder / "kernels").mkdir(exist_ok=True)
    paths = [f"kernels/{name}{end}" for name in names for end in (".cu", ".json")]
    for path in paths:
        (folder / path).write_text("{}" if path.endswith(".json") else "")
    return paths
