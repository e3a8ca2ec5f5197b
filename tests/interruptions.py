"""Wait for what a command does, or interrupt it."""

import time

from lnml.evaluation.store import FoldStore


def wait_until(condition, what, running=None, seconds=100):
    """Wait for a condition, while a command runs; say what did not happen in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if running is not None:
            assert running.poll() is None, f"exit code {running.returncode} before {what}"
        assert time.monotonic() < deadline, f"no {what} within {seconds} s"
        time.sleep(0.05)


def interrupt_after(monkeypatch, count):
    """Let the command be interrupted when this many results are stored."""
    write, written = FoldStore.write, []

    def write_some(store, result):
        write(store, result)
        written.append(result)
        if len(written) == count:
            raise KeyboardInterrupt

    monkeypatch.setattr(FoldStore, "write", write_some)
