"""Scatters of pairs on a cluster: one matrix from each worker, whose bits do not depend on them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("dask.array")
pytest.importorskip("distributed")

from lnml.core.pairs import EdgeScatter
from lnml.kernels.cluster.cells import ScatterAddition
from lnml.kernels.cluster.exact import OuterGrid, joined


def cells_of(seed, count=12, scales=(1.0, 1e-9, 1e7)):
    """Scatters of cells whose columns differ in scale; what bounds them."""
    rng = np.random.default_rng(seed)
    reach = np.array(scales)
    v = rng.uniform(-1.0, 1.0, (count, 5, reach.size)) * reach
    weights = rng.uniform(-2.0, 2.0, (count, 5))
    parts = []
    for own, weight in zip(v, weights, strict=True):
        half = (own * weight[:, None]).T @ own
        sizes = np.abs(weight) @ own**2
        parts.append(EdgeScatter(0.5 * (half + half.T), sizes, 0.0 * sizes, np.sqrt(sizes)))
    return parts, reach, float(np.abs(weights).sum())


def added(parts, add, groups):
    """What workers with these cells give together."""
    cells = [(number, number) for number in range(len(parts))]
    sums = [add([cells[i] for i in own], (parts[i] for i in own)) for own in groups]
    return sum(matrix for matrix, _ in sums)


@pytest.mark.parametrize("seed", range(5))
def test_the_same_bits_in_any_grouping(seed):
    parts, reach, weight = cells_of(seed)
    add = ScatterAddition(OuterGrid.of(reach, reach, weight, len(parts)))
    wanted = added(parts, add, [range(12)])
    for groups in ([range(6), range(6, 12)], [[i] for i in reversed(range(12))]):
        np.testing.assert_array_equal(added(parts, add, groups), wanted)
    # A plain sum would not do.
    plain = sum(each.matrix for each in parts)
    turned = sum(each.matrix for each in reversed(parts))
    assert (plain != turned).any()


@pytest.mark.parametrize("outlier", [1.0, 1e6, 1e12])
@pytest.mark.parametrize("seed", range(5))
def test_what_is_lost_is_within_its_bound(seed, outlier):
    """Columns whose bound is far above their values lose digits, and say so."""
    parts, reach, weight = cells_of(seed)
    grid = OuterGrid.of(reach * outlier, reach * outlier, weight, len(parts))
    both = added(parts, ScatterAddition(grid), [range(12)])
    lost = grid.lost()
    for c in range(reach.size):
        for k in range(reach.size):
            exact = sum(Fraction(float(each.matrix[c, k])) for each in parts)
            found = Fraction(float(both[0, c, k])) + Fraction(float(both[1, c, k]))
            assert abs(found - exact) <= Fraction(float(lost[c])) * Fraction(float(lost[k]))
    np.testing.assert_allclose(
        joined(both), sum(each.matrix for each in parts), rtol=0.0,
        atol=max(1e-15, 1e-27 * outlier**2) * weight * reach.max() ** 2,
    )  # fmt: skip


def test_columns_without_values_have_a_grid():
    reach = np.array([0.0, 2.0])
    with np.errstate(divide="ignore"):
        grid = OuterGrid.of(reach, reach, 0.0, 3)
    assert np.isfinite(grid.lost()).all()
    np.testing.assert_array_equal(grid.of_entries().split(np.zeros((2, 2))), np.zeros((2, 2, 2)))
