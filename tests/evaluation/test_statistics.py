"""Statistics against enumerations and definitions written out here."""

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lnml.evaluation import (
    Comparison,
    DataSummary,
    FoldResult,
    accuracy_interval,
    best_methods,
    classifier_tests,
    critical_difference,
    holm,
    mcnemar,
    pairwise_mcnemar,
    paper_scores,
    total_scores,
)


def discordant(only_a, only_b, both=3, neither=2):
    a = [1] * only_a + [0] * only_b + [1] * both + [0] * neither
    b = [0] * only_a + [1] * only_b + [1] * both + [0] * neither
    return np.array(a, dtype=bool), np.array(b, dtype=bool)


def exact_pvalue(only_a, only_b, mid_p):
    """All 2^n ways to share n discordant rows, those at least as lopsided counted."""
    n, seen = only_a + only_b, abs(only_a - only_b)
    total = Fraction(0)
    for k in range(n + 1):
        lopsided = abs(k - (n - k))
        weight = Fraction(comb(n, k), 2**n)
        if lopsided > seen:
            total += weight
        elif lopsided == seen:
            total += weight / 2 if mid_p else weight
    # With equally many on both sides the middle table is both tails: half of each side counts.
    if mid_p and seen == 0:
        total += Fraction(comb(n, only_a), 2**n) / 2
    return total


@pytest.mark.parametrize("mid_p", [False, True])
@pytest.mark.parametrize(("only_a", "only_b"), [*list(product(range(9), repeat=2)), (40, 17)])
def test_mcnemar_is_the_binomial_test(only_a, only_b, mid_p):
    found = mcnemar(*discordant(only_a, only_b), mid_p=mid_p)
    assert (found.n_only_a, found.n_only_b) == (only_a, only_b)
    assert found.pvalue == pytest.approx(float(exact_pvalue(only_a, only_b, mid_p)), rel=1e-9)


def test_no_discordant_rows_is_no_evidence():
    for mid_p in (False, True):
        assert mcnemar([1, 0, 1], [1, 0, 1], mid_p=mid_p).pvalue == 1.0


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60), st.booleans())
def test_mcnemar_is_symmetric(rows, mid_p):
    a, b = np.array(rows).T
    there, back = mcnemar(a, b, mid_p=mid_p), mcnemar(b, a, mid_p=mid_p)
    assert there.pvalue == back.pvalue
    assert 0 < there.pvalue <= 1
    assert mcnemar(a, b, mid_p=True).pvalue <= mcnemar(a, b).pvalue


def test_mcnemar_refuses_what_it_cannot_compare():
    with pytest.raises(ValueError, match="same rows; they have 2 and 3"):
        mcnemar([1, 0], [1, 0, 1])
    with pytest.raises(ValueError, match="not labels"):
        mcnemar(["a", "b"], [True, False])
    with pytest.raises(ValueError, match="at least one"):
        mcnemar([], [])


@given(st.lists(st.floats(0, 1), min_size=0, max_size=12))
def test_holm_by_its_definition(pvalues):
    m = len(pvalues)
    ranked = sorted(pvalues)
    expected = [
        min(1.0, max((m - j) * ranked[j] for j in range(m) if ranked[j] <= p)) for p in pvalues
    ]
    np.testing.assert_allclose(holm(pvalues), expected, rtol=1e-12)


@given(st.lists(st.floats(0, 0.2), min_size=1, max_size=8), st.sampled_from([0.01, 0.05, 0.2]))
def test_holm_rejects_what_stepping_down_rejects(pvalues, alpha):
    rejected, remaining = set(), len(pvalues)
    for index in sorted(range(len(pvalues)), key=lambda i: pvalues[i]):
        if not pvalues[index] * remaining < alpha:
            break
        rejected.add(index)
        remaining -= 1
    assert set(np.flatnonzero(holm(pvalues) < alpha)) == rejected


def test_holm_refuses_what_is_no_probability():
    with pytest.raises(ValueError, match="0 to 1"):
        holm([0.5, 1.2])


@st.composite
def several_methods(draw):
    n_methods, n_rows = draw(st.integers(1, 7)), draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rates = rng.uniform(0, 1, n_methods)
    return {f"m{i}": rng.uniform(size=n_rows) < rate for i, rate in enumerate(rates)}


@given(several_methods(), st.sampled_from([0.001, 0.05, 0.5]), st.booleans())
def test_scores_of_a_data_set_sum_to_the_number_of_pairs(correct, alpha, mid_p):
    scores = paper_scores(correct, alpha, mid_p=mid_p)
    assert sum(scores.values()) == len(correct) * (len(correct) - 1) / 2
    assert all(0 <= score <= len(correct) - 1 for score in scores.values())


@given(several_methods())
def test_scores_follow_the_rule_pair_by_pair(correct):
    def points(a, b):
        only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
        if exact_pvalue(only_a, only_b, False) >= Fraction(1, 20):
            return 0.5
        return 1.0 if a.mean() > b.mean() else 0.0

    expected = {
        name: sum(points(a, b) for other, b in correct.items() if other != name)
        for name, a in correct.items()
    }
    assert paper_scores(correct) == expected


def test_scores_depend_on_no_order():
    rng = np.random.default_rng(5)
    correct = {
        name: rng.uniform(size=80) < rate
        for name, rate in zip("abcd", [0.5, 0.6, 0.8, 0.95], strict=True)
    }
    shuffled = rng.permutation(80)
    again = {name: correct[name][shuffled] for name in "dbca"}
    assert paper_scores(correct) == paper_scores(again)


def test_totals_count_methods_where_they_are_present():
    assert total_scores([{"a": 1.0, "b": 0.5}, {"a": 2.0}]) == {"a": 3.0, "b": 0.5}


def comparison(correct, rows=None):
    results = []
    for name, values in correct.items():
        halves = np.array_split(np.arange(len(values)) if rows is None else rows[name], 2)
        taken = np.array_split(np.asarray(values, dtype=bool), 2)
        results += [
            FoldResult(name, i, *pair) for i, pair in enumerate(zip(halves, taken, strict=True))
        ]
    return Comparison(DataSummary("toy", 2, {"x": 5, "y": 5}), tuple(results))


def test_pairwise_tests_of_a_comparison():
    rng = np.random.default_rng(0)
    correct = {
        name: rng.uniform(size=60) < rate
        for name, rate in zip("abc", [0.5, 0.55, 0.95], strict=True)
    }
    found = pairwise_mcnemar(comparison(correct))
    assert found.methods == ("a", "b", "c")
    np.testing.assert_array_equal(found.pvalues, found.pvalues.T)
    np.testing.assert_array_equal(found.adjusted, found.adjusted.T)
    np.testing.assert_array_equal(np.diag(found.pvalues), 1)
    for i, j in [(0, 1), (0, 2), (1, 2)]:
        a, b = correct["abc"[i]], correct["abc"[j]]
        assert found.pvalues[i, j] == mcnemar(a, b).pvalue
        assert found.winners[i, j] == np.sign(a.mean() - b.mean()) == -found.winners[j, i]
    upper = np.triu_indices(3, 1)
    np.testing.assert_array_equal(found.adjusted[upper], holm(found.pvalues[upper]))
    assert found.verdict("c", "a", holm=True) == 1
    assert found.verdict("a", "c") == -1
    assert found.verdict("a", "b") == 0


def test_methods_tested_on_other_rows_are_refused():
    rows = {"a": np.arange(10), "b": np.arange(2, 12)}
    with pytest.raises(ValueError, match="toy: b was tested on other rows than a"):
        pairwise_mcnemar(comparison({"a": [1] * 10, "b": [1] * 10}, rows))


@given(st.integers(0, 40), st.integers(1, 40), st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_interval_solves_its_equation(right, n, confidence):
    """Its ends are the rates p at which |observed - p| is z standard errors of p."""
    right = min(right, n)
    low, high = accuracy_interval([True] * right + [False] * (n - right), confidence)
    z = stats.norm.ppf(0.5 + confidence / 2)
    for end in (low, high):
        assert (right / n - end) ** 2 == pytest.approx(z**2 * end * (1 - end) / n, abs=1e-9)
    assert 0 <= low <= right / n + 1e-12 and right / n - 1e-12 <= high <= 1


def average_ranks(accuracies):
    """By counting: 1 + better methods + half of the equal ones."""
    return [
        np.mean(
            [
                1 + sum(o > row[j] for o in row) + (sum(o == row[j] for o in row) - 1) / 2
                for row in accuracies
            ]
        )
        for j in range(len(accuracies[0]))
    ]


def test_critical_difference_against_published_constants():
    """Demšar (2006), table 5: q_0.05 of Nemenyi's test is 2.343 for 3 methods, 2.569 for 4."""
    pytest.importorskip("scikit_posthocs")
    rng = np.random.default_rng(3)
    for n_methods, q in [(3, 2.343), (4, 2.569), (8, 3.031)]:
        accuracies = rng.uniform(0.5, 1, (9, n_methods)).round(1)
        names = [f"m{j}" for j in range(n_methods)]
        found = critical_difference(accuracies, names)
        assert found.difference == pytest.approx(
            q * (n_methods * (n_methods + 1) / 54) ** 0.5, rel=3e-4
        )
        expected = dict(zip(names, average_ranks(accuracies.tolist()), strict=True))
        np.testing.assert_allclose(found.ranks, [expected[name] for name in found.methods])
        assert list(found.ranks) == sorted(found.ranks)
        apart = np.abs(found.ranks[:, None] - found.ranks)
        np.testing.assert_array_equal(found.pvalues < 0.05, apart >= found.difference)


def test_groups_are_the_largest_that_do_not_differ():
    pytest.importorskip("scikit_posthocs")
    accuracies = np.tile(np.arange(6.0), (10, 1))
    found = critical_difference(accuracies, list("fedcba"))
    assert found.methods == tuple("abcdef")
    assert found.difference == pytest.approx(2.384, abs=1e-3)
    assert found.groups == (("a", "b", "c"), ("b", "c", "d"), ("c", "d", "e"), ("d", "e", "f"))
    assert found.friedman_pvalue < 1e-6


def test_equal_methods_do_not_differ():
    pytest.importorskip("scikit_posthocs")
    found = critical_difference(np.full((4, 3), 0.7), ["a", "b", "c"])
    assert found.friedman_pvalue == 1.0
    assert found.groups == (("a", "b", "c"),)


@pytest.mark.parametrize(
    ("accuracies", "message"),
    [
        ([[0.1, 0.2], [0.2, 0.1]], "3 methods"),
        ([[0.1, 0.2, 0.3]], "at least 2 data sets"),
        ([[0.1, 0.2, np.nan], [0.1, 0.2, 0.3]], "missing on a data set"),
        ([0.1, 0.2, 0.3], "one row for each data set"),
    ],
)
def test_critical_difference_says_what_it_needs(accuracies, message):
    names = ["a", "b", "c"][: np.shape(accuracies)[-1]]
    with pytest.raises(ValueError, match=message):
        critical_difference(accuracies, names)


def test_critical_difference_without_its_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "scikit_posthocs", None)
    with pytest.raises(ImportError, match=r"pip install 'lnml\[cli\]'"):
        critical_difference([[0.1, 0.2, 0.3]] * 3, ["a", "b", "c"])


def test_classifiers_are_tested_against_metrics_only():
    rng = np.random.default_rng(0)
    rates = {"a": 0.5, "b": 0.6, "c": 0.7, "d": 0.8, "e": 0.9}
    right = {name: rng.random(80) < rate for name, rate in rates.items()}
    rows = np.arange(80)
    results = tuple(
        FoldResult(name, 0, rows, correct, classifier=name in "be")
        for name, correct in right.items()
    )
    found = Comparison(DataSummary("toy", 2, {"x": 80}), results)
    tests = classifier_tests(found)
    assert (tests.classifiers, tests.metrics) == (("b", "e"), ("a", "c", "d"))
    plain = [[mcnemar(right[a], right[b]).pvalue for b in "acd"] for a in "be"]
    np.testing.assert_allclose(tests.adjusted.ravel(), holm(np.ravel(plain)))
    signs = [[np.sign(right[a].sum() - right[b].sum()) for b in "acd"] for a in "be"]
    assert tests.winners.tolist() == signs
    assert tests.above_all(alpha=0.9999) == [
        name for name, row in zip("be", signs, strict=True) if min(row) > 0
    ]
    metrics = {name: right[name] for name in "acd"}
    assert paper_scores(found) == paper_scores(metrics)
    assert best_methods(found) == best_methods(metrics)
    np.testing.assert_array_equal(
        pairwise_mcnemar(found).adjusted, pairwise_mcnemar(metrics).adjusted
    )
