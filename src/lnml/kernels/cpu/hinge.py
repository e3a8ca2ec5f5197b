"""Sums of hinge terms over the triplets of a working set, row by row."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lnml.core.pairs import Hinge, Multipliers, Pattern, WorkingSet
from lnml.core.points import Embedding
from lnml.kernels.cpu.compiling import inlined, loop
from lnml.kernels.cpu.distances import pattern_distances, row_distance
from lnml.kernels.cpu.laplacian import Weighted
from lnml.kernels.cpu.laplacian import moment as weighted_moment
from lnml.kernels.cpu.screen import (
    NO_BOUNDS,
    Bounds,
    bounds_of,
    root_bound,
    screen_limit,
    too_far,
)
from lnml.kernels.cpu.threads import run_tiles

_PAIRS_PER_TILE = 40_000


class HingeSums(NamedTuple):
    """Sums over the triplets of some rows.

    Attributes
    ----------
    totals : ndarray of shape (4,)
        The four numbers of a :class:`lnml.core.pairs.Hinge`.
    target_weights, target_hinge : ndarrays aligned with the targets
        Sum of the slopes of the triplets of a target pair, and of max(0, h).
    pushed : Pattern
        The candidates that have slopes.
    push_weights : ndarray aligned with these
        Sum of their slopes.
    """

    totals: np.ndarray
    target_weights: np.ndarray
    target_hinge: np.ndarray
    pushed: Pattern
    push_weights: np.ndarray


def work_tiles(candidates: Pattern) -> list[tuple[int, int]]:
    """Row ranges of about equal numbers of candidate pairs."""
    n = candidates.indptr.size - 1
    load = candidates.indptr + 4 * np.arange(n + 1)
    n_tiles = max(1, int(load[-1] // _PAIRS_PER_TILE))
    edges = np.searchsorted(load, np.linspace(0, load[-1], n_tiles + 1))
    edges[0], edges[-1] = 0, n
    return [(int(a), int(b)) for a, b in pairwise(edges) if a < b]


def pair_lengths(z: np.ndarray, others: np.ndarray, pairs: Pattern) -> np.ndarray:
    """Squared distances of pairs of rows of z with rows of others."""
    out = np.empty(pairs.size)
    run_tiles(
        lambda tile: pattern_distances(z, others, pairs.indptr, pairs.indices, *tile, out),
        work_tiles(pairs),
    )
    return out


def _multipliers_of(working: WorkingSet) -> Multipliers:
    """Multipliers of a working set; an empty list if all are zero."""
    if working.multipliers is not None:
        return working.multipliers
    empty = np.zeros(0, dtype=np.int32)
    indptr = np.zeros(working.targets.indptr.size, dtype=np.int64)
    return Multipliers(indptr, empty, empty, np.zeros(0))


def hinge_sums(
    z: np.ndarray,
    others: np.ndarray,
    working: WorkingSet,
    target_distances: np.ndarray,
    gamma: float,
    bounds: Bounds = NO_BOUNDS,
) -> HingeSums:
    """Sum the hinges of all triplets of a working set.

    Rows of the patterns are rows of ``z``, impostors are rows of ``others``. Of the targets
    only their squared distances are read. ``bounds`` of candidates are renewed.
    """
    candidates, multipliers = working.candidates, _multipliers_of(working)
    target_weights, target_hinge = np.zeros((2, target_distances.size))
    counts = np.zeros(candidates.indptr.size, dtype=np.int64)

    def evaluate(tile: tuple[int, int]) -> tuple[tuple[float, ...], np.ndarray, np.ndarray]:
        most = candidates.indptr[tile[1]] - candidates.indptr[tile[0]]
        indices, weights = np.empty(most, dtype=np.int32), np.empty(most)
        used, *totals = _hinge_rows(
            z,
            others,
            working.targets.indptr,
            target_distances,
            candidates.indptr,
            candidates.indices,
            gamma,
            multipliers.indptr,
            multipliers.impostor,
            multipliers.slot,
            multipliers.value,
            tile[0],
            tile[1],
            *bounds,
            False,
            target_weights,
            target_hinge,
            counts,
            indices,
            indices,
            weights,
        )
        return tuple(totals), indices[:used].copy(), weights[:used].copy()

    parts = run_tiles(evaluate, work_tiles(candidates))
    totals = np.array([part[0] for part in parts]).reshape(-1, 4).sum(axis=0)
    indices, weights = (
        np.concatenate([part[k] for part in parts]) if parts else np.zeros(0, kind)
        for k, kind in ((1, np.int32), (2, np.float64))
    )
    return HingeSums(
        totals, target_weights, target_hinge, Pattern(np.cumsum(counts), indices), weights
    )


def hinge(
    embedding: Embedding,
    working: WorkingSet,
    target_distances: np.ndarray,
    gamma: float,
    moment: str = "",
) -> Hinge:
    """See :meth:`lnml.kernels.protocol.Kernels.hinge`."""
    z, data = embedding.coordinates, embedding.points.data
    found = None
    # Who asks for a moment will come again, at a metric near this one.
    bounds = bounds_of(working, z) if moment else NO_BOUNDS
    sums = hinge_sums(z, z, working, target_distances, gamma, bounds)
    if moment:
        edges = [
            Weighted(working.targets, sums.target_weights),
            Weighted(sums.pushed, -sums.push_weights),
        ]
        exact = moment == "data"
        found = weighted_moment(edges, [data if exact else z], [data], exact=exact)
    smoothed, exact, slope_sum, n_active = sums.totals.tolist()
    return Hinge(smoothed, exact, slope_sum, int(n_active), sums.target_hinge, found)


def slopes(
    z: np.ndarray,
    others: np.ndarray,
    working: WorkingSet,
    target_distances: np.ndarray,
    gamma: float,
    bounds: Bounds = NO_BOUNDS,
) -> Multipliers:
    """See :meth:`lnml.kernels.protocol.Kernels.slopes`; rows as in :func:`hinge_sums`."""
    candidates, multipliers = working.candidates, _multipliers_of(working)

    counts, nothing = np.zeros(candidates.indptr.size, dtype=np.int64), np.zeros(0)

    def collect(tile: tuple[int, int]) -> tuple[np.ndarray, ...]:
        capacity = 1024
        while True:
            buffers = (
                np.empty(capacity, dtype=np.int32),
                np.empty(capacity, dtype=np.int32),
                np.empty(capacity),
            )
            used, *_ = _hinge_rows(
                z,
                others,
                working.targets.indptr,
                target_distances,
                candidates.indptr,
                candidates.indices,
                gamma,
                multipliers.indptr,
                multipliers.impostor,
                multipliers.slot,
                multipliers.value,
                *tile,
                *bounds,
                True,
                nothing,
                nothing,
                counts,
                *buffers,
            )
            if used <= capacity:
                return tuple(buffer[:used].copy() for buffer in buffers)
            capacity = used

    parts = run_tiles(collect, work_tiles(candidates))
    impostor, slot, value = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Multipliers(np.cumsum(counts), impostor, slot, value)


@loop()
def _hinge_rows(
    z, others, t_indptr, target_distances, c_indptr, c_indices, gamma, m_indptr, m_impostor,
    m_slot, m_value, lo, hi, roots, drift, other_drift, slack, each, target_weights, target_hinge,
    counts, out_indices, out_slots, out_weights,
):  # fmt: skip
    """Sum over the triplets of rows lo..hi; write the candidates that have slopes.

    With ``each``, nothing is summed, and every triplet that has a slope is written. Returns how
    many were written, or, if there was no room for some, how many there are; then the sums.
    """
    used = n_active = 0
    smoothed = exact = slope_sum = 0.0
    screened = drift.shape[0] > 0
    for row in range(lo, hi):
        before = used
        t0, t1 = t_indptr[row], t_indptr[row + 1]
        reach = _reach(target_distances, t0, t1)
        limit = screen_limit(reach, drift, row, slack)
        m, m_end = m_indptr[row], m_indptr[row + 1]
        for c in range(c_indptr[row], c_indptr[row + 1]):
            impostor = np.int64(c_indices[c])
            while m < m_end and m_impostor[m] < impostor:
                m += 1
            has_multiplier = m < m_end and m_impostor[m] == impostor
            if screened and not has_multiplier and too_far(roots[c], other_drift[impostor], limit):
                continue
            distance = row_distance(z, row, others, impostor)
            if screened:
                roots[c] = root_bound(distance, slack, drift[row], other_drift[impostor])
            if 1.0 + reach - distance <= 0.0 and not has_multiplier:
                continue
            weight = 0.0
            for t in range(t0, t1):
                h = 1.0 + target_distances[t] - distance
                previous = 0.0
                if m < m_end and m_impostor[m] == impostor and m_slot[m] == t - t0:
                    previous = m_value[m]
                    m += 1
                slope = _slope(h, previous, gamma)
                if each:
                    if slope > 0.0:
                        if used < out_weights.shape[0]:
                            out_indices[used] = impostor
                            out_slots[used] = t - t0
                            out_weights[used] = slope
                        used += 1
                    continue
                if h > 0.0:
                    exact += h
                    n_active += 1
                    target_hinge[t] += h
                if slope > 0.0 or previous > 0.0:
                    shift = slope - previous
                    smoothed += slope * h - 0.5 * gamma * shift * shift
                if slope > 0.0:
                    slope_sum += slope
                    target_weights[t] += slope
                    weight += slope
            if weight > 0.0:
                out_indices[used] = impostor
                out_weights[used] = weight
                used += 1
        counts[row + 1] = used - before
    return used, smoothed, exact, slope_sum, n_active


@inlined()
def _reach(target_distances, t0, t1):
    """Largest squared distance of some targets; -inf if there are none."""
    reach = -np.inf
    for t in range(t0, t1):
        reach = max(reach, target_distances[t])
    return reach


@inlined()
def _slope(h, previous, gamma):
    """Maximiser over a in [0, 1] of a*h - gamma/2 (a - previous)^2."""
    if gamma > 0.0:
        return min(max(previous + h / gamma, 0.0), 1.0)
    return 1.0 if h > 0.0 else 0.0
