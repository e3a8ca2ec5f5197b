"""Try many inputs: ``PYTHONPATH=tests python -m fuzz --count 6000 --seed 0``.

Worker processes try them, under a limit of memory. A worker that is busy with one of them for a
minute is ended, and its input counts as one that hangs. The inputs that went wrong are kept in the
folder ``build/fuzz``. The exit status is 1 if there are any.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from fuzz.worker import Batch, work

# One core for each process.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

ROOT = Path(__file__).resolve().parents[2]
MOST_SECONDS = 60
# An input may take so much more than its process had before it.
MOST_MEMORY = 10**9
DRAWN_AT_A_TIME = 100
MUTATED_AT_A_TIME = 50


def batches(count: int, seed: int, n_bombs: int) -> list[Batch]:
    """All bombs, three commands each, then two mutated inputs for each drawn one."""
    left = max(count - 3 * n_bombs, 0)
    drawn = left // 3 // DRAWN_AT_A_TIME
    mutated = -(-(left - drawn * DRAWN_AT_A_TIME) // MUTATED_AT_A_TIME)
    return [
        *(Batch("bomb", number, 3) for number in range(n_bombs)),
        *(Batch("drawn", seed * 100_000 + i, DRAWN_AT_A_TIME) for i in range(drawn)),
        *(Batch("mutated", seed * 100_000 + i, MUTATED_AT_A_TIME) for i in range(mutated)),
    ]


class Worker:
    """A process that tries inputs, and what is known of the one it is at."""

    def __init__(self, bombs: Path) -> None:
        self.bombs = bombs
        context = multiprocessing.get_context("spawn")
        self.channel, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, bombs), daemon=True)
        self.process.start()
        theirs.close()
        self.batch: Batch | None = None
        self.input = ("", "")
        self.since = time.monotonic(), 0.0

    def hangs(self) -> bool:
        """Whether nothing was heard for too long: seconds of work count, and minutes of waiting."""
        start, used = self.since
        waits = time.monotonic() - start > 10 * MOST_SECONDS
        return waits or self.used() - used > MOST_SECONDS

    def used(self) -> float:
        """Seconds that the process has worked."""
        try:
            stat = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except FileNotFoundError:
            # It has died, which its channel tells.
            return 0.0
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        self.process.kill()
        self.process.join()


class Tally:
    """What was found."""

    def __init__(self, kept: Path) -> None:
        self.kept = kept
        self.inputs: Counter[str] = Counter()
        self.verdicts: Counter[tuple[str, str]] = Counter()
        self.peaks: Counter[str] = Counter()
        self.slowest: dict[str, float] = {}
        self.wrong: list[str] = []
        self.most = 0

    def add(self, worker: Worker, found: Any, growth: int, peak: int, seconds: float) -> None:
        kind = worker.input[0]
        self.inputs[kind] += 1
        self.peaks[kind] = max(self.peaks[kind], growth)
        self.slowest[kind] = max(self.slowest.get(kind, 0.0), seconds)
        self.most = max(self.most, peak)
        for outcome in found:
            self.verdicts[kind, "wrong" if outcome.wrong else outcome.verdict] += 1
            if outcome.wrong:
                self.blame(worker, f"{outcome.command}: {outcome.verdict}: {outcome.said}")
        if growth > MOST_MEMORY:
            self.blame(worker, f"{found[1].command}: took {growth / 1e6:.0f} MB")

    def blame(self, worker: Worker, what: str) -> None:
        kind, path = worker.input
        copy = self.kept / f"{len(self.wrong)}{''.join(Path(path).suffixes)}"
        if Path(path).is_file() and Path(path).stat().st_size < 5_000_000:
            copy.write_bytes(Path(path).read_bytes())
        self.wrong.append(f"{copy.name} ({kind}, {worker.batch}) {what}")
        print(self.wrong[-1][:2000], flush=True)

    def lines(self) -> list[str]:
        rows = ["| inputs | tried | done | refused | wrong | most memory, MB | slowest, s |"]
        rows.append("|---|---:|---:|---:|---:|---:|---:|")
        for kind, tried in sorted(self.inputs.items()):
            counts = [self.verdicts[kind, name] for name in ("done", "refused", "wrong")]
            numbers = [tried, *counts, round(self.peaks[kind] / 1e6)]
            cells = [kind, *(f"{number:,}" for number in numbers), f"{self.slowest[kind]:.1f}"]
            rows.append(f"| {' | '.join(cells)} |")
        return [
            *rows,
            f"{sum(self.inputs.values())} inputs, largest process {self.most / 1e6:.0f} MB",
        ]


def supervise(todo: list[Batch], jobs: int, tally: Tally, bombs: Path) -> None:
    """Give batches to workers; replace one that hangs or dies."""
    waiting, workers = list(reversed(todo)), [Worker(bombs) for _ in range(min(jobs, len(todo)))]
    while workers:
        ready = wait([worker.channel for worker in workers], timeout=1.0)
        for worker in list(workers):
            if worker.channel in ready:
                try:
                    hear(worker, waiting, tally)
                except (EOFError, ConnectionResetError):
                    replace(workers, worker, waiting, tally, f"died, {worker.process.exitcode}")
            elif worker.hangs():
                replace(workers, worker, waiting, tally, f"hangs for {MOST_SECONDS} s")
            if not worker.process.is_alive() and worker in workers and worker.batch is None:
                workers.remove(worker)


def hear(worker: Worker, waiting: list[Batch], tally: Tally) -> None:
    """Take one message."""
    said = worker.channel.recv()
    worker.since = time.monotonic(), worker.used()
    if said[0] == "starts":
        worker.input = said[1:]
    elif said[0] == "ends":
        tally.add(worker, *said[1:])
    else:
        worker.batch = waiting.pop() if waiting else None
        worker.channel.send(worker.batch)
        if worker.batch is None:
            worker.process.join()


def replace(
    workers: list[Worker], worker: Worker, waiting: list[Batch], tally: Tally, what: str
) -> None:
    """End a worker; a new one goes on with the next batch."""
    tally.inputs[worker.input[0]] += 1
    tally.verdicts[worker.input[0], "wrong"] += 1
    tally.blame(worker, what)
    worker.end()
    workers.remove(worker)
    if waiting:
        workers.append(Worker(worker.bombs))


def main() -> int:
    """Try them all, print the table, and write it."""
    from fuzz.bombs import bomb_names, write_bombs

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=6000, help="inputs, 6000 by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "fuzz")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    tally = Tally(options.output)
    start = time.monotonic()
    todo = batches(options.count, options.seed, len(bomb_names()))
    with tempfile.TemporaryDirectory() as folder:
        write_bombs(Path(folder))
        supervise(todo, options.jobs, tally, Path(folder))
    minutes = (time.monotonic() - start) / 60
    lines = [
        *tally.lines(),
        f"seed {options.seed}, {minutes:.1f} minutes, {len(tally.wrong)} wrong",
    ]
    print("\n".join(lines))
    (options.output / "fuzz.md").write_text("\n".join([*lines, *tally.wrong]) + "\n")
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main())
