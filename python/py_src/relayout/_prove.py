"""``prove``: whether two models are proved to compute the same."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Union

from . import _runtime
from ._errors import MissingFileError, ModelError, OptionError
from ._models import adapted
from ._options import StrPath

#: What a verdict is called, by the word of the command line.
_WORDS = {
    "proved": "PROVED",
    "for_sizes": "PROVED FOR SIZES",
    "with_lemmas": "PROVED WITH LEMMAS",
    "same_up_to_types": "SAME UP TO TYPES",
    "refused": "REFUSED",
    "different": "DIFFERENT",
    "undecided": "UNDECIDED",
}

#: Statuses of the command line with which it says a verdict.
_SAID = (0, 3, 4)


@dataclass(frozen=True)
class Cut:
    """The smallest pair of pieces that is not shown to compute the same."""

    #: The value that both pieces make.
    value: str
    #: Values that both read, and that are the same, by their names in the first model.
    given: list[str]
    #: Their names in the second model, in the same order.
    given_in_result: list[str]
    #: Nodes of the first model, one a line.
    input: list[str]
    #: Nodes of the second one.
    result: list[str]


@dataclass(frozen=True)
class ModelFile:
    """A file that a verdict is about."""

    #: Where it is; of a model in memory a place that is gone.
    path: str
    #: SHA-256 of the file, in hexadecimal.
    sha256: str
    #: SHA-256 of what it keeps in other files, by their places beside it.
    data: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Link:
    """A value of the second model that is a value of the first."""

    #: The value of the second model.
    value: str
    #: The value of the first one.
    of: str
    #: Whether it is one over the reals only.
    by_lemma: bool


@dataclass(frozen=True)
class Reading:
    """How a node is read where the standard and ONNX Runtime differ."""

    #: Whose reading it is.
    of: str
    #: What is read how.
    what: str
    #: The first node that is read so, by its first result.
    at: str
    #: How many nodes are read so.
    nodes: int


@dataclass(frozen=True)
class Verdict:
    """What is known about two models. It is true if they are proved to compute the same."""

    #: ``proved``, ``for_sizes``, ``with_lemmas``, ``same_up_to_types``, ``different`` or ``undecided``; with a proof also ``refused``.
    verdict: str
    #: Claims of a proof that were checked.
    links: int = 0
    #: How often each lemma was used, by name.
    lemmas: Mapping[str, int] = field(default_factory=dict)
    #: The largest relative difference between a constant and the one that a lemma asks for.
    bound: float = 0.0
    #: Sets of sizes that it is about; none if it is about all.
    sizes: list[dict[str, int]] = field(default_factory=list)
    #: The hosts that it is about, if it is not about all.
    hosts: Mapping[str, Any] | None = None
    #: Where the checker stops.
    at: str | None = None
    #: Why it stops there.
    why: str | None = None
    #: What is left to show.
    cut: Cut | None = None
    #: The types of floats of each model, if they are the same up to these.
    types: list[list[str]] | None = None
    #: What a run on random inputs found, if there was one.
    ran: Mapping[str, Any] | None = None
    #: Whose reading nodes have about which the standard and ONNX Runtime disagree: ``onnx`` or ``onnxruntime``.
    reading: str = "onnxruntime"
    #: The readings that it rests on, where the standard and ONNX Runtime differ.
    readings: list[Reading] = field(default_factory=list)
    #: The version of relayout that says so.
    version: str = ""
    #: Both files.
    models: list[ModelFile] = field(default_factory=list)
    #: What both models compute, if that was asked for.
    same: list[Link] | None = None
    #: What is left to show as two models, if that was asked for: their files ``input`` and ``result``, and what a run of them found, ``ran``.
    pieces: Mapping[str, Any] | None = None

    @property
    def holds(self) -> bool:
        """Whether the models are proved to compute the same."""
        return self.verdict in ("proved", "for_sizes", "with_lemmas")

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        words = _WORDS.get(self.verdict, self.verdict)
        if self.verdict == "with_lemmas" and self.sizes:
            words = "PROVED FOR SIZES WITH LEMMAS"
        return words if self.why is None else f"{words}: {self.at}: {self.why}"


def prove(
    a: Union[str, os.PathLike[str], bytes, Any],
    b: Union[str, os.PathLike[str], bytes, Any],
    *,
    proof: StrPath | None = None,
    reading: str = "onnxruntime",
    run: bool = True,
    links: bool = False,
    pieces: StrPath | None = None,
) -> Verdict:
    """Whether two models compute the same, whoever made the second one of the first.

    >>> result = relayout.optimize("tf_unet.onnx", "out.onnx")
    >>> bool(relayout.prove("tf_unet.onnx", "out.onnx"))
    True

    Args:
        a: The model, of any kind that :func:`optimize` takes.
        b: The other one, with the same inputs and outputs.
        proof: The proof that ``optimize(a, b, proof=...)`` wrote. Its claims are checked, and nothing is run.
        reading: Whose reading nodes have about which the standard and ONNX Runtime disagree: ``onnxruntime``, or ``onnx``, of which a node is
            an op by itself where the standard says nothing.
        run: Whether both run on random inputs in ONNX Runtime where they are not proved. Only that can show a difference.
        links: Whether the verdict lists which values of the second model are values of the first.
        pieces: A folder to which what is left to show is written, as two small models of the same inputs, ``input.onnx`` and
            ``result.onnx``, where the models are not proved to compute the same. Not with a proof.

    Raises:
        MissingFileError: There is no such file.
        ModelError: A file can't be read.
        OptionError: There is no such reading, there are a proof and pieces, or this program has no interpreter that could be started.
    """
    if proof is not None and pieces is not None:
        raise OptionError("pieces are written where there is no proof: leave out one of both")
    if reading not in ("onnx", "onnxruntime"):
        raise OptionError(f"reading is onnx or onnxruntime, not {reading!r}")
    with _file_of(a) as first, _file_of(b) as second:
        started = _runtime.command()
        if started is None:
            raise OptionError("prove starts a Python of its own, and this program has none: sys.executable is empty")
        said = ["--proof", os.fspath(proof)] if proof is not None else [] if run else ["--no-run"]
        said += ["--reading", reading, *(["--links"] if links else [])]
        said += ["--pieces", os.fspath(pieces)] if pieces is not None else []
        command = [*started, "prove", first, second, "--format", "json", *said]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode not in _SAID:
        lines = done.stderr.strip().splitlines() or ["the checker ended without a word"]
        raise ModelError(lines[-1].removeprefix("error: "))
    return _read(json.loads(done.stdout))


def _read(said: dict[str, Any]) -> Verdict:
    """A verdict as the command line says it."""
    of = {"cut": Cut, "models": ModelFile, "readings": Reading, "same": Link}

    def made(name: str, value: Any) -> Any:
        kind = of.get(name)
        if kind is None or value is None:
            return value
        return [kind(**entry) for entry in value] if isinstance(value, list) else kind(**value)

    return Verdict(**{name: made(name, value) for name, value in said.items() if name in Verdict.__dataclass_fields__})


@contextmanager
def _file_of(model: Any) -> Iterator[str]:
    """The file of a model; one in memory is written to one."""
    if isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        if not os.path.exists(path):
            raise MissingFileError(f"cannot read {path}: there is no such file")
        yield path
        return
    graph, parts, _ = adapted(model, None).source
    with tempfile.TemporaryDirectory(prefix="relayout") as folder:
        for name, data in {"model.onnx": graph, **parts}.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
        yield os.path.join(folder, "model.onnx")
