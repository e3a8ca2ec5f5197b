"""Starts that depend on the rows are found where these are."""

from __future__ import annotations

import numpy as np
import pytest

from lnml import LMNN

da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")


def classes():
    """Three classes in five columns, labels not sorted."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=60)
    return 3.0 * rng.standard_normal((3, 5))[y] + rng.standard_normal((60, 5)) + 10.0, y


def of_unknown_sizes(X):
    """The same rows in chunks of unknown sizes, two of them empty, columns cut."""
    more = da.from_array(np.vstack([X, X]), chunks=(25, 3))
    return more[da.from_array(np.arange(2 * len(X)) < len(X), chunks=25)]


@pytest.mark.parametrize("init", ["pca", "lda"])
def test_starts_are_those_of_one_machine(client, init):
    X, y = classes()
    model = LMNN(n_components=2, init=init)
    # Versions of scikit-learn do not agree on the length of discriminant axes.
    wanted, found = (
        axes / np.linalg.norm(axes, axis=1)[:, None]
        for axes in (model.initial_components(rows, y) for rows in (X, of_unknown_sizes(X)))
    )
    np.testing.assert_allclose(np.abs(np.sum(found * wanted, axis=1)), 1.0, rtol=1e-12)


def test_classes_of_equal_rows_have_no_discriminants(client):
    y = classes()[1]
    rows = da.from_array(np.array([[0.1] * 5, [0.7] * 5, [0.3] * 5])[y], chunks=(25, 5))
    with pytest.raises(ValueError, match="init='lda' needs classes whose rows differ"):
        LMNN(init="lda").fit(rows, y)


def test_bad_rows_are_refused(client):
    X, y = classes()
    with pytest.raises(ValueError, match="X has 60 rows and y has 59"):
        LMNN(init="pca").fit(da.from_array(X, chunks=(25, 5)), y[1:])
    X[30, 2] = np.inf
    with pytest.raises(ValueError, match="NaN or infinity"):
        LMNN(init="lda").fit(da.from_array(X, chunks=(25, 5)), y)
