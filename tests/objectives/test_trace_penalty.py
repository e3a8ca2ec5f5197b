"""The trace penalty against its definition, a conic solver and finite differences."""

import warnings

import numpy as np
import pytest
import sdp
from oracles import (
    central_differences,
    lmnn_objective,
    mcml_objective,
    mmc_ratio,
    nearest_targets,
    neighbor_probabilities,
    other_class,
    pull_scatter,
    root_sum,
    same_class,
    squared_distances,
)
from references import trace_weight
from toy_data import blobs, small_dataset, sorted_blobs, training_set

from lnml import LMNN, MCML, MMC, NCA
from lnml.certificates import verify
from lnml.objectives import triplet_proof
from lnml.objectives.nca import NCAObjective
from lnml.solvers import path

pytestmark = [pytest.mark.usefixtures("device"), pytest.mark.sampled(3)]

SOLVER = 1e-6
# Rows of a graph that has no target neighbours for the first row.
FEW = (0, 4, 9)


def constant(X):
    X[:, 1] = 3.0
    return X


def copied(X):
    X[:, 1] = X[:, 0]
    return X


def dependent(X):
    """Five columns of rank two: v is a mean over two directions."""
    return X[:, :2] @ np.array([[1.0, 0.5, -1.0, 0.0, 2.0], [0.0, 1.0, 1.0, 3.0, 0.1]])


def as_they_are(X):
    return X


SHAPES = [as_they_are, constant, copied, dependent]


def targets_of(model, y):
    """Dense target pairs of a fit."""
    graph = getattr(model, "target_neighbors_", None)
    return same_class(y) * 1.0 if graph is None else graph.toarray().astype(float)


def plain_objective(model, X, y):
    """What a fit minimised, without its penalty; of MMC, the pull alone."""
    name, L = type(model).__name__, model.components_.astype(float)
    P = targets_of(model, y)
    if name == "LMNN":
        return lmnn_objective(X, y, P, L, model.push_weight)
    if name == "MCML":
        return mcml_objective(X, P, L)
    if name == "NCA":
        return float(neighbor_probabilities(squared_distances(X, L))[other_class(y)].sum())
    return mmc_ratio(X, y, P, L)


def penalty_of(model, X, y):
    """Return the penalty of a fit by the definition in docs/trace_penalty.md."""
    name, L = type(model).__name__, model.components_.astype(float)
    weight = float(trace_weight(name, model.trace_penalty, X, y, targets_of(model, y)))
    factor = {"LMNN": 1.0 - getattr(model, "push_weight", 0.0)}.get(name, 1.0)
    penalty = factor * weight * (L**2).sum()
    return penalty / root_sum(squared_distances(X, L), y) ** 2 if name == "MMC" else penalty


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "model",
    [
        LMNN(push_weight=0.3),
        LMNN(n_neighbors=30),
        MCML(),
        MMC(),
        MMC(n_neighbors=2),
        MMC(diagonal=True),
        NCA(),
    ],
    ids=repr,
)
def test_definition(model, shape):
    X, y = blobs(0, [9, 1, 11], 4)
    X = shape(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(trace_penalty=0.03, max_iter=3).fit(X, y)
    penalty = penalty_of(model, X, y)
    assert penalty > 1e-3 * model.objective_
    assert model.objective_ == pytest.approx(plain_objective(model, X, y) + penalty, rel=1e-9)


@pytest.mark.parametrize("model", [LMNN(), MCML(), MMC()], ids=repr)
def test_weight_of_given_targets(model):
    """LMNN and MMC count pairs, MCML counts rows that have any."""
    X, y = blobs(1, [10, 12], 3)
    P = nearest_targets(squared_distances(X), y, 3)
    P[list(FEW)] = 0.0
    P[1:3, :] *= np.cumsum(P[1:3], axis=1) <= 1.0
    model.set_params(trace_penalty=0.02).fit(X, y, target_neighbors=P)
    assert model.objective_ == pytest.approx(
        plain_objective(model, X, y) + penalty_of(model, X, y), rel=1e-9
    )
    weight = model.certificate_.parameters["trace_weight"]
    count = (P.sum(axis=1) > 0).sum() if isinstance(model, MCML) else P.sum()
    assert weight == pytest.approx(0.02 * 2 * count * X.var(axis=0).sum() / 3, rel=1e-12)


def assert_optimal(model, optimum):
    """The objective is within its gap of the optimum, and the bound below it."""
    certificate = model.certificate_
    assert model.converged_ and model.duality_gap_ <= model.tol
    assert certificate.bound <= optimum * (1.0 + SOLVER)
    assert model.objective_ >= optimum * (1.0 - SOLVER)
    assert model.objective_ * (1.0 - model.duality_gap_) <= optimum * (1.0 + SOLVER)
    assert model.objective_ <= optimum * (1.0 + 1.1 * model.tol + SOLVER)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("penalty, push_weight", [(1e-3, 0.5), (0.1, 0.5), (0.5, 0.2), (5.0, 0.8)])
def test_lmnn_optimum(shape, penalty, push_weight):
    X, y = blobs(2, [10, 8, 6], 4)
    X = shape(X)
    model = LMNN(n_neighbors=2, trace_penalty=penalty, push_weight=push_weight, tol=1e-4)
    P = targets_of(model.fit(X, y), y)
    trace = (1.0 - push_weight) * float(trace_weight("LMNN", penalty, X, y, P))
    assert_optimal(model, sdp.lmnn_optimum(X, y, P, push_weight, trace))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("penalty, k", [(1e-3, None), (0.05, None), (0.05, 2), (0.1, 1)])
def test_mcml_optimum(shape, penalty, k):
    X, y = blobs(3, [8, 7, 1], 4)
    X = shape(X)
    P = nearest_targets(squared_distances(X), y, k or 30)
    model = MCML(trace_penalty=penalty, tol=1e-4)
    model.fit(X, y, target_neighbors=None if k is None else P)
    trace = float(trace_weight("MCML", penalty, X, y, P))
    # A metric needs nothing beyond the span of the rows, and a rotation changes no trace.
    span = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2]
    kept = span[: np.linalg.matrix_rank(X - X.mean(axis=0))]
    assert_optimal(model, sdp.mcml_optimum(X @ kept.T, P, trace))


@pytest.mark.filterwarnings("ignore:classes too small")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("penalty, k", [(1e-3, None), (0.1, 2), (10.0, None)])
def test_mmc_optimum(shape, penalty, k, diagonal):
    """The penalty is a multiple of the identity beside S."""
    X, y = blobs(4, [8, 7, 1], 4)
    X = shape(X)
    model = MMC(n_neighbors=k, trace_penalty=penalty, diagonal=diagonal, tol=1e-4).fit(X, y)
    P = targets_of(model, y)
    S = pull_scatter(X, P)
    S = S + float(trace_weight("MMC", penalty, X, y, P)) * np.eye(X.shape[1])
    scale = np.trace(S)
    differences = (X[:, None] - X[None])[other_class(y)]
    optimum = scale * sdp.mmc_optimum(S / scale, differences, diagonal)
    assert_optimal(model, optimum)


def test_mmc_with_directions_in_which_similar_pairs_do_not_differ():
    """Without a penalty the objective is zero there, and the metric says little."""
    X, y = blobs(5, [4, 4], 12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MMC(trace_penalty=0.1).fit(X, y)
    assert model.objective_ > 1e-6 and model.duality_gap_ <= 1e-3


@pytest.mark.parametrize("diagonal", [False, True])
def test_mmc_given_pairs(diagonal):
    """W is the number of similar pairs, and 2 v their mean square along a direction."""
    pairs = np.random.default_rng(6).standard_normal((40, 2, 3)) * [1e-9, 1.0, 1e9]
    labels = np.where(np.arange(40) % 3 > 0, 1, -1)
    v = pairs[:, 0] - pairs[:, 1]
    model = MMC(trace_penalty=0.5, diagonal=diagonal, tol=1e-4).fit_pairs(pairs, labels)
    weight = 0.5 * (labels == 1).sum() * (v**2).sum() / 40 / 3
    S = v[labels == 1].T @ v[labels == 1] + weight * np.eye(3)
    M = model.get_mahalanobis_matrix()
    roots = np.sqrt(np.einsum("ip,pq,iq->i", v, M, v))[labels == -1].sum()
    assert roots == pytest.approx(1.0, rel=1e-6)
    assert model.objective_ == pytest.approx((S * M).sum(), rel=1e-6)
    # What is left of the small columns is nothing: the third alone decides.
    third = sdp.mmc_optimum(np.ones((1, 1)), v[labels == -1][:, 2:] / 1e9) * S[2, 2] / 1e18
    assert model.objective_ == pytest.approx(third, rel=1e-3)


@pytest.mark.parametrize("rank", [1, 4])
def test_nca_gradient(rank):
    X, y = sorted_blobs(7, [9, 8, 12], 4)
    task = NCAObjective(training_set(X, y), 0.2).task()
    L = 3.0 * np.random.default_rng(7).standard_normal((rank, 4))
    value, gradient = task.value_and_gradient(L)
    expected = central_differences(lambda at: task.value_and_gradient(at)[0], L)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())
    free = NCAObjective(training_set(X, y)).task()
    original = free.to_conditioned(task.to_original(L, rank))
    penalty = value - free.value_and_gradient(original)[0]
    weight = float(trace_weight("NCA", 0.2, X, y))
    assert penalty == pytest.approx(weight * (task.to_original(L, rank) ** 2).sum(), rel=1e-8)


def largest_penalty(model, X, y, P):
    """Largest eigenvalue of minus the gradient in M at M = 0, in units of 2 W v."""
    n, D = len(y), X[:, None] - X[None]
    name = type(model).__name__
    if name == "LMNN":
        mu = model.push_weight
        other = other_class(y)
        weights = P * ((1.0 - mu) + mu * other.sum(axis=1)[:, None])
        weights = (weights - mu * P.sum(axis=1)[:, None] * other) / (1.0 - mu)
    else:
        apart, k = 1.0 - np.eye(n), P.sum(axis=1)
        weights = np.where(k[:, None] > 0, P / np.maximum(k, 1)[:, None] - apart / (n - 1), 0.0)
        if name == "NCA":
            share = (same_class(y).sum(axis=1) / (n - 1))[:, None]
            weights = np.where(same_class(y), 1.0 - share, -share) * apart / (n - 1)
    slope = np.einsum("ij,ijp,ijq->pq", weights, D, D)
    return -np.linalg.eigvalsh(slope)[0] / float(trace_weight(name, 1.0, X, y, P))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("model", [LMNN(push_weight=0.3), MCML(), NCA()], ids=repr)
def test_largest_penalty_by_its_formula(model, shape):
    X, y = blobs(8, [9, 1, 14], 4)
    X = 1e3 + shape(X)
    k = 3 if isinstance(model, LMNN) else 30
    P = nearest_targets(squared_distances(X), y, k)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.max_trace_penalty(X, y)
    assert found == pytest.approx(largest_penalty(model, X, y, P), rel=1e-7)


@pytest.mark.parametrize("model", [LMNN(n_neighbors=2, push_weight=0.4), MCML()], ids=repr)
def test_largest_penalty_by_bisection(model):
    """The conic solver finds a metric better than zero below it, and none above it."""
    X, y = blobs(9, [7, 6], 2)
    is_lmnn = isinstance(model, LMNN)
    P = nearest_targets(squared_distances(X), y, 2 if is_lmnn else 30)

    def gain(penalty):
        trace = float(trace_weight(type(model).__name__, penalty, X, y, P))
        if is_lmnn:
            at_zero = lmnn_objective(X, y, P, np.zeros((1, 2)), 0.4)
            return 1.0 - sdp.lmnn_optimum(X, y, P, 0.4, 0.6 * trace) / at_zero
        return 1.0 - sdp.mcml_optimum(X, P, trace) / mcml_objective(X, P, np.zeros((1, 2)))

    low, high = 1e-3, 1e3
    while high > 1.001 * low:
        middle = np.sqrt(low * high)
        low, high = (middle, high) if gain(middle) > 1e-6 else (low, middle)
    # MCML gains by the square of what is left.
    assert low == pytest.approx(model.max_trace_penalty(X, y), rel=2e-3 if is_lmnn else 2e-2)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_large_proofs_are_proofs(monkeypatch, dtype):
    """The way of large data, on small data: verified, and hardly weaker."""
    X, y = small_dataset("wine")
    X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(dtype)
    for name in ("LARGE", "LARGE_ON_DEVICE"):
        monkeypatch.setattr(triplet_proof, name, 0.0)
    monkeypatch.setattr(path, "MOST_WORK", (0.0,))
    for penalty in (1e-6, 0.1, 10.0):
        model = LMNN(trace_penalty=penalty).fit(X, y)
        assert model.duality_gap_ <= min(1e-3, model.history_[-1]["gap"] + 1e-4)
        found = verify(model.certificate_, X, y)
        assert found.holds, found.reason
        assert found.bound == pytest.approx(model.certificate_.bound, rel=1e-6)


def test_a_strong_penalty_does_not_end_at_zero():
    """An outlier sets v: no multiple of the Euclidean metric is better than none, others are."""
    X, y = blobs(10, [9, 11], 4)
    X[3, 2] = 1e7
    for share in (0.05, 0.3, 0.9, 0.999):
        model = LMNN()
        limit = model.max_trace_penalty(X, y)
        model.set_params(trace_penalty=share * limit).fit(X, y)
        at_zero = 0.5 * (model.n_target_neighbors_ * other_class(y).sum(axis=1)).sum()
        assert model.duality_gap_ <= 1e-3 and model.n_iter_ <= 10
        assert model.objective_ < at_zero * (1.0 - 1e-6)
