"""Results do not depend on threads, and fits are safe in threads, workers and after a fork."""

import hashlib
import os
import subprocess
import sys
import threading

import joblib
import numpy as np
import pytest
from learners import MEANS, WITH_OBJECTIVE
from oracles import nearest_targets, squared_distances
from sklearn.base import clone
from threadpoolctl import threadpool_info
from toy_data import embedded, neighborhoods, sorted_blobs

from lnml.core.pairs import Edge
from lnml.kernels.cpu import threads
from lnml.kernels.tiles import row_tiles

FITS = """
import hashlib, sys, warnings
import numpy as np
from lnml import LMNN, LNML, MCML, MMC, NCA, RelativeComparisons, SupportVectorMetric
from lnml.datasets import load_dataset
from lnml.kernels.cpu import threads
warnings.simplefilter("ignore")
if sys.argv[1:]:
    threads.thread_count = lambda: int(sys.argv[1])
letter = load_dataset("letter")
for dtype in (np.float64, np.float32):
    X, y = letter.data[:1100].astype(dtype), letter.target[:1100]
    for model in (
        NCA(max_iter=3),
        LMNN(max_iter=2),
        MCML(max_iter=1),
        MMC(max_iter=1),
        RelativeComparisons(max_iter=1),
        SupportVectorMetric(max_iter=1),
        LNML(LMNN(max_iter=2), k_min=1, k_av=2, k_max=4, max_rounds=2),
    ):
        model.fit(X, y)
        content = model.components_.tobytes() + repr(model.objective_).encode()
        print(hashlib.sha256(content).hexdigest())
"""

FORK = """
import multiprocessing, sys, warnings
import numpy as np
from lnml import LMNN
from lnml.datasets import load_dataset
from lnml.kernels import get_kernels
from lnml.kernels.cpu import threads
warnings.simplefilter("ignore")
threads.thread_count = lambda: 4
letter = load_dataset("letter")
X, y = letter.data[:1500], letter.target[:1500]

def fit():
    return LMNN(max_iter=2).fit(X, y).components_

def in_child(connection):
    connection.send(fit())

def fork():
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe()
    child = context.Process(target=in_child, args=(sender,), daemon=True)
    child.start()
    if not receiver.poll(60):
        sys.exit("the fit after a fork did not end")
    child.join(60)
    return receiver.recv()

expected = fit()
assert threads._shared.pool is not None
assert np.array_equal(fork(), expected)
with get_kernels().session():
    assert np.array_equal(fork(), expected)
assert np.array_equal(fit(), expected)
"""


def run_script(script, *arguments, **variables):
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=environment | {"PYTHONPATH": os.pathsep.join(sys.path)} | variables,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def fingerprint(*arrays):
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


@pytest.mark.extras
def test_fits_are_bitwise_equal_whatever_the_threads_and_the_compile_cache(tmp_path):
    """Sums depend neither on the number of threads nor on how a compiler inlined them."""
    cold = run_script(FITS, "5", NUMBA_CACHE_DIR=str(tmp_path))
    warm = run_script(FITS, OMP_NUM_THREADS="1", NUMBA_CACHE_DIR=str(tmp_path))
    assert len(set(cold.split())) == 14
    assert cold == warm


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_kernels_are_bitwise_equal_whatever_the_number_of_threads(dtype, monkeypatch):
    Z, y = sorted_blobs(0, [900, 700, 3], 3)
    targets = neighborhoods(nearest_targets(squared_distances(Z), y, 2))

    def everything():
        kernels, embedding = embedded(Z, y, dtype)
        z = embedding.coordinates
        candidates = kernels.within(embedding, np.full(y.size, 2.0)).found
        working = kernels.working_set(targets, candidates)
        slopes = kernels.slopes(embedding, working, 0.1)
        values = kernels.distances(embedding, targets, longest=True)
        edge = Edge(targets, by_class=np.array([0.5, 1.0, 2.0]), shared=True)
        partners = kernels.partners(embedding, 3)
        return [
            fingerprint(z),
            fingerprint(partners.columns, partners.distances),
            fingerprint(*kernels.nearest(embedding, z[::5], 3)),
            fingerprint(candidates.indptr, candidates.indices),
            fingerprint(*kernels.hinge(embedding, working, 0.1, moment="coordinates")),
            fingerprint(*kernels.hinge(embedding, working, 0.1, moment="data")),
            fingerprint(kernels.target_hinges(embedding, targets, 1.0 + values)),
            fingerprint(slopes.indptr, slopes.impostor, slopes.slot, slopes.value),
            fingerprint(kernels.pair_scatter(embedding.points, values, np.ones(3))),
            fingerprint(*kernels.edge_scatter(embedding.points, [edge])),
            fingerprint(kernels.distances(embedding, candidates), values),
            fingerprint(kernels.softmax_costs(embedding, targets)),
            fingerprint(*kernels.softmax(embedding, None, full=None)),
            fingerprint(*kernels.softmax(embedding, targets, full=False)),
            fingerprint(*kernels.softmax(embedding, None, full=True)),
        ]

    results = []
    for count in (1, 4):
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        with embedded(Z, y, dtype)[0].session():
            results.append(everything())
    assert results[0] == results[1]


def test_threads_are_capped_by_the_environment(monkeypatch):
    monkeypatch.setattr(threads, "core_count", lambda: 8)
    for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    assert threads.thread_count() == 8
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads.thread_count() == 3
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    assert threads.thread_count() == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    monkeypatch.setenv("NUMBA_NUM_THREADS", "0")
    assert threads.thread_count() == 8


@pytest.mark.parametrize("count", [1, 4])
def test_results_come_in_the_order_of_the_tiles(count, monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: count)
    tiles = row_tiles(103, 10)
    assert tiles[0] == (0, 10)
    assert tiles[-1] == (100, 103)
    assert threads.run_tiles(lambda tile: tile[1] - tile[0], tiles) == [10] * 10 + [3]


def test_errors_inside_a_tile_reach_the_caller(monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: 2)
    with pytest.raises(ZeroDivisionError):
        threads.run_tiles(lambda tile: 1 / tile, [2, 1, 0, 3])
    assert threads.run_tiles(lambda tile: -tile, [1, 2]) == [-1, -2]


def blas_threads():
    # OpenMP keeps a number for each thread: what another thread releases is not seen here.
    return [
        library["num_threads"]
        for library in threadpool_info()
        if library["user_api"] == "blas" and library.get("threading_layer") != "openmp"
    ]


def test_blas_is_limited_by_the_first_and_released_by_the_last_user():
    before = blas_threads()
    release = threading.Event()
    entered = threading.Event()

    def use_blas():
        with threads.single_threaded_blas():
            entered.set()
            release.wait(30)

    other = threading.Thread(target=use_blas)
    with threads.single_threaded_blas():
        other.start()
        assert entered.wait(30)
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {1}
    release.set()
    other.join(30)
    assert blas_threads() == before


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.extras
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_concurrent_fits_equal_those_one_after_the_other(backend):
    X, y = sorted_blobs(1, [40, 30, 30], 3)
    models = [
        *(clone(learner).set_params(tol=0.1) for learner in WITH_OBJECTIVE),
        *map(clone, MEANS),
    ]
    expected = [clone(model).fit(X, y) for model in models]
    n_jobs = {"threading": 4, "loky": 2}[backend]
    fitted = joblib.Parallel(n_jobs=n_jobs, backend=backend)(
        joblib.delayed(model.fit)(X, y) for model in models
    )
    for mine, theirs in zip(expected, fitted, strict=True):
        np.testing.assert_array_equal(mine.components_, theirs.components_)
        assert mine.objective_ == theirs.objective_


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fit_after_a_fork():
    run_script(FORK)


@pytest.mark.parametrize("count", [1, 3])
def test_few_large_results_wait_at_a_time(count, monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: count)
    begun = []

    def square(number):
        begun.append(number)
        return number**2

    found = []
    for done, value in enumerate(threads.each_tile(square, range(40))):
        found.append(value)
        assert len(begun) <= done + 8
    assert found == [number**2 for number in range(40)]
