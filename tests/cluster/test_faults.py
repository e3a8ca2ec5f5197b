"""What happens to a fit when parts of its cluster go away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from cluster import start
from lnml import LMNN
from lnml.datasets import load_dataset

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

from lnml.kernels.cluster import crew  # noqa: E402


class Once:
    """A callback that does something after the first iteration."""

    def __init__(self, action):
        self.action, self.done = action, False

    def __call__(self, state):
        if not self.done:
            self.done = True
            self.action()


def iris():
    """Rows on the cluster, and labels."""
    data = load_dataset("iris")
    return da.from_array(data.data, chunks=(40, 4)), data.target


def wanted():
    """The fit on one machine."""
    data = load_dataset("iris")
    return LMNN().fit(data.data, data.target)


@pytest.mark.extras
def test_a_killed_worker_does_not_end_a_fit():
    X, y = iris()
    with start(2, processes=True) as cluster, distributed.Client(cluster) as client:
        victim = next(iter(client.run(os.getpid).values()))
        model = LMNN(callback=Once(lambda: os.kill(victim, signal.SIGKILL))).fit(X, y)
    assert model.callback.done
    assert model.converged_ and model.duality_gap_ <= model.tol
    np.testing.assert_allclose(model.objective_, wanted().objective_, rtol=1e-6)


@pytest.mark.extras
def test_a_worker_that_joins_is_used(monkeypatch):
    X, y = iris()
    used = set()
    assign = crew.Crew.assign

    def recorded(self, layout):
        assign(self, layout)
        used.update(self.of_cell.values())

    monkeypatch.setattr(crew.Crew, "assign", recorded)
    with start(1) as cluster, distributed.Client(cluster) as client:

        def join():
            cluster.scale(2)
            client.wait_for_workers(2)

        LMNN(tol=1e-2, callback=Once(join)).fit(X, y)
        assert used == set(client.nthreads())


def test_no_workers_any_more(monkeypatch):
    monkeypatch.setattr(crew, "PATIENCE_SECONDS", 2.0)
    monkeypatch.setattr(crew, "POLL_SECONDS", 0.2)
    X, y = iris()
    with start(1) as cluster, distributed.Client(cluster):
        model = LMNN(callback=Once(lambda: cluster.scale(0)))
        begin = time.monotonic()
        with pytest.raises(crew.ClusterLost, match="no workers"):
            model.fit(X, y)
        assert time.monotonic() - begin < 60.0
    assert not hasattr(model, "components_")


@pytest.mark.extras
def test_the_scheduler_dies(tmp_path, monkeypatch):
    monkeypatch.setattr(crew, "PATIENCE_SECONDS", 5.0)
    X, y = iris()
    address = str(tmp_path / "scheduler.json")

    def run(name, *options):
        command = [
            sys.executable,
            "-m",
            f"distributed.cli.dask_{name}",
            "--scheduler-file",
            address,
        ]
        return subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL)

    processes = [run("scheduler", "--port", "0", "--no-dashboard"), run("worker", "--no-nanny")]
    try:
        with distributed.Client(scheduler_file=address, timeout=30) as client:
            client.wait_for_workers(1)
            model = LMNN(callback=Once(processes[0].kill))
            begin = time.monotonic()
            with pytest.raises(crew.ClusterLost):
                model.fit(X, y)
            assert time.monotonic() - begin < 60.0
        assert not hasattr(model, "components_")
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.extras
def test_an_interrupt_leaves_the_cluster_usable():
    X, y = iris()

    def interrupt():
        raise KeyboardInterrupt

    with start(2) as cluster, distributed.Client(cluster):
        model = LMNN(tol=1e-2, callback=Once(interrupt))
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert not hasattr(model, "components_")
        deadline = time.monotonic() + 30.0
        while cluster.scheduler.tasks and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not cluster.scheduler.tasks
        assert LMNN(tol=1e-2).fit(X, y).converged_
