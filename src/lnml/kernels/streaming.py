"""Work on a working set that is too large to keep: a block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lnml.core.pairs import Pattern
from lnml.kernels.tiles import row_tiles


def hinges_by_blocks(
    targets: Pattern,
    n_rows: int,
    rows_at_a_time: int,
    search: Callable[[tuple[int, int]], Pattern],
    hinges: Callable[[Pattern, Pattern, int], Any],
) -> list[Any]:
    """Return the sums of hinges of the target pairs, block by block.

    Parameters
    ----------
    targets : Pattern
        All target pairs.
    n_rows, rows_at_a_time : int
        Number of rows, and of those of a block.
    search : callable
        Finds the impostors of a range of rows.
    hinges : callable
        Sums hinges, given target pairs and impostors of a block and its first row.
    """
    parts = []
    for lo, hi in row_tiles(n_rows, rows_at_a_time):
        first, last = int(targets.indptr[lo]), int(targets.indptr[hi])
        block = Pattern(targets.indptr[lo : hi + 1] - first, targets.indices[first:last])
        parts.append(hinges(block, search((lo, hi)), lo))
    return parts
