"""Paths of a bundle. A bundle comes from a stranger: no name in it leads out of its folder, and no link in it is followed."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath

from runner.errors import RunnerError


def inside(folder: Path, name: object) -> Path:
    """The file of this name, which is relative to the folder with `/` between its parts.

    Fails with `RunnerError` if the name leaves the folder or has more than one spelling, if the file or a folder on the way to it is a
    link, and if it is not there or is no file. The folder itself may be a link: it is what the user named.
    """
    parts = name.split("/") if isinstance(name, str) else []
    plain = all(part not in ("", ".", "..") and "\\" not in part and "\0" not in part for part in parts)
    if not parts or not plain or PurePosixPath(*parts).is_absolute() or Path(*parts).drive:
        raise RunnerError(f"{folder}: {name!r} is no path in the folder; write the bundle anew")
    path = folder
    for part in parts:
        path = path / part
        try:
            mode = os.lstat(path).st_mode
        except OSError as error:
            raise RunnerError(f"{path} of the bundle is not there: {error.strerror}; write the bundle anew") from error
        if stat.S_ISLNK(mode):
            raise RunnerError(f"{path} is a link, and links of a bundle are not followed; write the bundle anew")
    if not stat.S_ISREG(mode):
        raise RunnerError(f"{path} is not a file; write the bundle anew")
    return path
