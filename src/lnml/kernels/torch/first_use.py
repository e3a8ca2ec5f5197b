"""What is read from files when a GPU is used for the first time: Triton, and torch's programs.

Triton is imported, and reads its own files, which takes as long as a small fit. Torch loads each of
its programs when it is first launched. Both are done in threads, beside what a fit does first
(docs/gpu.md, "The first fit").
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch

# Columns of the rows that operations are tried on, and how many rows there are.
COLUMNS, ROWS = 128, 2048

_starting = threading.Lock()


@cache
def installed() -> bool:
    """Whether there seems to be a Triton; it is not imported to find out."""
    return find_spec("triton") is not None


class FirstUse(NamedTuple):
    """What is being read for a GPU.

    Attributes
    ----------
    triton : Future
        Whether Triton can be used.
    programs : Future
        Ends when torch has its programs.
    """

    triton: Future[bool]
    programs: Future[None]


def start(device: torch.device) -> FirstUse:
    """Begin to read, at the first call for a GPU."""
    with _starting:
        return _started(device)


@cache
def _started(device: torch.device) -> FirstUse:
    pool = ThreadPoolExecutor(2, thread_name_prefix="lnml-first-use")
    found = FirstUse(pool.submit(_read_triton, device), pool.submit(_load_programs, device))
    pool.shutdown(wait=False)
    return found


def triton_ready(device: torch.device) -> bool:
    """Whether Triton can be used on a GPU; if reading failed, its error is raised each time."""
    return start(device).triton.result()


def wait_for_programs(device: torch.device) -> None:
    """Wait until no program is being loaded. What failed will fail again where it is needed."""
    wait([start(device).programs])


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
    kinds, columns = (torch.float64, torch.int64, torch.float32), 256
    with torch.cuda.device(device):
        programs.add_pieces.warmup(*kinds, columns, COORDINATES=columns, num_warps=1, grid=(1,))
    return True


def _load_programs(device: torch.device) -> None:
    """Launch the operations of fits on a few rows, so that torch has their programs."""
    with torch.no_grad():
        for operation in _operations(device):
            operation()


def _operations(device: torch.device) -> Iterator[Callable[[], Any]]:
    """Operations of a fit, in the order in which one asks for them."""
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
