"""Runs a bundle: its nodes one after the other, each by one function, or all of them as a CUDA graph."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from runner.bundle import Bundle, Node
from runner.capi import CApi, find_library
from runner.cuda import Kernels
from runner.errors import RunnerError
from runner.moves import Move, by_torch, is_move, kernel_folder, kernel_of
from runner.ops import Op, find_op

_SMALL = 1024
"""Elements of a constant of integers that may be a shape, and is kept on the CPU too."""
_WARM_UPS = 3


@dataclass(frozen=True)
class Step:
    """A node that is ready to run. An operand is the name of a value, or what it is if that is known: a constant or a list of numbers."""

    node: Node
    function: Callable[..., Any]
    operands: tuple[tuple[str, Any], ...]
    """Pairs of a kind and what it says: see `_operand`."""
    last_use: tuple[str, ...]
    """Values that no later step reads."""
    move: bool


class Runner(nn.Module):
    """A bundle as a module: `forward` takes the inputs in their order and gives the outputs.

    Tensors are as stored: an input of layout NHWC is to be given as NHWC. With `moves="torch"` moves are left to torch, for which a
    permutation is a view and the copy a matter of what reads it; that is how a bundle of target `onnx` is the original model in PyTorch.
    With `channels_last` inputs and weights of rank 4 and 5 get that memory format, as PyTorch's documentation advises.
    """

    def __init__(
        self,
        bundle: Bundle,
        device: str = "cpu",
        moves: str = "kernels",
        channels_last: bool = False,
        capi: Path | None = None,
    ) -> None:
        super().__init__()
        self.bundle, self.device, self.channels_last = bundle, torch.device(device), channels_last
        self.moves_run = 0
        """Moves that the last call executed."""
        self.mark: Callable[[Node], AbstractContextManager[object]] | None = None
        """What surrounds each node, for a profile."""
        self._kernel_moves = moves == "kernels"
        self._capi = CApi(capi or find_library()) if self._kernel_moves and self.device.type == "cpu" else None
        self._kernels = Kernels(kernel_folder(bundle.folder)) if self._kernel_moves and self.device.type == "cuda" else None
        self._known: dict[str, Tensor] = dict(bundle.constants)
        self._host = _host_values(bundle)
        nodes = self._fold()
        self._placed: dict[str, Tensor] = {}
        self._steps = self._plan(nodes)
        self._input_names = tuple(value.name for value in bundle.inputs)
        self._output_names = tuple(value.name for value in bundle.outputs)
        for name in self._output_names:
            if name in self._known:
                self._place(name)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The outputs, for inputs on the runner's device."""
        values = dict(zip(self._input_names, inputs))
        count = 0
        for step in self._steps:
            if self.mark is None:
                self._run(step, values)
            else:
                with self.mark(step.node):
                    self._run(step, values)
            count += step.move
        if not torch.compiler.is_compiling():
            self.moves_run = count
        return tuple(values[name] if name in values else self._placed[name] for name in self._output_names)

    def _run(self, step: Step, values: dict[str, Tensor]) -> None:
        try:
            made = step.function(*[self._operand(operand, values) for operand in step.operands])
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            if torch.compiler.is_compiling():
                raise
            raise RunnerError(f"{step.node}: {error}") from error
        made = made if isinstance(made, tuple) else (made,)
        for name, tensor in zip(step.node.outputs, made):
            if name:
                values[name] = tensor
        for name in step.last_use:
            values.pop(name, None)

    def _operand(self, operand: tuple[str, Any], values: Mapping[str, Tensor]) -> Any:
        kind, what = operand
        if kind == "value":
            return values[what]
        if kind == "constant":
            return self._placed[what]
        if kind == "to device":
            return values[what].to(self.device)
        if kind == "to list":
            return values[what].tolist()
        return what

    @property
    def static(self) -> bool:
        """Whether all extents are known, so that nothing has to be asked of the device on the way: what a CUDA graph needs."""
        return not any(kind in ("to list", "to device") for step in self._steps for kind, _ in step.operands)

    def prepare(self, inputs: list[Tensor]) -> list[Tensor]:
        """Inputs on the device, in the memory format of the runner; checked against the shapes and types of the bundle."""
        prepared = []
        for value, x in zip(self.bundle.inputs, inputs, strict=True):
            fits = value.shape is None or (
                len(value.shape) == x.dim()
                and all(not isinstance(want, int) or want == have for want, have in zip(value.shape, x.shape))
            )
            if not fits or x.dtype != value.torch_dtype:
                raise RunnerError(
                    f"input {value.name!r} has to be {value.dtype} {_text(value.shape)}, not {x.dtype} {list(x.shape)}"
                )
            prepared.append(self._formatted(x.to(self.device)))
        return prepared

    def _formatted(self, x: Tensor) -> Tensor:
        formats = {4: torch.channels_last, 5: torch.channels_last_3d}
        if self.channels_last and x.dim() in formats and x.dtype.is_floating_point:
            return x.contiguous(memory_format=formats[x.dim()])
        return x.contiguous()

    def _fold(self) -> list[Node]:
        """Computes, on the CPU, what depends on constants and static extents only; gives the nodes that are left. Moves are left."""
        left = []
        for node in self.bundle.nodes:
            known = all(name is None or name in self._known for name in node.inputs) or self._fold_shape(node)
            if is_move(node) or not known:
                left.append(node)
                continue
            if all(not name or name in self._known for name in node.outputs):
                continue
            found = find_op(node)
            operands = [self._known[name] if name else None for name in node.inputs]
            made = found.function(
                node, *[_host_list(x) if at in found.host and x is not None else x for at, x in enumerate(operands)]
            )
            for name, tensor in zip(node.outputs, made if isinstance(made, tuple) else (made,)):
                if name:
                    self._known[name] = tensor
        return left

    def _fold_shape(self, node: Node) -> bool:
        """Whether the node asks for an extent that is known; then its result is known now."""
        value = self.bundle.values.get(node.inputs[0] or "") if node.op == "Shape" and not node.domain else None
        if value is None or value.static_shape is None:
            return False
        extents = value.static_shape[node.attr("start", 0) : node.attr("end")]
        self._known[node.outputs[0] or ""] = torch.tensor(extents, dtype=torch.int64)
        return True

    def _plan(self, nodes: list[Node]) -> tuple[Step, ...]:
        last: dict[str, int] = {name: at for at, node in enumerate(nodes) for name in node.inputs if name}
        kept = {value.name for value in self.bundle.outputs}
        steps = []
        for at, node in enumerate(nodes):
            move = is_move(node)
            found = self._move_op(node) if move else find_op(node)
            operands = tuple(self._placed_operand(node, found, place, name) for place, name in enumerate(node.inputs))
            done = tuple(
                {name for name in node.inputs if name and last[name] == at and name not in kept and name not in self._known}
            )
            function = found.function if move and self._kernel_moves else partial(found.function, node)
            steps.append(Step(node, function, operands, tuple(sorted(done)), move))
        return tuple(steps)

    def _move_op(self, node: Node) -> Op:
        if not self._kernel_moves:
            return Op(by_torch)
        return Op(Move(node, self._capi, kernel_of(node, self._kernels)))

    def _placed_operand(self, node: Node, found: Op, place: int, name: str | None) -> tuple[str, Any]:
        """How a step gets an operand: decided once, so that running a step asks nothing."""
        on_host = bool(self._host.intersection(o for o in node.outputs if o))
        if not name:
            return ("as is", None)
        if name in self._known:
            x = self._known[name]
            if place in found.host:
                return ("as is", _host_list(x))
            if place in found.scalars and x.dim() == 0:
                return ("as is", x.item())
            if on_host:
                return ("as is", x)
            return ("constant", self._place(name))
        if place in found.host:
            return ("to list", name)
        if name in self._host and not on_host and node.op not in ("Shape", "Size"):
            return ("to device", name)
        return ("value", name)

    def _place(self, name: str) -> str:
        """Puts a constant on the device; gives its name."""
        if name not in self._placed:
            self._placed[name] = self._formatted(self._known[name].to(self.device))
        return name


def _host_values(bundle: Bundle) -> set[str]:
    """Values that are computed on the CPU: extents, and what depends on nothing but extents and small integers."""
    host: set[str] = set()
    small = {name for name, x in bundle.constants.items() if not x.dtype.is_floating_point and x.numel() <= _SMALL}
    for node in bundle.nodes:
        if node.op == "Constant":
            small.update(name for name in node.outputs if name)
        inputs = {name for name in node.inputs if name}
        if node.domain == "" and (node.op in ("Shape", "Size") or (inputs & host and inputs <= host | small)):
            host.update(name for name in node.outputs if name)
    return host


def _host_list(x: Tensor) -> Any:
    return x.tolist()


def _text(shape: tuple[int | str | None, ...] | None) -> str:
    return "[" + ", ".join("?" if extent is None else str(extent) for extent in shape or ()) + "]"


class CudaGraph:
    """A runner's whole forward pass, captured once and replayed: no call of Python or of a library stands between its kernels."""

    def __init__(self, forward: Callable[..., tuple[Tensor, ...]], inputs: list[Tensor]) -> None:
        # The graph reads weights by their addresses, and does not keep them alive.
        self._forward = forward
        self._inputs = [x.clone() for x in inputs]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side), torch.no_grad():
            for _ in range(_WARM_UPS):
                forward(*self._inputs)
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph), torch.no_grad():
            self._outputs = forward(*self._inputs)

    def replay(self) -> tuple[Tensor, ...]:
        """Runs on the inputs that are there; the outputs are overwritten by the next call."""
        self._graph.replay()
        return self._outputs

    def __call__(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Runs on these inputs."""
        for mine, given in zip(self._inputs, inputs, strict=True):
            mine.copy_(given)
        return self.replay()


def execute(runner: Runner, inputs: list[Tensor], graph: bool = True) -> tuple[Tensor, ...]:
    """The outputs for inputs in the form that `Runner.prepare` gives, by a CUDA graph on a GPU unless extents are only known at run time.

    Fails with `RunnerError` if not as many moves were executed as the manifest counts.
    """
    with torch.no_grad():
        outputs = runner(*inputs)
        if runner.moves_run != runner.bundle.moves:
            raise RunnerError(
                f"{runner.moves_run} moves were executed, but the manifest of {runner.bundle.folder} counts {runner.bundle.moves}; "
                "the bundle and the runner disagree on what is a move"
            )
        if graph and runner.device.type == "cuda":
            if runner.static:
                outputs = CudaGraph(runner, inputs)(*inputs)
            else:
                print("runner: extents are computed at run time, so nothing is captured as a CUDA graph", file=sys.stderr)
    return outputs
