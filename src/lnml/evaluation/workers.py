"""Worker processes that end with the process that started them, however that one ends."""

from __future__ import annotations

import os
import threading
import time
from functools import cache
from multiprocessing import current_process
from typing import Any

from sklearn.utils.parallel import Parallel

# How loky, joblib's default backend, calls its processes.
LOKY = "LokyProcess"


def make_parallel(n_jobs: int | None) -> Any:
    """Return a ``Parallel`` whose workers watch this process from their first moment on."""
    try:
        return Parallel(n_jobs=n_jobs, initializer=end_with, initargs=(os.getpid(),))
    except TypeError:
        # joblib before 1.5: workers begin to watch when their first task does.
        return Parallel(n_jobs=n_jobs)


@cache
def end_with(parent: int) -> None:
    """End this worker when the process that started it is killed; it could run on for hours.

    That process may be gone already. This does nothing in the parent itself, nor in a worker that
    is not its child, such as one on another machine.

    Parameters
    ----------
    parent : int
        Number of the process that started this one.
    """
    if os.getpid() == parent:
        return
    if os.getppid() != parent and not current_process().name.startswith(LOKY):
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
