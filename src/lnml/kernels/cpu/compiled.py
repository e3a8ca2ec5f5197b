"""How the loops of this package are compiled, and come back from disk (docs/performance.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys

# Reassociation lets the compiler use vector instructions; NaN and inf keep their meaning.
FAST = {"reassoc", "contract", "nsz"}
# The hints of njit leave some of its options out.
_njit: Any = njit


class _QuickCache(FunctionCache):
    """Compiled code on disk, read without what is needed to compile more.

    Before numba reads any, it imports and registers everything that it can compile. That takes
    longer than a fit to some thousand rows. What it has to compile later, it still prepares for.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for a signature, or None if there is none on disk."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def compiled(*, allocates: bool = True, **options: Any) -> Callable[[Any], Any]:
    """Return a decorator: a loop that Python calls, kept on disk, without the interpreter lock.

    Parameters
    ----------
    allocates : bool, default=True
        Whether the loop makes arrays. If not, the code that counts references to them is left
        out, a tenth of what is compiled.
    **options
        Further options of numba.
    """
    if not allocates:
        options["_nrt"] = False

    def decorate(function: Any) -> Any:
        loop = _njit(nogil=True, cache=True, no_cfunc_wrapper=True, **options)(function)
        # With NUMBA_DISABLE_JIT it stays what it was, and other versions may have no such cache.
        if isinstance(getattr(loop, "_cache", None), FunctionCache) and _is_as_known():
            loop._cache = _QuickCache(loop.py_func)
        return loop

    return decorate


def inner(**options: Any) -> Callable[[Any], Any]:
    """Return a decorator: a function that compiled code alone calls. It is kept as part of that."""
    alone = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    decorate: Callable[[Any], Any] = _njit(nogil=True, **alone, **options)
    return decorate


def _is_as_known() -> bool:
    """Whether numba's cache is built as in the versions that we know (0.59 to 0.68)."""
    parts = ("_load_overload", "_guard_against_spurious_io_errors")
    return all(hasattr(FunctionCache, part) for part in parts)
