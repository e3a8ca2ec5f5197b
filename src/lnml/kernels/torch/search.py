"""Impostor search: all pairs of different class closer than a radius.

A filter bounds every distance from below by a matrix product in low precision; the pairs
that pass are verified from differences in the precision of the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch

from lnml.core.pairs import TooManyPairs
from lnml.core.points import Embedding
from lnml.kernels.tiles import row_tiles
from lnml.kernels.torch.basics import to_tensor
from lnml.kernels.torch.columns import row_classes
from lnml.kernels.torch.distances import pair_distances
from lnml.kernels.torch.passing import passing, product_bytes, product_lister
from lnml.kernels.torch.patterns import TorchPattern, offsets_of
from lnml.kernels.torch.search_filter import make_filter


class Window(NamedTuple):
    """Which pairs of rows a search looks at.

    Attributes
    ----------
    rows, columns : tuples (first, end)
        Ranges of rows; those of the first range look at those of the second.
    """

    rows: tuple[int, int]
    columns: tuple[int, int]


def within(
    embedding: Embedding,
    radius: torch.Tensor,
    room: int,
    max_pairs: int | None = None,
    rows: tuple[int, int] | None = None,
) -> TorchPattern:
    """Pairs of :meth:`lnml.kernels.protocol.Kernels.within`; of some rows only if given."""
    z, start = embedding.coordinates, embedding.points.class_start
    ranges = to_tensor(np.stack([start[:-1], start[1:]], axis=1), z.device)
    everything = (0, z.shape[0])
    search = WindowSearch(z, radius, ranges[row_classes(embedding.points)], room)
    return search.run([Window(rows or everything, everything)], max_pairs)


class WindowSearch:
    """Searches the rows of one window after the other.

    Parameters
    ----------
    z : tensor of shape (n, r)
        Coordinates.
    radius : tensor of shape (n,)
        Squared distances.
    left_out : tensor of shape (n, 2), int64
        Range of rows that is left out, for each row.
    room : int
        Bytes that tiles may take.
    """

    def __init__(
        self, z: torch.Tensor, radius: torch.Tensor, left_out: torch.Tensor, room: int
    ) -> None:
        self.z, self.radius, self.left_out = z, radius.to(z.dtype), left_out
        self.filter, self.room = make_filter(z, radius, left_out), room
        # Numbers of the rows that look for anything: in a sample of the rows, these are few.
        self.looking = torch.nonzero(radius > 0)[:, 0]

    def run(self, windows: list[Window], max_pairs: int | None = None) -> TorchPattern:
        """Return the pairs with D_il < radius_i, row by row; columns are rows of z.

        The rows of windows follow each other. More than ``max_pairs`` raise TooManyPairs.
        """
        counts, columns, found = [], [torch.empty_like(self.looking[:0], dtype=torch.int32)], 0
        pair_bytes = product_bytes(self.filter.left)
        for (first, last), (begin, end) in windows:
            step = max(1, int(self.room / ((end - begin) * pair_bytes)))
            low, high = torch.searchsorted(self.looking, self.looking.new_tensor([first, last]))
            numbers = self.looking[low:high]
            in_window = self.looking.new_zeros(last - first)
            for lo, hi in row_tiles(numbers.shape[0], step):
                rows, seen = numbers[lo:hi], []
                for part_counts, part_columns in self._tile(rows, begin, end):
                    found += part_columns.shape[0]
                    if max_pairs is not None and found > max_pairs:
                        raise TooManyPairs(max_pairs)
                    seen.append(part_counts)
                    columns.append(part_columns)
                in_window[rows - first] = torch.cat(seen)
            counts.append(in_window)
        return TorchPattern(offsets_of(torch.cat(counts)), torch.cat(columns))

    def _tile(
        self, numbers: torch.Tensor, begin: int, end: int
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Pairs of some rows: counts by row, and columns; in as many parts as memory asks."""
        left, right, limits = self.filter
        left_out = self.left_out[numbers] - begin
        lister = product_lister(left[numbers], right[begin:end], limits[numbers], left_out)
        for part in passing(lister, self.room):
            rows, columns = numbers[part.rows(0)].int(), part.columns
            if begin:
                columns = columns + begin
            distances = pair_distances(self.z, rows, self.z, columns, self.room)
            inside = distances < self.radius[rows]
            ends = offsets_of(inside)[offsets_of(part.counts)]
            yield ends[1:] - ends[:-1], columns[inside]
