"""Try many inputs: ``PYTHONPATH=tests python -m fuzz --count 6000 --seed 0``.

Worker processes try them, under a limit of memory. A worker that says nothing for a minute is
ended, and its input counts as one that hangs. The inputs that went wrong are kept in the folder
``build/fuzz``. The exit status is 1 if there are any.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

# One core for each process.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

ROOT = Path(__file__).resolve().parents[2]
MOST_SECONDS = 60
# An input may take so much more than its process had before it.
MOST_MEMORY = 10**9
# Above it nothing is given to a process, so that the machine survives what goes wrong.
WALL = 5 * 10**9
DRAWN_AT_A_TIME = 100
MUTATED_AT_A_TIME = 50


class Batch(NamedTuple):
    """Inputs that one worker makes and tries.

    Attributes
    ----------
    way : str
        'mutated', 'drawn' or 'bomb'.
    seed : int
        What they depend on.
    count : int
        How many.
    """

    way: str
    seed: int
    count: int


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


def inputs(batch: Batch) -> Iterator[Any]:
    """Make the inputs of a batch, one at a time, each with its source of chance."""
    from fuzz.bombs import bomb, bomb_names
    from fuzz.mutations import mutated
    from fuzz.originals import originals

    if batch.way == "bomb":
        given = bomb(bomb_names()[batch.seed])
        for number in range(batch.count):
            yield given, random.Random(f"{batch.seed} {number}")
    else:
        for number in range(batch.count):
            chance = random.Random(f"{batch.seed} {number}")
            yield mutated(chance.choice(originals()), chance), chance


def draw(batch: Batch, attempt: Any) -> None:
    """Let hypothesis draw the inputs of a batch; it never sees a failure, so it draws all."""
    import hypothesis
    from fuzz.drawn import inputs as strategy

    chance = random.Random(batch.seed)

    @hypothesis.seed(batch.seed)
    @hypothesis.settings(
        max_examples=batch.count,
        phases=[hypothesis.Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy)
    def all_of_them(given: Any) -> None:
        attempt(given, chance)

    all_of_them()


def work(channel: Connection) -> None:
    """Try the batches that come, and tell of every input before and after."""
    from fuzz.trial import prepare, trial

    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        resource.setrlimit(resource.RLIMIT_DATA, (WALL, WALL))

        def attempt(given: Any, chance: random.Random) -> None:
            # Its bytes are kept on disk by the trial, for the parent to find.
            channel.send(("starts", given.kind, str(Path(folder) / f"input{given.extension}")))
            before, start = _resident(), time.monotonic()
            _forget_peak()
            found = trial(given, chance)
            seconds = time.monotonic() - start
            channel.send(("ends", found, max(_peak() - before, 0), _peak(), seconds))

        channel.send(("ready",))
        while (batch := channel.recv()) is not None:
            if batch.way == "drawn":
                draw(batch, attempt)
            else:
                for given, chance in inputs(batch):
                    attempt(given, chance)
            channel.send(("ready",))


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"this system does not tell {name}")


def _resident() -> int:
    return _status("VmRSS")


def _peak() -> int:
    return _status("VmHWM")


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


class Worker:
    """A process that tries inputs, and what is known of the one it is at."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.channel, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.batch: Batch | None = None
        self.input = ("", "")
        self.since = time.monotonic()

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
        kind, path = worker.input
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
        if Path(path).exists() and Path(path).stat().st_size < 5_000_000:
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
        return [*rows, f"{sum(self.inputs.values())} inputs, largest process {self.most / 1e6:.0f} MB"]


def supervise(todo: list[Batch], jobs: int, tally: Tally) -> None:
    """Give batches to workers; replace one that hangs or dies."""
    waiting, workers = list(reversed(todo)), [Worker() for _ in range(min(jobs, len(todo)))]
    while workers:
        ready = wait([worker.channel for worker in workers], timeout=1.0)
        for worker in list(workers):
            if worker.channel in ready:
                try:
                    hear(worker, waiting, tally)
                except (EOFError, ConnectionResetError):
                    replace(workers, worker, waiting, tally, f"died, {worker.process.exitcode}")
            elif time.monotonic() - worker.since > MOST_SECONDS:
                replace(workers, worker, waiting, tally, f"hangs for {MOST_SECONDS} s")
            if not worker.process.is_alive() and worker in workers and worker.batch is None:
                workers.remove(worker)


def hear(worker: Worker, waiting: list[Batch], tally: Tally) -> None:
    """Take one message."""
    said = worker.channel.recv()
    worker.since = time.monotonic()
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
        workers.append(Worker())


def main() -> int:
    """Try them all, print the table, and write it."""
    from fuzz.bombs import bomb_names

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=6000, help="inputs, 6000 by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "fuzz")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    tally = Tally(options.output)
    start = time.monotonic()
    supervise(batches(options.count, options.seed, len(bomb_names())), options.jobs, tally)
    minutes = (time.monotonic() - start) / 60
    lines = [*tally.lines(), f"seed {options.seed}, {minutes:.1f} minutes, {len(tally.wrong)} wrong"]
    print("\n".join(lines))
    (options.output / "fuzz.md").write_text("\n".join([*lines, *tally.wrong]) + "\n")
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main())
