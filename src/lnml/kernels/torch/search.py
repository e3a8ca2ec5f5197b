"""Impostor search: all pairs of different class closer than a radius.

A matrix product in low precision (float16 on a GPU) bounds every distance from
below; the pairs that pass are verified from differences in the precision of the
data. docs/gpu.md shows that no pair inside its radius is lost.
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
from lnml.kernels.torch.fused import PRODUCT_DEPTH
from lnml.kernels.torch.passing import passing, product_bytes, product_lister
from lnml.kernels.torch.patterns import TorchPattern, offsets_of

# Longest row in the filter's units, so that half its square is a float16.
_LONGEST = 340.0
# Rounding of one addition inside a product: float32, with room for hardware that truncates.
_ADDITION = 2.0**-21


class _Filter(NamedTuple):
    """Operands of one product: row i keeps column j if left_i . right_j >= limits_i.

    For every pair with D_ij < radius_i that holds, rounding included.
    """

    left: torch.Tensor
    right: torch.Tensor
    limits: torch.Tensor


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


def filter_type(device: torch.device) -> torch.dtype:
    """Type of the filter's product: what the device multiplies fastest."""
    return torch.float16 if device.type == "cuda" else torch.float32


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
        self.filter, self.room = _make_filter(z, radius), room

    def run(self, windows: list[Window], max_pairs: int | None = None) -> TorchPattern:
        """Return the pairs with D_il < radius_i, row by row; columns are rows of z.

        The rows of windows follow each other. More than ``max_pairs`` raise TooManyPairs.
        """
        counts, columns, found = [], [], 0
        pair_bytes = product_bytes(self.filter.left)
        for (first, last), (begin, end) in windows:
            step = max(1, int(self.room / ((end - begin) * pair_bytes)))
            for lo, hi in row_tiles(last - first, step):
                for part_counts, part_columns in self._tile(first + lo, first + hi, begin, end):
                    found += part_columns.shape[0]
                    if max_pairs is not None and found > max_pairs:
                        raise TooManyPairs(max_pairs)
                    counts.append(part_counts)
                    columns.append(part_columns)
        return TorchPattern(offsets_of(torch.cat(counts)), torch.cat(columns))

    def _tile(
        self, lo: int, hi: int, begin: int, end: int
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Pairs of rows lo..hi: numbers by row, and columns; in as many parts as memory asks."""
        left, right, limits = self.filter
        left_out = self.left_out[lo:hi] - begin
        lister = product_lister(left[lo:hi], right[begin:end], limits[lo:hi], left_out)
        for part in passing(lister, self.room):
            rows, columns = part.rows(lo), part.columns
            if begin:
                columns = columns + begin
            distances = pair_distances(self.z, rows, self.z, columns, self.room)
            inside = distances < self.radius[rows]
            ends = offsets_of(inside)[offsets_of(part.counts)]
            yield ends[1:] - ends[:-1], columns[inside]


def _make_filter(z: torch.Tensor, radius: torch.Tensor) -> _Filter:
    """Round the centred coordinates to the filter's type, and bound what that changes.

    With a_i the rounded coordinates, s_ij = a_i . a_j - |a_j|^2 / 2 is the larger
    the closer a_i and a_j are: |a_i - a_j|^2 = |a_i|^2 - 2 s_ij.
    """
    kind = filter_type(z.device)
    half_unit = torch.finfo(kind).eps / 2
    least = torch.finfo(kind).tiny * torch.finfo(kind).eps
    wide = z.double() - z.mean(dim=0, dtype=torch.float64)
    squares = wide.square().sum(dim=1)
    unit = torch.maximum((squares.mean() / z.shape[1]).sqrt(), squares.max().sqrt() / _LONGEST)
    unit = torch.where(unit > 0, unit, 1.0)
    wide /= unit
    rounded = wide.to(kind)
    squares = rounded.double().square().sum(dim=1)
    # Columns of zeros: the width of products on a GPU is a multiple of PRODUCT_DEPTH.
    filling = torch.zeros_like(rounded[:, :1]).expand(-1, -(z.shape[1] + 3) % PRODUCT_DEPTH)
    right = torch.cat([rounded, _pieces(-0.5 * squares, kind), filling], dim=1)
    left = torch.cat([rounded, torch.ones_like(right[:, z.shape[1] :])], dim=1)

    width = z.shape[1]
    # Verified distances are off by their own rounding, in the type of the data.
    inflated = radius.clamp(min=0.0) * (1.0 + (width + 4.0) * torch.finfo(z.dtype).eps)
    reach = inflated.sqrt() / unit
    length = wide.square().sum(dim=1).sqrt()
    moved = (wide - rounded.double()).square().sum(dim=1).sqrt()
    # A partner inside the radius is no longer than this, so rounding moved it by at most:
    partner = length + reach
    partner_moved = half_unit * partner + width**0.5 * least
    reach = reach + moved + partner_moved
    # Size of what is added up in the product, and its rounding on the way out.
    size = (length + moved) * (partner + partner_moved) + (partner + partner_moved).square()
    error = ((width + 8.0) * _ADDITION + 2.0 * half_unit) * size + 4.0 * least
    limits = (squares - reach.square()) / 2 - error
    return _Filter(left, right, _rounded_down(torch.where(radius > 0, limits, torch.inf), kind))


def _pieces(values: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    """Columns of a low-precision type that add up to float64 values, almost exactly."""
    pieces = []
    for _ in range(3):
        piece = values.to(kind)
        pieces.append(piece)
        values = values - piece.double()
    return torch.stack(pieces, dim=1)


def _rounded_down(values: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    """Largest numbers of a type that are at most the values; -inf below its range."""
    rounded = values.to(kind)
    lower = torch.nextafter(rounded, torch.full_like(rounded, -torch.inf))
    largest = torch.finfo(kind).max
    rounded = torch.where(rounded.double() > values, lower, rounded)
    return torch.where(values < -0.5 * largest, -torch.inf, rounded)
