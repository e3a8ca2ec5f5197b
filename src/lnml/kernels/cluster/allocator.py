"""Memory that a worker keeps from one tile to the next.

Dask starts its workers so that they return every freed piece of memory to the system at once.
Tiles free and take the same buffers thousands of times, and each time the system clears them page
by page: a fit takes a quarter more CPU seconds in that way (docs/cluster.md). While a fit runs, a
worker keeps two megabytes instead.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache

# What mallopt of the GNU C library calls M_TRIM_THRESHOLD and M_MMAP_THRESHOLD, and their
# environment variables. Who sets the first one also switches off that the other one adapts.
_TRIM, _TRIM_VARIABLE = -1, "MALLOC_TRIM_THRESHOLD_"
_MAP, _MAP_VARIABLE = -3, "MALLOC_MMAP_THRESHOLD_"
_LEAST = 128 * 1024
_LARGEST = 2**31 - 1
# Larger buffers come from the system, and go back to it at once.
LARGEST_KEPT = 2**20
MOST_KEPT = 2 * 2**20


@cache
def _mallopt() -> Callable[[int, int], int] | None:
    """Return ``mallopt``; None if there is none, or if this process returns memory as usual."""
    if _TRIM_VARIABLE not in os.environ:
        return None
    try:
        found: Callable[[int, int], int] = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        # Another C library.
        return None
    return found


def keep_memory() -> None:
    """Keep freed memory for the next tile."""
    mallopt = _mallopt()
    if mallopt is not None:
        mallopt(_MAP, max(LARGEST_KEPT, _given(_MAP_VARIABLE)))
        mallopt(_TRIM, max(MOST_KEPT, _given(_TRIM_VARIABLE)))


def return_memory() -> None:
    """Return freed memory as the environment asks for, and what was kept now."""
    mallopt = _mallopt()
    if mallopt is not None:
        mallopt(_MAP, _given(_MAP_VARIABLE))
        mallopt(_TRIM, _given(_TRIM_VARIABLE))
        ctypes.CDLL(None).malloc_trim(0)


def _given(variable: str) -> int:
    """Return the number that the environment asks for, or the usual one."""
    try:
        return min(max(int(os.environ.get(variable, _LEAST)), 0), _LARGEST)
    except ValueError:
        return _LEAST
