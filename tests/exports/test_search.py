"""Indexes of Faiss against distances from differences."""

import numpy as np
import pytest
from model_tables import fitted_model
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from lnml import LMNN
from lnml.datasets import list_datasets, load_dataset
from lnml.exports import to_faiss

pytestmark = pytest.mark.extras
faiss = pytest.importorskip("faiss", reason="needs lnml[faiss]")

BEFORE = {
    "metric": [],
    "standard": [StandardScaler],
    "minmax, whitened": [MinMaxScaler, lambda: PCA(3, whiten=True)],
}


def assert_nearest(found, references, queries, k):
    """The k nearest references; which of those that float32 cannot tell apart is left open."""
    squares, places = found
    assert places.shape == (len(queries), k)
    exact = ((queries[:, None] - references) ** 2).sum(axis=2)
    slack = 1e-5 * np.var(references, axis=0).sum() + 1e-4 * np.sort(exact, axis=1)[:, k - 1]
    reached = np.take_along_axis(exact, places, axis=1)
    assert all(len(set(row)) == k for row in places.tolist())
    assert (np.abs(squares - reached) <= slack[:, None]).all()
    best = np.sort(exact, axis=1)[:, :k]
    assert (np.abs(np.sort(reached, axis=1) - best) <= slack[:, None]).all()
    return (places == np.argsort(exact, axis=1, kind="stable")[:, :k]).mean()


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("name", list_datasets())
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_same_neighbours(name, before):
    data = load_dataset(name)
    order = np.random.default_rng(0).permutation(len(data.data))
    inside, outside = order[:600][: len(order) * 2 // 3], order[-40:]
    steps = [make() for make in BEFORE[before]]
    model = make_pipeline(*steps, LMNN(max_iter=20)).fit(data.data[inside], data.target[inside])
    index = to_faiss(model, data.data[inside])
    assert isinstance(index, faiss.IndexPreTransform) and index.ntotal == len(inside)
    queries = data.data[outside]
    found = index.search(queries.astype(np.float32), 5)
    mapped = model.transform(data.data[inside]), model.transform(queries)
    same = assert_nearest(found, *mapped, 5)
    # Rows of whole numbers, or with one decimal, are often equally far.
    if name in ("wine", "sonar", "ionosphere"):
        assert same > 0.99


def test_offset_costs_no_neighbours():
    """Without a scaler columns may lie far from 0, where float32 has few digits left."""
    iris = load_dataset("iris")
    X = iris.data + 1000.0
    model = LMNN().fit(X, iris.target)
    index = to_faiss(model, X)
    found = index.search(X.astype(np.float32), 3)
    rounded = model.transform(X.astype(np.float32).astype(float))
    exact = ((rounded[:, None] - rounded) ** 2).sum(axis=2)
    reached = np.take_along_axis(exact, found[1], axis=1)
    np.testing.assert_allclose(np.sort(reached), np.sort(exact)[:, :3], atol=1e-2 * exact.mean())


def test_too_large_an_offset_warns():
    iris = load_dataset("iris")
    model = make_pipeline(StandardScaler(), LMNN(max_iter=20)).fit(iris.data + 1e7, iris.target)
    with pytest.warns(UserWarning, match="subtract a constant before the fit and before the index"):
        to_faiss(model)


def test_estimator_without_rows():
    iris = load_dataset("iris")
    model = LMNN().fit(iris.data, iris.target)
    index = to_faiss(model)
    assert index.ntotal == 0
    index.add(iris.data.astype(np.float32))
    np.testing.assert_array_equal(
        index.search(iris.data[:100:7].astype(np.float32), 1)[0], np.zeros((15, 1), np.float32)
    )
    with pytest.raises(ValueError, match="X must have 4 columns"):
        to_faiss(model, iris.data[:, :3])
    assert to_faiss(model, iris.data[:0]).ntotal == 0


def test_models_keep_their_rows(tmp_path):
    model, frame = fitted_model(tmp_path, scale="minmax", pca=4)
    index = to_faiss(model)
    assert index.ntotal == 60
    distances, rows = model.neighbors(frame, 4)
    X = np.column_stack(
        [frame[["size", "weight", "year"]], frame["colour"] == "blue", frame["colour"] == "red"]
    )
    squares, places = index.search(X.astype(np.float32), 4)
    assert (places == rows).mean() > 0.98
    np.testing.assert_allclose(np.sqrt(squares), distances, atol=1e-3 * distances.max())


def test_index_survives_its_file(tmp_path):
    iris = load_dataset("iris")
    index = to_faiss(LMNN().fit(iris.data, iris.target), iris.data)
    faiss.write_index(index, str(tmp_path / "iris.faiss"))
    again = faiss.read_index(str(tmp_path / "iris.faiss"))
    queries = iris.data[::9].astype(np.float32)
    for a, b in zip(index.search(queries, 3), again.search(queries, 3), strict=True):
        np.testing.assert_array_equal(a, b)
