"""What fits claim about themselves holds on nasty data: the objective, the bound, the warning.

``adversary`` makes the data, ``references`` computes objectives in extended precision,
``attained`` looks for metrics below the bound, and ``referee`` judges. None of them shares code
with the library.
"""

import re

import numpy as np
import pytest
from adversary import PATTERNS, large_columns, missing_values, problem, residual, visits
from referee import LEARNERS, fit, judge, learners_of, objective_error

from lnml import LMNN
from lnml.certificates import verify

N_PROBLEMS, PER_CHUNK, N_LEARNERS = 300, 5, 3
# A refusal is an answer, but not one to most questions.
REFUSED = 0.2
# Gaps that named problems must reach: the default tol.
TOL = 1e-3


# A third of them in every run, the rest with the extras.
CHUNKS = [
    pytest.param(chunk, marks=[pytest.mark.extras] if chunk % 3 else [])
    for chunk in range(N_PROBLEMS // PER_CHUNK)
]

pytestmark = pytest.mark.sampled(4)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", CHUNKS)
def test_claims_hold(chunk):
    """Refusals are answers, too, if they are rare and say why."""
    numbers = range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK)
    with np.errstate(all="ignore"):
        found = [
            judge(problem(number), learner, refit=number % 5 == 0)
            for number in numbers
            for learner in learners_of(number, N_LEARNERS)
        ]
    wrong = [str(verdict) for verdict in found if verdict.violations]
    refused = [f"{v.learner} on {v.name}: {v.refusal}" for v in found if v.refusal]
    told = [f"{len(wrong)} of {len(found)} fits claim too much:", *wrong]
    told += [f"{len(refused)} of {len(found)} are refused:", *refused]
    assert not wrong and len(refused) <= REFUSED * len(found), "\n".join(told)
    assert all(len(verdict.refusal.split()) >= 5 for verdict in found if verdict.refusal)


def test_every_learner_meets_every_pattern():
    met = {
        (learner, number % len(PATTERNS))
        for number in range(N_PROBLEMS)
        for learner in learners_of(number, N_LEARNERS)
    }
    assert len(met) == len(LEARNERS) * len(PATTERNS)


# Small problems of every kind that makes bounds wrong: powers of years, collinear columns, ...
@pytest.mark.slow
@pytest.mark.parametrize("learner", ["LMNN", "LNML", "MCML", "MMC", "SupportVectorMetric"])
@pytest.mark.parametrize("number", [0, 5, 6, 7, 9, 11, 23, 37, 115])
def test_bounds_are_below_conic_solutions(learner, number):
    pytest.importorskip("cvxpy", reason="cvxpy is no part of the oldest environment")
    from conic import MOST_ROWS, conic_witnesses

    data = problem(number)
    assert len(data.y) <= MOST_ROWS

    def given(model, objective, X, y):
        return conic_witnesses(learner, model, X, y)

    with np.errstate(all="ignore"):
        verdict = judge(data, learner, given=given)
    assert not verdict.violations, str(verdict)


def solved(learner, X, y):
    """The model and its objective, after a proof to the default tolerance."""
    model, objective, _ = fit(learner, X, y, np.random.default_rng(0))
    error, share = objective_error(model, objective)
    assert share <= 1.0, f"objective_ is off by {error:.1e}"
    assert model.duality_gap_ <= TOL
    return model, objective


@pytest.mark.parametrize("learner", ["LMNN", "LNML", "MCML", "MMC"])
def test_code_for_missing_values(learner):
    solved(learner, *missing_values())


@pytest.mark.parametrize("learner", ["LMNN", pytest.param("MCML", marks=pytest.mark.extras), "MMC"])
@pytest.mark.parametrize(("size", "noise"), [(1e-5, 1e-7), (3e-6, 2e-8)])
def test_class_in_a_small_residual(learner, size, noise):
    """The bound is compared with what a fit to the residual itself attains."""
    wrong = []
    for seed in range(36):
        X, y = residual(seed, size, noise)
        try:
            model, objective = solved(learner, X, y)
        except AssertionError as error:
            wrong.append(f"seed {seed}: {error}")
            continue
        direct = LEARNERS[learner]()
        columns = np.c_[X[:, 0], (X[:, 1] - X[:, 0]) / size]
        given = getattr(model, "target_neighbors_", None)
        direct.fit(columns, y, target_neighbors=given)
        back = direct.components_ @ np.array([[1.0, 0.0], [-1.0 / size, 1.0 / size]])
        attained = objective.at(back)
        above = max(attained.value, objective.floor) * 1.002 + attained.allowance
        if not model.objective_ <= above:
            wrong.append(f"seed {seed}: {model.objective_:.6g}, attained {attained.value:.6g}")
    assert not wrong, "\n".join([f"{len(wrong)} of 36 fail:", *wrong])


@pytest.mark.parametrize("seed", range(6))
def test_support_vectors_in_large_columns(seed):
    solved("SupportVectorMetric", *large_columns(seed))


@pytest.mark.parametrize("seed", range(6))
def test_two_time_stamps(seed):
    """Their difference is learned, or a warning names the two columns."""
    X, y = visits(seed)
    model, objective, told = fit("LMNN", X, y, np.random.default_rng(0))
    assert objective_error(model, objective)[1] <= 1.0
    if model.duality_gap_ > TOL:
        assert any(re.search(r"columns?\b.*\b0\b.*\b1\b", text) for text in told), told
        return
    columns = np.c_[X[:, 0], X[:, 1] - X[:, 0]]
    direct = LMNN().fit(columns, y, target_neighbors=model.target_neighbors_)
    attained = objective.at(direct.components_ @ np.array([[1.0, 0.0], [-1.0, 1.0]]))
    assert model.objective_ <= 1.002 * max(attained.value, objective.floor)


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_dual_matrix_of_zeros_holds(width, dtype):
    # Every row has rows of its own class and of the other one in its place: no metric helps.
    places = np.array(np.meshgrid(*[[0.0, 1.0]] * width)).reshape(width, -1).T
    X, y = np.repeat(places, 8, axis=0).astype(dtype), np.tile([0, 1], 4 * len(places))
    model = LMNN().fit(X, y)
    found = verify(model.certificate(X, y), X, y)
    assert found.holds, found.reason
    assert found.gap < 1e-12
