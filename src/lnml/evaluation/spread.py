"""Fits of folds on the workers of a Dask cluster, one at a time on each worker process."""

from __future__ import annotations

import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from lnml.kernels.cluster.crew import PATIENCE_SECONDS, ClusterLost, Crew

POLL_SECONDS = 0.5
# A task that ends so many workers will end others, too.
MOST_DEATHS = 3


class Running(NamedTuple):
    """The name of a task on a worker, and its future."""

    name: str
    future: Any


class Spread:
    """Runs tasks on the workers; each worker process has one at a time, so that times count.

    A worker gets the shared data once, from here, and not the name of a file: it need not see
    the same disks. Tasks of a worker that died go to others.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    run : callable
        Called on a worker with the shared data and the arguments of a task.
    shared : Any
        What all tasks need.
    tasks : mapping of str to tuple
        Arguments by the name of a task.
    """

    def __init__(
        self,
        client: Any,
        run: Callable[..., Any],
        shared: Any,
        tasks: Mapping[str, tuple[Any, ...]],
    ) -> None:
        self.crew = Crew(client)
        self.run = run
        self.shared = shared
        self.tasks = tasks
        self.waiting = deque(tasks)
        self.running: dict[str, Running] = {}
        self.placed: dict[str, Any] = {}
        self.deaths: Counter[str] = Counter()
        self.alone_since: float | None = None

    def results(self) -> Generator[Any, None, None]:
        """Return the results of tasks as they come; the first error is raised.

        When the caller stops, tasks that have not begun are taken back. Those that run cannot be
        ended: they go on to their end, and nobody waits for them.
        """
        try:
            while self.waiting or self.running:
                alive = self._workers()
                self._take_back(alive)
                for worker in alive:
                    if self.waiting and worker not in self.running:
                        self._start(worker)
                yield from self._finished()
        finally:
            with suppress(Exception):
                self.crew.client.cancel([each.future for each in self.running.values()])
            self.running.clear()
            self.placed.clear()

    def _workers(self) -> list[str]:
        """Return the workers that are there; say so if there have been none for long."""
        found = []
        if self.crew.client.status == "running":
            # Whatever a scheduler that is gone makes the client raise.
            with suppress(Exception):
                found = list(self.crew.workers())
        if found:
            self.alone_since = None
            return found
        self.alone_since = self.alone_since or time.monotonic()
        closed = self.crew.client.status == "closed"
        if closed or time.monotonic() - self.alone_since > PATIENCE_SECONDS:
            raise ClusterLost(
                "the cluster has no workers any more, or its scheduler does not answer: run the "
                "command again when it does"
            )
        return []

    def _take_back(self, alive: Sequence[str]) -> None:
        """Let tasks of workers that are gone wait again."""
        if not alive:
            return
        for worker in [worker for worker in self.running if worker not in alive]:
            self.running[worker].future.cancel()
            self._again(worker)
        self.placed = {worker: data for worker, data in self.placed.items() if worker in alive}

    def _again(self, worker: str) -> None:
        """Let the task of a worker that died wait again, unless it ends every worker."""
        name = self.running.pop(worker).name
        self.placed.pop(worker, None)
        self.waiting.appendleft(name)
        self.deaths[name] += 1
        if self.deaths[name] >= MOST_DEATHS:
            raise MemoryError(
                f"{MOST_DEATHS} workers died in {name}, perhaps for lack of memory: give the "
                f"workers more, or take fewer rows"
            )

    def _start(self, worker: str) -> None:
        """Hand the next task to a worker."""
        client = self.crew.client
        try:
            if worker not in self.placed:
                self.placed[worker] = client.scatter([self.shared], workers=[worker], hash=False)[0]
        except (OSError, TimeoutError, KeyError, RuntimeError):
            # The worker, or the scheduler, has gone in this moment; the next look will tell.
            return
        name = self.waiting.popleft()
        given = self.run, self.placed[worker], *self.tasks[name]
        future = client.submit(_quietly, *given, workers=[worker], pure=False)
        self.running[worker] = Running(name, future)

    def _finished(self) -> Iterator[Any]:
        """Wait a little; return the results that have come."""
        from distributed import CancelledError, KilledWorker, wait

        futures = [each.future for each in self.running.values()]
        if not futures:
            time.sleep(POLL_SECONDS)
            return
        with suppress(TimeoutError, CancelledError):
            wait(futures, timeout=POLL_SECONDS, return_when="FIRST_COMPLETED")
        for worker, (_, future) in list(self.running.items()):
            if future.status == "pending":
                continue
            try:
                result = future.result()
            except (CancelledError, KilledWorker):
                self._again(worker)
            else:
                del self.running[worker]
                yield result


def _quietly(run: Callable[..., Any], shared: Any, *given: Any) -> Any:
    """Run a task on a worker, whose warnings nobody reads: results say what matters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run(shared, *given)
