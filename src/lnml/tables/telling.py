"""Columns that predict the class alone: identifiers, or copies of the labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from lnml.evaluation.problem import stratified_sample
from lnml.tables.columns import is_numeric
from lnml.tables.table import Table

# A column tells the class if it is wrong on so small a share of the rows, and of those rows that
# the most frequent class does not explain.
MOST_WRONG = 0.01
MOST_WRONG_OF_OTHERS = 0.1
# More rows make no difference.
MOST_ROWS = 10_000


def telling_columns(table: Table) -> dict[str, float]:
    """Return the columns that alone predict the class, with the share of rows they get right.

    Each row is predicted by the rows that have the same value, or, if there is none, by the nearest
    value below or above. Of equally near values the better one counts, so that a number of the row
    predicts the classes of a sorted table without fail.

    Examples
    --------
    >>> import pandas as pd
    >>> from lnml.tables import make_table
    >>> frame = pd.DataFrame({"id": [7, 8, 10, 11], "x": [1, 2, 1, 2], "kind": list("aabb")})
    >>> telling_columns(make_table(frame, "kind"))
    {'id': 1.0}
    """
    rows = stratified_sample(table.labels, MOST_ROWS, seed=0)
    _, classes, sizes = np.unique(table.labels[rows], return_inverse=True, return_counts=True)
    allowed = min(MOST_WRONG * rows.size, MOST_WRONG_OF_OTHERS * (rows.size - sizes.max()))
    found = {}
    for name, column in table.features.items():
        wrong = rows.size - _n_right(column.iloc[rows], classes)
        if wrong <= allowed:
            found[name] = 1.0 - wrong / rows.size
    return found


def telling_notes(table: Table) -> list[str]:
    """Say which columns predict the class alone, and what to do if that is no accident."""
    return [
        f"column {name!r} alone predicts the class of {100 * share:.3g} % of the rows: if it "
        f"numbers the rows, or comes from the labels, leave it out (--drop {name!r})"
        for name, share in telling_columns(table).items()
    ]


def _n_right(column: Any, classes: np.ndarray) -> int:
    """How many rows a column predicts right, for the classes (n,) of its rows as codes."""
    values = (
        column.to_numpy(dtype=np.float64) if is_numeric(column) else column.cat.codes.to_numpy()
    )
    if is_numeric(column) and np.isnan(values).any():
        # Missing values are equal, and far from all others.
        low, high = np.nanmin(values), np.nanmax(values)
        values = np.where(np.isnan(values), high + (high - low) + 1.0, values)
    distinct, groups, sizes = np.unique(values, return_inverse=True, return_counts=True)
    top, votes = _top_classes(groups, classes)
    right = (top[groups] == classes) & (votes[groups] > 1)
    if is_numeric(column):
        alone = sizes[groups] == 1
        right |= alone & _neighbor_agrees(distinct, top)[groups]
    return int(right.sum())


def _top_classes(groups: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the most frequent class of every group of rows, and how often it occurs there."""
    n_classes = int(classes.max()) + 1
    pairs, counts = np.unique(groups * n_classes + classes, return_counts=True)
    of_group, of_class = np.divmod(pairs, n_classes)
    # The last entry of a group is the most frequent one.
    order = np.lexsort((counts, of_group))
    last = np.flatnonzero(np.diff(of_group[order], append=-1))
    return of_class[order][last], counts[order][last]


def _neighbor_agrees(distinct: np.ndarray, top: np.ndarray) -> np.ndarray:
    """Whether the nearest other value, or one of two equally near ones, has the same top class."""
    below = np.diff(distinct, prepend=-np.inf)
    above = np.append(below[1:], np.inf)
    same = top[1:] == top[:-1]
    return ((below <= above) & np.append(False, same)) | ((above <= below) & np.append(same, False))
