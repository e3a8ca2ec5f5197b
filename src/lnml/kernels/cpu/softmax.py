"""Softmax over all pairs of rows, P_ij = exp(-D_ij) / Z_i: no n x n array.

One pass over the pairs sums the normalisers Z_i, a second one what is weighted by P.
Where a row is so far from all others that its weights exp(-D_ij) underflow, its sums
are computed again, with weights relative to the largest of the row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from lnml.core.pairs import Pattern
from lnml.core.points import Embedding
from lnml.kernels.cpu.differences import DifferenceSoftmax, class_ranges
from lnml.kernels.cpu.exponential import CONSTANTS, LOWEST, SHIFT
from lnml.kernels.cpu.pair_weights import BLOCK, GROUPS, add_products, add_totals
from lnml.kernels.cpu.products import centred, gram
from lnml.kernels.cpu.threads import run_tiles
from lnml.kernels.tiles import row_tiles

# Lonely rows looked at together: enough for a fast matrix product, few enough for little memory.
LONELY_BLOCK = 64


class LonelyRows(NamedTuple):
    """The softmax of some rows that are far from all others, in float64.

    Attributes
    ----------
    rows : ndarray of shape (b,)
        Their numbers.
    at, partner : ndarrays of shape (nnz,)
        Place in ``rows`` and number of the partner, for each pair that matters.
    probability : ndarray of shape (nnz,)
        P of these pairs.
    log_normalizers : ndarray of shape (b,)
        Logs of Z.
    """

    rows: np.ndarray
    at: np.ndarray
    partner: np.ndarray
    probability: np.ndarray
    log_normalizers: np.ndarray


def softmax(
    embedding: Embedding, counts: np.ndarray, full: bool | None
) -> tuple[float, np.ndarray]:
    """See :meth:`lnml.kernels.protocol.Kernels.softmax`; ``counts`` says which rows count."""
    pairs = _pair_softmax(embedding, by_class=False)
    total = float(pairs.log_normalizers[counts].sum())
    if full is None:
        return total, np.zeros((0, 0))
    return total, pairs.moment(counts.astype(np.float64)[None], full)


def softmax_costs(embedding: Embedding, pairs: Pattern, distances: np.ndarray) -> np.ndarray:
    """See :meth:`lnml.kernels.protocol.Kernels.softmax_costs`."""
    sizes = pairs.sizes
    log_z = _pair_softmax(embedding, by_class=False).log_normalizers
    row_terms = log_z - np.log(np.maximum(sizes, 1))
    return np.asarray((distances + np.repeat(row_terms, sizes)) / np.repeat(sizes, sizes))


def class_softmax(embedding: Embedding, full: bool | None) -> tuple[float, np.ndarray]:
    """See :meth:`lnml.kernels.protocol.Kernels.class_softmax`."""
    pairs = _pair_softmax(embedding, by_class=True)
    other, own = pairs.shares
    total = float((1.0 - own).sum())
    if full is None:
        return total, np.zeros((0, 0))
    return total, pairs.moment(np.stack([-own, other]), full)


def _pair_softmax(embedding: Embedding, by_class: bool) -> PairSoftmax | DifferenceSoftmax:
    """Softmax of every row, computed as its points need it."""
    kind = DifferenceSoftmax if embedding.points.far else PairSoftmax
    return kind(embedding, by_class)


class PairSoftmax:
    """The softmax P of every row over all others: its sums, and moments weighted by it.

    Parameters
    ----------
    embedding : Embedding
        The rows.
    by_class : bool
        Whether to tell partners of other classes from those of the row's class: then
        there are two kinds of partners, else one.

    Attributes
    ----------
    log_normalizers : ndarray of shape (n,)
        Logs of Z_i.
    shares : ndarray of shape (n_kinds, n)
        Sums of P_ij over partners of other classes (first) and of the row's class (last).
    """

    def __init__(self, embedding: Embedding, by_class: bool) -> None:
        points = embedding.points
        self.data, self.coordinates = points.data, embedding.coordinates
        n, dtype = self.data.shape[0], self.data.dtype
        z = centred(self.coordinates)
        # In these coordinates exp(-D_ij) is 2 to the power of minus the squared distance.
        z *= dtype.type(np.sqrt(1.0 / np.log(2.0)))
        columns = np.concatenate([2 * z[lo:hi].T.ravel() for lo, hi in row_tiles(n, BLOCK)])
        self.class_start, self.class_end = class_ranges(points, by_class)
        self.z, self.norms = z, np.einsum("ij,ij->i", z, z)
        self._rows = (z, columns, self.norms, self.class_start, self.class_end)
        self._window = (n, 0)
        self._constants = CONSTANTS[dtype.name]
        self._normalize(2 if by_class else 1)

    def _normalize(self, n_kinds: int) -> None:
        """Compute the attributes, and the factors that turn weights into P."""
        n, name = self.data.shape[0], self.data.dtype.name

        def of_group(group: int) -> np.ndarray:
            totals = np.zeros((n_kinds, n))
            add_totals(self._rows, self._window, self._constants, group, totals)
            return totals

        totals = sum(run_tiles(of_group, _groups(n)), np.zeros((n_kinds, n)))
        total = totals.sum(axis=0)
        self.log_normalizers = np.log(total) - np.log(2.0) * SHIFT[name]
        self.shares = totals / total
        # Weights below 2**LOWEST are rounded up to it. In rows with so small a total that this
        # may matter, and in those with NaN, the sums are not used.
        least = n * 2.0 ** (SHIFT[name] + LOWEST[name]) / np.finfo(name).eps
        lonely = ~(total > least)
        self._factors = np.where(lonely, 0.0, 1.0 / total)
        self._lonely = [np.flatnonzero(lonely)[g::GROUPS] for g in range(min(GROUPS, lonely.sum()))]

        def of_lonely_rows(rows: np.ndarray) -> None:
            for lonely in self._lonely_rows(rows):
                own = np.bincount(
                    lonely.at, lonely.probability * self._same_class(lonely), lonely.rows.size
                )
                self.shares[0, lonely.rows], self.shares[-1, lonely.rows] = 1.0 - own, own
                self.log_normalizers[lonely.rows] = lonely.log_normalizers

        run_tiles(of_lonely_rows, self._lonely)

    def moment(self, coefficients: np.ndarray, full: bool) -> np.ndarray:
        """V^T Lap(W + W^T) data, W_ij = coefficient_i P_ij.

        Parameters
        ----------
        coefficients : ndarray of shape (n_kinds, n)
            For partners of other classes (first) and of the row's class (last).
        full : bool
            Whether V are the data; else they are the coordinates.
        """
        data = centred(self.data)
        if full:
            # A matrix A with A + A^T = W + W^T is enough, and half the work.
            degree, product = self._products(coefficients, data, mirror=False)
            half = gram(0.5 * degree[:, None] * data - product, data)
            return half + half.T
        values = centred(self.coordinates)
        degree, product = self._products(coefficients, values, mirror=True)
        return gram(degree[:, None] * values - product, data)

    def _products(
        self, coefficients: np.ndarray, values: np.ndarray, mirror: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Row sums of W + W^T; (W + W^T) @ values, or A @ values without ``mirror``."""
        n, m = values.shape
        factors = (coefficients * self._factors).astype(values.dtype)
        product = np.zeros((n, m))

        def of_group(group: int) -> tuple[np.ndarray, np.ndarray]:
            degree, mirrored = np.zeros(n), np.zeros((n if mirror else 0, m))
            add_products(
                self._rows,
                self._window,
                self._constants,
                group,
                factors,
                values,
                degree,
                product,
                mirrored,
            )
            return degree, mirrored

        def of_lonely_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            degree, mirrored = np.zeros(n), np.zeros((n if mirror else 0, m))
            for lonely in self._lonely_rows(rows):
                kind = np.where(self._same_class(lonely), len(coefficients) - 1, 0)
                weights = lonely.probability * coefficients[kind, lonely.rows[lonely.at]]
                degree += np.bincount(lonely.partner, weights, n)
                degree[lonely.rows] += np.bincount(lonely.at, weights, lonely.rows.size)
                W = csr_array((weights, (lonely.at, lonely.partner)), (lonely.rows.size, n))
                product[lonely.rows] += W @ values
                if mirror:
                    mirrored += W.T @ values[lonely.rows]
            return degree, mirrored

        total_degree = np.zeros(n)
        parts = run_tiles(of_group, _groups(n)) + run_tiles(of_lonely_rows, self._lonely)
        for degree, mirrored in parts:
            total_degree += degree
            product[: len(mirrored)] += mirrored
        return total_degree, product

    def _same_class(self, lonely: LonelyRows) -> np.ndarray:
        """Whether the partners of lonely rows are of their class; all are where classes are one."""
        row = lonely.rows[lonely.at]
        return (self.class_start[row] <= lonely.partner) & (lonely.partner < self.class_end[row])

    def _lonely_rows(self, rows: np.ndarray) -> Iterator[LonelyRows]:
        """Yield the softmax of some rows, block by block."""
        z, norms = (a.astype(np.float64, copy=False) for a in (self.z, self.norms))
        # Partners whose weight is below this share of the largest are left out: all of them
        # together do not change the last digit of a sum.
        negligible = np.log2(np.finfo(self.data.dtype).eps / len(z)) - 1.0
        for low in range(0, rows.size, LONELY_BLOCK):
            some = rows[low : low + LONELY_BLOCK]
            exponents = (2.0 * z[some]) @ z.T - norms
            exponents[np.arange(some.size), some] = -np.inf
            largest = exponents.max(axis=1)
            exponents -= largest[:, None]
            # Written so that NaN is kept.
            at, partner = np.nonzero(~(exponents <= negligible))
            weights = np.exp2(exponents[at, partner])
            total = np.bincount(at, weights, some.size)
            log_normalizers = np.log(total) + np.log(2.0) * (largest - norms[some])
            yield LonelyRows(some, at, partner, weights / total[at], log_normalizers)


def _groups(n_rows: int) -> range:
    """Numbers of the groups to which the blocks of rows are dealt out."""
    return range(min(GROUPS, -(-n_rows // BLOCK)))
