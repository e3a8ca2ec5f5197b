"""Fits with the torch kernels on the workers: torch on the CPU stands for a GPU here."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from cluster import fits_have_the_same_bits
from lnml import LMNN, LNML, MCML, NCA
from lnml.certificates import verify
from lnml.datasets import load_dataset
from lnml.kernels.cluster import cells, tiles

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
