"""What people often take instead of a distance: classifiers of scikit-learn, lightly tuned."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

# For columns of variance 1. The usual gamma is 1 / d, which lies in this range for d below 1000.
SVM_GRID = {"C": (1.0, 10.0, 100.0), "gamma": (0.001, 0.01, 0.1, 1.0)}
SVM_FOLDS = 3
TREES = 500
MOST_ITERATIONS = 1000
VALIDATION_SHARE = 0.1


def tuned_svm(seed: int) -> Any:
    """Return a support vector machine with an RBF kernel, its C and gamma chosen by inner folds."""
    folds = StratifiedKFold(SVM_FOLDS, shuffle=True, random_state=seed)
    return GridSearchCV(SVC(), SVM_GRID, cv=folds)


def random_forest(seed: int) -> Any:
    """Return a forest with more trees than scikit-learn's default."""
    return RandomForestClassifier(TREES, random_state=seed)


class StoppedBoosting(ClassifierMixin, BaseEstimator):
    """Gradient boosting of histograms that stops when a tenth of the rows gets no better.

    Where a tenth of the rows cannot hold all classes, it makes scikit-learn's default number of
    iterations.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the choice of those rows.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
        Class labels.
    model_ : HistGradientBoostingClassifier
        The fitted model.
    """

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Fit to rows (n, d) and their labels (n,)."""
        self.classes_, sizes = np.unique(y, return_counts=True)
        stops = sizes.min() > 1 and VALIDATION_SHARE * len(y) >= sizes.size
        self.model_ = HistGradientBoostingClassifier(
            max_iter=MOST_ITERATIONS if stops else 100,
            early_stopping=bool(stops),
            validation_fraction=VALIDATION_SHARE,
            random_state=self.random_state,
        ).fit(X, y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the labels (m,) of rows (m, d)."""
        return self.model_.predict(X)
