"""``sweep``: finds models, sees which are done, lets workers do the others, and writes the tables."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from .._errors import OptionError
from .._options import Dims, Numerics, StrPath, sizes
from .._relayout import __version__
from ._find import Found, find, unchanged
from ._limits import Limits
from ._store import Store
from ._tables import write_html, write_parquet
from ._workers import LocalWorker, Task, Worker, run_all

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Summary:
    """What a sweep found. Prints as a sentence or two."""

    models: int = 0
    """How many models there are."""
    reused: int = 0
    """How many of them had a result before."""
    improved: int = 0
    """How many changed."""
    unchanged: int = 0
    """How many could not be improved."""
    moves_before: int = 0
    """Moves of all models that have a result."""
    moves_after: int = 0
    """Moves that their results have."""
    bytes_before: int = 0
    """Bytes that these moves write in one run of each model."""
    bytes_after: int = 0
    """The same of the results."""
    failures: list[tuple[str, str]] = field(default_factory=list)
    """Models without a result, and why."""
    output: str = ""
    """The folder of the results."""

    def add(self, model: str, answer: dict[str, Any]) -> None:
        """Counts a model."""
        self.models += 1
        if answer["status"] != "ok":
            self.failures.append((model, answer["message"]))
            return
        self.improved += answer["changed"]
        self.unchanged += not answer["changed"]
        for name in ("moves_before", "moves_after", "bytes_before", "bytes_after"):
            setattr(self, name, getattr(self, name) + answer[name])

    def __str__(self) -> str:
        models = "1 model" if self.models == 1 else f"{self.models} models"
        counts = f"{models}: {self.improved} improved, {self.unchanged} unchanged, {len(self.failures)} failed"
        before, after = (f"{n / 1e6:.1f} MB" for n in (self.bytes_before, self.bytes_after))
        reused = f"; {self.reused} had a result before" if self.reused else ""
        return f"{counts}{reused}. Moves {self.moves_before} -> {self.moves_after}, bytes moved {before} -> {after}."


def sweep(
    models: StrPath | Iterable[StrPath],
    output: StrPath,
    *,
    target: StrPath = "onnx",
    dims: Dims | None = None,
    numerics: Numerics = "reassociate",
    verify: bool = False,
    time: bool = False,
    write_models: bool = True,
    jobs: int | None = None,
    ray: str | None = None,
    limits: Limits | None = None,
    again_failed: bool = False,
    progress: bool = False,
) -> Summary:
    """Optimizes many models, each in a process of its own, and writes tables of what was gained.

    What has a result in the folder is not done again, unless the model, the options or the version of relayout changed. A model whose size
    and time of change are the same is taken to be the same; where they differ, a digest tells. So a sweep that ended early, for whatever
    reason, is gone on with by the same call.

    >>> from relayout.sweep import sweep
    >>> print(sweep("tf_unet.onnx", "out"))
    1 model: 1 improved, 0 unchanged, 0 failed. Moves 36 -> 2, bytes moved 71.1 MB -> 1.2 MB.
    >>> sweep("tf_unet.onnx", "out").reused
    1

    Args:
        models: Files, folders, globs such as ``"models/**/*.onnx"``, and URLs of fsspec such as ``"s3://hub/models"``.
        output: The folder of results: ``models/``, ``results.parquet``, ``results.html`` and ``results.sqlite``.
        target: As of :func:`relayout.optimize`, and so are ``dims`` and ``numerics``. ``dims`` are for the models that have such symbols.
        verify: Whether each model and its result run in ONNX Runtime and are compared. A result that differs is a failure.
        time: Whether both are timed in ONNX Runtime, on one thread, side by side.
        write_models: Whether optimized models are written. Without them only the tables are.
        jobs: How many models at the same time; by default one for each CPU.
        ray: The address of a Ray cluster, or ``"local"`` for one on this machine. Its machines must see the folders of models and results.
        limits: What one model may take.
        again_failed: Whether models that failed before are tried again.
        progress: Whether to show a bar of tqdm.

    Returns:
        What was found, of all models that there are, done now or before.

    Raises:
        Error: No models are found, two have the same name, an option can't be, or the folder can't be written to. What is wrong with single
            models is in :attr:`Summary.failures`.
    """
    if time and not write_models:
        raise OptionError("time=True needs the optimized models; leave out write_models=False")
    if jobs is not None and jobs < 1:
        raise OptionError(f"jobs: expected a number of at least 1, not {jobs}")
    folder = os.path.abspath(os.fspath(output))
    found = find(_specs(models), folder)
    if ray is not None and any(each.url.startswith("memory:") for each in found):
        raise OptionError("files of memory:// are in this process alone; workers of Ray can't read them")
    settings = _settings(target, dims, numerics, verify, time, write_models)
    with closing(Store(folder)) as store:
        run = _Run(found, folder, settings, limits or Limits(), store, again_failed)
        run.carry_out(jobs, ray, progress)
        return run.tables()


def _specs(models: StrPath | Iterable[StrPath]) -> list[str]:
    if isinstance(models, (str, os.PathLike)):
        models = [models]
    return [os.fspath(each) for each in models]


def _settings(target: StrPath, dims: Dims | None, numerics: str, verify: bool, time: bool, write_models: bool) -> dict[str, Any]:
    """The options on which results depend, as JSON takes them. Options that can't be are refused here, and not once for each model."""
    from .._look import targets

    is_file = not isinstance(target, str)
    if not is_file and target not in (names := [each.name for each in targets()]):
        raise OptionError(f"there is no target {target!r}; there are {', '.join(names)}, and files as a pathlib.Path")
    if numerics not in ("exact", "reassociate"):
        raise OptionError(f"numerics: {numerics!r} is neither 'exact' nor 'reassociate'")
    digest = None
    if is_file:
        with open(target, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
    return {
        "target": os.path.abspath(target) if is_file else target,
        "target_sha256": digest,
        "dims": dict(sizes(dims)),
        "numerics": numerics,
        "verify": verify,
        "time": time,
        "write_models": write_models,
        "relayout": __version__,
    }


class _Run:
    """One call of :func:`sweep`."""

    def __init__(
        self, found: list[Found], folder: str, settings: dict[str, Any], limits: Limits, store: Store, again_failed: bool
    ) -> None:
        self.found, self.folder, self.limits, self.store = found, folder, limits, store
        self.settings, self.key = settings, json.dumps(settings, sort_keys=True)
        self.again_failed = again_failed
        self.reused = 0

    def output(self, found: Found) -> str | None:
        """Where the result of a model goes."""
        return os.path.join(self.folder, "models", *found.name.split("/")) if self.settings["write_models"] else None

    def known(self, found: Found) -> dict[str, Any] | None:
        """The answer from before, if it was made with the same options and its file is there."""
        known = self.store.get(found.name)
        if known is None or known[0] != self.key or known[1]["source"] != found.url:
            return None
        answer = known[1]
        if answer["status"] != "ok":
            return None if self.again_failed else answer
        output = self.output(found)
        return answer if output is None or _bytes(output) == answer["output_bytes"] else None

    def left(self) -> list[tuple[Found, str | None]]:
        """What is not done, with the digest of the files that an answer was made from."""
        left = []
        for each in self.found:
            known = self.known(each)
            # What failed early was seen, and not digested.
            files = known.get("files") or [known["seen"]] if known else []
            if not unchanged(each, files):
                left.append((each, known["sha256"] if known and "sha256" in known else None))
        return left

    def task(self, found: Found, digest: str | None, share: int | None) -> Task:
        """What a worker is told."""
        return {
            "do": "optimize",
            "name": found.name,
            "path": found.url,
            "output": self.output(found),
            "settings": self.settings,
            "limits": {**asdict(self.limits), "share": share},
            "files": [],
            "known": digest,
        }

    def carry_out(self, jobs: int | None, ray: str | None, progress: bool) -> None:
        """Lets workers do what is left. Each answer is written when it comes."""
        left = self.left()
        self.reused = len(self.found) - len(left)
        count = min(jobs or os.cpu_count() or 1, len(left))
        by_name = {found.name: found for found, _ in left}
        tasks = (self.task(found, digest, None if ray else count) for found, digest in left)
        with _bar(progress, len(self.found), self.reused) as bar, _workers(jobs, ray, count) as workers:
            for task, answer in run_all(tasks, workers, self.limits.retries):
                self.keep(by_name[task["name"]], answer)
                bar.update()

    def keep(self, found: Found, answer: dict[str, Any]) -> None:
        """Writes an answer."""
        if answer["status"] == "same":
            self.reused += 1
            known = self.store.get(found.name)
            assert known is not None, "a worker was told of a digest"
            answer = {**known[1], "files": answer["files"]}
        output = self.output(found)
        if answer["status"] == "ok" and output is not None:
            answer["output"], answer["output_bytes"] = output, _bytes(output)
        answer |= {"source": found.url, "seen": found.seen, "target": self.settings["target"], "relayout": __version__}
        self.store.put(found.name, self.key, answer)

    def tables(self) -> Summary:
        """Writes the tables of all models, and sums them up."""
        summary = Summary(reused=self.reused, output=self.folder)
        names = [each.name for each in self.found]
        for name, answer in self.store.answers(names):
            summary.add(name, answer)
        rows = ({"model": name, **answer} for name, answer in self.store.answers(names))
        write_parquet(os.path.join(self.folder, "results.parquet"), rows)
        rows = ({"model": name, **answer} for name, answer in self.store.answers(names))
        write_html(os.path.join(self.folder, "results.html"), str(summary), rows)
        return summary


def _bytes(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


@contextmanager
def _workers(jobs: int | None, ray: str | None, local: int) -> Iterator[list[Worker]]:
    """The workers of a sweep; none if there is nothing to do."""
    if ray is not None and local > 0:
        from ._ray import cluster

        with cluster(ray, jobs) as workers:
            yield workers
    else:
        yield [LocalWorker(max((os.cpu_count() or 1) // local, 1)) for _ in range(local)]


@contextmanager
def _bar(progress: bool, total: int, done: int) -> Iterator[Any]:
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError("a sweep needs tqdm: pip install tqdm") from error
    with tqdm(total=total, initial=done, unit="model", desc="relayout sweep", dynamic_ncols=True, disable=not progress) as bar:
        yield bar
