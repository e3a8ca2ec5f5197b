"""The sentences: best method, margin, significance."""

import numpy as np
import pytest
from results import random_comparison

from lnml.evaluation import Comparison, DataSummary, FoldResult
from lnml.report.verdict import ranks_over, verdict_on_data, verdict_on_several


def compare(n_right, n=100, name="toy", classifiers=()):
    """Each method is right on the first rows: all discordant rows are on one side."""
    rows = np.arange(n)
    results = tuple(
        FoldResult(m, 0, rows, rows < right, classifier=m in classifiers)
        for m, right in n_right.items()
    )
    return Comparison(DataSummary(name, 2, {"x": n}), results)


def test_a_clear_winner():
    words = verdict_on_data(compare({"Euclidean": 60, "LMNN": 80, "NCA": 95}))
    assert words == (
        "NCA is best on toy: 95.0 % of 100 rows right, 15.0 points more than LMNN "
        "(significant, p < 0.001) and 35.0 points more than Euclidean (significant, p < 0.001)."
    )


def test_holm_counts_all_pairs():
    # 6 rows to 0 is p = 2 / 64 = 0.031 alone, and three tests make it 0.094.
    words = verdict_on_data(compare({"Euclidean": 60, "LMNN": 66, "NCA": 66}))
    assert "LMNN and NCA are equally best" in words
    assert "6.0 points more than Euclidean (not significant, p = 0.094)" in words
    assert "(significant, p = 0.031)" in verdict_on_data(compare({"Euclidean": 60, "LMNN": 66}))


def test_the_euclidean_metric_may_be_best():
    words = verdict_on_data(compare({"Euclidean": 90, "LMNN": 80}))
    assert words.startswith("On toy no learned metric is more accurate than Euclidean distance: ")
    words = verdict_on_data(compare({"Euclidean": 90, "LMNN": 90, "NCA": 1}))
    assert "90.0 % of 100 rows right by Euclidean and LMNN" in words


def test_scaling_alone_may_be_best():
    words = verdict_on_data(
        compare({"Euclidean": 50, "Euclidean (scaled)": 90, "LMNN": 70, "NCA": 80, "ITML": 60})
    )
    assert words == (
        "On toy no learned metric is more accurate than Euclidean distance on standardised "
        "columns: 90.0 % of 100 rows right, 10.0 points more than NCA (significant, p = 0.008) and "
        "40.0 points more than Euclidean (significant, p < 0.001)."
    )
    words = verdict_on_data(compare({"Euclidean": 50, "Euclidean (scaled)": 90}))
    assert words.startswith("Euclidean (scaled) is best on toy: ")


def test_the_best_learned_metric_is_named_although_another_is_second():
    words = verdict_on_data(compare({"Euclidean": 89, "Euclidean (scaled)": 90, "LMNN": 80}))
    assert "1.0 points more than Euclidean (" in words
    assert "and 10.0 points more than LMNN (" in words


@pytest.mark.parametrize(
    ("scaled", "raw", "end"),
    [
        (58, 30, "No learned metric is significantly better than Euclidean distance on "
         "standardised columns."),
        (30, 58, "No learned metric is significantly better than Euclidean distance."),
        (58, 58, "No learned metric is significantly better than Euclidean distance, with or "
         "without standardised columns."),
        (30, 30, "30.0 points more than Euclidean (scaled) (significant, p < 0.001)."),
    ],
)  # fmt: skip
def test_learning_in_vain(scaled, raw, end):
    words = verdict_on_data(compare({"Euclidean": raw, "Euclidean (scaled)": scaled, "LMNN": 60}))
    assert words.startswith("LMNN is best on toy: ") and words.endswith(end)


def test_any_learned_metric_counts_not_only_the_best():
    """NCA is more accurate, but LMNN is better on more of the same rows."""
    rows = np.arange(100)
    right = {
        "Euclidean": rows < 60,
        "LMNN": rows < 70,
        "NCA": (rows >= 10) & (rows < 81),
    }
    results = tuple(FoldResult(m, 0, rows, correct) for m, correct in right.items())
    words = verdict_on_data(Comparison(DataSummary("toy", 2, {"x": 100}), results))
    assert words.startswith("NCA is best") and "Euclidean (not significant" in words
    assert "No learned metric" not in words


def test_classifiers_are_for_reference_only():
    rates = {"Euclidean": 60, "LMNN": 80}
    plain = verdict_on_data(compare(rates))
    names = ("SVM", "forest", "boosting")
    weak = compare({**rates, "SVM": 84, "forest": 50}, classifiers=names)
    assert verdict_on_data(weak) == plain
    one = compare({**rates, "SVM": 95, "forest": 50}, classifiers=names)
    assert verdict_on_data(one) == (
        f"{plain} For reference: SVM with 95.0 % is significantly better than every metric, but "
        "gives no distance."
    )
    two = compare({**rates, "SVM": 95, "forest": 96}, classifiers=names)
    assert "SVM with 95.0 % and forest with 96.0 % are significantly" in verdict_on_data(two)


def test_classifiers_have_no_rank_and_no_score():
    pytest.importorskip("scikit_posthocs")
    rates = {"a": 50, "b": 70, "c": 90}
    plain = [compare(rates, name=str(i)) for i in range(4)]
    more = [compare({**rates, "svm": 99}, name=str(i), classifiers=["svm"]) for i in range(4)]
    assert ranks_over(more).methods == ranks_over(plain).methods
    assert verdict_on_several(more, ranks_over(more)) == verdict_on_several(
        plain, ranks_over(plain)
    )


def test_equal_and_single_methods():
    assert "none is better" in verdict_on_data(compare({"a": 50, "b": 50}))
    assert verdict_on_data(compare({"a": 50})) == "a is right on 50.0 % of 100 rows of toy."


def test_several_data_sets_by_score_and_rank():
    pytest.importorskip("scikit_posthocs")
    found = [compare({"a": 50, "b": 70, "c": 90}, name=str(i)) for i in range(12)]
    ranks = ranks_over(found)
    words = verdict_on_several(found, ranks)
    assert words == (
        "c has the best total score over 12 data sets, 24.0 of 24 points, before b with 12.0; "
        "the average rank of c, 1.00, is significantly better than that of b and a (Nemenyi test)."
    )
    three = found[:3]
    words = verdict_on_several(three, ranks_over(three))
    assert "a" in words and "Nemenyi" in words


def test_ranks_that_do_not_differ():
    pytest.importorskip("scikit_posthocs")
    found = [random_comparison(str(i), {"a": 0.7, "b": 0.7, "c": 0.7}, seed=i) for i in range(4)]
    assert "do not differ significantly (Friedman test" in verdict_on_several(
        found, ranks_over(found)
    )


def test_why_there_are_no_ranks():
    assert "there are 2." in ranks_over([compare({"a": 1, "b": 2, "c": 3})] * 2)
    found = [compare({"a": 1, "b": 2, "c": 3})] * 2 + [compare({"a": 1, "b": 2})]
    assert "run on all data sets; there are 2." in ranks_over(found)
    assert verdict_on_several(found, ranks_over(found)).endswith(".")
