"""Dask DataFrames of numbers, and labels of all kinds."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from lnml import LMNN, NCA
from lnml.datasets import load_dataset
from lnml.estimators.validation import check_training_data

pd = pytest.importorskip("pandas")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

NAMES = ["a", "b", "c", "d"]


@pytest.fixture(scope="module")
def iris():
    """Iris as a pandas DataFrame, rows in random order, and its labels."""
    data = load_dataset("iris")
    order = np.random.default_rng(0).permutation(len(data.target))
    return pd.DataFrame(data.data[order], columns=NAMES), pd.Series(data.target[order])


@pytest.fixture(scope="module")
def local(iris):
    """The fit on one machine."""
    return LMNN(tol=1e-2).fit(*iris)


def frame(data, npartitions=3):
    """Rows in partitions whose sizes and divisions are not known."""
    return dd.from_pandas(data, npartitions=npartitions, sort=False).clear_divisions()


def few(**columns):
    """Twenty rows of two classes: a frame with one column of numbers and others."""
    rng = np.random.default_rng(1)
    y = np.arange(20) % 2
    return pd.DataFrame({"x": rng.normal(size=20) + 3 * y, **columns}), y


def with_a_hole(X):
    """Rows, one of which has no first value."""
    X = X.copy()
    X.iloc[12, 0] = np.nan
    return X


def test_fit_and_lazy_transform(client, iris, local):
    X, y = iris
    empty = dd.from_pandas(X.iloc[:0], npartitions=1)
    rows = dd.concat([empty, frame(X), empty])
    found = LMNN(tol=1e-2).fit(rows, frame(y, 2))
    np.testing.assert_allclose(found.objective_, local.objective_, rtol=1e-6)
    assert found.duality_gap_ <= found.tol
    assert isinstance(found.target_neighbors_, sparse.csr_array)
    assert (found.target_neighbors_ != local.target_neighbors_).nnz == 0
    assert isinstance(found.n_target_neighbors_, np.ndarray)
    assert np.array_equal(found.n_target_neighbors_, local.n_target_neighbors_)
    assert isinstance(found.objective_, float) and isinstance(found.history_[0], dict)
    # Nothing of the cluster stays in what was fitted.
    assert b"dask" not in pickle.dumps(found)
    assert list(found.feature_names_in_) == NAMES and found.n_features_in_ == 4
    lazy = found.transform(rows)
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), found.transform(X))
    assert found.certificate(rows, y) is found.certificate_
    # What was learned from Dask serves all other kinds of rows.
    np.testing.assert_allclose(found.transform(X), X.to_numpy() @ found.components_.T)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_allclose(found.transform(X.to_numpy().tolist()), found.transform(X))


def test_names_are_checked_as_in_scikit_learn(client, iris, local):
    X, _ = iris
    with pytest.raises(ValueError, match="in the same order"):
        local.transform(frame(X[NAMES[::-1]]))
    with pytest.raises(ValueError, match="unseen at fit time"):
        local.transform(frame(X.rename(columns={"a": "e"})))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        local.transform(da.zeros((5, 4)))
    nameless = LMNN(tol=1e-2).fit(da.from_array(X.to_numpy()), iris[1])
    assert not hasattr(nameless, "feature_names_in_")


@pytest.mark.parametrize(
    "kind", ["array", "series", "pandas", "list", "nullable", "categories", "strings"]
)
def test_labels_of_all_kinds(client, kind):
    X, y = few()
    named = pd.Series(np.where(y == 1, "yes", "no"))
    given, labels = {
        "array": (da.from_array(y, chunks=6), y),
        "series": (frame(pd.Series(y), 4), y),
        "pandas": (pd.Series(y), y),
        "list": (y.tolist(), y),
        "nullable": (frame(pd.Series(y, dtype="Int64")), y),
        "categories": (frame(named.astype("category")), named),
        "strings": (frame(named), named),
    }[kind]
    wanted = check_training_data(LMNN(), X, labels)
    for rows in (frame(X), da.from_array(X.to_numpy()), X, X.to_numpy()):
        found = check_training_data(LMNN(), rows, given)
        assert np.array_equal(found.labels, wanted.labels)
        assert np.array_equal(found.codes, wanted.codes)
    found = LMNN(tol=0.1).fit(X, given)
    assert np.array_equal(found.classes_, wanted.classes)


def test_all_kinds_of_numbers(client):
    rng = np.random.default_rng(2)
    X, y = few(
        whole=rng.integers(-9, 9, 20),
        small=rng.integers(9, size=20).astype(np.uint8),
        truth=rng.random(20) > 0.5,
        maybe=pd.array(rng.random(20) > 0.5, dtype="boolean"),
        counted=pd.array(rng.integers(9, size=20), dtype="Int64"),
        half=rng.normal(size=20).astype(np.float32),
    )
    wanted = LMNN(tol=1e-2).fit(X, y)
    found = LMNN(tol=1e-2).fit(frame(X), y)
    np.testing.assert_allclose(found.objective_, wanted.objective_, rtol=1e-2)
    assert found.components_.dtype == np.float64
    np.testing.assert_allclose(found.transform(frame(X)).compute(), found.transform(X))


def test_float32_stays(client):
    X, y = few()
    X = X.astype(np.float32)
    model = NCA(max_iter=3, tol=0.5).fit(frame(X), y)
    assert model.components_.dtype == np.float32
    assert model.transform(frame(X)).compute().dtype == np.float32


def test_columns_that_are_no_numbers_are_named(client):
    X, y = few(
        word=["p", "q"] * 10,
        kind=pd.Categorical(["p", "q"] * 10),
        day=pd.date_range("2020-01-01", periods=20),
        complex=np.ones(20) * 1j,
    )
    model = LMNN()
    with pytest.raises(ValueError, match=r"no real numbers: 'word'.*'kind'.*'day'.*'complex'"):
        model.fit(frame(X), y)
    with pytest.raises(ValueError, match=r"X.drop\(columns=\['word', 'kind', 'day', 'complex'\]\)"):
        model.fit(frame(X), y)
    assert not hasattr(model, "n_features_in_")
    wanted = model.fit(X[["x"]], y)
    with pytest.raises(ValueError, match="no real numbers: 'word'"):
        wanted.transform(frame(X[["word"]]))


def test_a_word_in_one_partition(client):
    X, y = few()

    def spoiled(part, partition_info=None):
        if partition_info is not None and partition_info["number"] == 1:
            part = part.astype(object)
            part.iloc[0, 0] = "n/a"
        return part

    rows = frame(X).map_partitions(spoiled, meta=X.iloc[:0])
    with pytest.raises(ValueError, match="column 'x' of X should hold numbers"):
        LMNN().fit(rows, y)


def test_columns_of_the_same_name(client):
    X, y = few(z=np.arange(20.0))
    X.columns = ["x", "x"]
    with pytest.raises(ValueError, match="more than one column named 'x'"):
        LMNN().fit(frame(X), y)


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        (lambda X: frame(X["x"]), "own", r"X.to_frame\(\)"),
        (lambda X: frame(X[[]]), "own", "0 columns"),
        (lambda X: frame(with_a_hole(X)), "own", r"NaN or infinity \(chunk 1"),
        (lambda X: frame(X), np.arange(19) % 2, "X has 20 rows and y has 19"),
        (lambda X: frame(X.iloc[:0]), [], "at least 2 are needed"),
        (lambda X: frame(X), np.where(np.arange(20) > 3, 1.0, np.nan), "y contains NaN"),
        (lambda X: frame(X), ["p", None] * 10, "or missing"),
        (lambda X: frame(X), np.linspace(0, 1, 20), "continuous"),
        (lambda X: frame(X), None, "requires y"),
        (lambda X: frame(X), np.zeros(20), "one class only"),
        (lambda X: frame(X), np.arange(20), "one row only"),
        (lambda X: frame(X * 0 + 1), "own", "all rows of X are the same"),
        (lambda X: frame(X * 1e200), "own", "overflow"),
        (lambda X: frame(X * 1e-200), "own", "underflow"),
        (lambda X: frame(X.assign(z=X["x"] * 1e-200)), "own", "column 1 of X differ by"),
    ],
    ids=range(15),
)
def test_bad_data_are_refused(client, rows, labels, message):
    X, y = few()
    model = LMNN()
    with pytest.raises(ValueError, match=message):
        model.fit(rows(X), y if isinstance(labels, str) else labels)
    assert not hasattr(model, "n_features_in_") and not hasattr(model, "components_")


def test_missing_values_are_refused_when_they_are_met(client, iris, local):
    X, _ = iris
    lazy = local.transform(frame(with_a_hole(X)))
    with pytest.raises(ValueError, match="NaN or infinity"):
        lazy.compute()


def test_rows_are_not_gathered_by_set_output(client, iris):
    X, y = iris
    model = LMNN(tol=1e-2).fit(X, y).set_output(transform="pandas")
    with pytest.raises(ValueError, match="set_output"):
        model.transform(frame(X))


def test_pair_distances_are_lazy(client, iris, local):
    pairs = iris[0].to_numpy()[:60].reshape(30, 2, 4)
    lazy = local.pair_distance(da.from_array(pairs, chunks=(7, 1, 3)))
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), local.pair_distance(pairs))
    np.testing.assert_allclose((-lazy).compute(), local.pair_score(pairs))
    with pytest.raises(ValueError, match="shape"):
        local.pair_distance(da.zeros((5, 2, 3)))


def test_chunks_of_another_library_are_refused(client):
    X, y = few()
    chunks = da.from_array(X.to_numpy(), chunks=(10, 1)).map_blocks(sparse.csr_array)
    with pytest.raises(ValueError, match="chunks that are NumPy arrays"):
        LMNN().fit(chunks, y)


def test_frames_are_not_imported_for_arrays():
    code = """if True:
        import sys
        import dask.array as da, numpy as np
        from lnml import LMNN
        model = LMNN().fit(np.arange(40.0).reshape(20, 2), np.arange(20) % 2)
        model.transform(da.ones((20, 2))).compute()
        assert "dask.dataframe" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)
