"""What is read from files when a GPU is used for the first time: Triton, and torch's programs.

Triton is imported, and reads its own files, which takes as long as a small fit. Torch loads each of
its programs when it is first launched. Both are done in threads, beside what a fit does first
(docs/gpu.md, "The first fit of a process"). The fewer of torch's programs a fit needs, the sooner
it begins: code of this folder multiplies where it could square, negate or divide.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch

from lnml.kernels.torch.basics import MOST_COORDINATES

# Columns of the rows that operations are tried on, and how many rows there are.
COLUMNS, ROWS = 128, 2048

_LOG = logging.getLogger(__name__)
_starting = threading.Lock()
_futures: dict[tuple[Callable[[torch.device], Any], torch.device], Future[Any]] = {}


@cache
def installed() -> bool:
    """Whether there seems to be a Triton; it is not imported to find out."""
    try:
        spec = find_spec("triton")
    except ValueError:
        return False  # something else was put in its place
    # A folder of that name has no origin.
    return spec is not None and spec.origin is not None


def start_triton(device: torch.device) -> None:
    """Begin to read what Triton needs for a GPU, unless that was begun before."""
    _begun(_read_triton, device)


def triton_ready(device: torch.device) -> bool:
    """Whether Triton can be used on a GPU; if reading failed, its error is raised each time."""
    reading = _begun(_read_triton, device)
    error = reading.exception()
    if error is not None:
        # Its own traceback would keep what each failed fit held.
        raise error.with_traceback(None)
    return bool(reading.result())


def start_programs(device: torch.device) -> None:
    """Begin to load torch's programs for a GPU, unless that was begun before."""
    _begun(_load_programs, device)


def wait_for_programs(device: torch.device) -> None:
    """Wait until none of torch's programs is being loaded for a GPU in the background."""
    loading = _futures.get((_load_programs, device))
    if loading is not None:
        wait([loading])


def _begun(function: Callable[[torch.device], Any], device: torch.device) -> Future[Any]:
    """Return what a function finds for a device; it runs in a thread, once."""
    with _starting:
        if (function, device) not in _futures:
            pool = ThreadPoolExecutor(1, thread_name_prefix="lnml-first-use")
            _futures[function, device] = pool.submit(function, device)
            pool.shutdown(wait=False)
        return _futures[function, device]


def _forget() -> None:
    """Begin anew: a forked process has none of the threads."""
    global _starting
    _starting = threading.Lock()
    _futures.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _read_triton(device: torch.device) -> bool:
    """Import Triton, and find one of the programs of every fit on disk, or compile it."""
    if not installed():
        return False
    try:
        from lnml.kernels.torch import programs
    except ModuleNotFoundError as error:
        if error.name not in ("triton", "triton.language"):
            raise
        return False
    kinds, columns = (torch.float64, torch.int64, torch.float32), MOST_COORDINATES
    with torch.cuda.device(device):
        programs.add_pieces.warmup(*kinds, columns, COORDINATES=columns, num_warps=1, grid=(1,))
    return True


def _load_programs(device: torch.device) -> None:
    """Launch the operations of fits on a few rows, so that torch has their programs.

    One that fails here fails again where a fit asks for it, and is told there.
    """
    with torch.no_grad():
        try:
            for operation in _operations(device):
                operation()
        except RuntimeError as error:
            _LOG.debug("torch's programs were not loaded beforehand: %s", error)


def _operations(device: torch.device) -> Iterator[Callable[[], Any]]:
    """Operations of a fit, in the order in which one asks for them.

    They are those that took longest in the first fit of LNML on MNIST, by torch.profiler. What is
    missing here is loaded when a fit asks for it.
    """
    rows = torch.ones((ROWS, COLUMNS), device=device)
    wide, numbers = rows.double(), torch.arange(ROWS, device=device)
    ends = torch.arange(0, ROWS + 1, ROWS // 2, device=device)
    yield lambda: rows.amax(dim=0)
    yield lambda: rows.amin(dim=0)
    yield lambda: torch.cat([rows, rows])
    yield lambda: rows @ rows.T
    yield lambda: rows.mean(dim=0, dtype=torch.float64)
    yield lambda: 2.0 * (rows - rows[0])
    yield lambda: rows.sum(dim=1)
    yield lambda: rows.topk(COLUMNS // 2, dim=1)
    yield lambda: rows.clamp(min=0.0)
    yield lambda: torch.nextafter(rows, rows)
    yield lambda: rows.gather(1, 0 * numbers[:, None])
    yield lambda: torch.nonzero((numbers >= 1) & (numbers < 9))
    yield lambda: rows[numbers]
    yield lambda: wide.sqrt()
    yield lambda: torch.maximum(wide, wide)
    yield lambda: wide / wide
    yield lambda: (numbers == 0).all()
    yield lambda: torch.sort((numbers << 1) | 1, stable=True)
    yield lambda: torch.bincount(numbers).cumsum(0)
    yield lambda: torch.segment_reduce(wide, "sum", offsets=ends, initial=0.0)
    yield lambda: torch.searchsorted(ends, numbers)
    yield lambda: wide.cummax(dim=1)
    yield lambda: wide.T @ wide
    yield lambda: wide @ wide[0]
