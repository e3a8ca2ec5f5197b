"""What a process loads once for a GPU, side by side with the first steps of its first fit.

Triton reads its own files before its first program, and torch loads each group of programs when
one is first launched: together a second, most of which other threads can spend.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache

import torch


def begin(device: torch.device, first_program: Callable[[torch.Tensor], object]) -> None:
    """Load what a fit needs, if the device is a GPU; ``first_program`` launches one of Triton's."""
    if device.type == "cuda":
        _threads(device, first_program)


def wait() -> None:
    """Return when Triton is ready: two threads that start it take longer than one."""
    for thread in _starting:
        if thread is not threading.current_thread():
            thread.join()
    _starting.clear()


_starting: list[threading.Thread] = []


@cache
def _threads(device: torch.device, first_program: Callable[[torch.Tensor], object]) -> None:
    def load(operation: Callable[[torch.Tensor], object]) -> None:
        with torch.no_grad(), torch.cuda.device(device):
            operation(torch.ones((64, 32), device=device))

    triton, others = (
        threading.Thread(target=load, args=(each,), daemon=True)
        for each in (first_program, _operations)
    )
    _starting.append(triton)
    triton.start()
    others.start()


def _operations(rows: torch.Tensor) -> None:
    """Launch one operation of each group that fits need."""
    wide, numbers = rows.double(), torch.arange(64, device=rows.device)
    for values in (rows, wide):
        torch.mm(values.T, values)
        torch.bmm(values[None].transpose(1, 2), values[None])
        torch.segment_reduce(values, "sum", offsets=numbers[::2].contiguous(), initial=0.0)
        values.amax(dim=0), values.square().sum(dim=0), values.mean(dim=0, dtype=torch.float64)
    torch.argsort(wide[:, 0], stable=True)
    numbers.int().argsort(stable=True)
    rows.topk(4, dim=1)
    torch.searchsorted(numbers, numbers)
    torch.bincount(numbers).cumsum(0)
    torch.repeat_interleave(numbers, numbers)
    torch.nonzero(numbers > 0)
    rows.half().float()
