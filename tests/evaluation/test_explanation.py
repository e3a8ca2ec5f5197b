"""What the best metric learned: its columns, and the rows that most metrics get wrong."""

import json

import numpy as np
import pytest
from sklearn.decomposition import PCA

from lnml import LMNN
from lnml.datasets import load_dataset
from lnml.evaluation import Comparison, DataSummary, FoldResult, column_weights
from lnml.evaluation.crossval import run_problem
from lnml.evaluation.explanation import Explanation, explain, hardest_rows
from lnml.evaluation.problem import Problem, stratified_folds
from lnml.evaluation.store import FoldStore


def test_weights_are_the_metric_in_units_of_spreads():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 5)) * [1.0, 10.0, 0.1, 3.0, 0.0] + 7.0
    L = rng.normal(size=(3, 5))
    found = column_weights(L, X, list("abcde"))
    M, s = L.T @ L, X.std(axis=0)
    W = np.array([[M[i, j] * s[i] * s[j] for j in range(5)] for i in range(5)])
    W /= np.trace(W)
    order = ["abcde".index(name) for name in found.names]
    np.testing.assert_allclose(found.pairs, W[np.ix_(order, order)], atol=1e-12)
    np.testing.assert_allclose(found.after, W.diagonal()[order], atol=1e-12)
    np.testing.assert_allclose(found.before, (s**2 / (s**2).sum())[order], atol=1e-12)
    assert (np.diff(found.after) <= 0).all()
    # Other units of a column change nothing after learning in them.
    units = np.array([1.0, 1e-3, 100.0, 5.0, 2.0])
    again = column_weights(L / units, X * units, list("abcde"))
    np.testing.assert_allclose(again.pairs, found.pairs, atol=1e-12)
    a, b = found.strongest_pairs(1)[0]
    off = np.abs(W - np.diag(W.diagonal()))
    assert abs(found.pairs[a, b]) == pytest.approx(off.max())
    assert found.partner(a) == b


def test_the_top_columns_before_are_shown_although_they_count_no_more():
    X = np.random.default_rng(0).normal(size=(30, 40))
    X[:, 39] *= 1000
    found = column_weights(np.diag(np.r_[np.ones(39), 0.0]), X)
    assert len(found.names) == 12 and found.names[-1] == "39" and found.n_columns == 40
    with pytest.raises(ValueError, match="40 columns, but there are 3 names"):
        column_weights(np.eye(40), X, ["a", "b", "c"])
    with pytest.raises(ValueError, match="same number of columns"):
        column_weights(np.eye(3), X)


@pytest.fixture(scope="module")
def wine():
    return load_dataset("wine")


def explained(data, tmp_path, **options):
    splits = stratified_folds(data.target, 3, 0)
    names = tuple(data.feature_names)
    problem = Problem("wine", data.data, data.target, splits, names=names, **options)
    methods = {"Euclidean": None, "LMNN": LMNN()}
    found = run_problem(problem, methods, FoldStore(tmp_path), n_jobs=1)
    return found, explain(problem, found, methods)


def test_hard_rows_are_new_to_the_metric(wine, tmp_path):
    found, explanation = explained(wine, tmp_path)
    assert explanation.method == "LMNN"
    hard = [row.row for row in explanation.hard]
    wrong = 2 - found.correct("LMNN").astype(int) - found.correct("Euclidean")
    assert explanation.n_rows == 178 - len(hard) and 0 < len(hard) <= 10
    assert [row.n_wrong for row in explanation.hard] == wrong[hard].tolist()
    assert (np.sort(wrong)[::-1][: len(hard)] == wrong[hard]).all(), "the worst come first"
    rest = np.setdiff1d(np.arange(178), hard)
    L = LMNN().fit(wine.data[rest], wine.target[rest]).components_
    for row in explanation.hard:
        distances = np.linalg.norm((wine.data[rest] - wine.data[row.row]) @ L.T, axis=1)
        order = np.argsort(distances)
        assert [near.row for near in row.nearest] == rest[order[:3]].tolist()
        own = order[wine.target[rest][order] == wine.target[row.row]][0]
        assert row.kin.row == rest[own]
        assert row.kin.distance == pytest.approx(distances[own], rel=1e-6)
        # Each column's part of the squared distance to the nearest row of the class.
        delta = wine.data[row.row] - wine.data[row.kin.row]
        parts = delta * (L.T @ L @ delta) / distances[own] ** 2
        top = wine.feature_names[int(parts.argmax())]
        assert row.apart[0].column == top
        assert row.apart[0].share == pytest.approx(parts.max(), rel=1e-6)
    again = Explanation.from_json(json.loads(json.dumps(explanation.to_json())))
    assert again.to_json() == explanation.to_json()


def test_principal_components_are_told_in_the_columns_behind_them(wine, tmp_path):
    _, explanation = explained(wine, tmp_path, reduce=PCA(3))
    assert explanation.weights.n_columns == 13
    assert set(explanation.weights.names) <= set(wine.feature_names)
    assert explanation.hard[0].apart[0].column in wine.feature_names


def test_classes_keep_half_of_their_rows():
    labels = np.array(["a"] * 20 + ["b"] * 4 + ["c"])
    rows = np.arange(25)
    results = (FoldResult("LMNN", 0, rows[:24], rows[:24] < 0),)
    comparison = Comparison(DataSummary("toy", 1, {"a": 20, "b": 4, "c": 1}), results)
    hard, n_wrong = hardest_rows(comparison, labels)
    assert hard.tolist() == list(range(10)) and set(n_wrong) == {1}
    few = (FoldResult("LMNN", 0, rows[20:24], rows[20:24] < 0),)
    hard, _ = hardest_rows(Comparison(comparison.data, few), labels)
    assert hard.tolist() == [20, 21]


def test_results_say_what_rows_were_taken_for(wine, tmp_path):
    found, _ = explained(wine, tmp_path)
    classes = np.array(list(found.data.class_sizes))
    labels = wine.target.astype(str)
    assert (classes[list(found.data.truth)] == labels).all()
    for part in found.of("LMNN"):
        right = classes[part.predicted] == labels[part.test]
        assert (right == part.correct).all()
    counts = found.confusion("LMNN")
    assert counts.sum() == 178 and counts.trace() == found.correct("LMNN").sum()
    old = found.to_json()
    del old["data"]["truth"]
    for part in old["results"]:
        del part["predicted"]
    assert Comparison.from_json(old).confusion("LMNN") is None
    bad = found.to_json()
    bad["data"]["truth"] = [2, *bad["data"]["truth"][1:]]
    with pytest.raises(ValueError, match="sizes of the classes"):
        Comparison.from_json(bad)
