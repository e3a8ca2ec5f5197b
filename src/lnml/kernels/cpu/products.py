"""Matrix products with the data, a tile of rows at a time."""

from __future__ import annotations

import numpy as np

from lnml.kernels.cpu.threads import row_tiles, run_tiles

_ROWS_PER_TILE = 4096


def times_transposed(data: np.ndarray, components: np.ndarray) -> np.ndarray:
    """``data @ components.T`` in the precision of the data."""
    transposed = np.ascontiguousarray(components.T, dtype=data.dtype)
    product = np.empty((data.shape[0], transposed.shape[1]), dtype=data.dtype)

    def multiply(tile: tuple[int, int]) -> None:
        rows = slice(*tile)
        np.matmul(data[rows], transposed, out=product[rows])

    run_tiles(multiply, row_tiles(data.shape[0], _ROWS_PER_TILE))
    return product


def gram(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """``left.T @ right`` in float64; float32 data are widened block by block."""

    def multiply(tile: tuple[int, int]) -> np.ndarray:
        rows = slice(*tile)
        return left[rows].T.astype(np.float64, copy=False) @ right[rows].astype(
            np.float64, copy=False
        )

    total = np.zeros((left.shape[1], right.shape[1]))
    for part in run_tiles(multiply, row_tiles(left.shape[0], _ROWS_PER_TILE)):
        total += part
    return total


def centred(values: np.ndarray) -> np.ndarray:
    """Values minus their column means."""
    return values - values.mean(axis=0, dtype=np.float64).astype(values.dtype)
