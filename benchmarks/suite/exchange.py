"""Run one measurement in a process of its own and bring its result back.

Also runs in the peers' environment, so it needs NumPy and the standard library only.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

BENCHMARKS = Path(__file__).resolve().parents[1]
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


@dataclass
class Reply:
    """What a measurement brings back: numbers and texts, and arrays."""

    values: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


Task = Callable[..., Reply]


def call(
    module: str,
    task: str,
    data: Path | None = None,
    *,
    python: str = sys.executable,
    environment: dict[str, str] | None = None,
    **options: Any,
) -> Reply:
    """Run a task of a module in a fresh process; ``data`` is an .npz file with its arrays."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        request = {"data": None if data is None else str(data), "options": options}
        (folder / "request.json").write_text(json.dumps(request))
        done = subprocess.run(
            [python, "-m", module, task, name],
            cwd=BENCHMARKS,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"{module} {task} {options} failed:\n{done.stderr[-4000:]}")
        values = json.loads((folder / "reply.json").read_text())
        with np.load(folder / "reply.npz") as stored:
            return Reply(values, dict(stored))


def serve(tasks: dict[str, Task]) -> None:
    """Do what ``call`` asks for; the body of a child process."""
    task, folder = sys.argv[1], Path(sys.argv[2])
    request = json.loads((folder / "request.json").read_text())
    arrays = {}
    if request["data"] is not None:
        with np.load(request["data"]) as stored:
            arrays = dict(stored)
    reply = tasks[task](**arrays, **request["options"])
    (folder / "reply.json").write_text(json.dumps(reply.values))
    np.savez(folder / "reply.npz", **reply.arrays)


def memory_now() -> float:
    """Resident set of this process in MB (10^6 bytes)."""
    return _from_proc("VmRSS") or memory_peak()


def memory_peak() -> float:
    """Largest resident set of this process so far in MB.

    On Linux it does not come from ``getrusage``, which also counts the parent process.
    """
    in_bytes = 1 if sys.platform == "darwin" else 1024
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * in_bytes / 1e6
    return _from_proc("VmHWM") or usage


def _from_proc(key: str) -> float | None:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith(key + ":")]
    return int(found[0]) * 1024 / 1e6 if found else None


class Stopwatch:
    """Seconds and growth of the peak memory of a ``with`` block."""

    seconds = 0.0
    peak_mb = 0.0

    def __enter__(self) -> Stopwatch:
        self._memory = memory_now()
        self._start = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._start
        self.peak_mb = memory_peak() - self._memory


def repeat(action: Callable[[], Any], times: int) -> tuple[list[float], float]:
    """Seconds of each of several calls, and the growth of the peak memory over all."""
    seconds = []
    before = memory_now()
    for _ in range(times):
        with Stopwatch() as watch:
            action()
        seconds.append(watch.seconds)
    return seconds, memory_peak() - before
