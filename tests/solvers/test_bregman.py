"""Bregman projections, against cvxpy and the update as the literature states it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracles import itml_dual, itml_objective
from sdp import itml_optimum

from lnml.core.monitor import Monitor
from lnml.kernels.cpu import logdet
from lnml.objectives.logdet import Constraints, LogDetTask, Span, symmetric_root
from lnml.solvers.bregman import newton_step, solve_logdet, sweep
from lnml.solvers.run import Run

GAMMAS = [0.01, 1.0, 30.0]


def problem(seed, n_constraints=25, n_features=4):
    """Vectors, kinds and bounds of constraints that contradict each other."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((n_constraints, n_features)) * rng.uniform(0.1, 3.0, n_features)
    similar = rng.random(n_constraints) < 0.5
    return vectors, similar, np.where(similar, 1.5, 9.0)


def scaled(vectors, similar, bounds):
    return Constraints(vectors / np.sqrt(bounds)[:, None], similar)


def solve(constraints, gamma, tol=1e-6, max_iter=300):
    run = Run(tol, max_iter, Monitor(), symmetric_root)
    return solve_logdet(LogDetTask(constraints, gamma), np.eye(constraints.vectors.shape[1]), run)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("seed", range(3))
def test_bound_and_objective_enclose_the_optimum(seed, gamma):
    vectors, similar, bounds = problem(seed)
    found = solve(scaled(vectors, similar, bounds), gamma)
    optimum = itml_optimum(vectors, similar, bounds, gamma)
    M = found.components.T @ found.components
    assert found.converged and found.gap <= 1e-6
    assert found.bound <= optimum * (1 + 1e-5) and optimum <= found.objective * (1 + 1e-5)
    assert_allclose(found.objective, optimum, rtol=1e-5)
    assert_allclose(found.objective, itml_objective(M, vectors, similar, bounds, gamma), rtol=1e-9)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_any_dual_point_bounds_from_below(gamma):
    """Metric, objective and bound of dual variables, from the formulas."""
    vectors, similar, bounds = problem(7)
    rng = np.random.default_rng(0)
    share = rng.uniform(0.0, 0.3, similar.size)
    tightness = np.where(similar, 1.0 - share, 1.0 + 0.01 * share / gamma)
    seen = LogDetTask(scaled(vectors, similar, bounds), gamma).projected(tightness)
    multipliers = gamma * np.abs(1.0 - tightness) / bounds
    signed = np.where(similar, multipliers, -multipliers)
    M = np.linalg.inv(np.eye(4) + np.einsum("i,ip,iq->pq", signed, vectors, vectors))
    assert_allclose(seen.metric.factor.T @ seen.metric.factor, M, rtol=1e-9, atol=1e-12)
    assert_allclose(
        seen.metric.objective, itml_objective(M, vectors, similar, bounds, gamma), rtol=1e-9
    )
    assert_allclose(
        seen.bound, itml_dual(multipliers, vectors, similar, bounds, gamma), rtol=1e-9, atol=1e-9
    )
    assert seen.bound <= itml_optimum(vectors, similar, bounds, gamma) + 1e-6


def textbook_sweep(M, multipliers, xi, vectors, similar, gamma):
    """Davis et al., algorithm 1, with alpha so that the new distance equals the new slack."""
    for i, v in enumerate(vectors):
        p = v @ M @ v
        delta = 1.0 if similar[i] else -1.0
        alpha = min(multipliers[i], delta * gamma / (gamma + 1.0) * (1.0 / p - 1.0 / xi[i]))
        beta = delta * alpha / (1.0 - delta * alpha * p)
        xi[i] = gamma * xi[i] / (gamma + delta * alpha * xi[i])
        multipliers[i] -= alpha
        M = M + beta * np.outer(M @ v, M @ v)
    return M


@pytest.mark.parametrize("block", [1, 7, 64])
@pytest.mark.parametrize("gamma", GAMMAS)
def test_sweeps_are_the_textbook_ones(gamma, block, monkeypatch):
    monkeypatch.setattr(logdet, "BLOCK", block)
    vectors, similar, bounds = problem(3)
    M, multipliers, xi = np.eye(4), np.zeros(similar.size), bounds.copy()
    constraints = scaled(vectors, similar, bounds)
    tightness = np.ones(similar.size)
    for _ in range(4):
        images = constraints.vectors @ np.linalg.cholesky(M)
        M = textbook_sweep(M, multipliers, xi, vectors, similar, gamma)
        logdet.project_in_turn(images, similar, gamma, tightness)
        assert_allclose(tightness, bounds / xi, rtol=1e-9)
        rebuilt = LogDetTask(constraints, gamma).projected(tightness).metric.factor
        assert_allclose(rebuilt.T @ rebuilt, M, rtol=1e-8, atol=1e-10)


def test_bound_of_sweeps_never_falls_and_they_reach_the_optimum():
    constraints = scaled(*problem(1))
    task = LogDetTask(constraints, 3.0)
    dual = task.projected(np.ones(25))
    bounds = [dual.bound]
    for _ in range(60):
        dual = sweep(task, dual)
        bounds.append(dual.bound)
        assert dual.bound <= dual.metric.objective
    assert (np.diff(bounds) >= -1e-12).all()
    assert_allclose(dual.bound, solve(constraints, 3.0, tol=1e-9).objective, rtol=0.02)


@pytest.mark.parametrize("gamma", [1.0, 100.0, 1e4])
def test_newton_steps_close_the_gap(gamma):
    """Far below what sweeps reach; also where contradictions weigh much more than the prior."""
    found = solve(scaled(*problem(8)), gamma, tol=1e-10)
    assert found.converged
    assert found.bound <= found.objective


def test_newton_step_never_makes_it_worse():
    task = LogDetTask(scaled(*problem(9)), 50.0)
    metric = task.metric(np.eye(4), 0.0)
    for _ in range(30):
        better, bound = newton_step(task, metric)
        assert better.objective <= metric.objective
        assert bound <= better.objective * (1 + 1e-12)
        assert_allclose(better.log_det, 2 * np.linalg.slogdet(better.factor)[1], atol=1e-9)
        metric = better


def test_kept_constraints_leave_the_identity():
    vectors, similar, bounds = problem(2)
    lengths = np.linalg.norm(vectors, axis=1)
    vectors *= (np.sqrt(bounds) * np.where(similar, 0.9, 1.1) / lengths)[:, None]
    found = solve(scaled(vectors, similar, bounds), 1.0)
    assert found.objective == found.bound == found.gap == 0.0
    assert_allclose(found.components, np.eye(4), atol=1e-14)


def test_span_gives_the_metric_of_the_full_space():
    vectors, similar, bounds = problem(4, n_constraints=6, n_features=15)
    full = scaled(vectors, similar, bounds)
    span = Span(full.vectors)
    assert span.coordinates.shape == (6, 6)
    # Constraints of length zero change nothing and keep the task from reducing to the span.
    idle = Constraints(
        np.vstack([full.vectors, 1e-9 * np.eye(15)]), np.append(similar, [True] * 15)
    )
    inside, outside = solve(full, 3.0), solve(idle, 3.0)
    components = span.to_original(inside.components, 15)
    assert_allclose(components, components.T, atol=1e-12)
    assert_allclose(components, symmetric_root(outside.components), atol=1e-8)
    assert_allclose(inside.objective, outside.objective, rtol=1e-9)


def test_same_point_twice_in_the_span():
    """Dependent vectors: the basis has directions that none of them uses."""
    vectors, similar, bounds = problem(5, n_constraints=3, n_features=10)
    vectors, similar, bounds = (np.concatenate([a, a]) for a in (vectors, similar, bounds))
    constraints = scaled(vectors, similar, bounds)
    found = solve(constraints, 1.0)
    components = LogDetTask(constraints, 1.0).to_original(found.components, 10)
    assert np.isfinite(components).all()
    M = components @ components
    optimum = itml_optimum(vectors, similar, bounds, 1.0)
    assert_allclose(itml_objective(M, vectors, similar, bounds, 1.0), optimum, rtol=1e-5)


@pytest.mark.parametrize("length", [1e-9, 1e9])
@pytest.mark.parametrize("gamma", [0.1, 1.0, 10.0])
def test_vectors_of_very_different_lengths(length, gamma):
    """Squared lengths 1e18 apart, where 1 + 1e18 forgets the 1."""
    vectors, similar, bounds = problem(6)
    vectors[:8] *= length
    found = solve(scaled(vectors, similar, bounds), gamma, tol=1e-3)
    assert np.isfinite(found.components).all()
    assert np.linalg.svd(found.components, compute_uv=False).min() > 0
    assert found.converged


def test_many_close_pairs_that_should_be_far():
    """Their projections overshoot far beyond what float64 can take away from the identity."""
    rng = np.random.default_rng(0)
    vectors = 1e-12 * rng.standard_normal((200, 2))
    found = solve(Constraints(vectors, np.zeros(200, dtype=bool)), 100.0, tol=1e-2, max_iter=20)
    assert np.isfinite(found.components).all() and np.isfinite(found.objective)
    assert found.bound <= found.objective
