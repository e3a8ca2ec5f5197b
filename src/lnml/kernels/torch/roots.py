"""Sums of distances over all pairs of different class, a tile at a time: no n x n array."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from lnml.core.points import Embedding, Points
from lnml.kernels.tiles import row_tiles
from lnml.kernels.torch.basics import centred, squared_norms, to_numpy, to_tensor
from lnml.kernels.torch.columns import gram
from lnml.kernels.torch.differences import DifferenceSums, rows_per_block, squared_differences
from lnml.kernels.torch.distances import pair_distances

# Below this share of the typical distance the square root is replaced by its tangent.
LEAST_ROOT = {torch.float64: 1e-8, torch.float32: 1e-4}
# Squared distances below this share of the squared norms lose too many digits
# in a matrix product, and are computed from differences.
CANCELLATION = {torch.float64: 1e-5, torch.float32: 1e-2}
# Arrays of the size of a tile that live at the same time.
_TILE_COPIES = 4


def root_sums(embedding: Embedding, room: int) -> tuple[float, np.ndarray]:
    """See :meth:`lnml.kernels.protocol.Kernels.root_sums`."""
    points, z = embedding.points, centred(embedding.coordinates)
    n = z.shape[0]
    norms = squared_norms(z)
    least = points.precision if points.far else LEAST_ROOT[z.dtype]
    floor = float(least * (2.0 * norms.mean(dtype=torch.float64)).sqrt())
    if floor == 0.0:
        return 0.0, np.zeros((points.n_features, points.n_features))
    if points.far:
        return _far_root_sums(embedding, floor, room)
    data = centred(points.data)
    total = torch.zeros((), dtype=torch.float64, device=z.device)
    degree = torch.zeros(n, dtype=torch.float64, device=z.device)
    row_sums = torch.zeros_like(data, dtype=torch.float64)
    step = room // (_TILE_COPIES * n * z.itemsize)
    for lo, hi, end in _pair_tiles(points, step):
        weights = _to_weights(_distances(z, norms, (lo, hi), end, room), floor, total)
        degree[lo:hi] += weights.sum(dim=1, dtype=torch.float64)
        degree[end:] += weights.sum(dim=0, dtype=torch.float64)
        row_sums[lo:hi] += weights @ data[end:]
    half = gram(0.5 * degree[:, None] * data - row_sums, data, exact=True)
    return 2.0 * float(total), 2.0 * (half + half.T)


def _far_root_sums(embedding: Embedding, floor: float, room: int) -> tuple[float, np.ndarray]:
    """Return the same for points that are far."""
    points, z = embedding.points, embedding.coordinates
    sums = DifferenceSums(points.data, points.data)
    total = torch.zeros((), dtype=torch.float64, device=z.device)
    for lo, hi, end in _pair_tiles(points, rows_per_block(points.n_rows, room)):
        weights = _to_weights(squared_differences(z[lo:hi], z[end:]), floor, total)
        sums.add(slice(lo, hi), slice(end, None), weights)
    return 2.0 * float(total), 2.0 * sums.moment()


def _pair_tiles(points: Points, step: int) -> Iterator[tuple[int, int, int]]:
    """Yield ranges of rows of one class, and the first row after that class.

    Each pair is visited once: the partners of a row are the rows after its class.
    """
    start, n = points.class_start, points.n_rows
    for code in range(len(start) - 1):
        end = int(start[code + 1])
        for first, last in row_tiles(int(end - start[code]), step if end < n else n):
            yield int(start[code]) + first, int(start[code]) + last, end


def _to_weights(squares: torch.Tensor, floor: float, total: torch.Tensor) -> torch.Tensor:
    """Return 1 / (2 max(sqrt(D), floor)); add the roots to the total."""
    roots = squares.sqrt().clamp_(min=floor)
    weights = 0.5 / roots
    total += (weights * squares).sum(dtype=torch.float64)
    total += 0.5 * roots.sum(dtype=torch.float64)
    return weights


def length_sums(points: Points, components: np.ndarray) -> tuple[float, np.ndarray]:
    """See :meth:`lnml.kernels.protocol.Kernels.length_sums`."""
    data = points.data
    embedded = data @ to_tensor(components, data.device, data.dtype).T
    squares = squared_norms(embedded)
    floor = LEAST_ROOT[data.dtype] * squares.mean().sqrt()
    if float(floor) == 0.0:
        return 0.0, np.zeros((points.n_features, points.n_features))
    roots = torch.maximum(squares.sqrt(), floor)
    weights = 0.5 / roots
    total = float(weights @ squares + 0.5 * roots.sum())
    return total, to_numpy((data.T * weights) @ data)


def _distances(
    z: torch.Tensor, norms: torch.Tensor, rows: tuple[int, int], first: int, room: int
) -> torch.Tensor:
    """Squared distances of some rows to all rows from ``first`` on."""
    lo, hi = rows
    both = norms[lo:hi, None] + norms[first:]
    squares = torch.addmm(both, z[lo:hi], z[first:].T, alpha=-2.0)
    left, right = torch.nonzero(squares < CANCELLATION[z.dtype] * both, as_tuple=True)
    squares[left, right] = pair_distances(z, left + lo, z, right + first, room)
    return squares
