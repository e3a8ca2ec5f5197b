"""``--cluster local:2``: worker processes that a command starts, and that end with it."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest
from interruptions import wait_until

from lnml.datasets import load_dataset

pytest.importorskip("distributed")

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
COMPARE = ["compare", "wine.parquet", "-l", "kind", "--folds", "5", "--no-pictures", "-f"]


@pytest.fixture
def lnml(tmp_path, monkeypatch):
    """Start a command in a session of its own; whatever of it is left at the end is killed."""
    monkeypatch.chdir(tmp_path)
    data = load_dataset("wine")
    frame = pd.DataFrame(data.data, columns=[str(name) for name in data.feature_names])
    frame.assign(kind=data.target).to_parquet("wine.parquet")
    started = []

    def run(*arguments, cluster="local:2"):
        command = [sys.executable, "-m", "lnml", *arguments, "--cluster", cluster]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen(command, start_new_session=True, **pipes))
        return started[-1]

    yield run
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=30)


def workers(session):
    """Numbers of the worker processes of a session, the newest last."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ProcessLookupError):
            command = (path / "cmdline").read_bytes()
            if b"spawn_main" in command and os.getsid(int(path.name)) == session:
                found.append(int(path.name))
    return sorted(found)


def finished():
    """Number of finished fits."""
    return sum(1 for _ in Path("work").glob("fold*.json"))


def test_it_starts_and_ends(lnml):
    """With nothing but a note on stderr."""
    running = lnml("fit", "wine.parquet", "-l", "kind", "-m", "euclidean", "-o", "a.model")
    out, err = running.communicate(timeout=250)
    assert running.returncode == 0, err
    assert out.startswith("a.model: euclidean, 178 rows, 3 classes")
    assert err.startswith("lnml: note: local cluster, 2 workers with 1 thread each; ")
    assert err.count("\n") == 1
    assert not Path("/proc").exists() or not workers(running.pid)


@pytest.mark.extras
@needs_proc
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_all(lnml, kind):
    """Ctrl-C reaches all processes of a terminal, and is told in one line."""
    running = lnml(*COMPARE, "-m", "ln-lmnn-cv", "--resume", "work", "-q")
    wait_until(finished, "finished fit", running, seconds=200)
    if kind == signal.SIGINT:
        os.killpg(running.pid, kind)
    else:
        running.send_signal(kind)
    _, err = running.communicate(timeout=60)
    kept = finished()
    if kind != signal.SIGKILL:
        assert running.returncode == 130
        assert err == (
            f"lnml: interrupted, no result was written; {kept} finished fits are kept in work: "
            f"run the same command again to go on\n"
        )
    wait_until(lambda: not workers(running.pid), "end of the workers", seconds=30)
    before = {path: path.stat().st_mtime_ns for path in Path("work").glob("fold*.json")}
    again = lnml(*COMPARE, "-m", "ln-lmnn-cv", "--resume", "work", "-q")
    assert again.communicate(timeout=250) == ("", "")
    now = {path: path.stat().st_mtime_ns for path in Path("work").glob("fold*.json")}
    assert len(now) == 5 and before.items() <= now.items()


@pytest.mark.extras
@needs_proc
def test_folds_of_a_dead_worker_are_run_again(lnml):
    running = lnml(*COMPARE, "-m", "euclidean,ln-lmnn-cv", "--resume", "work", "-q")
    wait_until(lambda: finished() >= 2, "finished fits", running, seconds=200)
    os.kill(workers(running.pid)[-1], signal.SIGKILL)
    assert running.communicate(timeout=280) == ("", "")
    results = json.loads(Path("wine.json").read_text())["comparison"]["results"]
    assert len(results) == 10


@pytest.mark.extras
@needs_proc
def test_a_fit_survives_a_dead_worker(lnml):
    running = lnml("fit", "wine.parquet", "-l", "kind", "-m", "lmnn", "-o", "a.model")
    # The workers have looked at the rows, and the fit begins.
    assert running.stderr.readline().startswith("lnml: note: local cluster")
    os.kill(workers(running.pid)[-1], signal.SIGKILL)
    out, err = running.communicate(timeout=280)
    assert running.returncode == 0 and err == ""
    assert out.startswith("a.model: lmnn, 178 rows")
