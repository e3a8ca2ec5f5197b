"""Matrix products with the data, a tile of rows at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from lnml.kernels.cpu.threads import each_tile, run_tiles
from lnml.kernels.tiles import row_tiles

_ROWS_PER_TILE = 4096
# Values of a tile that is converted or shifted: such copies are made in every thread.
_TILE_VALUES = 2**18


def times_transposed(data: np.ndarray, components: np.ndarray) -> np.ndarray:
    """Return ``data @ components.T`` in the precision of the data."""
    transposed = np.ascontiguousarray(components.T, dtype=data.dtype)
    product = np.empty((data.shape[0], transposed.shape[1]), dtype=data.dtype)

    def multiply(tile: tuple[int, int]) -> None:
        rows = slice(*tile)
        np.matmul(data[rows], transposed, out=product[rows])

    run_tiles(multiply, row_tiles(data.shape[0], _ROWS_PER_TILE))
    return product


def shifted_product(
    data: np.ndarray,
    shift: np.ndarray | None,
    matrix: np.ndarray,
    dtype: np.dtype,
    computed: DTypeLike = np.float64,
) -> np.ndarray:
    """Return ``(data - shift) @ matrix``, computed in one type and kept in another."""
    right = np.ascontiguousarray(matrix, dtype=computed)
    product = np.empty((data.shape[0], right.shape[1]), dtype=dtype)

    def multiply(tile: tuple[int, int]) -> None:
        rows = data[slice(*tile)].astype(computed, copy=False)
        product[slice(*tile)] = (rows if shift is None else rows - shift) @ right

    rows_per_tile = min(_ROWS_PER_TILE, max(64, _TILE_VALUES // max(data.shape[1], 1)))
    run_tiles(multiply, row_tiles(data.shape[0], rows_per_tile))
    return product


def gram(left: np.ndarray, right: np.ndarray, *, exact: bool = True) -> np.ndarray:
    """Return ``left.T @ right``, summed over tiles in float64.

    ``exact`` widens float32 data tile by tile, so that products are float64, too.
    """

    def multiply(tile: tuple[int, int]) -> np.ndarray:
        a, b = left[slice(*tile)], right[slice(*tile)]
        if exact:
            a, b = (part.astype(np.float64, copy=False) for part in (a, b))
        return a.T @ b

    total = np.zeros((left.shape[1], right.shape[1]))
    tiles = row_tiles(left.shape[0], _ROWS_PER_TILE if exact else _ROWS_PER_TILE // 4)
    for part in each_tile(multiply, tiles):
        total += part
    return total


def centred(values: np.ndarray) -> np.ndarray:
    """Return values minus their column means."""
    return values - values.mean(axis=0, dtype=np.float64).astype(values.dtype)
