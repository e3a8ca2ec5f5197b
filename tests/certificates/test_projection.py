"""Frobenius certificates on rows that leave directions out: their projection is rounded."""

from dataclasses import replace

import numpy as np
import oracles
import pytest

from lnml import SupportVectorMetric
from lnml.certificates import verify

RNG = np.random.default_rng(0)
Y = np.repeat([0, 1], 8)
LINE = np.array([1.0, 2.0, 4.0])
X = np.outer(RNG.normal(size=16) + Y, LINE)


@pytest.fixture(scope="module")
def proved():
    found = SupportVectorMetric(tol=1e-9).fit(X, Y).certificate_
    assert found.left_out == 2
    return found


def worse(certificate):
    """Another metric, with its objective, so that there is room for a false bound below it."""
    L = np.sqrt(1.01) * certificate.components
    D, M = oracles.squared_distances(X @ L.T), L.T @ L
    i, j = certificate.duals["targets"].T
    margins = 1.0 + D[i, j][:, None] - D[i]
    hinges = np.maximum(margins, 0.0)[Y[i][:, None] != Y].sum()
    objective = 0.5 * np.square(M).sum() + certificate.parameters["C"] * hinges
    return replace(certificate, components=L, objective=objective, objective_error=1e-9 * objective)


def with_dominator(certificate, share, coordinates):
    """Claim the bound of a smaller dominator, in other coordinates of the same line."""
    duals = {**certificate.duals, "dominator": share * certificate.duals["dominator"]}
    bound = certificate.parameters["C"] * duals["slopes"].sum()
    bound = (bound - 0.5 * np.square(duals["dominator"]).sum()) * (1.0 - 1e-14)
    gap = (certificate.objective - bound) / certificate.objective + 3e-9
    return replace(certificate, bound=bound, gap=gap, coordinates=coordinates, duals=duals)


def skewed(size, seed):
    """A vector that sees the line, and a large multiple of what is orthogonal to it."""
    along = np.random.default_rng(seed).normal(size=2) @ [[2.0, -1.0, 0.0], [4.0, 0.0, -1.0]]
    return (LINE / 21.0 + size * along)[:, None]


def test_the_projection_of_usual_coordinates_costs_nothing(proved):
    assert verify(proved, X, Y).holds
    assert verify(with_dominator(worse(proved), 1.0, proved.coordinates), X, Y).holds


@pytest.mark.parametrize("size", [1e13, 1e15, 1e17])
def test_a_bound_above_the_optimum_is_not_proved_by_rounding(proved, size):
    false = 0
    for seed in range(12):
        for share in (1e-9, 1e-8, 1e-6, 1e-5):
            forged = with_dominator(worse(proved), 1.0 - share, skewed(size, seed))
            false += forged.bound > proved.objective and verify(forged, X, Y).holds
    assert false == 0
