"""The problem that a certificate is about: rows, classes and target pairs."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from lnml.certificates.arithmetic import LONG
from lnml.certificates.certificate import Certificate
from lnml.certificates.images import Images, images


class NotProvedError(Exception):
    """A step of the proof fails; the message says which, in words."""


def demand(condition: object, reason: str) -> None:
    """Go on only if a step of the proof holds."""
    if not condition:
        raise NotProvedError(reason)


class Value(NamedTuple):
    """An objective in long double.

    Attributes
    ----------
    value : longdouble
        The objective of a metric.
    error : longdouble
        The true one differs by at most this.
    trivial : longdouble
        The objective without learning, at M = 0 (ITML: a slack of one for each pair; MMC: a
        millionth of that at M = I). A millionth of it is the floor of a relative gap.
    """

    value: LONG
    error: LONG
    trivial: LONG


class Problem:
    """Rows, classes and target pairs of a certificate.

    Parameters
    ----------
    certificate : Certificate
        What is to be verified.
    X : ndarray of shape (n, d)
        The data.
    codes : ndarray of int, shape (n,)
        Class of each row.

    Attributes
    ----------
    certificate, codes
        As given.
    rows : ndarray of shape (n, d)
        X in long double, exactly.
    left_out : ndarray of shape (d, m)
        Directions that the coordinates leave out, once they are known.
    """

    def __init__(self, certificate: Certificate, X: np.ndarray, codes: np.ndarray) -> None:
        self.certificate = certificate
        self.rows = X.astype(LONG)
        self.codes = codes
        self.left_out = np.zeros((X.shape[1], 0), dtype=LONG)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def images(self, components: np.ndarray) -> Images:
        """Rows under components (r, d)."""
        return images(self.rows, components.T)

    def targets_of(self) -> list[np.ndarray]:
        """Target neighbours of every row."""
        order = np.argsort(self.targets[:, 0], kind="stable")
        sizes = np.bincount(self.targets[:, 0], minlength=self.n_rows)
        return np.split(self.targets[order, 1], np.cumsum(sizes)[:-1])

    def is_target(self, rows: slice, columns: slice | None = None) -> np.ndarray:
        """Whether others (default all) are targets of some rows: shape (b, m)."""
        columns = slice(0, self.n_rows) if columns is None else columns
        if "targets" not in self.certificate.duals:
            found = self.same_class(rows, columns)
            here = np.arange(max(rows.start, columns.start), min(rows.stop, columns.stop))
            found[here - rows.start, here - columns.start] = False
            return found
        found = np.zeros((rows.stop - rows.start, columns.stop - columns.start), dtype=bool)
        first, second = self.targets.T
        chosen = (first >= rows.start) & (first < rows.stop)
        chosen &= (second >= columns.start) & (second < columns.stop)
        found[first[chosen] - rows.start, second[chosen] - columns.start] = True
        return found

    def same_class(self, rows: slice, columns: slice | None = None) -> np.ndarray:
        """Whether some rows have the class of others (default all): shape (b, m)."""
        columns = slice(0, self.n_rows) if columns is None else columns
        return np.asarray(self.codes[rows, None] == self.codes[columns])

    def check_rows(self, name: str, rows: np.ndarray) -> None:
        """Refuse numbers of rows that X does not have."""
        if rows.size and (rows.min() < 0 or rows.max() >= self.n_rows):
            raise ValueError(f"{name} names rows that X does not have: X has {self.n_rows} rows")

    @cached_property
    def targets(self) -> np.ndarray:
        """Target pairs (i, j): shape (P, 2)."""
        pairs = self.certificate.duals.get("targets")
        if pairs is None:
            same = self.codes[:, None] == self.codes
            np.fill_diagonal(same, False)
            return np.argwhere(same)
        self.check_rows("targets", pairs)
        first, second = pairs.T
        demand((first != second).all(), "a row is its own target neighbour")
        demand(
            (self.codes[first] == self.codes[second]).all(),
            "a target neighbour has another class: these are not the labels of the fit",
        )
        demand(are_distinct(first * self.n_rows + second), "a target pair is named twice")
        return pairs


def are_distinct(values: np.ndarray) -> bool:
    """Whether no value occurs twice."""
    return np.unique(values).size == values.size
