"""How loops are compiled, and how Python's garbage collector leaves numba alone meanwhile.

numba makes some hundred thousand objects when it compiles a first loop, or reads it from disk, and
keeps nearly all of them. The collector looks through all objects of the process again and
again to find that out, which is a sixth of the time (docs/performance.md).
"""

from __future__ import annotations

import gc
import os
import threading
from functools import partial

from numba import njit
from numba.core.event import Event, Listener, register

# New objects until the collector looks at them, while numba is at work.
_SELDOM = 50_000

# A loop that Python calls. Nobody calls it from C.
loop = partial(njit, nogil=True, cache=True, no_cfunc_wrapper=True)
# A function that loops alone call: without a wrapper, a call from Python crashes the process.
helper = partial(loop, no_cpython_wrapper=True)
# One that becomes part of the loop that calls it: there is less to compile than for a call.
inlined = partial(helper, inline="always")


class SeldomCollected(Listener):
    """Lets the collector look less often while any thread compiles or waits for one that does."""

    def __init__(self) -> None:
        # A finalizer that runs in here may compile, too.
        self._lock = threading.RLock()
        self._busy = 0
        self._usual = self._own = gc.get_threshold()

    def on_start(self, event: Event) -> None:
        """Raise the threshold of new objects, unless the collector is off."""
        with self._lock:
            if self._busy == 0:
                self._usual = gc.get_threshold()
                if self._usual[0] > 0:
                    gc.set_threshold(max(self._usual[0], _SELDOM), *self._usual[1:])
                self._own = gc.get_threshold()
            self._busy += 1

    def on_end(self, event: Event) -> None:
        """Put the threshold back, unless somebody else has changed it."""
        with self._lock:
            if self._busy == 1:
                self._put_back()
            # This module may be imported while numba compiles: that end has no start.
            self._busy = max(self._busy - 1, 0)

    def begin_anew(self) -> None:
        """Forget what other threads did: a forked process has none of them."""
        self._lock = threading.RLock()
        if self._busy:
            self._put_back()
        self._busy = 0

    def _put_back(self) -> None:
        if gc.get_threshold() == self._own:
            gc.set_threshold(*self._usual)


_collected = SeldomCollected()
register("numba:compiler_lock", _collected)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_collected.begin_anew)
