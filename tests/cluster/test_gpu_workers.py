"""Fits with the torch kernels on the workers: torch on the CPU stands for a GPU here."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from cluster import fits_have_the_same_bits, start
from lnml import LMNN, LNML, MCML, NCA
from lnml.certificates import verify
from lnml.datasets import load_dataset
from lnml.kernels import get_kernels
from lnml.kernels.cluster import cells, crew, tiles
from lnml.kernels.training import TrainingSet

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
torch = pytest.importorskip("torch")

from lnml.kernels.cluster.torch_tiles import TorchTiles  # noqa: E402

# The tiles themselves are tested in test_torch_tiles.py.
pytestmark = pytest.mark.extras


@pytest.fixture(scope="module")
def torch_workers(client):
    """Two workers in this process that use torch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiles, "WORKER_DEVICE", "torch:cpu")
        assert isinstance(tiles.tiles_on(tiles.WORKER_DEVICE), TorchTiles)
        yield client


@pytest.fixture
def used(monkeypatch):
    """Names of the operations of torch that were used."""
    found = set()
    for name in ("search", "hinge", "slopes", "carry_over", "totals", "products", "nearest"):
        method = getattr(TorchTiles, name)

        def counted(self, *given, method=method, name=name):
            found.add(name)
            return method(self, *given)

        monkeypatch.setattr(TorchTiles, name, counted)
    return found


def test_lmnn(torch_workers, iris, used):
    X, y = iris
    wanted = LMNN(tol=1e-2).fit(X, y)
    found = LMNN(tol=1e-2).fit(da.from_array(X, chunks=(40, 4)), y)
    assert {"search", "hinge", "slopes", "nearest"} <= used
    assert found.converged_ and found.duality_gap_ <= found.tol
    np.testing.assert_allclose(found.objective_, wanted.objective_, rtol=1e-6)
    assert (found.target_neighbors_ != wanted.target_neighbors_).nnz == 0
    report = verify(found.certificate(X, y), X, y)
    assert report.holds, report.reason


def test_rows_go_to_the_device_once_and_are_let_go(torch_workers, iris, monkeypatch):
    X, y = iris
    copied, mapped = [], TorchTiles.mapped

    def counted(self, rows, row_map):
        if isinstance(rows, np.ndarray):
            copied.append(len(rows))
        return mapped(self, rows, row_map)

    monkeypatch.setattr(TorchTiles, "mapped", counted)
    LMNN(tol=0.5, init="identity").fit(da.from_array(X, chunks=(40, 4)), y)
    assert sum(copied) == len(X)
    assert not cells._blocks


def test_learned_neighbourhoods(torch_workers, used):
    data = load_dataset("iris")
    model = LNML(LMNN(), k_min=1, k_av=3, k_max=5, max_rounds=3, tol=1e-2)
    wanted = model.fit(data.data, data.target)
    found = LNML(**model.get_params(deep=False)).fit(
        da.from_array(data.data, chunks=(40, 4)), data.target
    )
    assert "carry_over" in used
    assert (found.target_neighbors_ != wanted.target_neighbors_).nnz == 0
    np.testing.assert_allclose(found.objective_, wanted.objective_, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("model", "outlier"),
    [
        (NCA(max_iter=6), 0.0),
        (NCA(max_iter=6), 300.0),
        (NCA(n_components=1, max_iter=6), 300.0),
        (MCML(tol=1e-2), 0.0),
        pytest.param(MCML(tol=1e-2), 300.0, marks=pytest.mark.extras),
    ],
    ids=str,
)
def test_sums_over_all_pairs(torch_workers, iris, used, model, outlier):
    """Also with a row so far away that its weights underflow."""
    X, y = iris
    X = X.copy()
    X[7] += outlier
    wanted = clone(model).fit(X, y)
    found = clone(model).fit(da.from_array(X, chunks=(60, 4)), y)
    assert {"totals", "products"} <= used
    np.testing.assert_allclose(found.objective_, wanted.objective_, rtol=1e-6)
    if wanted.duality_gap_ is not None and outlier == 0.0:
        assert found.duality_gap_ <= model.tol


@pytest.mark.parametrize(
    "model",
    [
        LMNN(tol=1e-2),
        NCA(max_iter=6),
        pytest.param(MCML(tol=1e-2), marks=pytest.mark.extras),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_float32(torch_workers, iris, model):
    X, y = iris
    wanted = clone(model).fit(X, y)
    found = clone(model).fit(da.from_array(X.astype(np.float32), chunks=(50, 4)), y)
    assert found.components_.dtype == np.float32
    np.testing.assert_allclose(found.objective_, wanted.objective_, rtol=1e-2)


@pytest.mark.extras
def test_same_bits_for_any_number_of_workers(torch_workers, iris):
    fits_have_the_same_bits(*iris)


def use_torch():
    """Let the tiles of this worker be those of torch."""
    tiles.WORKER_DEVICE = "torch:cpu"


def kind_of_tiles():
    """Name of what this worker uses."""
    return type(cells.worker_tiles()).__name__


@pytest.fixture(scope="module")
def mixed_workers():
    """A process with the tiles of the CPU, and one with those of torch."""
    with start(2, processes=True) as cluster, distributed.Client(cluster) as connected:
        connected.wait_for_workers(2)
        first = min(connected.nthreads())
        connected.run(use_torch, workers=[first])
        assert sorted(connected.run(kind_of_tiles).values()) == ["CpuTiles", "TorchTiles"]
        yield connected


def change_places(self):
    """Let the two workers of a crew change places."""
    first, second = self.workers()
    other = {first: second, second: first}
    self.of_cell = {cell: other[name] for cell, name in self.of_cell.items()}


@pytest.mark.parametrize("turned", [False, True])
def test_workers_of_two_kinds(mixed_workers, iris, turned, monkeypatch):
    """Also if each phase runs where the one before did not."""
    X, y = iris
    groups = crew.Crew._groups

    def turned_groups(self, cells):
        change_places(self)
        return groups(self, cells)

    if turned:
        monkeypatch.setattr(crew.Crew, "_groups", turned_groups)
    wanted = LMNN(tol=1e-2).fit(X, y)
    found = LMNN(tol=1e-2).fit(da.from_array(X, chunks=(40, 4)), y)
    assert found.converged_ and found.duality_gap_ <= found.tol
    np.testing.assert_allclose(found.objective_, wanted.objective_, rtol=1e-6)
    assert (found.target_neighbors_ != wanted.target_neighbors_).nnz == 0
    report = verify(found.certificate(X, y), X, y)
    assert report.holds, report.reason


def test_pairs_and_multipliers_go_from_one_kind_to_the_other(mixed_workers, iris):
    X, y = iris
    kernels = get_kernels("cluster")
    with kernels.session():
        codes = np.unique(y, return_inverse=True)[1]
        training = TrainingSet.from_labels(da.from_array(X, chunks=(40, 4)), codes, kernels)
        embedding = kernels.embed(training.points, np.diag([1.0, 2.0, 0.5, 1.5]))
        targets = kernels.partners(embedding, 3).pairs
        radius = kernels.distances(embedding, targets, longest=True) + 1.0
        found = kernels.within(embedding, radius).found
        slopes = kernels.slopes(embedding, kernels.working_set(targets, found), 0.1)
        working = kernels.working_set(targets, found, slopes)
        here = kernels.hinge(embedding, working, 0.1, moment="data")
        again = kernels.to_host(kernels.slopes(embedding, working, 0.1))
        change_places(kernels.crew)
        there = kernels.hinge(embedding, working, 0.1, moment="data")
        moved = kernels.to_host(kernels.slopes(embedding, working, 0.1))
    assert here.n_active == there.n_active > 0
    np.testing.assert_allclose(there.smoothed, here.smoothed, rtol=1e-12)
    np.testing.assert_allclose(there.moment, here.moment, rtol=1e-10, atol=1e-10)
    for name in ("indptr", "impostor", "slot"):
        np.testing.assert_array_equal(getattr(moved, name), getattr(again, name))
    np.testing.assert_allclose(moved.value, again.value, rtol=1e-10)


def test_a_worker_looks_for_a_gpu(monkeypatch):
    asked = []
    monkeypatch.setattr("lnml.kernels.cluster.torch_tiles.TorchTiles", asked.append)
    for has_gpu in (True, False):
        monkeypatch.setattr(tiles, "_has_gpu", lambda found=has_gpu: found)
        chosen = tiles.tiles_on.__wrapped__(None)
        assert type(chosen).__name__ == ("NoneType" if has_gpu else "CpuTiles")
    assert asked == ["cuda"]


def test_a_task_has_exact_products_and_tells_when_memory_is_short():
    torch.set_float32_matmul_precision("medium")
    try:
        with (
            pytest.raises(MemoryError, match="more workers, one for each GPU"),
            TorchTiles("torch:cpu").session(),
        ):
            assert torch.get_float32_matmul_precision() == "highest"
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")
