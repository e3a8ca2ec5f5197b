"""Fits on a cluster give what fits on one machine give."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from cluster import fits_have_the_same_bits
from lnml import ITML, LMNN, LNML, MCML, MMC, NCA
from lnml.certificates import verify
from lnml.datasets import load_dataset

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.sampled(3)


@pytest.fixture(scope="module")
def local(iris):
    """The fit on one machine."""
    return LMNN(tol=1e-2).fit(*iris)


def close(found, wanted):
    """Both are proved, and have the same objective."""
    assert found.converged_ and found.duality_gap_ <= found.tol
    np.testing.assert_allclose(found.objective_, wanted.objective_, rtol=1e-6)


@pytest.mark.parametrize(
    "chunks",
    [
        (50, 3),
        pytest.param((17, 4), marks=pytest.mark.extras),
        pytest.param((150, 4), marks=pytest.mark.extras),
    ],
)
def test_any_chunks(client, iris, local, chunks):
    X, y = iris
    found = LMNN(tol=1e-2).fit(da.from_array(X, chunks=chunks), y)
    close(found, local)
    assert isinstance(found.components_, np.ndarray)
    assert (found.target_neighbors_ != local.target_neighbors_).nnz == 0


def test_certificate_can_be_checked(client, iris):
    X, y = iris
    found = LMNN(tol=1e-2).fit(da.from_array(X, chunks=(60, 4)), da.from_array(y, chunks=60))
    report = verify(found.certificate(X, y), X, y)
    assert report.holds, report.reason


@pytest.mark.parametrize("model", [LMNN(), MCML()], ids=str)
def test_columns_that_depend_on_each_other(client, iris, model):
    """As with 0/1 columns of categories: directions in which rows do not differ are left out."""
    X, y = iris
    X = np.column_stack([X, X[:, 0] + X[:, 1], np.ones(len(y))])
    wanted = clone(model).fit(X, y)
    found = clone(model).fit(da.from_array(X, chunks=(60, 6)), y)
    close(found, wanted)
    report = verify(found.certificate(X, y), X, y)
    assert report.holds, report.reason


def test_huge_values_beside_such_columns_are_not_trusted(client, iris):
    X, y = iris
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    X[3, :2] = 1e13
    with pytest.warns(Warning):
        found = LMNN(max_iter=2).fit(da.from_array(X, chunks=(60, 5)), y)
    assert not found.converged_


def test_chunks_of_unknown_size_and_empty_chunks(client, iris, local):
    X, y = iris
    doubled = da.concatenate(
        [da.from_array(X, chunks=(40, 4)), da.from_array(X + 1e6, chunks=(40, 4))]
    )
    kept = doubled[da.from_array(np.arange(2 * len(y)) < len(y), chunks=40)]
    assert np.isnan(kept.shape[0])
    found = LMNN(tol=1e-2).fit(kept, y)
    close(found, local)
    assert found.certificate(X, y) is not None


@pytest.mark.extras
def test_float32(client, iris, local):
    X, y = iris
    found = LMNN(tol=1e-2).fit(da.from_array(X.astype(np.float32), chunks=(50, 4)), y)
    assert found.components_.dtype == np.float32
    np.testing.assert_allclose(found.objective_, local.objective_, rtol=1e-2)


@pytest.mark.extras
def test_a_class_in_one_block_and_offsets(client):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 4)) + 100.0
    y = np.repeat([0, 1, 2], [5, 5, 80])
    X[y == 1] += 1.0
    close(LMNN(tol=1e-2).fit(da.from_array(X, chunks=(30, 4)), y), LMNN(tol=1e-2).fit(X, y))


def test_learned_neighbourhoods_are_the_same(client):
    data = load_dataset("iris")
    # Its base learner is LMNN.
    model = LNML(k_min=1, k_av=3, k_max=5, max_rounds=3, tol=1e-2)
    wanted = model.fit(data.data, data.target)
    found = LNML(**model.get_params(deep=False)).fit(
        da.from_array(data.data, chunks=(40, 4)), data.target
    )
    assert (found.target_neighbors_ != wanted.target_neighbors_).nnz == 0
    np.testing.assert_allclose(found.objective_, wanted.objective_, rtol=1e-6)
    np.testing.assert_allclose(
        found.target_costs_.toarray(), wanted.target_costs_.toarray(), rtol=1e-4, atol=1e-6
    )


SOFTMAX = [
    NCA(max_iter=6),
    NCA(n_components=1, max_iter=6),
    MCML(tol=1e-2),
    pytest.param(MCML(tol=1e-2, trace_penalty=1e-3), marks=pytest.mark.extras),
    pytest.param(LNML(MCML(), max_rounds=2, tol=1e-2), marks=pytest.mark.extras),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("outlier", [0.0, 300.0])
@pytest.mark.parametrize("model", SOFTMAX, ids=str)
def test_sums_over_all_pairs(client, iris, model, outlier):
    """Also with a row so far away that its weights underflow."""
    X, y = iris
    X = X.copy()
    X[7] += outlier
    wanted = clone(model).fit(X, y)
    found = clone(model).fit(da.from_array(X, chunks=(60, 4)), y)
    # Rounds may take another way after a digit of rounding, and end near another optimum.
    rtol = model.tol if isinstance(model, LNML) else 1e-6
    np.testing.assert_allclose(found.objective_, wanted.objective_, rtol=rtol)
    if wanted.duality_gap_ is not None and outlier == 0.0:
        assert found.duality_gap_ <= model.tol


@pytest.mark.extras
def test_same_bits_for_any_number_of_workers(iris):
    fits_have_the_same_bits(*iris)


def test_transform_is_lazy(client, iris, local):
    X, _ = iris
    lazy = local.transform(da.from_array(X, chunks=(50, 3)))
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), local.transform(X))
    with pytest.raises(ValueError, match="4 features"):
        local.transform(da.zeros((5, 3)))


@pytest.mark.parametrize("model", [MMC(), ITML(), LNML(MMC())])
def test_others_refuse(client, iris, model):
    X, y = iris
    with pytest.raises(TypeError, match="cannot be fitted to a Dask array"):
        model.fit(da.from_array(X, chunks=(50, 4)), y)


def test_bad_rows_are_refused(client, iris):
    X, y = iris
    bad = X.copy()
    bad[100, 3] = np.nan
    model = LMNN()
    with pytest.raises(ValueError, match="NaN or infinity"):
        model.fit(da.from_array(bad, chunks=(50, 4)), y)
    with pytest.raises(ValueError, match="one label for each row"):
        model.fit(da.from_array(X, chunks=(50, 4)), y[:-1])
    assert not hasattr(model, "components_")
