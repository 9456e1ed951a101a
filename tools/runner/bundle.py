"""Reads a bundle: a folder with a graph, its constants in the form in which they are stored, and a kernel for each move."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from runner.errors import RunnerError
from runner.paths import inside

SCHEMA = 1

DTYPES: dict[str, torch.dtype] = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "u8": torch.uint8,
    "bool": torch.bool,
}
"""Element types that torch computes with, by the names that the project prints."""


@dataclass(frozen=True)
class Value:
    """A tensor of the graph as it is stored.

    `shape` has physical extents, outermost first: numbers, names of symbolic dims, or None where unknown; it is None as a whole
    where not even the rank is known. `layout` is text such as `NHWC`.
    """

    name: str
    dtype: str | None
    shape: tuple[int | str | None, ...] | None
    layout: str | None

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """The extents if all are numbers."""
        known = self.shape is not None and all(isinstance(extent, int) for extent in self.shape)
        return self.shape if known else None  # type: ignore[return-value]

    @property
    def torch_dtype(self) -> torch.dtype:
        """The element type; an error names those that torch lacks."""
        if self.dtype not in DTYPES:
            raise RunnerError(f"value {self.name!r} has elements of type {self.dtype}; the runner has {', '.join(DTYPES)}")
        return DTYPES[self.dtype]


@dataclass(frozen=True)
class Node:
    """A call of an op: of the standard (domain ""), of the dialect (domain "relayout") or of another domain.

    `opset` is that of the domain, but for ops of the dialect that of the standard one: they mean what the standard op means there.
    """

    name: str
    domain: str
    op: str
    opset: int
    inputs: tuple[str | None, ...]
    outputs: tuple[str | None, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    move: str | None = None
    """The kernel, if the node is a move that has one: `kernels/MOVE.cu` and `kernels/MOVE.json`."""
    no_kernel: str | None = None
    """Why a move has no kernel; it is executed as what it is."""
    overload: str = ""
    """Which of the functions that share a name; empty for most ops."""

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute, or what the op's definition says where it is absent."""
        return self.attributes.get(name, default)

    def __str__(self) -> str:
        op = f"{self.domain}.{self.op}" if self.domain else self.op
        op += f":{self.overload}" if self.overload else ""
        named = self.name or f"that makes {next((o for o in self.outputs if o), '?')}"
        return f"node {named} ({op}, opset {self.opset})"


@dataclass(frozen=True)
class Bundle:
    """A model to run. `nodes` are in order of execution; `constants` are on the CPU.

    `inputs` are those that a caller has to give: an input with a default is a constant here.
    """

    folder: Path
    name: str
    target: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    values: dict[str, Value]
    constants: dict[str, torch.Tensor]
    nodes: tuple[Node, ...]
    moves: int
    """Nodes that move data, with a kernel or without."""


def read_bundle(folder: str | Path) -> Bundle:
    """Reads and checks a bundle.

    Fails with `RunnerError` if a file is missing, was changed since it was written, or is of another schema, and if a name or a link
    leads out of the folder.
    """
    folder = Path(folder)
    manifest = _read_json(folder, "manifest.json")
    _check_schema(manifest, folder / "manifest.json")
    for entry in manifest["files"]:
        _check_file(inside(folder, entry["path"]), entry)
    graph = _read_json(folder, "graph.json")
    _check_schema(graph, folder / "graph.json")
    constants = _constants(inside(folder, "weights.safetensors"), graph["constants"])
    inputs, outputs = _values(graph["inputs"]), _values(graph["outputs"])
    nodes = tuple(_node(entry, graph["opsets"].get("", 0)) for entry in graph["nodes"])
    listed = {entry["path"] for entry in manifest["files"]}
    for node in nodes:
        missing = [] if node.move is None else [end for end in (".cu", ".json") if f"kernels/{node.move}{end}" not in listed]
        if missing:
            raise RunnerError(f"{node} has the kernel {node.move!r}, whose files the manifest does not list; write the bundle anew")
    known = (*inputs, *outputs, *_values(graph["values"]), *_values(graph["constants"]))
    return Bundle(
        folder=folder,
        name=graph["name"],
        target=manifest["target"],
        inputs=tuple(value for value in inputs if value.name not in constants),
        outputs=outputs,
        values={value.name: value for value in known},
        constants=constants,
        nodes=nodes,
        moves=manifest["moves"] + manifest.get("moves_without_kernel", 0),
    )


def tensor_of(data: dict[str, Any]) -> torch.Tensor:
    """The tensor of an attribute: little-endian bytes in base64."""
    if data["dtype"] not in DTYPES:
        raise RunnerError(f"a tensor attribute has elements of type {data['dtype']}; the runner has {', '.join(DTYPES)}")
    raw = np.frombuffer(base64.b64decode(data["data"]), dtype=np.uint8).copy()
    dtype = DTYPES[data["dtype"]]
    if raw.size == 0:
        return torch.empty(data["shape"], dtype=dtype)
    return torch.from_numpy(raw).view(dtype).reshape(data["shape"])


def _constants(path: Path, entries: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    """The constants, which must be there with the types and shapes that graph.json says."""
    constants = load_file(path) if entries else {}
    for value in _values(entries):
        if value.name not in constants:
            raise RunnerError(f"{path} lacks the constant {value.name!r} of graph.json; write the bundle anew")
        have = constants[value.name]
        if have.dtype != value.torch_dtype or tuple(have.shape) != value.shape:
            raise RunnerError(
                f"{path}: constant {value.name!r} is {have.dtype} {list(have.shape)}, not {value.dtype} {list(value.shape or ())}"
            )
    return constants


def _read_json(folder: Path, name: str) -> dict[str, Any]:
    path = folder / name
    if not path.exists():
        raise RunnerError(f"{path} is not there; write a bundle with: relayout optimize MODEL --emit bundle -o DIR")
    try:
        return json.loads(inside(folder, name).read_bytes())
    except ValueError as error:
        raise RunnerError(f"{path} is no JSON: {error}; write the bundle anew") from error


def _check_schema(data: dict[str, Any], path: Path) -> None:
    if data.get("schema") != SCHEMA:
        raise RunnerError(
            f"{path} has schema {data.get('schema')}; this runner reads {SCHEMA}: take both from one version of relayout"
        )


def _check_file(path: Path, entry: dict[str, Any]) -> None:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 22):
            digest.update(chunk)
    if path.stat().st_size != entry["bytes"] or digest.hexdigest() != entry["sha256"]:
        raise RunnerError(f"{path} is not what the manifest says (size or SHA-256); write the bundle anew")


def _values(entries: list[dict[str, Any]]) -> tuple[Value, ...]:
    def one(entry: dict[str, Any]) -> Value:
        shape = entry.get("shape")
        return Value(entry["name"], entry.get("dtype"), None if shape is None else tuple(shape), entry.get("layout"))

    return tuple(one(entry) for entry in entries)


def _node(entry: dict[str, Any], standard: int) -> Node:
    def attribute(data: dict[str, Any]) -> Any:
        if data["type"] == "tensor":
            return tensor_of(data["value"])
        if data["type"] in ("float", "floats"):
            # Infinities and NaN are words.
            return float(data["value"]) if data["type"] == "float" else tuple(float(number) for number in data["value"])
        return tuple(data["value"]) if isinstance(data["value"], list) else data["value"]

    return Node(
        name=entry.get("name") or "",
        domain=entry.get("domain") or "",
        op=entry["op"],
        opset=standard if entry.get("domain") == "relayout" else entry["opset"],
        inputs=tuple(entry["inputs"]),
        outputs=tuple(entry["outputs"]),
        attributes={name: attribute(data) for name, data in entry.get("attributes", {}).items()},
        move=entry.get("move"),
        no_kernel=entry.get("no_kernel"),
        overload=entry.get("overload") or "",
    )
