"""Tasks on workers that come and go."""

import threading
from typing import ClassVar

import pytest

from lnml.evaluation import spread
from lnml.evaluation.spread import Spread
from lnml.kernels.cluster.crew import ClusterLost

distributed = pytest.importorskip("distributed")


class Log:
    """What the tasks did: workers of this process see it, too."""

    begun: ClassVar[list] = []
    busy: ClassVar[dict] = {}
    most = 0
    lock = threading.Lock()
    go_on = threading.Event()


@pytest.fixture
def cluster():
    """Two workers in this process, with two threads each."""
    Log.begun, Log.busy, Log.most = [], {}, 0
    Log.go_on.clear()
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=2, processes=False, dashboard_address=":0"
    ) as running:
        yield running
        # The cluster does not end before its threads do.
        Log.go_on.set()


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as connected:
        yield connected


def square(shared, number):
    """Return shared + number squared, and note how many tasks the worker runs."""
    worker = distributed.get_worker().address
    with Log.lock:
        Log.busy[worker] = Log.busy.get(worker, 0) + 1
        Log.most = max(Log.most, Log.busy[worker])
    threading.Event().wait(0.05)
    with Log.lock:
        Log.busy[worker] -= 1
    return shared + number**2


def first_waits(shared, number):
    """Wait in the first run of task 0."""
    Log.begun.append(number)
    if number == 0 and Log.begun.count(0) == 1:
        Log.go_on.wait(60)
    return number


def fails(shared, number):
    raise ValueError(f"{number} is wrong")


def tasks(count):
    return {f"task {number}": (number,) for number in range(count)}


def test_each_worker_has_one_task_at_a_time(client):
    found = list(Spread(client, square, 100, tasks(12)).results())
    assert sorted(found) == [100 + number**2 for number in range(12)]
    assert Log.most == 1 and len(Log.busy) == 2


def test_an_error_is_raised_here(client):
    with pytest.raises(ValueError, match="is wrong"):
        list(Spread(client, fails, None, tasks(4)).results())
    assert sorted(Spread(client, square, 0, tasks(3)).results()) == [0, 1, 4]


def lose_worker_of(cluster, running, name):
    """Let the scheduler lose the worker that runs a task, as if it had died."""
    address = next(worker for worker, each in running.items() if each.name == name)
    cluster.sync(cluster.scheduler.remove_worker, address, stimulus_id="test")


def test_a_task_of_a_dead_worker_is_run_again(cluster, client):
    work = Spread(client, first_waits, None, tasks(6))
    results = work.results()
    found = [next(results)]
    lose_worker_of(cluster, work.running, "task 0")
    found += results
    assert sorted(found) == list(range(6))
    assert Log.begun.count(0) == 2


def test_a_task_that_ends_every_worker_is_given_up(cluster, client, monkeypatch):
    monkeypatch.setattr(spread, "MOST_DEATHS", 1)
    work = Spread(client, first_waits, None, tasks(6))
    results = work.results()
    next(results)
    lose_worker_of(cluster, work.running, "task 0")
    with pytest.raises(MemoryError, match="workers died in task 0, perhaps for lack of memory"):
        list(results)


def test_no_workers_any_more(cluster, client, monkeypatch):
    monkeypatch.setattr(spread, "PATIENCE_SECONDS", 1.0)
    work = Spread(client, square, 0, tasks(200))
    results = work.results()
    next(results)
    cluster.scale(0)
    with pytest.raises(ClusterLost, match="no workers any more"):
        list(results)


def test_the_connection_is_lost(client):
    work = Spread(client, square, 0, tasks(200))
    results = work.results()
    next(results)
    client.close()
    with pytest.raises(ClusterLost, match="does not answer"):
        list(results)


def test_a_worker_that_joins_gets_tasks(cluster, client):
    work = Spread(client, square, 0, tasks(60))
    results = work.results()
    next(results)
    cluster.scale(3)
    assert len(list(results)) == 59
    assert len(Log.busy) == 3


def test_a_caller_that_stops_leaves_no_tasks(cluster, client):
    results = Spread(client, square, 0, tasks(50)).results()
    next(results)
    results.close()
    deadline = threading.Event()
    for _ in range(100):
        if not cluster.scheduler.tasks:
            break
        deadline.wait(0.1)
    assert not cluster.scheduler.tasks
