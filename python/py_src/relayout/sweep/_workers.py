"""Workers: each carries out one task after the other. A local one has a watching program; one of Ray is an actor that has one."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from .._errors import Error, InternalError
from ._fetch import local_copy
from ._work import failed

Task = dict[str, Any]
Answer = dict[str, Any]


class WorkerDied(InternalError):
    """A worker, or the program that watches for it, was killed."""


class Worker(Protocol):
    """Carries out tasks, one at a time."""

    def run(self, task: Task) -> Answer: ...
    def close(self) -> None: ...


class LocalWorker:
    """A worker on this machine."""

    def __init__(self, threads: int) -> None:
        self._threads = str(threads)
        self._program: subprocess.Popen[bytes] | None = None

    def run(self, task: Task) -> Answer:
        """Carries out a task.

        Raises:
            WorkerDied: The watching program was killed. The next task starts another one.
        """
        try:
            if "://" not in task["path"]:
                return self._ask(task)
            with local_copy(task["path"], lambda path: self._data_of(path, task)) as (copy, files):
                return self._ask({**task, "path": copy, "files": files})
        except WorkerDied:
            raise
        except (Error, OSError) as error:
            return failed(type(error).__name__, str(error))

    def _data_of(self, path: str, task: Task) -> list[str]:
        answer = self._ask({**task, "do": "data_of", "path": path})
        if answer["status"] != "ok":
            raise InternalError(answer["message"])
        return list(answer["files"])

    def _ask(self, task: Task) -> Answer:
        program = self._program = self._program or self._start()
        assert program.stdin is not None and program.stdout is not None
        try:
            program.stdin.write(json.dumps(task).encode() + b"\n")
            program.stdin.flush()
            line = program.stdout.readline()
        except (OSError, ValueError):
            line = b""
        if not line.endswith(b"\n"):
            self.close()
            raise WorkerDied("its worker was killed")
        return dict(json.loads(line))

    def _start(self) -> subprocess.Popen[bytes]:
        # With one thread a fork of it is safe, and models side by side share the machine.
        one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        return subprocess.Popen(
            [sys.executable, "-m", "relayout.sweep._watch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **one, "RAYON_NUM_THREADS": self._threads},
            # Ctrl-C is for the sweep, which ends its workers.
            start_new_session=True,
        )

    def close(self) -> None:
        """Ends the watching program, and what it watches."""
        program, self._program = self._program, None
        if program is not None:
            program.kill()
            for stream in (program.stdin, program.stdout):
                assert stream is not None
                try:
                    stream.close()
                except OSError:
                    pass
            program.wait()


def run_all(tasks: Iterable[Task], workers: list[Worker], retries: int) -> Iterator[tuple[Task, Answer]]:
    """Carries out tasks on all workers, and gives answers as they come. What a killed worker had is done again, by it or its successor."""
    waiting, lock, stop = iter(tasks), threading.Lock(), threading.Event()
    done: queue.SimpleQueue[tuple[Task, Answer] | BaseException | None] = queue.SimpleQueue()

    def loop(worker: Worker) -> None:
        try:
            while not stop.is_set():
                with lock:
                    task = next(waiting, None)
                if task is None:
                    break
                done.put((task, _persistently(worker, task, retries, stop)))
        except BaseException as error:
            done.put(error)
        finally:
            # Another one may wait for its place on the machine.
            worker.close()
            done.put(None)

    threads = [threading.Thread(target=loop, args=[worker], daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    left = len(threads)
    try:
        while left:
            answer = done.get()
            if isinstance(answer, BaseException):
                raise answer
            if answer is None:
                left -= 1
            else:
                yield answer
    finally:
        stop.set()
        for worker in workers:
            worker.close()
        for thread in threads:
            thread.join()


def _persistently(worker: Worker, task: Task, retries: int, stop: threading.Event) -> Answer:
    attempt = 0
    while True:
        attempt += 1
        try:
            answer = worker.run(task)
        except WorkerDied as error:
            answer = {**failed("Killed", str(error)), "again": True}
        if not answer.pop("again", False) or attempt > retries or stop.is_set():
            return {**answer, "attempts": attempt}
