"""Exact objectives, pair costs and target neighbours in plain NumPy and float64.

The benchmarks judge every tool by these functions. They share no code with lnml: each is written
straight from its formula, a block of rows at a time, and is slow.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

BLOCK = 256


def blocks(n: int, size: int = BLOCK) -> Iterator[np.ndarray]:
    """Row numbers 0 .. n - 1, some at a time."""
    for low in range(0, n, size):
        yield np.arange(low, min(low + size, n))


def squared_lengths(vectors: np.ndarray) -> np.ndarray:
    """Squared length of every vector of the last axis."""
    return np.einsum("...r,...r->...", vectors, vectors)


def embed(X: np.ndarray, L: np.ndarray) -> np.ndarray:
    """Centred rows under the transformation L (r x d), in float64."""
    X = np.asarray(X, dtype=np.float64)
    return (X - X.mean(axis=0)) @ np.asarray(L, dtype=np.float64).T


def distances_from(Z: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Squared distances of some rows to all rows, by the binomial formula."""
    lengths = squared_lengths(Z)
    return lengths[rows, None] + lengths - 2.0 * (Z[rows] @ Z.T)


def nearest_same_class(X: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    """Return the k nearest rows of the same class (n x k), ties to the lower index."""
    X = np.asarray(X, dtype=np.float64)
    targets = np.empty((len(X), k), dtype=np.int64)
    for label in np.unique(y):
        members = np.flatnonzero(y == label)
        for part in blocks(members.size, 64):
            far = squared_lengths(X[members[part], None] - X[members])
            far[np.arange(part.size), part] = np.inf
            order = np.argsort(far, axis=1, kind="stable")[:, :k]
            targets[members[part]] = members[order]
    return targets


def lmnn_objective(
    X: np.ndarray, y: np.ndarray, targets: np.ndarray, L: np.ndarray, push_weight: float = 0.5
) -> float:
    """Sum over targets of (1 - mu) D_ij + mu * sum over impostors of [1 + D_ij - D_il]+.

    The binomial formula only tells which rows may be impostors, with room for its rounding. The
    distances that are summed come from differences of coordinates.
    """
    Z = embed(X, L)
    lengths = squared_lengths(Z)
    pull = push = 0.0
    for rows in blocks(len(Z)):
        near = squared_lengths(Z[rows, None] - Z[targets[rows]])
        pull += near.sum()
        far = distances_from(Z, rows)
        room = 1e-12 * (lengths[rows] + lengths.max())
        far[y[rows, None] == y] = np.inf
        i, impostor = np.nonzero(far < (1.0 + near.max(axis=1) + room)[:, None])
        for pairs in np.array_split(np.arange(i.size), 1 + i.size // 50_000):
            exact = squared_lengths(Z[rows[i[pairs]]] - Z[impostor[pairs]])
            push += np.maximum(1.0 + near[i[pairs]] - exact[:, None], 0.0).sum()
    return float((1.0 - push_weight) * pull + push_weight * push)


def lmnn_objective_nearest(
    X: np.ndarray, y: np.ndarray, targets: np.ndarray, L: np.ndarray, push_weight: float = 0.5
) -> float:
    """LMNN with the k nearest impostors of a row only: what mlpack minimises (small n)."""
    Z, k = embed(X, L), targets.shape[1]
    near = squared_lengths(Z[:, None] - Z[targets])
    far = squared_lengths(Z[:, None] - Z)
    far[y[:, None] == y] = np.inf
    impostors = np.sort(far, axis=1)[:, :k]
    hinge = np.maximum(1.0 + near[:, :, None] - impostors[:, None], 0.0)
    return float((1.0 - push_weight) * near.sum() + push_weight * hinge.sum())


def lmnn_pair_costs(
    X: np.ndarray, y: np.ndarray, push_weight: float = 0.5
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns and LMNN costs F_ij of all same-class pairs under the identity."""
    X = np.asarray(X, dtype=np.float64)
    rows, columns, costs = [], [], []
    for i in range(len(X)):
        from_i = squared_lengths(X - X[i])
        same = np.flatnonzero(y == y[i])
        same = same[same != i]
        impostors = np.sort(from_i[y != y[i]])
        sums = np.concatenate([[0.0], np.cumsum(impostors)])
        margin = 1.0 + from_i[same]
        count = np.searchsorted(impostors, margin)
        hinge = count * margin - sums[count]
        rows.append(np.full(same.size, i))
        columns.append(same)
        costs.append((1.0 - push_weight) * from_i[same] + push_weight * hinge)
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(costs)


def softmax_rows(Z: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distances of some rows to all, log of their normaliser, and neighbour probabilities."""
    distances = distances_from(Z, rows)
    distances[np.arange(rows.size), rows] = np.inf
    least = distances.min(axis=1, keepdims=True)
    weights = np.exp(least - distances)
    total = weights.sum(axis=1, keepdims=True)
    return distances, (np.log(total) - least)[:, 0], weights / total


def mcml_objective(X: np.ndarray, y: np.ndarray, L: np.ndarray) -> float:
    """Sum over rows of KL(p0 | p), p0 uniform over all other rows of the same class."""
    Z, value = embed(X, L), 0.0
    for rows in blocks(len(Z)):
        distances, log_normalizers, _ = softmax_rows(Z, rows)
        same = y[rows, None] == y
        same[np.arange(rows.size), rows] = False
        sizes = same.sum(axis=1)
        pull = np.where(same, distances, 0.0).sum(axis=1) / np.maximum(sizes, 1)
        terms = pull + log_normalizers - np.log(np.maximum(sizes, 1))
        value += terms[sizes > 0].sum()
    return float(value)


def nca_objective(X: np.ndarray, y: np.ndarray, L: np.ndarray) -> float:
    """Sum over rows of the probability that the chosen neighbour is of the same class."""
    Z, value = embed(X, L), 0.0
    for rows in blocks(len(Z)):
        _, _, probabilities = softmax_rows(Z, rows)
        value += probabilities[y[rows, None] == y].sum()
    return float(value)
