"""Models as they come and go: paths, bytes, ``onnx.ModelProto``, ``onnx_ir.Model``.

A model in memory crosses to the Rust half as the bytes of its graph and a dict of weights, by location, which are not copied. It comes
back in the same way: weights that did not change are the objects that went in.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar, Union

from ._errors import FileError, MissingFileError, OptionError

if TYPE_CHECKING:
    from pathlib import Path

    import onnx
    import onnx_ir

    from ._relayout import Optimized as _Made

#: What a model can be.
ModelLike = Union["str", "os.PathLike[str]", "bytes", "onnx.ModelProto", "onnx_ir.Model"]
ModelT = TypeVar("ModelT", "str", "Path", "bytes", "onnx.ModelProto", "onnx_ir.Model")

#: Tensors of fewer bytes stay in the bytes of the graph.
_SMALLEST = 1024


class PathModel:
    """A model in a file."""

    def __init__(self, path: Any) -> None:
        self.path = path
        self.source: str = os.fspath(path)
        self.written: str | None = None

    def output(self, output: Any) -> str:
        """Where the result goes: beside the model if nothing is said."""
        return str(os.fspath(output)) if output is not None else os.path.splitext(self.source)[0] + ".relayout.onnx"

    def result(self, made: _Made) -> Any:
        if self.written is None:
            raise FileError("nothing was written yet; call `save()`, or give `optimize` an output")
        from pathlib import Path

        return self.written if isinstance(self.path, str) else Path(self.written)


class MemoryModel:
    """A model in memory."""

    def __init__(self, model: Any, base_dir: Any) -> None:
        self.model = model
        self.folder = None if base_dir is None else os.fspath(base_dir)
        self.written: str | None = None
        self.parts: dict[str, Any] = {}

    @property
    def source(self) -> tuple[Any, dict[str, Any], str | None]:
        """What the Rust half reads."""
        return self.graph_bytes(), self.parts, self.folder

    def output(self, output: Any) -> str:
        """Where the result goes, which has to be said."""
        if output is None:
            raise OptionError("a model in memory has no file name; give `save` a path")
        return str(os.fspath(output))

    def graph_bytes(self) -> bytes:
        raise NotImplementedError

    def given(self, data: Any) -> str:
        """The location of weights that go along."""
        location = f"relayout.given.{len(self.parts)}"
        self.parts[location] = data
        return location


class BytesModel(MemoryModel):
    """The bytes of a file."""

    def graph_bytes(self) -> bytes:
        return self.model if type(self.model) is bytes else bytes(self.model)

    def result(self, made: _Made) -> bytes:
        # Bytes with data in files beside them get it all.
        if not made.changed() and self.folder is None and type(self.model) is bytes:
            return self.model
        return made.to_bytes()


class ProtoModel(MemoryModel):
    """An ``onnx.ModelProto``. The data of its tensors is taken out once, and put into the result once."""

    def graph_bytes(self) -> bytes:
        skeleton = type(self.model)()
        _copy(self.model, skeleton, "graph")
        _copy(self.model.graph, skeleton.graph, "initializer")
        for tensor in self.model.graph.initializer:
            self._stand_in(tensor, skeleton.graph.initializer.add())
        return bytes(skeleton.SerializeToString())

    def _stand_in(self, tensor: Any, to: Any) -> None:
        raw = tensor.raw_data if tensor.HasField("raw_data") else b""
        if len(raw) < _SMALLEST:
            to.CopyFrom(tensor)
            return
        _copy(tensor, to, "raw_data")
        _refer(to, self.given(raw))

    def result(self, made: _Made) -> Any:
        if not made.changed():
            return self.model
        result = type(self.model)()
        graph, parts = made.parts(_SMALLEST)
        result.ParseFromString(graph)
        data = {location: new if known is None else self.parts[known] for location, known, new in parts}
        for tensor in [*_initializers(result.graph), *_attribute_tensors(result)]:
            if (location := _location(tensor)) in data:
                _fill(tensor, data[location])
        return result


class IrModel(MemoryModel):
    """An ``onnx_ir.Model``. Its initializers are looked at where they lie, mapped files included."""

    def __init__(self, model: Any, base_dir: Any) -> None:
        super().__init__(model, base_dir)
        self.tensors: dict[str, Any] = {}

    def graph_bytes(self) -> bytes:
        import onnx_ir

        copy = self.model.clone()
        for graph in copy.graphs():
            for value in graph.initializers.values():
                if (data := _memory(value.const_value)) is not None:
                    tensor = value.const_value
                    location = self.given(data)
                    self.tensors[location] = (value.name, tensor)
                    value.const_value = onnx_ir.ExternalTensor(
                        location, None, None, tensor.dtype, shape=tensor.shape, name=value.name
                    )
        return bytes(onnx_ir.serde.serialize_model(copy).SerializeToString())

    def result(self, made: _Made) -> Any:
        import onnx
        import onnx_ir

        if not made.changed():
            return self.model
        graph, parts = made.parts(_SMALLEST)
        proto = onnx.ModelProto.FromString(graph)
        known = {location: name for location, name, _ in parts if name is not None}
        new = {location: data for location, _, data in parts if data is not None}
        for tensor in _initializers(proto.graph):
            if (location := _location(tensor)) in new:
                _fill(tensor, new[location])
        for tensor in _attribute_tensors(proto):
            location = _location(tensor)
            if location in new:
                _fill(tensor, new[location])
            elif location in known:
                _fill(tensor, bytes(self.parts[known[location]]))
        result = onnx_ir.serde.deserialize_model(proto)
        for graph_ in result.graphs():
            for value in graph_.initializers.values():
                tensor = value.const_value
                if isinstance(tensor, onnx_ir.ExternalTensor) and str(tensor.location) in known:
                    value.const_value = self._again(known[str(tensor.location)], tensor)
        return result

    def _again(self, name: str, wanted: Any) -> Any:
        """The tensor that went in; its data in a new one if the result has it under another name or shape."""
        import onnx_ir

        called, tensor = self.tensors[name]
        same = (called, tensor.dtype, tuple(tensor.shape.numpy()))
        if same == (wanted.name, wanted.dtype, tuple(wanted.shape.numpy())):
            return tensor
        proto = onnx_ir.serde.serialize_tensor(wanted)
        _fill(proto, bytes(self.parts[name]))
        return onnx_ir.serde.deserialize_tensor(proto)


def adapted(model: Any, base_dir: Any = None) -> Any:
    """A model of any kind, with one face for all."""
    if isinstance(model, (str, os.PathLike)):
        if base_dir is not None:
            raise OptionError("base_dir is for models in memory; data of a file is looked for beside it")
        return PathModel(model)
    if isinstance(model, (bytes, bytearray, memoryview)):
        return BytesModel(model, base_dir)
    # What is an instance of their classes has imported them.
    onnx, onnx_ir = sys.modules.get("onnx"), sys.modules.get("onnx_ir")
    if onnx is not None and isinstance(model, onnx.ModelProto):
        return ProtoModel(model, base_dir)
    if onnx_ir is not None and isinstance(model, onnx_ir.Model):
        return IrModel(model, base_dir)
    what = f"{type(model).__module__}.{type(model).__qualname__}"
    raise TypeError(f"expected a path, bytes, an onnx.ModelProto or an onnx_ir.Model, not {what}")


def check_free(path: str, overwrite: bool) -> None:
    """A name that follows from the model's is not replaced unasked."""
    if not overwrite and os.path.lexists(path):
        raise FileError(f"cannot write {path}: it is there already; overwrite=True replaces it")
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise MissingFileError(f"cannot write {path}: there is no such folder")


def _copy(message: Any, to: Any, but: str) -> None:
    """Copies all fields of a message but one, whose value is not looked at: to look at bytes is to copy them."""
    for field in message.DESCRIPTOR.fields:
        name = field.name
        if name == but:
            continue
        if hasattr(value := getattr(message, name), "extend"):
            if value:
                getattr(to, name).extend(value)
        elif message.HasField(name):
            if hasattr(value, "CopyFrom"):
                getattr(to, name).CopyFrom(value)
            else:
                setattr(to, name, value)


def _refer(tensor: Any, location: str) -> None:
    tensor.data_location = type(tensor).EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", location


def _location(tensor: Any) -> str:
    """Where the data of a tensor is; nothing if it is in the tensor."""
    if tensor.data_location != type(tensor).EXTERNAL:
        return ""
    return next((str(entry.value) for entry in tensor.external_data if entry.key == "location"), "")


def _fill(tensor: Any, data: Any) -> None:
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")
    tensor.raw_data = data


def _graphs(graph: Any) -> Iterator[Any]:
    """A graph and the bodies in it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for body in [attribute.g, *attribute.graphs] if attribute.HasField("g") else attribute.graphs:
                yield from _graphs(body)


def _initializers(graph: Any) -> Iterator[Any]:
    """Tensors of a graph and the bodies in it, sparse ones included."""
    for each in _graphs(graph):
        yield from each.initializer
        for sparse in each.sparse_initializer:
            yield from (sparse.values, sparse.indices)


def _attribute_tensors(model: Any) -> Iterator[Any]:
    """Tensors in attributes, in bodies and functions too."""
    for graph in _graphs(model.graph):
        yield from _of_nodes(graph.node)
    for function in model.functions:
        yield from _of_nodes(function.node)


def _of_nodes(nodes: Any) -> Iterator[Any]:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            if attribute.HasField("sparse_tensor"):
                yield from (attribute.sparse_tensor.values, attribute.sparse_tensor.indices)


def _memory(tensor: Any) -> Any:
    """The bytes of a tensor of onnx_ir as ``raw_data`` has them, where they lie if that can be; ``None`` for small ones and strings."""
    import numpy
    import onnx_ir

    if tensor is None or tensor.dtype == onnx_ir.DataType.STRING or tensor.nbytes < _SMALLEST:
        return None
    # Elements of less than a byte are packed when they are written.
    if tensor.dtype.itemsize < 1 or sys.byteorder != "little":
        return tensor.tobytes()
    array = numpy.asarray(tensor.numpy())
    if not array.flags.c_contiguous or array.nbytes != tensor.nbytes:
        return tensor.tobytes()
    return array.reshape(-1).view(numpy.uint8)
