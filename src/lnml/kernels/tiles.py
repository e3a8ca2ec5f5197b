"""Work over rows, cut into tiles."""

from __future__ import annotations


def row_tiles(n_rows: int, rows_per_tile: int) -> list[tuple[int, int]]:
    """Consecutive ranges that cover ``n_rows`` rows."""
    step = max(1, rows_per_tile)
    return [(lo, min(lo + step, n_rows)) for lo in range(0, n_rows, step)]
