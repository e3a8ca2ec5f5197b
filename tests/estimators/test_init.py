"""Where a fit starts if a method finds one axis fewer than there are components."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from lnml import LMNN


def three_classes(n_rows, n_features):
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % 3
    return 3.0 * rng.standard_normal((3, n_features))[y] + rng.standard_normal(
        (n_rows, n_features)
    ), y


@pytest.fixture(params=["array", "tensor"])
def convert(request):
    return np.asarray if request.param == "array" else pytest.importorskip("torch").tensor


def projector(vectors):
    """Orthogonal projection on the span of the rows."""
    return np.linalg.pinv(vectors) @ vectors


def test_discriminant_analysis_is_completed_by_one_direction(convert):
    """Three classes have two discriminant axes, the span of W^-1 times differences of means."""
    X, y = three_classes(60, 5)
    means = np.array([X[y == c].mean(axis=0) for c in range(3)])
    within = (X - means[y]).T @ (X - means[y])
    axes = np.linalg.solve(within, (means[1:] - means[0]).T).T
    found = LMNN(n_components=3, init="lda").initial_components(convert(X), y)
    assert found.shape == (3, 5)
    assert_allclose(projector(found[:2]), projector(axes), atol=1e-9)
    assert_allclose(found[:2] @ found[2], 0.0, atol=1e-12)
    assert_allclose(np.linalg.norm(found[2]), 1.0, rtol=1e-12)


def test_principal_axes_of_few_rows_are_completed_by_one_direction(convert):
    """Four rows give four axes, of which the first three hold all variance."""
    X, y = three_classes(4, 5)
    found = LMNN(n_components=5, init="pca").initial_components(convert(X), y)
    assert found.shape == (5, 5)
    assert_allclose(found @ found.T, np.eye(5), atol=1e-12)
    assert_allclose(projector(found[:3]), projector(X[1:] - X[0]), atol=1e-9)


@pytest.mark.filterwarnings("ignore:classes too small")
@pytest.mark.parametrize(("init", "rank", "n_rows"), [("lda", 3, 60), ("pca", 5, 4)])
def test_a_completed_start_can_be_fitted(init, rank, n_rows):
    X, y = three_classes(n_rows, 5)
    model = LMNN(n_components=rank, init=init).fit(X, y)
    assert model.converged_
    assert model.components_.shape == (rank, 5)
