"""Measure what the GPU can do at best; compute the least time that some work can take."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from suite.report import Group, Table

SIZE = 8192
COPIED = 2**32


@dataclass(frozen=True)
class Ceilings:
    """Measured rates: matrix products (FLOP/s) and memory (bytes/s, read plus written)."""

    float32: float
    float16: float
    memory: float

    def floor(self, *, float32: float = 0.0, float16: float = 0.0, moved: float = 0.0) -> float:
        """Least seconds for these operations and these moved bytes: the longer of the two times."""
        return max(float32 / self.float32 + float16 / self.float16, moved / self.memory)


def seconds(task: Callable[[], Any], times: int = 5) -> float:
    """Median time of a task after a first run that is not counted."""
    task()
    found = []
    for _ in range(times):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        task()
        torch.cuda.synchronize()
        found.append(time.perf_counter() - begin)
    return median(found)


def measure(device: str) -> Ceilings:
    """Large products of random matrices, and a large copy."""
    left = torch.randn((SIZE, SIZE), device=device)
    half = left.half()
    source = torch.empty(COPIED, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    operations = 2.0 * SIZE**3
    return Ceilings(
        operations / seconds(lambda: left @ left),
        operations / seconds(lambda: half @ half),
        2.0 * COPIED / seconds(lambda: target.copy_(source)),
    )


def ceilings_group(ceilings: Ceilings) -> Group:
    """The measured rates as a section."""
    group = Group("Ceilings of the GPU")
    rows = [
        [f"product {SIZE} × {SIZE} × {SIZE}, float32, TFLOP/s", ceilings.float32 / 1e12],
        [f"product {SIZE} × {SIZE} × {SIZE}, float16, TFLOP/s", ceilings.float16 / 1e12],
        ["copy of 4 GiB, read plus written, TB/s", ceilings.memory / 1e12],
    ]
    group.tables.append(Table(["what", "measured"], rows))
    group.notes = [
        "A floor on this page is the least time that some work can take, the longer of two times: "
        "the operations divided by the measured rate of their type, and the bytes (each input read "
        "and each output written once) divided by the measured bandwidth."
    ]
    return group
