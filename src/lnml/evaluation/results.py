"""What a comparison of methods found: plain data, written to and read from JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from lnml.errors import unknown_name
from lnml.evaluation.retrieval import ACCURACY, Score, read_score


@dataclass(frozen=True)
class FoldResult:
    """What one method did in one fold.

    Attributes
    ----------
    method : str
        Name of the method.
    fold : int
        Number of the fold.
    test : ndarray of int, shape (m,)
        Rows of the test part.
    correct : ndarray of bool, shape (m,)
        Whether each was classified correctly.
    converged : bool
        Whether the fit met its stopping rule.
    seconds : float
        Time of the fit.
    peak_mb : float or None
        Peak memory of the fit in MB, above what the process held before; None
        if the system does not report it.
    gap : float or None
        Relative duality gap of the fit; None for a method without one.
    chosen : dict
        What the method chose by inner cross-validation, such as ``{"k_min": 1}``.
    reason : str
        Why, where the method says so.
    k : int or None
        Neighbours that voted; None for a classifier, and in results of older versions.
    classifier : bool
        True for a classifier that is no distance, and takes part for reference only.
    score : str
        What methods are judged by beside accuracy, such as ``map@r``; or ``accuracy``.
    values : ndarray of shape (m,) or None
        The score of each test row; None if that is accuracy, and for a classifier.
    predicted : ndarray of int, shape (m,), or None
        The class that each test row was taken for, as a position in
        :attr:`DataSummary.class_sizes`; None in results of older versions.
    n_learned : int or None
        Rows that the method learned from; None if it learns nothing, and in results of older
        versions.

    Examples
    --------
    >>> from lnml.datasets import load_dataset
    >>> from lnml.evaluation import compare
    >>> iris = load_dataset("iris")
    >>> result = compare(iris.data, iris.target, {"Euclidean": None}, n_folds=3).results[0]
    >>> result.method, result.fold, result.test.shape, result.k
    ('Euclidean', 0, (50,), 1)
    >>> print(f"{result.correct.sum()} of {result.test.size} rows are right")
    49 of 50 rows are right
    """

    method: str
    fold: int
    test: np.ndarray
    correct: np.ndarray
    converged: bool = True
    seconds: float = 0.0
    peak_mb: float | None = None
    gap: float | None = None
    chosen: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    k: int | None = None
    classifier: bool = False
    score: str = ACCURACY
    values: np.ndarray | None = None
    predicted: np.ndarray | None = None
    n_learned: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return numbers, strings and lists only."""
        arrays = {
            "test": self.test,
            "correct": self.correct,
            "values": self.values,
            "predicted": self.predicted,
        }
        plain = {name: None if a is None else a.tolist() for name, a in arrays.items()}
        return {**asdict(self), **plain}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> FoldResult:
        """Undo :meth:`to_json`; refuse what it cannot have written."""
        test = np.asarray(stored["test"], dtype=np.int64)
        correct = np.asarray(stored["correct"], dtype=bool)
        values = stored.get("values")
        values = None if values is None else np.asarray(values, dtype=float)
        taken = stored.get("predicted")
        taken = None if taken is None else np.asarray(taken, dtype=np.int64)
        arrays = {"test": test, "correct": correct, "values": values, "predicted": taken}
        result = cls(**{**stored, **arrays})
        needed = read_score(result.score).name != ACCURACY and not result.classifier
        if needed != (values is not None) or (values is not None and not _are_shares(values, test)):
            raise ValueError("every test row needs one value of the score, from 0 to 1")
        numbers = [result.seconds, *(n for n in (result.peak_mb, result.gap) if n is not None)]
        if test.ndim != 1 or not test.size or correct.shape != test.shape:
            raise ValueError("every test row needs one answer")
        if taken is not None and (taken.shape != test.shape or taken.min() < 0):
            raise ValueError("every test row needs one predicted class")
        if not all(isinstance(number, int | float) for number in numbers):
            raise ValueError("seconds, memory and gap must be numbers")
        if not isinstance(result.chosen, Mapping) or not isinstance(result.reason, str):
            raise ValueError("what was chosen must have names, and its reason be text")
        return result


def _are_shares(values: np.ndarray, test: np.ndarray) -> bool:
    return values.shape == test.shape and bool(((values >= 0) & (values <= 1)).all())


@dataclass(frozen=True)
class DataSummary:
    """The data that a comparison is about.

    Attributes
    ----------
    name : str
        Name of the data set or file.
    n_features : int
        Columns before dimension reduction.
    class_sizes : dict
        Rows of each class, by its label.
    fingerprint : str
        SHA-256 of features and labels.
    truth : tuple of int
        The class of every row, as a position in ``class_sizes``; empty in results of older
        versions.

    Examples
    --------
    >>> DataSummary("flowers", 4, {"setosa": 50, "virginica": 50}).n_rows
    100
    """

    name: str
    n_features: int
    class_sizes: Mapping[str, int]
    fingerprint: str = ""
    truth: Sequence[int] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "truth", tuple(self.truth))
        sizes = list(self.class_sizes.values())
        if self.truth and np.bincount(self.truth, minlength=len(sizes)).tolist() != sizes:
            raise ValueError("the classes of the rows do not have the sizes of the classes")

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(self.class_sizes.values())


@dataclass(frozen=True)
class Comparison:
    """Several methods on the same folds of one data set.

    Attributes
    ----------
    data : DataSummary
        The data set.
    results : tuple of FoldResult
        One for each method and fold. Methods are listed in order of appearance.

    Examples
    --------
    >>> from lnml import LMNN
    >>> from lnml.datasets import load_dataset
    >>> from lnml.evaluation import compare
    >>> wine = load_dataset("wine")
    >>> found = compare(wine.data, wine.target, {"Euclidean": None, "LMNN": LMNN()}, n_folds=3)
    >>> found.methods, found.data.n_rows, len(found.results)
    (('Euclidean', 'LMNN'), 178, 6)
    >>> found.correct("LMNN").shape, found.fold_accuracies("LMNN").shape
    ((178,), (3,))
    >>> Comparison.from_json(found.to_json()).accuracy("LMNN") == found.accuracy("LMNN")
    True
    """

    data: DataSummary
    results: tuple[FoldResult, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods, in order of appearance."""
        return tuple(dict.fromkeys(result.method for result in self.results))

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the methods that give a distance."""
        return tuple(name for name in self.methods if name not in self.classifiers)

    @property
    def classifiers(self) -> tuple[str, ...]:
        """Names of the methods that take part for reference only: they give no distance."""
        return tuple(dict.fromkeys(r.method for r in self.results if r.classifier))

    def of(self, method: str) -> list[FoldResult]:
        """Results of one method, by fold."""
        if method not in self.methods:
            raise unknown_name("method", method, self.methods)
        return sorted((r for r in self.results if r.method == method), key=lambda r: r.fold)

    def correct(self, method: str) -> np.ndarray:
        """Whether a method was right on each test row, in the order of rows: shape (m,)."""
        parts = self.of(method)
        rows = np.concatenate([part.test for part in parts])
        return np.concatenate([part.correct for part in parts])[np.argsort(rows, kind="stable")]

    def tested(self, method: str) -> np.ndarray:
        """Numbers of the test rows, sorted: shape (m,)."""
        return np.sort(np.concatenate([part.test for part in self.of(method)]))

    def confusion(self, method: str) -> np.ndarray | None:
        """Count the test rows of each class (rows) by the class they were taken for (columns).

        None for results of older versions, which did not keep that.
        """
        parts = self.of(method)
        taken = [part.predicted for part in parts if part.predicted is not None]
        if not self.data.truth or len(taken) < len(parts):
            return None
        truth = np.array(self.data.truth)[np.concatenate([part.test for part in parts])]
        counts = np.zeros((len(self.data.class_sizes),) * 2, dtype=np.int64)
        np.add.at(counts, (truth, np.concatenate(taken)), 1)
        return counts

    def accuracy(self, method: str) -> float:
        """Share of the test rows on which a method was right."""
        return float(self.correct(method).mean())

    def fold_accuracies(self, method: str) -> np.ndarray:
        """Share of the test rows on which a method was right, fold by fold."""
        return np.array([part.correct.mean() for part in self.of(method)])

    @property
    def score(self) -> Score:
        """What methods are judged by beside accuracy, or accuracy itself."""
        return read_score(self.results[0].score)

    def fold_scores(self, method: str) -> np.ndarray:
        """Mean of the score over the test rows, fold by fold; a classifier has accuracy only."""
        if self.score.name == ACCURACY:
            return self.fold_accuracies(method)
        if method in self.classifiers:
            raise ValueError(f"{method} gives no distance, so it has no {self.score.title}")
        return np.array([part.values.mean() for part in self.of(method) if part.values is not None])

    def mean_score(self, method: str) -> float:
        """Mean of the score over all test rows."""
        sizes = [part.test.size for part in self.of(method)]
        return float(np.average(self.fold_scores(method), weights=sizes))

    def seconds(self, method: str) -> float:
        """Mean time of a fit."""
        return float(np.mean([part.seconds for part in self.of(method)]))

    def peak_mb(self, method: str) -> float | None:
        """Largest peak memory of a fit; None if it is not known for any fold."""
        known = [part.peak_mb for part in self.of(method) if part.peak_mb is not None]
        return max(known, default=None)

    def n_unfinished(self, method: str) -> int:
        """How many fits did not meet their stopping rule."""
        return sum(not part.converged for part in self.of(method))

    def to_json(self) -> dict[str, Any]:
        """Return numbers, strings and lists only."""
        return {"data": asdict(self.data), "results": [r.to_json() for r in self.results]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Comparison:
        """Undo :meth:`to_json`."""
        results = tuple(FoldResult.from_json(result) for result in stored["results"])
        return cls(DataSummary(**stored["data"]), results)


@dataclass(frozen=True)
class Provenance:
    """How results were made, so that they can be made again.

    Attributes
    ----------
    command : str
        The command line.
    settings : dict
        What was asked for: folds, seed, k, scaling, ...
    versions : dict
        Versions of Python and of the packages that matter.
    created : str
        Time in ISO format.
    """

    command: str
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    created: str
