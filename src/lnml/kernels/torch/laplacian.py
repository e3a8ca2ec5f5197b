"""Products with the Laplacian of a weighted graph of pairs."""

from __future__ import annotations

import numpy as np
import torch

from lnml.core.pairs import EdgeScatter, Hinge
from lnml.core.points import Points
from lnml.kernels.tiles import row_tiles
from lnml.kernels.torch import fused
from lnml.kernels.torch.basics import float64_zeros, to_numpy
from lnml.kernels.torch.patterns import TorchPattern, offsets_of, row_sums
from lnml.kernels.torch.working_set import Joined, TorchWorkingSet, join

Edges = list[tuple[TorchPattern, torch.Tensor | None, float]]


def laplacian(edges: Edges, values: torch.Tensor, room: int) -> torch.Tensor:
    """See :meth:`lnml.kernels.protocol.Kernels.laplacian`."""
    graph = join(tuple(pattern for pattern, _, _ in edges))
    return _product(graph, [_signed(*edge) for edge in edges], values, room)


def slope_laplacian(
    working: TorchWorkingSet, terms: Hinge, values: torch.Tensor, room: int
) -> torch.Tensor:
    """See :meth:`lnml.kernels.protocol.Kernels.slope_laplacian`."""
    # Joined first: that takes most memory, and the weights are not there yet.
    graph = working.joined.graph
    weights = [
        _signed(working.targets, terms.target_weights, 1.0),
        _signed(working.candidates, terms.candidate_weights, -1.0),
    ]
    return _product(graph, weights, values, room)


def edge_scatter(points: Points, edges: Edges, room: int) -> EdgeScatter:
    """See :meth:`lnml.kernels.protocol.Kernels.edge_scatter`; differences need no shift."""
    rows, width = points.data, points.n_features
    total = float64_zeros((width, width), rows)
    squares = float64_zeros((width,), rows)
    n_terms = 8
    for pattern, weights, factor in edges:
        signed = _signed(pattern, weights, factor)
        step = max(1, room // (32 * width))
        n_terms += min(step, pattern.size) + pattern.size // step
        for lo, hi in row_tiles(pattern.size, step):
            first, second = pattern.rows[lo:hi].long(), pattern.indices[lo:hi].long()
            v = rows[first].double() - rows[second].double()
            weighted = v * signed[lo:hi, None]
            total += weighted.T @ v
            squares += (weighted * v).abs().sum(dim=0)
    share = n_terms * 0.5 * float(np.finfo(np.float64).eps) * 1.01
    matrix, found = to_numpy(total), to_numpy(squares)
    return EdgeScatter(0.5 * (matrix + matrix.T), found, share * np.sqrt(found), np.sqrt(found))


def _product(
    graph: Joined, weights: list[torch.Tensor], values: torch.Tensor, room: int
) -> torch.Tensor:
    """Lap(W + W^T) @ values, W being given pattern by pattern.

    Every row gathers its own sum over the pairs it begins and those it ends, in
    float64 and in an order that is always the same.
    """
    joint = torch.cat(weights)
    if fused.usable(values):
        return fused.laplacian(graph, joint, values).to(values.dtype)
    return sum_pairs(graph, joint, values, room).to(values.dtype)


def _signed(pattern: TorchPattern, weights: torch.Tensor | None, factor: float) -> torch.Tensor:
    """Factor times the weights of a pattern, in float64."""
    if weights is None:
        device = pattern.indptr.device
        return torch.full((pattern.size,), factor, dtype=torch.float64, device=device)
    return factor * weights.double()


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
