"""Measure the peak memory of a piece of work, on systems that report it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
# Written to clear_refs, this resets the peak that the kernel keeps (proc(5)).
_RESET_PEAK = "5"


class Peak:
    """Result of :func:`peak_memory`: ``megabytes`` above the start, or None."""

    megabytes: float | None = None


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Measure the peak of resident memory inside the block, above the memory at its start.

    This works on Linux only; elsewhere ``megabytes`` stays None. A process can measure one
    block at a time.
    """
    peak = Peak()
    try:
        _CLEAR.write_text(_RESET_PEAK)
        before = _kilobytes("VmRSS")
    except (OSError, LookupError):
        before = None
    yield peak
    if before is not None:
        peak.megabytes = max(_kilobytes("VmHWM") - before, 0) / 1e3


def _kilobytes(name: str) -> float:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return float(line.split()[1]) * 1.024
    raise LookupError(name)
