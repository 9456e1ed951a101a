"""Makes what `bench` runs of a model: a variant of the batch and the element type that are asked for, and two bundles of it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper, shape_inference

from runner.bundle import read_bundle
from runner.compare import REFERENCE, SAMPLES, run_original, seeded_inputs
from runner.errors import RunnerError
from runner.variant import SETTINGS

_BINARY = ("Add", "Sub", "Mul", "Div")
TARGETS = {"original": "onnx", "ours": "cuda-tensorcore"}
"""Bundles by their folders, and the target that each is made for."""


def prepare(model: Path, folder: Path, batch: int | None, dtype: str, relayout: Path) -> None:
    """Writes `folder` with model.onnx, the bundles `original` and `ours`, reference.npz, and settings.json last.

    Fails with `RunnerError` if the model can't be made of that batch, or if `relayout` fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SETTINGS).unlink(missing_ok=True)
    proto = onnx.load(str(model))
    if batch is not None:
        proto = with_batch(proto, batch, str(model))
    if dtype == "fp16":
        proto = in_halves(proto)
    variant = folder / "model.onnx"
    onnx.save(proto, str(variant))
    for name, target in TARGETS.items():
        _emit(relayout, variant, folder / name, target)
    _reference(model, folder, batch)
    settings = {"model": model.stem, "batch": batch, "dtype": dtype}
    (folder / SETTINGS).write_text(json.dumps(settings) + "\n")


def with_batch(proto: onnx.ModelProto, batch: int, name: str) -> onnx.ModelProto:
    """The model for `batch` samples: the outermost extent of inputs times `batch`, and so that of constant targets of Reshape and Expand
    and of constants that are added to or multiplied with something of the same outermost extent.

    For models of batch 1 whose batch stays the outermost axis where extents are written out, alone or with others merged into it.
    Whether that was so is checked by inferring shapes, which must agree, and by `bench`, whose modes must. Symbolic extents are set.
    """
    old = {d for d in (_first_extent(value) for value in _inputs(proto)) if d is not None}
    if old - {"symbol", 1}:
        raise RunnerError(
            f"{name}: inputs have the batches {sorted(map(str, old))}; only a model of batch 1 can be given another"
        )
    if 1 in old and any(_first_extent(value) not in (1, "symbol") for value in proto.graph.output):
        raise RunnerError(f"{name} can't be made of batch {batch}: the batch is not the outermost axis of its outputs")
    if 1 in old:
        _scale_constants(proto, batch)
    for value in [*_inputs(proto), *proto.graph.output]:
        if value.type.tensor_type.shape.dim:
            value.type.tensor_type.shape.dim[0].Clear()
            value.type.tensor_type.shape.dim[0].dim_value = batch
    del proto.graph.value_info[:]
    try:
        inferred = shape_inference.infer_shapes(proto, check_type=True, strict_mode=True, data_prop=True)
    except shape_inference.InferenceError as error:
        raise RunnerError(f"{name} can't be made of batch {batch}: {error}") from error
    return inferred


def in_halves(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model with float16 in place of float32, inputs and outputs too."""
    try:
        from onnxruntime.transformers.float16 import convert_float_to_float16
    except ImportError as error:
        raise RunnerError(f"{error}; halves need onnxruntime, see tools/runner/requirements.txt") from error
    # Nothing is kept in float32, so that no Cast stands between what either side runs.
    return convert_float_to_float16(proto, keep_io_types=False, disable_shape_infer=False, op_block_list=[])


def _reference(model: Path, folder: Path, batch: int | None) -> None:
    """Keeps what ONNX Runtime makes of the original, in float32, of the first and the last sample of those that `bench` takes."""
    inputs = read_bundle(folder / "original").inputs
    if any(value.static_shape is None for value in inputs):
        return
    arrays = seeded_inputs(inputs, 0, {})
    arrays = {name: x.astype(np.float32) if x.dtype == np.float16 else x for name, x in arrays.items()}
    if batch is None:
        outputs = run_original(model, arrays)
    else:
        each = [run_original(model, {name: x[[at]] if x.ndim else x for name, x in arrays.items()}) for at in SAMPLES]
        outputs = {name: np.concatenate([sample[name] for sample in each]) for name in each[0]}
    np.savez(folder / REFERENCE, **outputs)


def _scale_constants(proto: onnx.ModelProto, batch: int) -> None:
    """Brings constants that have the batch in them to the new one."""
    extents = {value.name: _first_extent(value) for value in shape_inference.infer_shapes(proto, data_prop=True).graph.value_info}
    constants = {tensor.name: tensor for tensor in proto.graph.initializer}
    for node in proto.graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            constants[node.output[0]] = node.attribute[0].t
    added = {}
    for node in proto.graph.node:
        for at, name in enumerate(node.input):
            tensor = constants.get(name)
            scaled = None
            if tensor is None or all(other in constants for other in node.input):
                continue
            if node.op_type in ("Reshape", "Expand") and at == 1:
                scaled = _scaled_target(tensor, batch)
            elif (
                node.op_type in _BINARY
                and len(tensor.dims) > 1
                and tensor.dims[0] > 1
                and extents.get(node.input[1 - at]) == tensor.dims[0]
            ):
                scaled = _scaled_operand(tensor, batch)
            if scaled is not None:
                # Under a name of its own: another node may read the same constant as something else.
                node.input[at] = f"{name}.batch{batch}"
                added[node.input[at]] = numpy_helper.from_array(scaled, node.input[at])
    proto.graph.initializer.extend(added.values())


def _scaled_target(tensor: onnx.TensorProto, batch: int) -> np.ndarray | None:
    """A shape with its first entry multiplied. Where that is -1 or 0 it follows by itself."""
    extents = numpy_helper.to_array(tensor).copy()
    if extents.size == 0 or extents[0] <= 0:
        return None
    extents[0] *= batch
    return extents


def _scaled_operand(tensor: onnx.TensorProto, batch: int) -> np.ndarray:
    """An operand with the batch in its outermost extent: repeated, or a single row if all are equal, as those of zeros are."""
    numbers = numpy_helper.to_array(tensor)
    if (numbers == numbers[:1]).all():
        return numbers[:1].copy()
    return np.concatenate([numbers] * batch)


def _inputs(proto: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    constants = {tensor.name for tensor in proto.graph.initializer}
    return [value for value in proto.graph.input if value.name not in constants]


def _first_extent(value: onnx.ValueInfoProto) -> int | str | None:
    dims = value.type.tensor_type.shape.dim
    if not dims:
        return None
    return dims[0].dim_value if dims[0].HasField("dim_value") else "symbol"


def _emit(relayout: Path, model: Path, folder: Path, target: str) -> None:
    command = [str(relayout), "optimize", str(model), "--target", target, "--emit", "bundle", "-o", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise RunnerError(
            f"{relayout} can't be run: {error}; build it with: cargo build --release -p relayout-cli, or name it with --relayout"
        ) from error
    if done.returncode != 0:
        raise RunnerError(f"{' '.join(command)}:\n{done.stderr.strip()}")
