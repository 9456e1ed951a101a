"""Models of file systems that are not local are copied to a temporary folder, with the files of their data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .._errors import FileError
from ._find import Seen, file_system, look


@contextmanager
def local_copy(url: str, data_of: Callable[[str], list[str]]) -> Iterator[tuple[str, list[Seen]]]:
    """A local copy of a model, which is removed in the end, and the files as they were when they were copied.

    Args:
        url: The model.
        data_of: Says which files have the data of a local model.
    """
    import tempfile

    system, path = file_system(url)
    there = path.rpartition("/")[0]
    with tempfile.TemporaryDirectory(prefix="relayout-sweep-") as folder:
        name = path.rpartition("/")[2]
        seen = [look(system, path)]
        copy = _fetched(system, path, _below(folder, name))
        for part in data_of(copy):
            to = _below(folder, part)
            _, size, changed = look(system, f"{there}/{part}")
            seen.append((part, size, changed))
            _fetched(system, f"{there}/{part}", to)
        yield copy, seen


def _below(folder: str, name: str) -> str:
    path = os.path.normpath(os.path.join(folder, name))
    if not path.startswith(os.path.join(folder, "")):
        raise FileError(f"cannot read {name}: data outside of the folder of its model is refused")
    return path


def _fetched(system: Any, path: str, to: str) -> str:
    os.makedirs(os.path.dirname(to), exist_ok=True)
    try:
        system.get_file(path, to)
    except OSError as error:
        raise FileError(f"cannot read {path}: {error}") from error
    return to
