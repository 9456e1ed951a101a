"""Workers of a Ray cluster. relayout is installed on each of its machines, and all see the folders of models and results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._errors import OptionError
from ._workers import Answer, LocalWorker, Task, Worker, WorkerDied


class RayWorker:
    """An actor that has a worker on its machine. One that died is replaced."""

    def __init__(self, threads: int) -> None:
        import ray

        self._ray = ray
        self._threads = threads
        self._remote = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(LocalWorker)
        self._actor: Any = None

    def run(self, task: Task) -> Answer:
        """Carries out a task.

        Raises:
            WorkerDied: The actor, its machine, or its watching program died.
        """
        actor = self._actor = self._actor or self._remote.remote(self._threads)
        try:
            return dict(self._ray.get(actor.run.remote(task)))
        except (WorkerDied, self._ray.exceptions.RayTaskError):
            raise
        except self._ray.exceptions.RayError as error:
            self._actor = None
            raise WorkerDied(f"its worker of Ray was lost: {str(error).partition(chr(10))[0]}") from error

    def close(self) -> None:
        """Ends the actor, and what it watches."""
        actor, self._actor = self._actor, None
        if actor is not None:
            self._ray.kill(actor)


@contextmanager
def cluster(address: str, jobs: int | None) -> Iterator[list[Worker]]:
    """Workers of a cluster: of the one at an address, or of one on this machine for ``local``. One for each of its CPUs if nothing is said."""
    try:
        import ray
    except ImportError as error:
        raise ImportError("a sweep on a cluster needs Ray: pip install ray") from error
    started = not ray.is_initialized()
    if started:
        _check_it_answers(address)
        how: dict[str, Any] = {"num_cpus": jobs, "include_dashboard": False} if address == "local" else {}
        try:
            ray.init(address=address, log_to_driver=False, logging_level="error", **how)
        except (ConnectionError, ValueError) as error:
            raise OptionError(f"ray: no cluster at {address}: {error}") from error
    try:
        yield [RayWorker(1) for _ in range(jobs or max(int(ray.cluster_resources().get("CPU", 1)), 1))]
    finally:
        if started:
            ray.shutdown()


def _check_it_answers(address: str) -> None:
    """That something listens at HOST:PORT or ray://HOST:PORT: Ray itself waits for minutes."""
    import socket

    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not (colon and port.isdigit()):
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except OSError as error:
        raise OptionError(f"ray: no cluster at {address}: {error}") from error
