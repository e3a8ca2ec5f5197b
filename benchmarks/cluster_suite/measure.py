"""A local cluster, and what its processes take: seconds, bytes and memory."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import dask.array as da
import numpy as np
import psutil
from distributed import Client, LocalCluster

from lnml.kernels.cluster import crew

CHUNK_ROWS = 10_000


@contextmanager
def workers(count: int, threads: int = 1) -> Iterator[Client]:
    """Start worker processes of one thread each, or of some."""
    cluster = LocalCluster(
        n_workers=count,
        threads_per_worker=threads,
        processes=True,
        memory_limit=0,
        dashboard_address=None,
    )
    with cluster, Client(cluster) as client:
        yield client


def chunked(X: np.ndarray) -> Any:
    """Rows as a Dask array in chunks."""
    return da.from_array(X, chunks=(CHUNK_ROWS, -1))


def moved_bytes() -> int:
    """Return the bytes that went through the loopback interface since the machine started."""
    return int(psutil.net_io_counters(pernic=True)["lo"].bytes_sent)


@dataclass
class Phase:
    """One kind of phase: how often it ran, seconds, bytes that moved."""

    count: int = 0
    seconds: float = 0.0
    moved: int = 0


@dataclass
class Record:
    """What the phases of a fit took, by name, and candidate pairs of its searches."""

    phases: dict[str, Phase] = field(default_factory=dict)
    candidates: list[int] = field(default_factory=list)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count what happens inside."""
        begin, before = time.perf_counter(), moved_bytes()
        yield
        found = self.phases.setdefault(name, Phase())
        found.count += 1
        found.seconds += time.perf_counter() - begin
        found.moved += moved_bytes() - before


@contextmanager
def recorded() -> Iterator[Record]:
    """Record the phases of the fits inside, by the task that a worker runs for its cells."""
    record = Record()

    def timed(run: Any) -> Any:
        def wrapper(self: Any, task: Any, *given: Any, **shared: Any) -> Any:
            with record.phase(task.__name__):
                found = run(self, task, *given, **shared)
            if task.__name__ == "candidate_facts":
                record.candidates.append(sum(size for cells in found for size, _ in cells))
            return found

        return wrapper

    crews = crew.Crew
    with (
        patch.object(crews, "_run", timed(crews._run)),
        patch.object(crews, "total_matrix", timed(crews.total_matrix)),
    ):
        yield record


def resident_bytes() -> int:
    """Resident set of this process."""
    return int(psutil.Process().memory_info().rss)


def peak_bytes() -> int:
    """Peak of the resident set of this process since :func:`reset_peak`."""
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def reset_peak() -> int:
    """Let the peak begin anew; return the resident set."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return resident_bytes()


def pin(cores: list[int]) -> None:
    """Keep this process, and those it starts, on some cores."""
    os.sched_setaffinity(0, cores)
