"""Workers of a Ray cluster. relayout is installed on each of its machines, and all see the folders of models and results."""

from __future__ import annotations

from contextlib import contextmanager
from collections.abc import Iterator
from typing import Any

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
        except WorkerDied:
            raise
        except (self._ray.exceptions.RayActorError, self._ray.exceptions.WorkerCrashedError) as error:
            self._actor = None
            raise WorkerDied("its worker of Ray was killed") from error

    def close(self) -> None:
        """Ends the actor, and what it watches."""
        actor, self._actor = self._actor, None
        if actor is not None:
            self._ray.kill(actor)


@contextmanager
def cluster(address: str, jobs: int | None) -> Iterator[list[Worker]]:
    """Workers of a cluster: of the one at an address, or of one on this machine for ``local``. As many as it has CPUs if nothing is said."""
    try:
        import ray
    except ImportError as error:
        raise ImportError("a sweep on a cluster needs Ray: pip install relayout[ray]") from error
    started = not ray.is_initialized()
    if started:
        how: dict[str, Any] = {"num_cpus": jobs} if address == "local" else {}
        ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level="error", **how)
    try:
        yield [RayWorker(1) for _ in range(jobs or max(int(ray.cluster_resources().get("CPU", 1)), 1))]
    finally:
        if started:
            ray.shutdown()
