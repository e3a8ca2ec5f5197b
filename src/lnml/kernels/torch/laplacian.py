"""Products with the Laplacian of a weighted graph of pairs."""

from __future__ import annotations

import numpy as np
import torch

from lnml.core.pairs import Edge, EdgeScatter
from lnml.core.points import Points
from lnml.kernels.tiles import row_tiles
from lnml.kernels.torch import fused
from lnml.kernels.torch.basics import float64_zeros, to_numpy, to_tensor
from lnml.kernels.torch.columns import row_classes
from lnml.kernels.torch.patterns import TorchPattern, as_pattern, offsets_of, row_sums
from lnml.kernels.torch.working_set import Joined


def laplacian(
    graph: Joined, weights: torch.Tensor, values: torch.Tensor, room: int
) -> torch.Tensor:
    """Lap(W + W^T) @ values, given the weights of the joined pairs.

    Every row gathers its own sum over the pairs it begins and those it ends, in
    float64 and in an order that is always the same.
    """
    if fused.usable(values):
        return fused.laplacian(graph, weights, values)
    return sum_pairs(graph, weights, values, room).to(values.dtype)


def edge_scatter(points: Points, edges: list[Edge], room: int) -> EdgeScatter:
    """See :meth:`lnml.kernels.protocol.Kernels.edge_scatter`."""
    rows, width = points.data, points.n_features
    total = float64_zeros((width, width), rows)
    squares = float64_zeros((width,), rows)
    n_terms = 8
    for edge in edges:
        pattern = as_pattern(edge.pairs, rows.device)
        signed = _weights(edge, pattern, points)
        step = max(1, room // (32 * width))
        n_terms += min(step, pattern.size) + pattern.size // step
        for lo, hi in row_tiles(pattern.size, step):
            first, second = pattern.rows[lo:hi].long(), pattern.indices[lo:hi].long()
            v = rows[first].double() - rows[second].double()
            total += (v * signed[lo:hi, None]).T @ v
            squares += signed[lo:hi].abs() @ v.mul_(v)
    share = n_terms * 0.5 * float(np.finfo(np.float64).eps) * 1.01
    matrix, found = to_numpy(total), to_numpy(squares)
    return EdgeScatter(0.5 * (matrix + matrix.T), found, share * np.sqrt(found), np.sqrt(found))


def _weights(edge: Edge, pairs: TorchPattern, points: Points) -> torch.Tensor:
    """Weight of every pair of an edge, its factors included."""
    device = pairs.indptr.device
    weights = torch.full((pairs.size,), edge.factor, dtype=torch.float64, device=device)
    if edge.weights is not None:
        weights *= to_tensor(edge.weights, device)
    if edge.by_class is not None:
        weights *= to_tensor(edge.by_class, device)[row_classes(points)][pairs.rows]
    if edge.shared:
        weights /= pairs.sizes[pairs.rows]
    return weights


def sum_pairs(
    graph: Joined, weights: torch.Tensor, values: torch.Tensor, room: int
) -> torch.Tensor:
    """Sum over the pairs of each row of weight * (value of the row - value of its partner).

    Pairs of weight zero are skipped.
    """
    placed = weights[graph.places]
    used = torch.nonzero(placed)[:, 0]
    rows, partners, placed = graph.pairs.rows[used], graph.pairs.indices[used], placed[used]
    offsets = offsets_of(torch.bincount(rows, minlength=values.shape[0]))
    total = torch.empty(values.shape, dtype=torch.float64, device=values.device)
    n_tiles = 1 + 24 * used.shape[0] * values.shape[1] // room
    for lo, hi in row_tiles(values.shape[0], -(-values.shape[0] // n_tiles)):
        part = slice(int(offsets[lo]), int(offsets[hi]))
        moved = placed[part, None] * (values[rows[part]] - values[partners[part]])
        total[lo:hi] = row_sums(moved, offsets[lo : hi + 1] - offsets[lo])
    return total
