"""Scores of retrieval against their definitions, query by query, in plain Python."""

import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.model_selection import StratifiedKFold

from lnml import LMNN
from lnml.datasets import load_dataset
from lnml.evaluation import (
    Comparison,
    compare,
    map_at_r,
    predict_nearest,
    r_precision,
    recall_at_k,
)
from lnml.evaluation.retrieval import read_score, score_rows

NAMES = ("recall@1", "recall@3", "r-precision", "map@r")


def exact(rows):
    """Rows as whole numbers: their values as they are written, in units of the ninth decimal."""
    texts = [[str(float(value)) for value in row] for row in rows]
    return [[int(Decimal(text) * 10**9) for text in row] for row in texts]


def ranked(references, query):
    """Numbers of the references by exact distance, of equals the lowest first."""
    squares = [sum((a - b) ** 2 for a, b in zip(row, query, strict=True)) for row in references]
    return sorted(range(len(squares)), key=lambda place: (squares[place], place))


def by_definition(name, references, labels, queries, wanted):
    """A score, read from its definition in docs/retrieval.md."""
    values = []
    references, queries = exact(references), exact(queries)
    for query, label in zip(queries, wanted, strict=True):
        hits = [int(labels[place] == label) for place in ranked(references, query)]
        relevant = sum(hits)
        if name.startswith("recall@"):
            values.append(Fraction(max(hits[: int(name.removeprefix("recall@"))])))
        elif name == "r-precision":
            values.append(Fraction(sum(hits[:relevant]), relevant))
        else:
            precisions = [Fraction(sum(hits[:i]), i) for i in range(1, relevant + 1) if hits[i - 1]]
            values.append(sum(precisions, Fraction(0)) / relevant)
    return [float(value) for value in values]


@st.composite
def grids(draw):
    """Integers, so that many distances tie; each label of a query is that of a reference."""
    n, m = draw(st.integers(3, 12)), draw(st.integers(1, 6))
    points = st.lists(st.integers(-2, 2), min_size=2, max_size=2)
    references = np.array(draw(st.lists(points, min_size=n, max_size=n)), dtype=float)
    queries = np.array(draw(st.lists(points, min_size=m, max_size=m)), dtype=float)
    labels = np.array(draw(st.lists(st.sampled_from("abc"), min_size=n, max_size=n)))
    wanted = np.array(draw(st.lists(st.sampled_from(sorted(set(labels))), min_size=m, max_size=m)))
    return references, labels, queries, wanted


@pytest.mark.parametrize("name", NAMES)
@given(problem=grids())
def test_definition_with_ties(name, problem):
    found = score_rows(read_score(name), *problem)
    np.testing.assert_allclose(found, by_definition(name, *problem), rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("data", ["wine", "iris", "balance_scale"])
def test_definition_on_real_rows(data, name):
    rows = load_dataset(data)
    order = np.random.default_rng(3).permutation(len(rows.data))
    inside, outside = order[:90], order[90:120]
    problem = rows.data[inside], rows.target[inside], rows.data[outside], rows.target[outside]
    found = score_rows(read_score(name), *problem)
    np.testing.assert_allclose(found, by_definition(name, *problem), rtol=1e-12)


def test_public_functions_are_means():
    wine = load_dataset("wine")
    problem = wine.data[::2], wine.target[::2], wine.data[1::2], wine.target[1::2]
    for name, found in (
        ("recall@3", recall_at_k(*problem, k=3)),
        ("r-precision", r_precision(*problem)),
        ("map@r", map_at_r(*problem)),
    ):
        assert found == pytest.approx(np.mean(by_definition(name, *problem)), rel=1e-12)
    right = predict_nearest(*problem[:3]) == problem[3]
    assert recall_at_k(*problem) == right.mean()
    assert map_at_r(*problem) <= r_precision(*problem)


def test_blocks_do_not_change_the_result():
    """Memory is bounded: a block of queries may be a single one."""
    letter = load_dataset("letter")
    problem = (
        letter.data[:9000],
        letter.target[:9000],
        letter.data[9000:9040],
        letter.target[9000:9040],
    )
    whole = score_rows(read_score("map@r"), *problem)
    with config_context(working_memory=1):
        np.testing.assert_array_equal(score_rows(read_score("map@r"), *problem), whole)


@pytest.mark.parametrize("name", NAMES)
def test_comparison_scores_the_rows_of_each_fold(name):
    wine = load_dataset("wine")
    found = compare(
        wine.data, wine.target, {"Euclidean": None, "LMNN": LMNN()}, n_folds=3, seed=4, score=name
    )
    splits = list(StratifiedKFold(3, shuffle=True, random_state=4).split(wine.data, wine.target))
    for part, (train, test) in zip(found.of("Euclidean"), splits, strict=True):
        expected = by_definition(
            name, wine.data[train], wine.target[train], wine.data[test], wine.target[test]
        )
        np.testing.assert_allclose(part.values, expected, rtol=1e-12)
    everything = np.concatenate([part.values for part in found.of("Euclidean")])
    assert found.mean_score("Euclidean") == pytest.approx(everything.mean())
    assert found.mean_score("LMNN") > found.mean_score("Euclidean")
    assert found.score.name == name
    plain = compare(wine.data, wine.target, {"Euclidean": None}, n_folds=3, seed=4)
    assert plain.accuracy("Euclidean") == found.accuracy("Euclidean")
    assert plain.mean_score("Euclidean") == pytest.approx(plain.accuracy("Euclidean"))
    again = Comparison.from_json(json.loads(json.dumps(found.to_json())))
    assert again.mean_score("LMNN") == found.mean_score("LMNN")


def test_classifiers_have_accuracy_only():
    from sklearn.tree import DecisionTreeClassifier

    iris = load_dataset("iris")
    methods = {"Euclidean": None, "tree": DecisionTreeClassifier(random_state=0)}
    found = compare(iris.data, iris.target, methods, n_folds=3, score="map@r")
    assert found.accuracy("tree") > 0.9
    with pytest.raises(ValueError, match="tree gives no distance, so it has no MAP@R"):
        found.mean_score("tree")
    Comparison.from_json(found.to_json())


def test_damaged_values_are_refused():
    iris = load_dataset("iris")
    stored = compare(iris.data, iris.target, {"raw": None}, n_folds=3, score="map@r").to_json()
    for values in (None, [0.5], [2.0] * 50, [float("nan")] * 50):
        stored["results"][0]["values"] = values
        with pytest.raises(ValueError, match="one value of the score"):
            Comparison.from_json(stored)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0.0]], ["a"], [[0.0]], ["b"]), r"label of query 0 \(.*'b'.*leave such queries out"),
        (([[0.0]], ["a", "b"], [[0.0]], ["a"]), "one label for each of the 1 rows"),
        (([[0.0]], ["a"], [[0.0, 1.0]], ["a"]), "1 columns and queries 2"),
        (([[np.nan]], ["a"], [[0.0]], ["a"]), "finite numbers"),
        (([0.0], ["a"], [[0.0]], ["a"]), "must be a matrix"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        map_at_r(*arguments)


def test_bad_scores_are_refused():
    iris = load_dataset("iris")
    for name in ("recall", "recall@0", "recall@x", "f1", 3):
        with pytest.raises(ValueError, match="there are: accuracy, recall@K"):
            compare(iris.data, iris.target, {"raw": None}, score=name)
    with pytest.raises(ValueError, match="recall@200 looks at more than the 100 rows"):
        compare(iris.data, iris.target, {"raw": None}, n_folds=3, score="recall@200")
    with pytest.raises(ValueError, match="k must be from 1 to 1"):
        recall_at_k([[0.0]], ["a"], [[0.0]], ["a"], k=2)
