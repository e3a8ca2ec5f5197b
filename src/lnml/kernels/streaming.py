"""Work on a working set that is too large to keep: a block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from lnml.core.pairs import Pattern, TooManyPairs

# A block with fewer pairs than this share of its room makes the next one longer.
SMALL_BLOCK = 0.25


# Maps a range of rows and the largest number of pairs to their impostors; more raise TooManyPairs.
SearchRows = Callable[[tuple[int, int], int | None], Any]


class Block(NamedTuple):
    """Some rows with their targets and impostors.

    Attributes
    ----------
    rows : tuple (first, end)
        The rows.
    pairs : slice
        Where their target pairs are among all target pairs.
    targets, candidates : Pattern
        Target pairs and impostors; row 0 is the first of the rows.
    """

    rows: tuple[int, int]
    pairs: slice
    targets: Any
    candidates: Any


def blocks_of_rows(
    targets: Pattern,
    n_rows: int,
    room: int,
    search: SearchRows,
    make: Callable[[Any, Any], Any] = Pattern,
) -> Iterator[Block]:
    """Go through all rows, as many at a time as have room for their impostors.

    Where blocks end depends on the data alone, not on the number of threads.

    Parameters
    ----------
    targets : Pattern
        All target pairs.
    n_rows : int
        Number of rows.
    room : int
        Most impostors of a block, but for a single row.
    search : callable
        Finds the impostors of a range of rows.
    make : callable
        Makes a pattern of the device.
    """
    # However many impostors there are, those of so many rows have room.
    least = max(1, room // n_rows)
    first, step = 0, least
    while first < n_rows:
        end = min(first + step, n_rows)
        try:
            found = search((first, end), None if end - first <= least else room)
        except TooManyPairs:
            step = max(least, (end - first) // 2)
            continue
        pairs = slice(int(targets.indptr[first]), int(targets.indptr[end]))
        own = make(targets.indptr[first : end + 1] - pairs.start, targets.indices[pairs])
        yield Block((first, end), pairs, own, found)
        first = end
        if found.size < SMALL_BLOCK * room:
            step *= 2
