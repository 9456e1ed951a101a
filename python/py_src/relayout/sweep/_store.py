"""What is known of each model, in a database of SQLite: the manifest that a sweep resumes from.

A result is written when it comes, in one transaction, under the name of its model. So it is there once, whenever the sweep ends.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from .._errors import FileError

#: Version of the tables. A folder of another version is refused.
_VERSION = 1


class Store:
    """The results in a folder. One sweep at a time has it."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, "results.sqlite")
        try:
            os.makedirs(folder, exist_ok=True)
            self._db = sqlite3.connect(self.path, timeout=0.2, isolation_level=None)
            # No shared memory between processes: file systems of networks have none. And it keeps a second sweep out.
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._make()
        except OSError as error:
            raise FileError(f"cannot write into {folder}: {error}") from error
        except sqlite3.Error as error:
            # A folder that a second sweep may not use leaves nothing open; 3.13 warns of that.
            if db := getattr(self, "_db", None):
                db.close()
            busy = "locked" in str(error)
            why = "another sweep is writing into this folder" if busy else f"{error}; remove it to sweep anew"
            raise FileError(f"cannot use {self.path}: {why}") from error

    def _make(self) -> None:
        self._db.execute("BEGIN EXCLUSIVE")
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _VERSION):
            raise sqlite3.DatabaseError(f"it is of version {version}, and this relayout writes version {_VERSION}")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS results (model TEXT PRIMARY KEY, settings TEXT NOT NULL, answer TEXT NOT NULL) WITHOUT ROWID"
        )
        self._db.execute(f"PRAGMA user_version = {_VERSION}")
        self._db.execute("COMMIT")

    def get(self, model: str) -> tuple[str, dict[str, Any]] | None:
        """The settings and the answer of a model, if it has one."""
        row = self._db.execute("SELECT settings, answer FROM results WHERE model = ?", [model]).fetchone()
        return None if row is None else (row[0], json.loads(row[1]))

    def put(self, model: str, settings: str, answer: dict[str, Any]) -> None:
        """Writes the answer of a model, in place of one before it."""
        self._db.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", [model, settings, json.dumps(answer)])

    def answers(self, models: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """The answers of models, in their order."""
        for model in models:
            if (known := self.get(model)) is not None:
                yield model, known[1]

    def close(self) -> None:
        self._db.close()
