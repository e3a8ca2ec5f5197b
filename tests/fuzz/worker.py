"""A process that tries inputs, and tells of every one before and after."""

from __future__ import annotations

import random
import resource
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

# Above it nothing is given to a process, so that the machine survives what goes wrong.
WALL = 5 * 10**9


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


def inputs(batch: Batch, bombs: Path) -> Iterator[Any]:
    """Make the inputs of a batch, one at a time, each with its source of chance."""
    from fuzz.bombs import bomb, bomb_names
    from fuzz.mutations import mutated
    from fuzz.originals import originals

    if batch.way == "bomb":
        given = bomb(bomb_names()[batch.seed], bombs)
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


def work(channel: Connection, bombs: Path) -> None:
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
                for given, chance in inputs(batch, bombs):
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
