"""Sums of distances over all pairs of different class, a tile at a time: no n x n array.

Rows are sorted by class. Each pair is visited once: the partners of a row are the
rows after the end of its class.
"""

from __future__ import annotations

import numpy as np

from lnml.core.points import Embedding, Points
from lnml.kernels.cpu import differences
from lnml.kernels.cpu.compiling import helper, loop
from lnml.kernels.cpu.distances import FAST, squared_distance
from lnml.kernels.cpu.products import centred, gram
from lnml.kernels.cpu.threads import run_tiles
from lnml.kernels.tiles import row_tiles

TILE_ROWS, TILE_COLUMNS = 80, 672
# Blocks are summed in this many groups whatever the number of threads, so that
# the result does not depend on it.
GROUPS = 4
# Below this share of the typical distance the square root is replaced by its tangent.
LEAST_ROOT = {"float64": 1e-8, "float32": 1e-4}
# Squared distances below this share of the squared norms lose too many digits
# in a matrix product, and are computed from differences.
CANCELLATION = {"float64": 1e-5, "float32": 1e-2}

Block = tuple[int, int]


def root_sums(embedding: Embedding) -> tuple[float, np.ndarray]:
    """See :meth:`lnml.kernels.protocol.Kernels.root_sums`."""
    points, z = embedding.points, centred(embedding.coordinates)
    n, name = z.shape[0], z.dtype.name
    norms = np.einsum("ij,ij->i", z, z)
    least = points.precision if points.far else LEAST_ROOT[name]
    floor = z.dtype.type(least * np.sqrt(2.0 * norms.mean(dtype=np.float64)))
    if floor == 0.0:
        return 0.0, np.zeros((points.n_features, points.n_features))
    if points.far:
        return differences.root_sums(embedding, float(floor))
    data = centred(points.data)
    first_partner = points.class_start[1:][points.row_class]
    row_sums = np.zeros_like(data)

    def sum_group(blocks: list[Block]) -> tuple[float, np.ndarray]:
        """Roots of some rows, and the sums of the weights at each row."""
        degree = np.zeros(n)
        room = np.empty(TILE_ROWS * TILE_COLUMNS, z.dtype)
        total = 0.0
        for lo, hi in blocks:
            total += _sum_block(
                (z, norms, data),
                first_partner,
                (lo, hi),
                (floor, CANCELLATION[name]),
                room,
                degree,
                row_sums,
            )
        return total, degree

    total, degree = 0.0, np.zeros(n)
    for group_total, group_degree in run_tiles(sum_group, _groups(n)):
        total += group_total
        degree += group_degree
    half = gram(0.5 * degree[:, None] * data - row_sums, data)
    return 2.0 * total, 2.0 * (half + half.T)


def length_sums(points: Points, components: np.ndarray) -> tuple[float, np.ndarray]:
    """See :meth:`lnml.kernels.protocol.Kernels.length_sums`."""
    embedded = points.data @ components.T
    squares = np.einsum("ij,ij->i", embedded, embedded)
    floor = LEAST_ROOT[points.dtype.name] * np.sqrt(squares.mean())
    if floor == 0.0:
        return 0.0, np.zeros((points.n_features, points.n_features))
    roots = np.maximum(np.sqrt(squares), floor)
    weights = 0.5 / roots
    return float(weights @ squares + 0.5 * roots.sum()), (points.data.T * weights) @ points.data


def scratch_bytes(n_rows: int) -> int:
    """Bytes that the tiles and sums of all groups take, beside copies of the data."""
    return GROUPS * 8 * (TILE_ROWS * TILE_COLUMNS + n_rows)


def _groups(n_rows: int) -> list[list[Block]]:
    """Blocks of rows, dealt out to the groups that are summed apart."""
    blocks = row_tiles(n_rows, TILE_ROWS)
    return [blocks[g::GROUPS] for g in range(min(GROUPS, len(blocks)))]


@loop()
def _sum_block(rows, first_partner, block, limits, room, degree, row_sums):
    """Sum the roots of a block of rows; add their weights to degree and row_sums."""
    z, norms, data = rows
    lo, hi = block
    floor, cancellation = limits
    n, n_rows, total = norms.size, hi - lo, 0.0
    part = np.empty((n_rows, data.shape[1]), data.dtype)
    for start in range(first_partner[lo], n, TILE_COLUMNS):
        end = min(start + TILE_COLUMNS, n)
        tile = room[: n_rows * (end - start)].reshape(n_rows, end - start)
        np.dot(z[lo:hi], z[start:end].T, tile)
        for i in range(n_rows):
            row = lo + i
            own = min(max(first_partner[row] - start, 0), end - start)
            tile[i, :own] = 0
            first = start + own
            _to_distances(
                tile[i, own:], z[row], norms[row], z[first:end], norms[first:end], cancellation
            )
            row_total, row_degree = _to_weights(tile[i, own:], floor)
            total += row_total
            degree[row] += row_degree
            for j in range(own, end - start):
                degree[start + j] += tile[i, j]
        np.dot(tile, data[start:end], part)
        row_sums[lo:hi] += part
    return total


@helper(fastmath=FAST)
def _to_distances(products, point, norm, others, norms, cancellation):
    """Turn scalar products into squared distances, in place."""
    n_short = 0
    for j in range(products.shape[0]):
        both = norm + norms[j]
        products[j] = both - 2 * products[j]
        n_short += products[j] < cancellation * both
    if n_short > 0:
        for j in range(products.shape[0]):
            if products[j] < cancellation * (norm + norms[j]):
                products[j] = squared_distance(point, others[j])


# NumPy's division, since a check for zero would keep the loop from being vectorised.
@helper(fastmath=FAST, error_model="numpy")
def _to_weights(distances, floor):
    """Turn D into 1 / (2 max(sqrt(D), floor)), in place; sums of roots and of weights.

    Below the floor the root is continued by its tangent in D, so that its slope
    stays finite where points of different class coincide.
    """
    half, total, degree = distances.dtype.type(0.5), 0.0, 0.0
    for j in range(distances.shape[0]):
        root = max(np.sqrt(distances[j]), floor)
        weight = half / root
        total += weight * distances[j] + half * root
        distances[j] = weight
        degree += weight
    return total, degree
