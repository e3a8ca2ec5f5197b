"""What a worker does for a block of rows: placing it, and sums over its rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lnml.kernels.cluster.rows import RowMap
from lnml.kernels.dask_rows import numbers_in
from lnml.kernels.tiles import row_tiles

_ROWS_AT_A_TIME = 2048


def chunk_facts(chunk: np.ndarray, dtype: str) -> dict[str, Any]:
    """Look at a chunk: number of rows, range of columns, and whether all are finite.

    ``dtype`` is the type that the rows are to have.
    """
    if isinstance(chunk, np.ma.MaskedArray):
        raise TypeError(
            "X has masked chunks: fill them first, for example with dask.array.ma.filled"
        )
    rows = numbers_in("X", chunk, np.dtype(dtype))
    if rows.ndim != 2:
        raise ValueError(f"a chunk of X has shape {rows.shape} where rows of numbers should be")
    found: dict[str, Any] = {"n": len(rows), "width": rows.shape[1], "finite": True}
    if len(rows):
        found["finite"] = bool(np.isfinite(rows).all())
        found["lowest"], found["highest"] = rows.min(axis=0), rows.max(axis=0)
    return found


def some_rows(chunk: np.ndarray, numbers: np.ndarray, dtype: str) -> np.ndarray:
    """Return rows of a chunk by their numbers."""
    return np.asarray(chunk)[numbers].astype(dtype)


def split_chunk(chunk: np.ndarray, blocks: np.ndarray, dtype: str) -> dict[int, np.ndarray]:
    """Deal the rows of a chunk out to blocks."""
    rows = np.asarray(chunk, dtype=dtype)
    return {int(block): rows[blocks == block] for block in np.unique(blocks)}


def part_of(parts: Any, number: int) -> Any:
    """Return one of the results of a task: what a chunk gives to a block, or that of a cell."""
    return parts[number]


def plus(first: Any, second: Any) -> Any:
    """Return the sum of two arrays, or of two tuples of arrays."""
    if isinstance(first, tuple):
        return tuple(map(np.add, first, second))
    return first + second


def assemble(parts: list[np.ndarray], places: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Put the parts of a block together, in class order, offsets taken away."""
    found = np.empty((places.size, centre.size), dtype=parts[0].dtype)
    first = 0
    # One part at a time: a copy of all of them would be a second block.
    for part in parts:
        found[places[first : first + len(part)]] = part - centre
        first += len(part)
    return found


def moments(block: np.ndarray, row_map: RowMap) -> tuple[np.ndarray, ...]:
    """Mean, sum of squares around it, lowest and highest value of each column."""
    ends = [(rows.min(axis=0), rows.max(axis=0)) for rows in _mapped(block, row_map)]
    lowest, highest = (np.stack(each).astype(np.float64) for each in zip(*ends, strict=True))
    mean = sum(rows.sum(axis=0, dtype=np.float64) for rows in _mapped(block, row_map)) / len(block)
    squares = sum(np.square(rows - mean).sum(axis=0) for rows in _mapped(block, row_map))
    return mean, np.asarray(squares), lowest.min(axis=0), highest.max(axis=0)


def _mapped(block: np.ndarray, row_map: RowMap) -> Iterator[np.ndarray]:
    """Rows of a block under a map, a few at a time: copies of a block cost memory."""
    for lo, hi in row_tiles(len(block), _ROWS_AT_A_TIME):
        yield row_map(block[lo:hi])


def class_totals(
    block: np.ndarray, row_map: RowMap, codes: np.ndarray, n_classes: int
) -> np.ndarray:
    """Sum of the rows of each class."""
    found, first = None, 0
    for rows in _mapped(block, row_map):
        found = np.zeros((n_classes, rows.shape[1])) if found is None else found
        own = codes[first : first + len(rows)]
        for code in np.unique(own):
            found[code] += rows[own == code].sum(axis=0, dtype=np.float64)
        first += len(rows)
    assert found is not None
    return found


def around_means(
    block: np.ndarray,
    row_map: RowMap,
    codes: np.ndarray,
    means: np.ndarray,
    factors: np.ndarray,
    weights: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Sum of factor * u u^T, and of weight * u in each class, u = a row minus its class mean."""
    linear, inner, first = np.zeros_like(means), np.zeros((means.shape[1],) * 2), 0
    for rows in _mapped(block, row_map):
        some = slice(first, first + len(rows))
        members = rows - means[codes[some]]
        inner += members.T @ (factors[some, None] * members)
        for code in np.unique(codes[some]):
            mine = codes[some] == code
            linear[code] += weights[some][mine] @ members[mine]
        first += len(rows)
    return inner, linear


def picked(block: np.ndarray, row_map: RowMap, numbers: np.ndarray) -> np.ndarray:
    """Return some rows of a block under a map."""
    return row_map(block[numbers])
