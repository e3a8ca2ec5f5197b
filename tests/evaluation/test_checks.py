"""What comparisons and their tests refuse, before any work."""

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from lnml import LMNN
from lnml.datasets import load_dataset
from lnml.evaluation import (
    accuracy_interval,
    best_methods,
    classifier_tests,
    compare,
    critical_difference,
    pairwise_mcnemar,
    paper_scores,
)

WINE = load_dataset("wine")
X, Y = WINE.data, WINE.target
RIGHT = {"a": [1] * 8, "b": [0] * 8}


class Fails(LMNN):
    """No method is fitted before the input is checked."""

    def fit(self, X, y):
        raise AssertionError("work was begun")


def with_entry(value):
    data = X.copy()
    data[5, 2] = value
    return data


@pytest.mark.parametrize(
    ("data", "labels", "message"),
    [
        (X, Y[:-1], "X has 178 rows, and y has 177 labels"),
        (X[:-1], Y, "X has 177 rows, and y has 178 labels"),
        (X[0], Y[:13], "Expected 2D array"),
        (with_entry(np.nan), Y, "holds nan in row 5, column 2: 'plain' cannot use it"),
        (with_entry(np.inf), Y, "holds inf in row 5, column 2"),
        (np.where(X > 5, "much", "little"), Y, "could not convert string to float"),
        (pd.DataFrame(X).assign(text="red"), Y, "could not convert string to float"),
        (X, np.where(np.arange(178) == 7, np.nan, 1.0), "row 7 has no label"),
        (X, pd.Series(Y).where(np.arange(178) != 7, None), "row 7 has no label"),
        (X, np.full(178, "a"), "one class only"),
        (X, X[:, 0], "Unknown label type"),
        (X, X, "1d array"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_rows(data, labels, message):
    with pytest.raises(ValueError, match=message):
        compare(data, labels, {"it": Fails(), "plain": None}, n_folds=2)


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ({}, "no method to compare: give some, such as"),
        ([LMNN()], "methods must map names to estimators, .*; got list"),
        (["lmnn", "nca"], "methods must map names to estimators"),
        (LMNN(), "methods must map names to estimators, .*; got LMNN"),
        ("lmnn", "methods must map names to estimators"),
        (None, "methods must map names to estimators"),
        ({"it": "lmnn"}, "'it' must be an estimator .*; got str"),
        ({"it": LMNN}, r"'it' must be an estimator .*; got the class LMNN \(write LMNN\(\)"),
        ({"it": 3}, "'it' must be an estimator"),
        ({3: None}, "names of methods must be text; got 3"),
        ({"Metric 1": None, "metric-1": None}, "'Metric 1' and 'metric-1' differ in case or"),
    ],
    ids=str,
)
def test_bad_methods(methods, message):
    with pytest.raises((TypeError, ValueError), match=message):
        compare(X, Y, methods, n_folds=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be a whole number >= 1, got 0"),
        ({"k": 1.5}, "k must be a whole number"),
        ({"k": True}, "k must be a whole number"),
        ({"k": "best"}, "got 'best'"),
        ({"k": 90}, "k=90 exceeds the 89 rows"),
        ({"scaled": ["its"]}, "no method 'its' .did you mean 'it'"),
        ({"scaled": "it"}, "scaled must be a list of names of methods; got 'it'"),
        ({"n_folds": 1}, "n_folds must be a whole number >= 2"),
        ({"n_folds": 2.0}, "n_folds must be a whole number"),
        ({"n_folds": 60}, "smallest class has 48"),
    ],
    ids=str,
)
def test_bad_options(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        compare(X, Y, {"it": Fails()}, **{"n_folds": 2, **options})


def test_an_estimator_may_fill_in_missing_values():
    it = make_pipeline(SimpleImputer(), LMNN(tol=0.1))
    assert compare(with_entry(np.nan), Y, {"it": it}, n_folds=2).accuracy("it") > 0.8


def test_unknown_names_of_results():
    found = compare(X, Y, {"plain": None, "other": None}, n_folds=2)
    for use in (found.of, found.accuracy, found.correct, found.seconds, found.n_unfinished):
        with pytest.raises(ValueError, match=r"no method 'plane' .did you mean 'plain'"):
            use("plane")
    with pytest.raises(ValueError, match="no method 'plane'"):
        pairwise_mcnemar(found).verdict("other", "plane")


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 5, np.nan, "0.05", True])
def test_levels_are_between_zero_and_one(alpha):
    tests = pairwise_mcnemar(RIGHT)
    found = compare(X, Y, {"plain": None, "other": None}, n_folds=2)
    for use in (
        lambda: tests.verdict("a", "b", alpha),
        lambda: paper_scores(RIGHT, alpha),
        lambda: best_methods(RIGHT, alpha),
        lambda: classifier_tests(found).above_all(alpha),
        lambda: critical_difference([[0.9, 0.8, 0.7]] * 8, "abc", alpha),
    ):
        with pytest.raises(ValueError, match=r"alpha must be a number above 0.0 and below 1.0"):
            use()
    with pytest.raises(ValueError, match=r"confidence must be a number above 0.0 and below 1.0"):
        accuracy_interval([1, 0], alpha)


@pytest.mark.parametrize("correct", [{}, [], [[1, 0], [0, 1]], None])
@pytest.mark.parametrize("test", [pairwise_mcnemar, paper_scores, best_methods])
def test_tests_need_results_by_name(test, correct):
    with pytest.raises(ValueError, match="a mapping of names to arrays"):
        test(correct)


def test_two_methods_of_one_name_have_no_rank():
    with pytest.raises(ValueError, match="the name 'a' stands for two methods"):
        critical_difference([[0.9, 0.8, 0.7]] * 8, ["a", "b", "a"])
