"""The exact 0/1 neighbourhood assignment (paper, problem 4) without an LP solver.

The constraints are a laminar family, so the greedy choice is the optimum of
the linear program: the cheapest K_min partners of every row, then the cheapest
of what is left until the budget is used. Proof in docs/neighborhoods.md.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from lnml.core.neighborhoods import Neighborhoods
from lnml.core.text import rows_text
from lnml.core.warn import warn_user


class Sizes(NamedTuple):
    """How many target neighbours rows may have: least, on average, most."""

    k_min: int
    k_av: int
    k_max: int

    def n_pairs(self, class_sizes: np.ndarray) -> int:
        """Return how many pairs an assignment has; a small class gives all it can."""
        return int((class_sizes * np.minimum(self.k_av, class_sizes - 1)).sum())


def assign_neighborhoods(
    costs: Any,
    y: Any,
    *,
    k_min: int = 3,
    k_av: int = 3,
    k_max: int = 3,
    distances: Any = None,
) -> Neighborhoods:
    """Choose target neighbours of least total cost.

    Every row i receives at least ``k_min`` and at most ``k_max`` partners of its
    own class, ``k_av`` on average, such that the sum of their costs is the least
    possible. A class too small for this gives its rows all the partners there
    are and takes no budget from others.

    Parameters
    ----------
    costs : array or sparse matrix of shape (n, n)
        Cost of taking j as a target neighbour of i. Of a dense matrix only
        pairs of the same class are read. Of a sparse one only stored entries
        (stored zeros too) are allowed pairs, all of the same class.
    y : array-like of shape (n,)
        Class labels.
    k_min, k_av, k_max : int, default=3
        Bounds of the neighbourhood sizes, ``0 <= k_min <= k_av <= k_max``.
    distances : like costs, optional
        Decide ties of cost. Remaining ties go to the lower index.

    Returns
    -------
    neighborhoods : Neighborhoods

    Examples
    --------
    >>> import numpy as np
    >>> costs = np.array([[0, 1, 5], [1, 0, 2], [5, 2, 0]])
    >>> chosen = assign_neighborhoods(costs, ["a"] * 3, k_min=0, k_av=1, k_max=2)
    >>> chosen.to_graph().toarray().astype(int)
    array([[0, 1, 0],
           [1, 0, 1],
           [0, 0, 0]])
    """
    sizes = check_sizes(k_min, k_av, k_max)
    labels, codes = np.unique(np.asarray(y), return_inverse=True)
    n = codes.size
    if n == 0 or np.shape(costs) != (n, n):
        raise ValueError(
            f"costs must be an n x n matrix with one row per label; "
            f"got shape {np.shape(costs)} for {n} labels"
        )
    if distances is not None and np.shape(distances) != (n, n):
        raise ValueError(f"distances must have the shape of costs, {(n, n)}")
    # Imported here: numba takes a second to import, and most fits need none of this.
    from lnml.kernels.cpu.assignment import choose
    from lnml.kernels.cpu.ranking import rank_dense, rank_sparse

    rank = rank_sparse if sparse.issparse(costs) else rank_dense
    ranked = rank(costs, distances, codes, sizes.k_max)
    warn_small_classes(np.bincount(codes), labels, sizes.k_av)
    return choose(ranked, *sizes)[0]


def check_sizes(k_min: Any, k_av: Any, k_max: Any) -> Sizes:
    """Return valid sizes or say what is wrong with them."""
    for name, value in (("k_min", k_min), ("k_av", k_av), ("k_max", k_max)):
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
            raise ValueError(
                f"{name} must be a whole number >= 0, got {value!r}: neighbourhood sizes "
                f"are integers, which is what makes the assignment 0/1"
            )
    if not k_min <= k_av <= k_max or k_av == 0:
        raise ValueError(
            f"neighbourhood sizes must satisfy k_min <= k_av <= k_max and k_av >= 1, got "
            f"k_min={k_min}, k_av={k_av}, k_max={k_max}: reorder them"
        )
    return Sizes(int(k_min), int(k_av), int(k_max))


def warn_small_classes(class_sizes: np.ndarray, labels: np.ndarray, k: int) -> None:
    """Name the classes whose rows cannot have k target neighbours."""
    small = np.flatnonzero((class_sizes > 0) & (class_sizes <= k))
    if small.size:
        names = ", ".join(f"{labels[c]!s} ({rows_text(class_sizes[c])})" for c in small[:10])
        more = f" and {small.size - 10} more" if small.size > 10 else ""
        warn_user(
            f"classes too small for {k} target neighbours per row, so their rows get as many "
            f"as there are: {names}{more}"
        )
