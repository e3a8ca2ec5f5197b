"""What the pictures of a report show: plain data, written to and read from JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lnml.evaluation.explanation import Explanation


@dataclass(frozen=True)
class Suspect:
    """A row whose label looks wrong (see :func:`lnml.least_trusted`).

    Attributes
    ----------
    row : int
        Row of the data.
    label : str
        Its label.
    n_neighbors : int
        Target neighbours it received.
    cost : float
        Their mean cost.
    nearest_label : str
        Label of the nearest other row under the learned metric.
    """

    row: int
    label: str
    n_neighbors: int
    cost: float
    nearest_label: str


@dataclass(frozen=True)
class Portrait:
    """One fit to a whole data set, with all that the pictures show.

    Attributes
    ----------
    method : str
        The method fitted: one that learns neighbourhoods.
    n_rows : int
        Rows it was fitted to.
    rows : ndarray of int, shape (m,)
        Rows of the data that the 2-D views show.
    labels : ndarray of str, shape (m,)
        Their labels.
    before, after : ndarray of shape (m, 2)
        Their leading principal components in the input space and under the learned metric.
    edges_before, edges_after : ndarray of int, shape (e, 2)
        Target neighbours among the rows shown, as positions in ``rows``: the nearest rows of
        the class in the input space, and the learned ones.
    neighbor_counts : dict of str to list of int
        By class: how many rows have 0, 1, 2, ... target neighbours.
    suspects : tuple of Suspect
        The rows that are trusted least, the least trusted first.
    histories : dict of str to list of dict
        By method: records with ``seconds``, ``objective`` and, where there is one, ``bound``.
    explanation : Explanation or None
        What the best metric learned, and its hardest rows; None in results of older versions.
    """

    method: str
    n_rows: int
    rows: np.ndarray
    labels: np.ndarray
    before: np.ndarray
    after: np.ndarray
    edges_before: np.ndarray
    edges_after: np.ndarray
    neighbor_counts: Mapping[str, Sequence[int]]
    suspects: tuple[Suspect, ...]
    histories: Mapping[str, Sequence[Mapping[str, float]]]
    explanation: Explanation | None = None

    def to_json(self) -> dict[str, Any]:
        """Return numbers, strings and lists only."""
        arrays = {
            name: value.tolist()
            for name, value in vars(self).items()
            if isinstance(value, np.ndarray)
        }
        explained = None if self.explanation is None else self.explanation.to_json()
        return {**asdict(self), **arrays, "explanation": explained}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Portrait:
        """Undo :meth:`to_json`."""
        explained = stored.get("explanation")
        return cls(
            **{
                **stored,
                "rows": np.asarray(stored["rows"], dtype=np.int64),
                "labels": np.asarray(stored["labels"], dtype=str),
                "before": np.asarray(stored["before"], dtype=float).reshape(-1, 2),
                "after": np.asarray(stored["after"], dtype=float).reshape(-1, 2),
                "edges_before": np.asarray(stored["edges_before"], dtype=np.int64).reshape(-1, 2),
                "edges_after": np.asarray(stored["edges_after"], dtype=np.int64).reshape(-1, 2),
                "suspects": tuple(Suspect(**suspect) for suspect in stored["suspects"]),
                "explanation": None if explained is None else Explanation.from_json(explained),
            }
        )
