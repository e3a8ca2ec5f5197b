"""What a worker does for a block of rows: placing it, and sums over its rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from lnml.kernels.cluster.rows import RowMap


def chunk_facts(chunk: np.ndarray) -> dict[str, Any]:
    """Look at a chunk: number of rows, range of columns, a few rows, and whether all are finite."""
    rows = np.asarray(chunk)
    found: dict[str, Any] = {"n": len(rows), "dtype": rows.dtype.str, "finite": True}
    if len(rows):
        found["finite"] = bool(np.isfinite(rows).all())
        found["lowest"], found["highest"] = rows.min(axis=0), rows.max(axis=0)
        found["sample"] = rows[:: max(1, len(rows) // 64)]
    return found


def split_chunk(chunk: np.ndarray, blocks: np.ndarray, dtype: str) -> dict[int, np.ndarray]:
    """Deal the rows of a chunk out to blocks."""
    rows = np.asarray(chunk, dtype=dtype)
    return {int(block): rows[blocks == block] for block in np.unique(blocks)}


def part_of(parts: dict[int, np.ndarray], block: int) -> np.ndarray:
    """Return what a chunk gives to a block."""
    return parts[block]


def assemble(parts: list[np.ndarray], places: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Put the parts of a block together, in class order, offsets taken away."""
    rows = np.concatenate(parts)
    found = np.empty_like(rows)
    found[places] = rows
    return found - centre


def moments(block: np.ndarray, row_map: RowMap) -> tuple[np.ndarray, ...]:
    """Mean, sum of squares around it, lowest and highest value of each column."""
    rows = row_map(block)
    mean = rows.mean(axis=0, dtype=np.float64)
    squares = np.square(rows - mean).sum(axis=0, dtype=np.float64)
    lowest, highest = (found.astype(np.float64) for found in (rows.min(axis=0), rows.max(axis=0)))
    return mean, squares, lowest, highest


def class_totals(
    block: np.ndarray, row_map: RowMap, codes: np.ndarray, n_classes: int
) -> np.ndarray:
    """Sum of the rows of each class."""
    rows = row_map(block)
    found = np.zeros((n_classes, rows.shape[1]))
    for code in np.unique(codes):
        found[code] = rows[codes == code].sum(axis=0, dtype=np.float64)
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
    members = row_map(block) - means[codes]
    linear = np.zeros_like(means)
    for code in np.unique(codes):
        mine = codes == code
        linear[code] = weights[mine] @ members[mine]
    return members.T @ (factors[:, None] * members), linear


def picked(block: np.ndarray, row_map: RowMap, numbers: np.ndarray) -> np.ndarray:
    """Return some rows of a block under a map."""
    return row_map(block[numbers])
