"""Models: files, folders, globs, and URLs of file systems that fsspec knows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .._errors import FileError, MissingFileError, OptionError

#: A file as it was seen: its name beside the model, bytes, and a text that changes when the file does.
Seen = tuple[str, int, str]
#: Bytes and time of change of a file that is not there.
MISSING = (-1, "")


@dataclass(frozen=True)
class Found:
    """A model that was found."""

    name: str
    """Its path below the folder, or below the part of a glob before the first wildcard. No two have the same."""
    url: str
    """Where it is: a path for local files."""
    seen: Seen
    """Its file."""

    @property
    def is_local(self) -> bool:
        return "://" not in self.url


def find(models: Iterable[str], without: str) -> list[Found]:
    """Every model below the folders, of the globs, and the files that are named, sorted by name.

    Args:
        models: Paths, globs or URLs.
        without: A local folder that is left out: that of the results.
    """
    names: dict[str, Found] = {}
    inside = os.path.join(os.path.abspath(without), "")
    for spec in models:
        count = len(names)
        for found in _of(spec):
            if found.url.startswith(inside):
                continue
            other = names.setdefault(found.name, found)
            if other.url != found.url:
                raise OptionError(f"{other.url} and {found.url} have the same name; sweep them into two folders")
        if len(names) == count and not any(True for _ in _of(spec)):
            raise MissingFileError(f"no model found: {spec} has no file *.onnx")
    return [names[name] for name in sorted(names)]


def _of(spec: str) -> Iterator[Found]:
    system, path = file_system(spec)
    if any(c in path for c in "*?["):
        entries = system.glob(path, detail=True)
        root = _above_wildcards(path)
    elif system.isdir(path):
        entries, root = system.find(path, detail=True), path
    elif system.exists(path):
        entries, root = {path: system.info(path)}, path.rpartition("/")[0]
    else:
        raise MissingFileError(f"cannot read {spec}: there is no such file or folder")
    for place, entry in entries.items():
        info = _behind_link(system, place, entry)
        if info["type"] == "file" and place.endswith(".onnx"):
            name = place[len(root) :].lstrip("/") if place.startswith(root) else place.rpartition("/")[2]
            yield Found(name, _url(system, place), look(system, place, info))


def _behind_link(system: Any, path: str, info: dict[str, Any]) -> dict[str, Any]:
    """What a link leads to, in place of the link. One that leads nowhere is a file that can't be read, and is listed as that."""
    if not info.get("islink"):
        return info
    try:
        return dict(system.info(path))
    except OSError:
        return {"type": "file", "size": 0}


def _above_wildcards(path: str) -> str:
    """The folders of a glob before the first wildcard."""
    first = min(path.index(c) for c in "*?[" if c in path)
    return path[:first].rpartition("/")[0]


def file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL or path, and the path in it."""
    try:
        import fsspec.core
    except ImportError as error:
        raise ImportError("a sweep needs fsspec: pip install fsspec") from error
    try:
        system, path = fsspec.core.url_to_fs(url)
    except (ValueError, ImportError) as error:
        raise FileError(f"cannot read {url}: {error}") from error
    return system, path


def _url(system: Any, path: str) -> str:
    from fsspec.implementations.local import LocalFileSystem

    return path if isinstance(system, LocalFileSystem) else str(system.unstrip_protocol(path))


def look(system: Any, path: str, info: dict[str, Any] | None = None) -> Seen:
    """A file as it is now."""
    try:
        info = info or system.info(path)
    except OSError as error:
        raise FileError(f"cannot read {path}: {error}") from error
    # What changes with the file has another name in each file system. Where there is nothing, a digest tells.
    keys = ("mtime", "ETag", "etag", "LastModified", "last_modified", "updated", "md5Hash", "created")
    changed = next((str(info[key]) for key in keys if info.get(key)), "")
    return path.rpartition("/")[2], int(info["size"] or 0), changed


def unchanged(found: Found, files: list[Seen]) -> bool:
    """Whether the model, and the files of its data, are as they were seen before."""
    if not files or tuple(files[0]) != found.seen or not found.seen[2]:
        return False
    system, path = file_system(found.url)
    folder = path.rpartition("/")[0]
    return all(_now(system, f"{folder}/{name}") == (size, changed) for name, size, changed in files[1:])


def _now(system: Any, path: str) -> tuple[int, str]:
    try:
        return look(system, path)[1:]
    except FileError:
        return MISSING
