"""One pool of threads for all fits of a process, and BLAS kept out of its way.

Compiled tiles release the GIL, so plain Python threads run them side by side.
There is a single pool, so there are never more threads than cores, however many
fits run at once. It does not use numba's threading layers. A forked process makes
its own.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

import joblib
from sklearn import get_config
from threadpoolctl import ThreadpoolController

from lnml.core.pairs import PAIR_BYTES, SLOPE_BYTES

Tile = TypeVar("Tile")
Result = TypeVar("Result")

LARGEST_BLOCK = 2**22
_LIMIT_VARIABLES = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")


class _Shared:
    """The process-wide pool and the state of its BLAS limit."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pool: ThreadPoolExecutor | None = None
        self.size = 0
        self.controller: ThreadpoolController | None = None
        self.blas_users = 0
        self.blas_limit: AbstractContextManager[Any] = nullcontext()


_shared = _Shared()
_limit: ContextVar[int | None] = ContextVar("lnml_threads", default=None)


def _start_anew_after_fork() -> None:
    global _shared
    _shared = _Shared()
    core_count.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew_after_fork)


@cache
def core_count() -> int:
    """Cores this process may use; asked once, since joblib reads files to find out."""
    return joblib.cpu_count()


def thread_count() -> int:
    """Cores this process may use: its affinity, capped by OMP/NUMBA_NUM_THREADS.

    joblib's worker processes carry these variables, so a fit inside one of
    them uses its share of the machine only. :func:`limited_threads` overrides them.
    """
    count = core_count()
    if (limit := _limit.get()) is not None:
        return min(count, limit)
    for name in _LIMIT_VARIABLES:
        value = os.environ.get(name, "")
        if value.isdigit() and int(value) > 0:
            count = min(count, int(value))
    return count


@contextmanager
def limited_threads(count: int) -> Iterator[None]:
    """Use up to so many threads inside, in this thread of the program."""
    token = _limit.set(count)
    try:
        yield
    finally:
        _limit.reset(token)


def run_tiles(task: Callable[[Tile], Result], tiles: Sequence[Tile]) -> list[Result]:
    """Return ``[task(tile) for tile in tiles]``, computed by all threads.

    Results do not depend on the number of threads as long as ``tiles`` does not.
    """
    if len(tiles) <= 1 or (workers := thread_count()) <= 1:
        return [task(tile) for tile in tiles]
    with single_threaded_blas():
        return list(_pool(workers).map(task, tiles))


def each_tile(task: Callable[[Tile], Result], tiles: Sequence[Tile]) -> Iterator[Result]:
    """Yield what :func:`run_tiles` returns, in order: for results that are added up and large."""
    if len(tiles) <= 1 or (workers := thread_count()) <= 1:
        yield from map(task, tiles)
        return
    waiting: deque[Future[Result]] = deque()
    with single_threaded_blas():
        try:
            for tile in tiles:
                waiting.append(_pool(workers).submit(task, tile))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def tile_budget() -> int:
    """Bytes one tile of scratch memory may take: a 64th of ``working_memory``.

    Independent of the number of threads, so that the tiles are too.
    """
    return max(int(get_config()["working_memory"] * 2**20 / 64), 2**16)


def pair_budget() -> int:
    """Return how many pairs of a working set there is room for in ``working_memory``."""
    return int(room_in_bytes() / PAIR_BYTES)


def room_in_bytes() -> int:
    """Return scikit-learn's ``working_memory`` in bytes."""
    return int(get_config()["working_memory"] * 2**20)


def slope_budget() -> int:
    """Return how many slopes of triplets there is room for in ``working_memory``."""
    return int(get_config()["working_memory"] * 2**20 / SLOPE_BYTES)


def block_budget() -> int:
    """Return how many pairs a block of rows may have, of a working set that is not kept.

    Half of ``working_memory`` has room for them; beyond some millions, more do not pay.
    """
    return min(pair_budget() // 2, LARGEST_BLOCK)


def _pool(workers: int) -> ThreadPoolExecutor:
    with _shared.lock:
        if _shared.pool is None or _shared.size < workers:
            _shared.pool = ThreadPoolExecutor(workers, thread_name_prefix="lnml")
            _shared.size = workers
        return _shared.pool


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """BLAS at one thread while tiles run; the last of several users lifts the limit."""
    shared = _shared
    with shared.lock:
        if shared.controller is None:
            shared.controller = ThreadpoolController()
        if shared.blas_users == 0:
            shared.blas_limit = shared.controller.limit(limits=1, user_api="blas")
            shared.blas_limit.__enter__()
        shared.blas_users += 1
    try:
        yield
    finally:
        with shared.lock:
            shared.blas_users -= 1
            if shared.blas_users == 0:
                # The last user may not be the thread that set the limit.
                for library in shared.controller.lib_controllers:
                    if hasattr(library, "clear_controlling_thread"):
                        library.clear_controlling_thread(force=True)
                shared.blas_limit.__exit__(None, None, None)
