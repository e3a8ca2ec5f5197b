"""Bring rows to their blocks: once, at the start of a fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from lnml.core.checks import refuse_overflow, refuse_spreads
from lnml.kernels.cluster import blocks as _blocks
from lnml.kernels.cluster.crew import Crew
from lnml.kernels.cluster.layout import Layout

# Rows that are looked at for a value in the middle of each column.
SAMPLE = 256


class Placed:
    """Rows in class order on the workers.

    Parameters
    ----------
    crew : Crew
        The workers.
    X : dask array of shape (n, d)
        Rows as they were given, in chunks of rows.
    layout : Layout
        Blocks of the rows in class order.
    order : ndarray of int, shape (n,), or None
        Row of X that stands at each position. None if the rows are in class order, and not to
        be learned from: nothing is taken away then, and nothing is refused but what is not finite.

    Attributes
    ----------
    blocks : list of futures
        The rows of each block, offsets taken away if they are to be learned from.
    dtype : numpy.dtype
        Their type.
    columns : ndarray of shape (d,)
        Largest absolute value of every column of the blocks.
    sample : ndarray of shape (m, d)
        A few rows of the blocks, in float64.
    rounding : ndarray of shape (2, d), or None
        See :class:`lnml.core.points.Points`.
    """

    def __init__(self, crew: Crew, X: Any, layout: Layout, order: np.ndarray | None) -> None:
        self.dtype = placed_type(X)
        chunks = row_chunks(crew, X)
        facts = checked_facts(crew, chunks, X, layout.n_rows)
        filled = [each for each in facts if each["n"]]
        ends = np.stack(
            [
                np.min([each["lowest"] for each in filled], axis=0),
                np.max([each["highest"] for each in filled], axis=0),
            ]
        ).astype(self.dtype)
        some = self._some_rows(crew, chunks, facts)
        self.rounding: np.ndarray | None = None
        centre = np.zeros(ends.shape[1], self.dtype)
        if order is not None:
            check_range(ends)
            middle = np.median(np.abs(some), axis=0)
            unit = 0.5 * float(np.finfo(self.dtype.name).eps)
            self.rounding = unit * np.stack([np.abs(ends).max(axis=0), middle]).astype(np.float64)
            centre = common_offset(ends, some[0])
        else:
            order = np.arange(layout.n_rows)
        self.columns = np.abs(ends - centre).max(axis=0).astype(np.float64)
        self.sample = (some - centre).astype(np.float64)
        self.blocks = self._assemble(crew, chunks, facts, layout, order, centre)

    def _some_rows(self, crew: Crew, chunks: list[Any], facts: list[dict[str, Any]]) -> np.ndarray:
        """Return a few rows, at even distances: they do not depend on the chunks."""
        ends = np.cumsum([each["n"] for each in facts])
        numbers = np.arange(0, ends[-1], max(1, ends[-1] // SAMPLE))
        own = np.split(numbers, np.searchsorted(numbers, ends[:-1]))
        starts = np.append(0, ends[:-1])
        picked = crew.results(
            crew.submit(_blocks.some_rows, chunk, mine - start, self.dtype.str)
            for chunk, mine, start in zip(chunks, own, starts, strict=True)
            if mine.size
        )
        return np.concatenate(picked)

    def _assemble(
        self,
        crew: Crew,
        chunks: list[Any],
        facts: list[dict[str, Any]],
        layout: Layout,
        order: np.ndarray,
        centre: np.ndarray,
    ) -> list[Any]:
        """Deal the rows of all chunks out to the blocks."""
        position = np.empty(order.size, dtype=np.int64)
        position[order] = np.arange(order.size)
        block_of = np.searchsorted(layout.edges, position, side="right") - 1
        parts: list[list[Any]] = [[] for _ in range(layout.n_blocks)]
        places: list[list[np.ndarray]] = [[] for _ in range(layout.n_blocks)]
        start = 0
        for chunk, fact in zip(chunks, facts, strict=True):
            rows = slice(start, start + fact["n"])
            start += fact["n"]
            if not fact["n"]:
                continue
            split = crew.submit(_blocks.split_chunk, chunk, block_of[rows], self.dtype.str)
            for block in np.unique(block_of[rows]):
                parts[block].append(crew.submit(_blocks.part_of, split, int(block)))
                mine = position[rows][block_of[rows] == block]
                places[block].append(mine - layout.edges[block])
        return [
            crew.submit(_blocks.assemble, part, np.concatenate(place), centre, cell=(b, b))
            for b, (part, place) in enumerate(zip(parts, places, strict=True))
        ]


def common_offset(ends: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Return what is taken from each column, given its ends (2, d) and any of the rows (d,).

    Sterbenz: the difference of two numbers is exact if neither is longer than twice the other.
    Any value of such a column will do. From others nothing is taken.
    """
    sizes = np.abs(ends)
    exact = np.sign(ends[0]) == np.sign(ends[1])
    exact &= 0.5 * sizes.max(axis=0) <= sizes.min(axis=0)
    return np.where(exact, row, np.zeros_like(row))


def row_chunks(crew: Crew, X: Any) -> list[Any]:
    """Return futures of the chunks of rows, all columns together."""
    if X.numblocks[1] != 1:
        X = X.rechunk({1: -1})
    return list(crew.client.compute(list(X.to_delayed().ravel())))


def placed_type(X: Any) -> np.dtype:
    """Return the type of float that the rows of a Dask array are placed in."""
    return np.dtype(np.float32 if X.dtype == np.float32 else np.float64)


def checked_facts(crew: Crew, chunks: list[Any], X: Any, n_rows: int) -> list[dict[str, Any]]:
    """Return what is known of each chunk of a Dask array, or say what is wrong with it."""
    kind = placed_type(X).str
    facts = crew.results(crew.submit(_blocks.chunk_facts, chunk, kind) for chunk in chunks)
    check_chunks(facts, n_rows, X.shape[1])
    return facts


def check_range(ends: np.ndarray) -> None:
    """Refuse columns (lowest and highest values, shape (2, d)) that cannot be learned from."""
    if (ends[0] == ends[1]).all():
        raise ValueError("all rows of X are the same: there is no distance to learn")
    refuse_overflow("X", ends)
    refuse_spreads("X", ends[1].astype(np.float64) - ends[0])


def check_chunks(facts: list[dict[str, Any]], n_rows: int, n_columns: int) -> None:
    """Refuse rows that cannot be learned from, or are not what their Dask array says."""
    found = sum(each["n"] for each in facts)
    if found != n_rows:
        raise ValueError(f"X has {found} rows and y has {n_rows}: give one label for each row")
    widths = {each["width"] for each in facts if each["n"]}
    if widths != {n_columns}:
        raise ValueError(f"X should have {n_columns} columns, and its chunks have {sorted(widths)}")
    bad = [number for number, each in enumerate(facts) if not each["finite"]]
    if bad:
        raise ValueError(
            f"X contains NaN or infinity (chunk {bad[0]} of its rows, counted from 0): replace or "
            f"leave out such rows"
        )
