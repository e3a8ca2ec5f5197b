"""The data sets of the two groups, their folds, and how columns are prepared."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lnml.datasets import load_dataset
from lnml.evaluation.problem import stratified_folds, stratified_sample

VARIABLE = "LNML_DATA"
MOST_ROWS = 1500
N_FOLDS = 5
BUNDLED = ("iris", "wine", "sonar", "ionosphere", "balance_scale", "letter")
DEVELOPMENT = ("movement_libras", "vehicle", "segment", "satimage", "dna_splice")
FROM_SKLEARN = {"digits": load_digits, "breast_cancer": load_breast_cancer}
PAPER_GROUP = (*BUNDLED, *DEVELOPMENT, *FROM_SKLEARN)
# Wider sets, dna_splice and musk, are taken on so many principal components of their standardised
# columns: metrics of all columns would take most of the time of a run.
MOST_COLUMNS = 100


class MissingData(Exception):
    """A data set is not on this machine."""


@dataclass(frozen=True)
class DataSet:
    """One data set.

    Attributes
    ----------
    group : str
        ``paper`` or ``other``.
    name : str
        Its name, unique in the group.
    path : Path or None
        File with arrays ``X`` and ``y``; None where a package ships the data.
    """

    group: str
    name: str
    path: Path | None = None

    def load(self) -> tuple[np.ndarray, np.ndarray]:
        """Return columns in float64 and class codes; do not change them."""
        return _load(self)

    @property
    def size(self) -> tuple[int, int]:
        """Rows that are used, and columns that a method sees."""
        n, d = self.load()[0].shape
        return min(n, MOST_ROWS), min(d, MOST_COLUMNS)


@dataclass(frozen=True)
class Fold:
    """Training and test part of one outer fold, prepared.

    Attributes
    ----------
    train, test : ndarray of shape (n, d), (m, d)
        Prepared columns.
    known, wanted : ndarray of int, shape (n,), (m,)
        Class codes.
    rows : ndarray of int, shape (m,)
        Numbers of the test rows in the whole data set.
    """

    train: np.ndarray
    known: np.ndarray
    test: np.ndarray
    wanted: np.ndarray
    rows: np.ndarray


def paper_group() -> list[DataSet]:
    """Return the 13 data sets of the paper group; nothing is loaded."""
    folder = Path(os.environ.get(VARIABLE, "."), "dev")
    return [
        DataSet("paper", name, folder / f"{name}.npz" if name in DEVELOPMENT else None)
        for name in PAPER_GROUP
    ]


def other_group(folder: Path) -> list[DataSet]:
    """Return the data sets of a folder, by name."""
    found = [DataSet("other", path.stem, path) for path in sorted(folder.glob("*.npz"))]
    if not found:
        raise MissingData(f"{folder} has no .npz files: make it by generalisation_suite/fetch.py")
    return found


def chosen(data: Sequence[DataSet], names: Sequence[str] | None) -> list[DataSet]:
    """Return the data sets with some names, or all of them; refuse unknown names."""
    unknown = set(names or ()) - {each.name for each in data}
    if unknown:
        raise MissingData(f"there is no data set called {', '.join(sorted(unknown))}")
    found = [each for each in data if names is None or each.name in names]
    if not found:
        raise MissingData("no data set was asked for: --groups other needs --other FOLDER")
    return found


def split(data: DataSet, seed: int, fold: int) -> Fold:
    """Draw the rows, cut the folds, and prepare columns from the training part."""
    X, y = data.load()
    kept = stratified_sample(y, MOST_ROWS, seed)
    train, test = (kept[part] for part in stratified_folds(y[kept], N_FOLDS, seed)[fold])
    steps: list[Any] = [StandardScaler()]
    if X.shape[1] > MOST_COLUMNS:
        steps.append(PCA(MOST_COLUMNS, svd_solver="full"))
    prepare = make_pipeline(*steps).fit(X[train])
    return Fold(prepare.transform(X[train]), y[train], prepare.transform(X[test]), y[test], test)


@cache
def _load(data: DataSet) -> tuple[np.ndarray, np.ndarray]:
    if data.path is not None:
        X, y = _read(data.path)
    elif data.name in FROM_SKLEARN:
        X, y = FROM_SKLEARN[data.name](return_X_y=True)
    else:
        bunch = load_dataset(data.name)
        X, y = bunch.data, bunch.target
    return np.asarray(X, dtype=np.float64), np.unique(y, return_inverse=True)[1]


def _read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    if not path.exists():
        raise MissingData(
            f"{path.name} is not here: set {VARIABLE} to a directory whose folder dev holds it, "
            f"or name other data sets with --sets"
        )
    with np.load(path, allow_pickle=False) as arrays:
        return arrays["X"], arrays["y"]
