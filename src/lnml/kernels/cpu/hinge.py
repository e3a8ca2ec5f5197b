"""Sums of hinge terms over the triplets of a working set, row by row."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from lnml.core.pairs import Hinge, HingeSums, Multipliers, Pattern, WorkingSet
from lnml.core.points import Embedding
from lnml.kernels.cpu.compiled import compiled, inner
from lnml.kernels.cpu.distances import pattern_distances, squared_distance
from lnml.kernels.cpu.laplacian import Weighted
from lnml.kernels.cpu.laplacian import moment as weighted_moment
from lnml.kernels.cpu.threads import run_tiles

_PAIRS_PER_TILE = 40_000
# What the compiled loop is given in place of what it does not have to fill.
_NO_SUMS = (np.zeros(0),) * 3
_NOTHING_KEPT = (np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0))


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
) -> HingeSums:
    """Sum the hinges of all triplets of a working set.

    Rows of the patterns are rows of ``z``, impostors are rows of ``others``. Of the targets
    only their squared distances are read.
    """
    candidates, multipliers = working.candidates, _multipliers_of(working)
    target_weights, target_hinge = np.zeros((2, target_distances.size))
    candidate_weights = np.zeros(candidates.size)

    def evaluate(tile: tuple[int, int]) -> tuple[float, float, float, int]:
        return _hinge_rows(
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
            target_weights,
            candidate_weights,
            target_hinge,
            *_NOTHING_KEPT,
        )[:4]

    totals = np.array(run_tiles(evaluate, work_tiles(candidates))).reshape(-1, 4).sum(axis=0)
    return HingeSums(totals, target_weights, candidate_weights, target_hinge)


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
    totals, target_weights, candidate_weights, target_hinge = hinge_sums(
        z, z, working, target_distances, gamma
    )
    if moment:
        np.negative(candidate_weights, out=candidate_weights)
        edges = [
            Weighted(working.targets, target_weights),
            Weighted(working.candidates, candidate_weights),
        ]
        exact = moment == "data"
        found = weighted_moment(edges, [data if exact else z], [data], exact=exact)
    smoothed, exact, slope_sum, n_active = totals.tolist()
    return Hinge(smoothed, exact, slope_sum, int(n_active), target_hinge, found)


def slopes(
    z: np.ndarray,
    others: np.ndarray,
    working: WorkingSet,
    target_distances: np.ndarray,
    gamma: float,
) -> Multipliers:
    """See :meth:`lnml.kernels.protocol.Kernels.slopes`; rows as in :func:`hinge_sums`."""
    candidates, multipliers = working.candidates, _multipliers_of(working)

    def collect(tile: tuple[int, int]) -> tuple[np.ndarray, ...]:
        capacity = 1024
        while True:
            buffers = (
                np.empty(capacity, dtype=np.int32),
                np.empty(capacity, dtype=np.int32),
                np.empty(capacity),
            )
            counts = np.zeros(tile[1] - tile[0], dtype=np.int64)
            *_, used = _hinge_rows(
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
                *_NO_SUMS,
                counts,
                *buffers,
            )
            if used <= capacity:
                return (counts, *(buffer[:used].copy() for buffer in buffers))
            capacity = used

    parts = run_tiles(collect, work_tiles(candidates))
    counts, impostor, slot, value = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Multipliers(np.concatenate([[0], np.cumsum(counts)]), impostor, slot, value)


@compiled(allocates=False)
def _hinge_rows(
    z, others, t_indptr, target_distances, c_indptr, c_indices, gamma, m_indptr, m_impostor, m_slot,
    m_value, lo, hi, target_weights, candidate_weights, target_hinge, counts, out_impostor,
    out_slot, out_value,
):  # fmt: skip
    """Sum the hinges of rows lo..hi; or, if there are counts, write their non-zero slopes.

    Returns four sums and how many slopes there are; those beyond the room are not written.
    """
    smoothed = 0.0
    exact = 0.0
    slope_sum = 0.0
    n_active = 0
    used = 0
    keeps = counts.shape[0] > 0
    for row in range(lo, hi):
        before = used
        t0 = t_indptr[row]
        t1 = t_indptr[row + 1]
        reach = -np.inf
        for t in range(t0, t1):
            if target_distances[t] > reach:
                reach = target_distances[t]
        m = m_indptr[row]
        m_end = m_indptr[row + 1]
        for c in range(c_indptr[row], c_indptr[row + 1]):
            impostor = c_indices[c]
            distance = squared_distance(z, row, others, impostor)
            while m < m_end and m_impostor[m] < impostor:
                m += 1
            has_multiplier = m < m_end and m_impostor[m] == impostor
            if 1.0 + reach - distance <= 0.0 and not has_multiplier:
                continue
            for t in range(t0, t1):
                h = 1.0 + target_distances[t] - distance
                previous = 0.0
                if m < m_end and m_impostor[m] == impostor and m_slot[m] == t - t0:
                    previous = m_value[m]
                    m += 1
                slope = _slope(h, previous, gamma)
                if keeps:
                    if slope > 0.0:
                        if used < out_value.shape[0]:
                            out_impostor[used] = impostor
                            out_slot[used] = t - t0
                            out_value[used] = slope
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
                    candidate_weights[c] += slope
        if keeps:
            counts[row - lo] = used - before
    return smoothed, exact, slope_sum, n_active, used


@inner()
def _slope(h, previous, gamma):
    """Maximiser over a in [0, 1] of a*h - gamma/2 (a - previous)^2."""
    if gamma > 0.0:
        slope = previous + h / gamma
        return 0.0 if slope < 0.0 else 1.0 if slope > 1.0 else slope
    return 1.0 if h > 0.0 else 0.0
