"""How much each column, and each pair of columns, counts in a distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# As many columns as a picture can show.
MOST_COLUMNS = 12


@dataclass(frozen=True)
class ColumnWeights:
    """Shares of columns, and of pairs of columns, in a squared distance.

    With the metric M and the standard deviations s of the columns, entry (a, b) of ``pairs`` is
    M[a, b] s[a] s[b], divided by the sum of its diagonal over all columns. So columns in
    different units can be compared. The diagonal is ``after``: what a difference of one standard
    deviation in that column adds to the squared distance. Off the diagonal, a positive number
    says that differences in the same direction in both columns add to the distance; a negative
    one, that they cancel each other.

    Attributes
    ----------
    names : tuple of str
        The columns that count most, at most twelve, the most important first.
    before, after : ndarray of shape (c,)
        Their shares in the squared Euclidean and the squared learned distance, from 0 to 1.
    pairs : ndarray of shape (c, c)
        Symmetric.
    n_columns : int
        Columns in all. The shares of all of them sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 0.0]])
    >>> weights = column_weights(np.array([[1.0, -1.0]]), rows, ["left", "right"])
    >>> weights.names, weights.strongest_pairs()
    (('right', 'left'), [(0, 1)])
    >>> print(f"{weights.after[0]:.2f}, and {weights.pairs[0, 1]:.2f} for the pair")
    0.57, and -0.49 for the pair
    """

    names: tuple[str, ...]
    before: np.ndarray
    after: np.ndarray
    pairs: np.ndarray
    n_columns: int

    def strongest_pairs(self, count: int = 5) -> list[tuple[int, int]]:
        """Return the pairs of columns with the largest numbers, whatever their sign."""
        first, second = np.triu_indices(len(self.names), 1)
        sizes = np.abs(self.pairs[first, second])
        order = np.argsort(-sizes, kind="stable")[:count]
        return [(int(first[i]), int(second[i])) for i in order if sizes[i] > 0]

    def partner(self, column: int) -> int:
        """Return the column that makes the largest pair with one, of two columns or more."""
        sizes = np.abs(self.pairs[column])
        sizes[column] = -1.0
        return int(sizes.argmax())

    def to_json(self) -> dict[str, Any]:
        """Return numbers, strings and lists only."""
        arrays = {name: getattr(self, name).tolist() for name in ("before", "after", "pairs")}
        return {"names": list(self.names), "n_columns": self.n_columns, **arrays}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ColumnWeights:
        """Undo :meth:`to_json`; refuse what it cannot have written."""
        names = tuple(str(name) for name in stored["names"])
        before, after, pairs = (
            np.asarray(stored[name], dtype=float) for name in ("before", "after", "pairs")
        )
        shape = (len(names),)
        if before.shape != shape or after.shape != shape or pairs.shape != shape * 2:
            raise ValueError("every column needs its shares")
        return cls(names, before, after, pairs, int(stored["n_columns"]))


def column_weights(
    components: Any,
    X: Any,
    names: Sequence[str] | None = None,
    *,
    before: Any = None,
    most: int = MOST_COLUMNS,
) -> ColumnWeights:
    """Return how much columns, and pairs of columns, count in a learned distance.

    Parameters
    ----------
    components : array-like of shape (r, d)
        The linear map of the metric, as in ``components_`` of a fitted model.
    X : array-like of shape (n, d)
        Rows, which give the spread of each column.
    names : sequence of str, optional
        Names of the columns; numbers from 0 by default.
    before : array-like of shape (n, d), optional
        Rows whose Euclidean distance the learned one is compared with; by default those of X.
    most : int, default=12
        How many columns to return: those with the largest shares after learning. The three with
        the largest shares before are always among them.

    Returns
    -------
    weights : ColumnWeights

    Examples
    --------
    >>> from lnml import LMNN
    >>> from lnml.datasets import load_dataset
    >>> from lnml.evaluation import column_weights
    >>> wine = load_dataset("wine")
    >>> model = LMNN().fit(wine.data, wine.target)
    >>> weights = column_weights(model.components_, wine.data, wine.feature_names)
    >>> place = weights.names.index("proline")
    >>> print(f"{weights.before[place]:.0%} before, {weights.after[place]:.0%} after")
    100% before, 94% after
    """
    L, X = np.asarray(components, dtype=float), np.asarray(X, dtype=float)
    if X.ndim != 2 or L.ndim != 2 or L.shape[1] != X.shape[1]:
        raise ValueError(
            f"components and X must have the same number of columns; got shapes {L.shape} and "
            f"{X.shape}"
        )
    known = range(X.shape[1]) if names is None else names
    if len(known) != X.shape[1]:
        raise ValueError(f"X has {X.shape[1]} columns, but there are {len(known)} names")
    scaled = L * X.std(axis=0)
    learned = _shares(np.sum(scaled**2, axis=0))
    given = _shares(np.var(X if before is None else np.asarray(before, dtype=float), axis=0))
    shown = _most_important(given, learned, most)
    total = float(np.sum(scaled**2)) or 1.0
    return ColumnWeights(
        tuple(str(known[column]) for column in shown),
        given[shown],
        learned[shown],
        scaled[:, shown].T @ scaled[:, shown] / total,
        X.shape[1],
    )


def _shares(sizes: np.ndarray) -> np.ndarray:
    return sizes / (float(sizes.sum()) or 1.0)


def _most_important(before: np.ndarray, after: np.ndarray, most: int) -> np.ndarray:
    """Return at most ``most`` columns by their share after learning, and the top three before."""
    kept = np.argsort(-before, kind="stable")[: min(3, most)]
    ranked = np.argsort(-after, kind="stable")
    rest = ranked[~np.isin(ranked, kept)][: most - kept.size]
    shown = np.concatenate([kept, rest])
    return shown[np.argsort(-after[shown], kind="stable")]
