"""Commands that are killed at work: their workers end, and what they finished is kept."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from command_line import finished_folds
from interruptions import wait_until


@pytest.fixture
def start(iris):
    """Start ``lnml compare`` in the background; whatever of it is left at the end is killed."""
    started = []

    def run(*arguments):
        command = [sys.executable, "-m", "lnml", "compare", "iris.csv", "-l", "species"]
        command += [*arguments, "--resume", "work"]
        started.append(subprocess.Popen(command, start_new_session=True))
        return started[-1]

    yield run
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=30)


def workers(session):
    """Numbers of the processes of a session that work for joblib."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command = (path / "cmdline").read_bytes()
            same = os.getsid(int(path.name)) == session
        except (OSError, ProcessLookupError):
            continue
        if same and b"popen_loky" in command:
            found.append(int(path.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    "number",
    [
        pytest.param(0, id="first worker", marks=pytest.mark.extras),
        pytest.param(1, id="second worker", marks=pytest.mark.extras),
        pytest.param(2, id="at work"),
    ],
)
def test_workers_end_with_the_command(start, number):
    """Kill -9 leaves no worker behind, whether they have begun or are just being started."""
    running = start("--methods", "ln-lmnn-cv", "--folds", "10", "-j", "2")
    wait_until(lambda: len(workers(running.pid)) >= min(number + 1, 2), "worker", running)
    if number == 2:
        wait_until(finished_folds, "finished fold", running)
    running.kill()
    running.wait(timeout=30)
    wait_until(lambda: not workers(running.pid), "end of the workers", seconds=30)


@pytest.mark.slow
def test_killed_work_is_kept(start):
    """Kill -9 in the middle; the second run does not repeat a finished fold."""
    arguments = ["--methods", "euclidean,lmnn,ln-lmnn-cv", "--folds", "4", "-j", "1"]
    running = start(*arguments)
    wait_until(lambda: len(finished_folds()) >= 4, "four finished folds", running)
    running.kill()
    running.wait(timeout=30)
    kept = finished_folds()
    assert len(kept) < 12, "the command was to be killed before its end"
    assert start(*arguments, "-q").wait(timeout=150) == 0
    now = finished_folds()
    assert len(now) == 12
    assert kept.items() <= now.items()
