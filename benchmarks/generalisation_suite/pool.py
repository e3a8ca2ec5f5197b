"""Run tasks in processes of one thread each, the longest first."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

from generalisation_suite.tasks import Task, compute, read

# Read when libraries are imported; a process that is spawned imports them anew.
ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def missing(tasks: Sequence[Task], folder: Path) -> list[Task]:
    """Return tasks without a result, the longest first; failed ones are tried again."""
    results = [(task, read(task.path(folder))) for task in tasks]
    left = [task for task, result in results if result is None or result.error]
    return sorted(left, key=lambda task: -task.cost)


def run(tasks: Sequence[Task], folder: Path, jobs: int, limit: float) -> int:
    """Compute tasks; return how many were not started before the limit in seconds.

    Work that has started is finished, whatever the limit.
    """
    os.environ |= dict.fromkeys(ONE_THREAD, "1")
    start, waiting = time.monotonic(), list(reversed(tasks))
    running: dict[Future[str], Task] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, initializer=_end_with_parent) as pool:
        while running or (waiting and time.monotonic() - start < limit):
            while waiting and len(running) < jobs and time.monotonic() - start < limit:
                task = waiting.pop()
                running[pool.submit(compute, task, folder)] = task
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                task, error = running.pop(future), future.result()
                done = len(tasks) - len(waiting) - len(running)
                seconds = time.monotonic() - start
                print(f"{done}/{len(tasks)} {seconds:.0f} s: {task} {error}".rstrip(), flush=True)
    return len(waiting)


def _end_with_parent() -> None:
    """End this process when the one that started it is killed; it could run on for hours."""

    def watch() -> None:
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
