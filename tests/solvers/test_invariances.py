"""What must not change the optimum: row order, rotation, translation, class names, scales."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import nearest_targets, squared_distances
from scipy.stats import ortho_group
from toy_data import blobs

from lnml import LMNN, LNML, MCML

pytestmark = pytest.mark.usefixtures("device")

TOL = 1e-3
SLACK = 1e-7
NAMES = np.array(["walrus", "ant", "yak"])

seeds = st.integers(0, 10_000)
few = settings(max_examples=8)
MODELS = [LMNN(max_iter=200), LMNN(push_weight=0.85, n_neighbors=2, max_iter=200), MCML()]
models = st.sampled_from(MODELS)


def toy(seed):
    return blobs(seed, [14, 12, 10], 3)


def fit(model, X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return type(model)(**model.get_params()).fit(X, y, **options)


def assert_same_optimum(first, second):
    """Certified intervals that overlap, each no longer than the tolerance."""
    intervals = [(m.history_[-1]["bound"], m.objective_) for m in (first, second)]
    for (low, _), (_, high) in (intervals, intervals[::-1]):
        assert low <= high * (1.0 + SLACK)
    assert first.duality_gap_ <= TOL
    assert second.duality_gap_ <= TOL
    assert first.objective_ == pytest.approx(second.objective_, rel=TOL * (1.0 + SLACK))


@few
@given(seeds, models)
def test_row_order(seed, model):
    X, y = toy(seed)
    order = np.random.default_rng(seed).permutation(y.size)
    first, second = fit(model, X, y), fit(model, X[order], y[order])
    assert_same_optimum(first, second)
    if isinstance(model, LMNN):
        graph = first.target_neighbors_.toarray()
        np.testing.assert_array_equal(
            second.target_neighbors_.toarray(), graph[np.ix_(order, order)]
        )


@few
@given(seeds, models)
def test_rotation(seed, model):
    X, y = toy(seed)
    rotation = ortho_group.rvs(3, random_state=seed)
    assert_same_optimum(fit(model, X, y), fit(model, X @ rotation, y))


@few
@given(seeds, models, st.sampled_from([1.0, -30.0, 1e4]))
def test_translation(seed, model, offset):
    X, y = toy(seed)
    assert_same_optimum(fit(model, X, y), fit(model, X + offset * np.arange(3.0), y))


@few
@given(seeds, models)
def test_class_names(seed, model):
    """Names that sort in another order, so that classes change places inside."""
    X, y = toy(seed)
    assert_same_optimum(fit(model, X, y), fit(model, X, NAMES[y]))


@few
@given(seeds, st.tuples(*[st.sampled_from([1e-8, 1e-3, 7.0, 1e8])] * 3))
def test_column_scales_with_given_targets(seed, scales):
    X, y = toy(seed)
    P = nearest_targets(squared_distances(X), y, 3)
    first, second = (
        fit(MODELS[0], data, y, target_neighbors=P) for data in (X, X * np.array(scales))
    )
    assert_same_optimum(first, second)


@few
@given(seeds)
def test_any_linear_map_with_classes_as_targets(seed):
    X, y = toy(seed)
    linear_map = np.random.default_rng(seed).standard_normal((3, 3))
    assert_same_optimum(fit(MODELS[2], X, y), fit(MODELS[2], X @ linear_map, y))


@few
@given(seeds)
def test_learned_distances_do_not_depend_on_the_coordinates(seed):
    """Not only the objective: the metric itself, as far as the optimum pins it down."""
    X, y = toy(seed)
    rotation = ortho_group.rvs(3, random_state=seed)
    first, second = (
        MCML(tol=1e-6).fit(data, y).transform(data) for data in (X, X @ rotation + 5.0)
    )
    D = squared_distances(first)
    np.testing.assert_allclose(squared_distances(second), D, rtol=0.05, atol=0.01 * D.max())


@pytest.mark.parametrize("seed", range(3))
def test_first_neighborhoods_of_learned_ones(seed):
    """The first assignment of LNML, which fixes where the alternation goes."""
    X, y = toy(seed)
    rng = np.random.default_rng(seed)
    order = rng.permutation(y.size)
    rotation = ortho_group.rvs(3, random_state=seed)
    model = LNML(k_min=1, k_av=3, k_max=5, tol=1e-2)
    objectives = [
        fit(model, data, labels).history_[0]["objective_assigned"]
        for data, labels in (
            (X, y),
            (X[order], y[order]),
            (X @ rotation, y),
            (X + 10.0, y),
            (X, NAMES[y]),
        )
    ]
    np.testing.assert_allclose(objectives, objectives[0], rtol=1e-8)
