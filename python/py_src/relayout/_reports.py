"""What the functions say of a model: frozen dataclasses with the fields of the JSON forms, which print as the command line does.

Times are in nanoseconds, sizes in bytes, both for one run of the model at the sizes that symbolic dims were priced at.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, TypeVar

T = TypeVar("T")

#: Fields that have other names in JSON.
_RENAMED = {"from_": "from", "audited": "list"}


@dataclass(frozen=True)
class Traffic:
    """Nodes that move data, and what they write."""

    nodes: int
    """How many."""
    bytes: int
    """Bytes written."""


@dataclass(frozen=True)
class Way:
    """A way to be rid of a move."""

    what: str
    """What would have to be."""
    missing: str | None = None
    """Why it can't be; ``None`` if it can."""
    more_ns: int | None = None
    """What it costs beyond what was decided; below 0 it would be cheaper."""
    more_bytes: int | None = None
    """Bytes moved beyond those of what was decided."""


@dataclass(frozen=True)
class Move:
    """A move that is left."""

    value: str
    """The value that is moved."""
    producer: str
    """The node that makes it."""
    from_: str
    """The layout that the producer leaves."""
    to: str
    """The layout that is wanted."""
    bytes: int
    """Bytes written."""
    readers: list[str]
    """Nodes that read the moved value."""
    why: str
    """Why the two sides differ."""
    cost_ns: int | None = None
    """What it costs, if that was asked for."""
    ways: list[Way] = field(default_factory=list)
    """What it would take for it to go, if that was asked for."""


@dataclass(frozen=True)
class Opaque:
    """An op through which no layout passes."""

    node: str
    """The node."""
    why: str
    """The reason."""


@dataclass(frozen=True)
class GraphReport:
    """What was done in a graph: the main one, or a body of If, Loop or Scan."""

    path: str
    """Where it is: empty for the main graph."""
    weight: int
    """How often it is taken to run in each run of the model."""
    before: Traffic
    """Its Transposes."""
    moves: list[Move]
    """Moves that are left."""
    folded: int
    """Constants that are stored in another layout."""
    rewrites: dict[str, int]
    """Nodes that rules removed, or tensors that they wrote in another form, by rule."""
    opaque: list[Opaque]
    """Ops through which no layout passes."""


@dataclass(frozen=True)
class Solve:
    """How a decision was found."""

    variables: int
    """Nodes that had more than one choice."""
    candidates: int
    """Layouts of values that were chosen among."""
    capped: int
    """Values or nodes with more candidates than are considered."""
    cost_ns: int
    """Cost of the decision."""
    bound_ns: int
    """What no decision among the candidates can undercut."""
    optimal: bool
    """Cost and bound are the same."""
    choices: int
    """Choices of nodes and borders."""
    merged: int
    """Variables that another one stands for."""
    pinned: int
    """Variables that were settled before any solver."""
    variables_left: int
    """Variables that were left for the solvers."""
    states_left: int
    """States that these had left."""
    methods: dict[str, int]
    """How many parts were solved in each way."""


@dataclass(frozen=True)
class Io:
    """An input or output that is stored otherwise than in the model that the result was made from."""

    end: Literal["input", "output"]
    """Which side."""
    name: str
    """Its name."""
    from_: str
    """Letters of the axes of the original."""
    to: str
    """The layout, in these letters."""
    chosen: bool = False
    """Whether the order was free, and the optimizer chose it."""


@dataclass(frozen=True)
class PricedSize:
    """The size that a dim of an input was priced at, and where it comes from."""

    name: str
    """The dim: its symbol, or ``INPUT.AXIS`` where it has none."""
    size: int
    """Its size."""
    source: Literal["given", "node", "assumed"] | str
    """Whether the caller said it, a node of the model asks for it, or nothing says it."""
    why: str | None = None
    """The node that asks for it."""


@dataclass(frozen=True)
class FileSize:
    """Bytes of a model and of its result, data beside them included."""

    before: int
    """Of the model."""
    after: int
    """Of the result."""
    filled: int = 0
    """Of these, zeros that fill channels up to whole blocks."""


@dataclass(frozen=True)
class OnDevice:
    """Transposes on a device."""

    transposes: int
    """How many there are."""
    elements: int
    """Elements that they write in each run."""
    refused: int
    """How many of them have more axes than the device takes, or longer ones."""


@dataclass(frozen=True)
class OtherSession:
    """What the device runs of the best file for sessions with another option."""

    session: str
    """The option."""
    moves: OnDevice
    """Of its Transposes."""
    predicted_ns: int
    """What its moves cost in each run, those within kernels too."""


@dataclass(frozen=True)
class Device:
    """What the device of an execution provider runs of a model and of its result, as it is predicted."""

    before: OnDevice
    """Of the model."""
    after: OnDevice
    """Of the result."""
    session: str | None = None
    """The option of ONNX Runtime's sessions that the result is for, where one decides how the provider runs."""
    predicted_ns: int | None = None
    """What moves of the result cost there in each run, those within kernels too, where files for other sessions were looked at."""
    instead: OtherSession | None = None
    """A file for sessions with another option, whose moves cost no less."""


@dataclass(frozen=True)
class Proof:
    """What the checker said of a result. It shares no code with the optimizer."""

    proved: bool
    """Whether the result is proved."""
    brief: str
    """In a few words: ``proved for all sizes``, or ``UNPROVED``."""
    verdict: str
    """The verdict in full, as ``relayout prove`` has it."""
    why: str | None = None
    """What is not shown, and why not."""


@dataclass(frozen=True)
class Fitting:
    """What was chosen for a machine by what is there."""

    target: str
    """The target."""
    why: list[str]
    """A sentence for each choice."""
    block: int | None = None
    """Channels of a block, for ``ort-cpu``."""
    machine: str | None = None
    """The kind of machine whose built-in costs count, for ``ort-cpu``."""
    threads: int | None = None
    """Threads that costs are those of, for ``ort-cpu``."""
    provider: str | None = None
    """The execution provider, for ``ort-nhwc``."""
    runtime: str | None = None
    """The version of ONNX Runtime that files are for, for ``ort-cpu``."""


@dataclass(frozen=True)
class Report:
    """What :func:`relayout.optimize` did. Prints as ``relayout optimize`` does."""

    schema: int
    """Version of the JSON form."""
    target: str
    """What the model was optimized for."""
    cost_source: str
    """Where the costs of the target come from."""
    changed: bool
    """Whether the model changed."""
    settled: bool
    """Whether the model was made for this target before, so that nothing was decided."""
    io: list[Io]
    """Inputs and outputs that are stored otherwise than before."""
    hints: dict[str, int]
    """Sizes that symbolic dims were priced at."""
    before: Traffic
    """Transposes of the input."""
    after: Traffic
    """Moves that are left."""
    folded: int
    """Constants that are stored otherwise than before."""
    solve: Solve
    """How the decision was found."""
    rewrites: dict[str, int]
    """Nodes that rules removed, or tensors that they wrote in another form, by rule."""
    graphs: list[GraphReport]
    """The main graph, then bodies."""
    notes: list[str]
    """What else one should know."""
    summary: str = field(repr=False)
    """What was gained, or why nothing was, in a sentence."""
    explanation: str = field(repr=False)
    """The moves before, the moves after, and why each move that is left is left."""
    json: str = field(repr=False, compare=False)
    """The report as ``--format json`` of the command line has it."""
    sizes: list[PricedSize] = field(default_factory=list)
    """Where the sizes come from that symbolic dims were priced at."""
    remarks: list[str] = field(default_factory=list)
    """What the target says of the model whatever is decided."""
    file: FileSize | None = None
    """How large the files are, if the model changed."""
    proof: Proof | None = None
    """Whether the result is proved to compute what the model computes; ``None`` if nothing changed, or nobody looked."""
    for_this_machine: Fitting | None = None
    """What was chosen for this machine and why, if that was asked for."""
    device: Device | None = None
    """What the device runs, if the target is for an execution provider and the model changed."""

    @property
    def moves(self) -> list[Move]:
        """Every move that is left, in all graphs."""
        return [move for graph in self.graphs for move in graph.moves]

    def __str__(self) -> str:
        return self.summary


@dataclass(frozen=True)
class Explanation(Report):
    """What :func:`relayout.explain` says. Prints as ``relayout explain`` does."""

    def __str__(self) -> str:
        return self.explanation


@dataclass(frozen=True)
class AuditedMove(Move):
    """A move of a model that is audited."""

    path: str = ""
    """Where it is: empty for the main graph."""
    fate: Literal["goes", "folds", "rewritten", "stays"] | str = "stays"
    """What becomes of it in the best decision: it goes; what it moves is a constant; it goes where nodes are rewritten; it stays."""


@dataclass(frozen=True)
class Audit:
    """What :func:`relayout.audit` says. Prints as ``relayout audit`` does."""

    schema: int
    """Version of the JSON form."""
    target: str
    """What it was audited for."""
    cost_source: str
    """Where the costs of the target come from."""
    hints: dict[str, int]
    """Sizes that symbolic dims were priced at."""
    moves: Traffic
    """The moves of the model."""
    moves_ns: int
    """What they cost together."""
    predicted_ns: int | None
    """The cost of the model as it is; ``None`` if the target has no price for something in it."""
    floor_ns: int
    """What no decision can undercut."""
    best_ns: int
    """The cost of the best decision that was found."""
    best: Traffic
    """Its moves."""
    optimized: Traffic
    """The moves that :func:`relayout.optimize` would leave."""
    solve: Solve
    """How the decision was found."""
    audited: list[AuditedMove]
    """Each move of the model, in its order."""
    notes: list[str]
    """What else one should know."""
    explanation: str = field(repr=False)
    """All of it, for people."""
    json: str = field(repr=False, compare=False)
    """The audit as ``--format json`` of the command line has it."""

    @property
    def excess_percent(self) -> float | None:
        """How far the predicted cost lies above the floor, in percent of the floor; ``None`` if there is no prediction."""
        if self.predicted_ns is None:
            return None
        more = max(self.predicted_ns - self.floor_ns, 0)
        if more == 0:
            return 0.0
        return more * 100.0 / self.floor_ns if self.floor_ns else float("inf")

    def __str__(self) -> str:
        return self.explanation


@dataclass(frozen=True)
class Why:
    """What :func:`relayout.why` says of a value. Prints as ``relayout explain --why`` does."""

    target: str
    """What was decided for."""
    cost_source: str
    """Where the costs of the target come from."""
    solve: Solve
    """How the decision was found."""
    values: list[Any]
    """For each graph that has the value: its place, and what is known of the value there."""
    explanation: str = field(repr=False)
    """All of it, for people."""
    json: str = field(repr=False, compare=False)
    """The same as ``--format json`` of the command line has it."""

    def __str__(self) -> str:
        return self.explanation


@dataclass(frozen=True)
class Plan:
    """What to do with each value and node of a model. Values are called by their names, nodes by their place in ``graph.node``.

    docs/python.md says what each entry has.
    """

    schema: int
    """Version of the JSON form."""
    target: str
    """What was decided for."""
    changed: bool
    """Whether there is anything to do."""
    values: list[dict[str, Any]]
    """How each value lies: ``value``, ``layout`` and ``shape``."""
    nodes: list[dict[str, Any]]
    """What becomes of each node, in an order in which they can run: ``node``, ``action``, ``operands``, ``attributes``, …"""
    relayouts: list[dict[str, Any]]
    """Copies of values in other layouts: ``value``, ``from``, ``to``, ``users``, …"""
    constants: list[dict[str, Any]]
    """Constants that are stored otherwise: ``value``, ``to``, ``shape``, ``users``, …"""
    outputs: list[dict[str, Any]]
    """The outputs of the graph: ``value`` and ``layout``."""
    summary: str = field(repr=False)
    """What is gained, in a sentence."""
    json: str = field(repr=False, compare=False)
    """The plan as JSON."""

    def __str__(self) -> str:
        return self.summary


@dataclass(frozen=True)
class Difference:
    """An input, or an order of names, that two models do not share."""

    what: str
    """What differs."""
    a: str | None
    """What the first model has; ``None`` if it lacks it."""
    b: str | None
    """What the second model has; ``None`` if it lacks it."""


@dataclass(frozen=True)
class OutputComparison:
    """An output of two models, the worst over all rounds."""

    name: str
    """Its name."""
    element_type: str
    """The type of its elements."""
    shape: list[int]
    """Its shape."""
    mismatch: str | None
    """Why the errors say nothing: types or shapes differ, or NaN and infinity stand in different places."""
    exact: bool
    """Whether all elements were equal."""
    differing: int
    """How many elements differ."""
    rms: float
    """Root mean square of the error over that of the first model."""
    largest_absolute: float
    """The largest error."""
    largest_relative: float
    """The largest error over the largest magnitude of the first model."""
    worst_at: list[int] | None
    """The index of the largest error."""
    answer: str
    """``equal``, ``near`` (within the noise of the first model), ``differs`` or ``not-compared``."""
    why: str | None
    """What differs, or why it was not compared."""


@dataclass(frozen=True)
class Comparison:
    """What :func:`relayout.verify` found. True if the second model computes what the first does, within the tolerance.

    Prints as ``relayout verify`` does.
    """

    rounds: int
    """On how many inputs the models ran; 0 if the second does not take the inputs of the first."""
    exact: bool
    """Whether all outputs were equal."""
    rms: float
    """The worst ``rms`` of the outputs."""
    largest_absolute: float
    """The worst ``largest_absolute`` of the outputs."""
    largest_relative: float
    """The worst ``largest_relative`` of the outputs."""
    differences: list[Difference]
    """Where inputs and outputs of the models differ."""
    outputs: list[OutputComparison]
    """The outputs."""
    answer: str
    """The worst of the outputs' answers; ``differs`` if the models do not take the same inputs."""
    inputs: list[str]
    """The sets of inputs."""
    notes: list[str]
    """What else is to know, such as that the first model does not load as ONNX Runtime rewrites it."""
    holds: bool
    """Whether the second model can stand for the first, and all of it was compared."""
    explanation: str = field(repr=False)
    """A line for each difference and each output."""
    json: str = field(repr=False, compare=False)
    """The comparison as ``--format json`` of the command line has it."""

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        return self.explanation


@dataclass(frozen=True)
class Times:
    """How a model and its result ran in turns. A ratio is a time of the model over a time of the result."""

    before_ms: float
    """The median of the model, in milliseconds."""
    before_between_ms: list[float]
    """Between these lies the middle half of the model's runs."""
    after_ms: float
    """The median of the result, in milliseconds."""
    after_between_ms: list[float]
    """Between these lies the middle half of the result's runs."""
    ratio: float
    """The median of the ratios of the rounds."""
    ratio_between: list[float]
    """The 95 % interval of that median."""
    control_between: list[float]
    """The same interval for the model beside itself."""
    pairs: int
    """Rounds."""


@dataclass(frozen=True)
class Candidate:
    """How a file ran on a device, in turns with the others among which one was chosen."""

    session: str | None
    """The option of its sessions, where one decides how the execution provider runs."""
    optimized: bool
    """Whether it is a result, and not the model itself."""
    ms: float | None
    """The median, in milliseconds; ``None`` if it left something else than the model does on the CPU."""


@dataclass(frozen=True)
class Tuned:
    """What was measured to tune a model. Prints as ``relayout optimize --tune`` does."""

    timed: int
    """Kernels and moves that were timed now."""
    known: int
    """Those that the cache knew."""
    untimed: int
    """Those that can't be timed by themselves."""
    left: int
    """Those for which there was no time."""
    least_gain: int
    """Percent of its cost that what changes together had to gain to be kept."""
    slower: bool
    """Whether all results that were tried ran slower than the model, which then stays as it was."""
    threads: int
    """Threads per op."""
    runtime: str
    """The runtime and its version."""
    provider: str | None
    """The library of the execution provider that ran both, or its name and its device, and what it was told; ``None`` for the CPU's."""
    cache: str | None
    """Where times are kept."""
    times: Times | None
    """How both ran; ``None`` where the result is the model itself."""
    session: str | None
    """The option of the sessions in which the result ran, where one decides how an execution provider runs."""
    candidates: list[Candidate]
    """All files that ran on a device in turns, before the two of ``times`` did."""
    explanation: str = field(repr=False)
    """All that in a sentence."""
    json: str = field(repr=False, compare=False)
    """The same as ``--format json`` of the command line has it."""

    def __str__(self) -> str:
        return self.explanation


@dataclass(frozen=True)
class Target:
    """What a model can be optimized for."""

    name: str
    """Its name."""
    about: str
    """What it is for."""
    layouts: str
    """Which layouts it has."""
    dialect: str
    """What its files hold."""
    costs: str
    """Where its costs come from."""


def read(cls: type[T], text: str, **more: object) -> T:
    """A report from its JSON, and what is not in it."""
    report: T = _built(cls, {**json.loads(text), "json": text, **more})
    return report


def read_targets(text: str) -> list[Target]:
    """Targets from their JSON."""
    return [_built(Target, entry) for entry in json.loads(text)]


def _built(cls: Any, data: dict[str, Any]) -> Any:
    given = {}
    for name, form in _fields(cls).items():
        key = _RENAMED.get(name, name)
        # Fields of later versions are left out, and those that may be absent have a default.
        if key in data:
            given[name] = _formed(form, data[key])
    return cls(**given)


@cache
def _fields(cls: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls)}


def _formed(form: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(form) and isinstance(form, type):
        return _built(form, value)
    if isinstance(form, types.UnionType) and isinstance(value, dict):
        (record,) = filter(dataclasses.is_dataclass, typing.get_args(form))
        return _built(record, value)
    if typing.get_origin(form) is list and isinstance(value, list):
        (item,) = typing.get_args(form)
        return [_formed(item, one) for one in value]
    return value
