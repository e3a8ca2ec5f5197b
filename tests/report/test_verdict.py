"""The sentences: best method, margin, significance."""

from dataclasses import replace

import numpy as np
import pytest
from results import random_comparison
from scipy.stats import binomtest

from lnml.evaluation import Comparison, DataSummary, FoldResult, pairwise_mcnemar, tied_groups
from lnml.report.advice import advise
from lnml.report.verdict import ranks_over, verdict_on_data, verdict_on_several


def compare(n_right, n=100, name="toy", classifiers=()):
    """Each method is right on the first rows: all discordant rows are on one side."""
    rows = np.arange(n)
    results = tuple(
        FoldResult(m, 0, rows, rows < right, classifier=m in classifiers)
        for m, right in n_right.items()
    )
    return Comparison(DataSummary(name, 2, dict.fromkeys("wxyz", n // 4)), results)


def test_a_clear_winner():
    found = verdict_on_data(compare({"Euclidean": 60, "LMNN": 80, "NCA": 95}))
    assert found.headline == "NCA is best on toy, significantly better than every other method."
    assert found.details[0] == (
        "95.0 % of 100 rows are right, 15.0 points more than with LMNN (p < 0.001)."
    )
    assert found.warnings == ()
    two = verdict_on_data(compare({"Euclidean": 94, "LMNN": 100}))
    assert two.headline == "LMNN is best on toy, significantly better than Euclidean."


def test_holm_counts_all_pairs():
    # 6 rows to 0 is p = 2 / 64 = 0.031 alone, and three tests make it 0.094.
    found = verdict_on_data(compare({"Euclidean": 60, "LMNN": 66, "NCA": 66}))
    assert found.headline == "On toy all three methods tie."
    assert "(p = 0.031)" in verdict_on_data(compare({"Euclidean": 60, "LMNN": 66})).details[0]


def test_groups_are_named():
    found = verdict_on_data(compare({"Euclidean": 60, "LMNN": 88, "NCA": 90, "MCML": 90}))
    assert found.headline == (
        "On toy three of four methods tie; all three are significantly better than Euclidean."
    )
    assert found.details[0] == (
        "NCA and MCML lead with 90.0 % of 100 rows right, and LMNN (88.0 %) follows. With Holm's "
        "correction, no test tells them apart."
    )


def test_a_group_may_be_better_in_part_only():
    """NCA beats C, which ties with LMNN, which ties with NCA: a tie is no equality."""
    found = verdict_on_data(compare({"C": 74, "LMNN": 80, "NCA": 86, "A": 20}))
    assert found.headline == "On toy two of four methods tie."
    assert found.details[1] == "All of them beat A (20.0 %); NCA beats C (74.0 %), significantly."
    assert tied_groups(compare({"C": 74, "LMNN": 80, "NCA": 86, "A": 20})) == (
        ("NCA", "LMNN"),
        ("C",),
        ("A",),
    )


def test_members_of_a_group_may_differ():
    """B and C are not told from A, but from each other: B is right wherever C is."""
    rows = np.arange(300)
    right = {"A": (rows >= 40) & (rows < 253), "B": rows < 212, "C": rows < 200}
    results = tuple(FoldResult(m, 0, rows, correct) for m, correct in right.items())
    comparison = Comparison(DataSummary("toy", 2, {"x": 150, "y": 150}), results)
    assert pairwise_mcnemar(comparison).verdict("B", "C", holm=True) == 1
    assert tied_groups(comparison) == (("A", "B", "C"),)
    words = verdict_on_data(comparison).details[0]
    assert words.endswith("None of them differs significantly from the best.")


SCALED = "Standardising the columns alone does as well: Euclidean distance on standardised columns"
IN_VAIN = "Learning does not pay here: "


@pytest.mark.parametrize(
    ("scaled", "raw", "warning"),
    [
        (58, 30, f"{SCALED} is right on 58.0 %, and no learned metric is significantly better. "
         "LMNN has 30.0 points more than plain Euclidean distance, and scaling alone 28.0 points "
         "more."),
        (30, 58, f"{IN_VAIN}plain Euclidean distance is right on 58.0 %, and no learned metric is "
         "significantly better."),
        (58, 59, f"{IN_VAIN}no learned metric is significantly better than Euclidean distance, "
         "with or without standardised columns (59.0 % and 58.0 %)."),
        (90, 30, f"{SCALED} is right on 90.0 %, and no learned metric is significantly better. "
         "LMNN has 30.0 points more than plain Euclidean distance, and scaling alone 60.0 points "
         "more."),
        (30, 30, None),
    ],
)  # fmt: skip
def test_learning_in_vain(scaled, raw, warning):
    found = verdict_on_data(compare({"Euclidean": raw, "Euclidean (scaled)": scaled, "LMNN": 60}))
    assert found.warnings == (() if warning is None else (warning,))


def test_scaling_that_brings_nothing_has_no_gain():
    """LMNN beats plain distance on its own rows, and scaled distance errs on other rows."""
    rows = np.arange(100)
    right = {
        "Euclidean": rows < 60,
        "Euclidean (scaled)": rows >= 41,
        "LMNN": rows < 70,
    }
    results = tuple(FoldResult(m, 0, rows, correct) for m, correct in right.items())
    (warning,) = verdict_on_data(
        Comparison(DataSummary("toy", 2, {"x": 50, "y": 50}), results)
    ).warnings
    assert warning == f"{SCALED} is right on 59.0 %, and no learned metric is significantly better."


def test_any_learned_metric_counts_not_only_the_best():
    """NCA is more accurate, but LMNN is better on more of the same rows."""
    rows = np.arange(100)
    right = {
        "Euclidean": rows < 60,
        "LMNN": rows < 70,
        "NCA": (rows >= 10) & (rows < 81),
    }
    results = tuple(FoldResult(m, 0, rows, correct) for m, correct in right.items())
    found = verdict_on_data(Comparison(DataSummary("toy", 2, {"x": 100, "y": 0}), results))
    assert found.headline == "On toy all three methods tie."
    assert not any("Learning" in warning for warning in found.warnings)


def with_classes(n_right, n_largest, n=100):
    """As :func:`compare`, with two classes; the last rows have the larger one."""
    found = compare(n_right, n)
    truth = (np.arange(n) >= n - n_largest).astype(int)
    sizes = {"few": n - n_largest, "many": n_largest}
    return replace(found, data=replace(found.data, class_sizes=sizes, truth=truth.tolist()))


def test_the_largest_class_is_a_baseline():
    always = "Always answering 'many', the largest class, would be right on "
    strong = verdict_on_data(with_classes({"LMNN": 95, "NCA": 94}, 60))
    assert strong.details[-1] == f"{always}60.0 %; every metric is significantly better."
    some = verdict_on_data(with_classes({"LMNN": 95, "NCA": 62}, 60))
    assert some.details[-1] == f"{always}60.0 %; NCA is not significantly better."
    weak = verdict_on_data(with_classes({"LMNN": 65, "NCA": 60}, 60))
    assert weak.warnings == (f"{always}60.0 %: no metric is significantly better than that.",)
    # The oracle: McNemar's test of LMNN, and Holm's correction for two metrics.
    right, largest = np.arange(100) < 62, np.arange(100) >= 40
    only, other = int((right & ~largest).sum()), int((largest & ~right).sum())
    assert 2 * binomtest(only, only + other).pvalue > 0.05
    old = verdict_on_data(compare({"LMNN": 20, "NCA": 19}))
    assert old.warnings[-1].endswith("25.0 %: no metric is more accurate.")


TABLE = ["toy.csv", "--label", "a class"]


@pytest.mark.parametrize(
    ("n_right", "scale", "command"),
    [
        ({"Euclidean": 60, "LMNN": 95}, "none", "lnml fit {} --method lmnn -o best.model"),
        ({"Euclidean": 60, "LMNN": 95}, "minmax",
         "lnml fit {} --scale minmax --method lmnn -o best.model"),
        ({"Euclidean": 60, "Euclidean (scaled)": 94, "LMNN": 95}, "none",
         "lnml compare {} --scale standard --methods lmnn -o best-standard.html"),
        ({"Euclidean": 94, "LN-LMNN (CV)": 95}, "standard",
         "lnml fit {} --scale standard --method euclidean -o best.model"),
        ({"Euclidean": 30, "LMNN": 56}, "none",
         "lnml compare {} --methods lmnn --references -o best-references.html"),
        ({"Euclidean": 60, "Euclidean (scaled)": 100, "LMNN": 100}, "none",
         "lnml fit {} --method euclidean-scaled -o best.model"),
        ({"Euclidean": 30, "AutoMetric": 90}, "minmax", "lnml fit {} --method auto -o best.model"),
    ],
)  # fmt: skip
def test_one_command_to_run_next(n_right, scale, command):
    advice = advise(with_classes(n_right, 55), TABLE, scale=scale, methods="lmnn")
    assert advice.command == command.format("toy.csv --label 'a class'")
    assert advice.why.endswith(":")


def test_what_is_compared_next_is_judged_alike():
    judging = {"--folds": "5", "--seed": "3"}
    weak = with_classes({"LMNN": 56, "SVM": 57}, 55)
    svm = [replace(part, classifier=part.method == "SVM") for part in weak.results]
    known = replace(weak, results=tuple(svm))
    advice = advise(known, TABLE, judging=judging)
    assert advice.command.endswith("--folds 5 --seed 3 --k auto -o best-votes.html")
    assert " fit " in advise(known, TABLE, judging={"--k": "auto"}).command
    scaled = with_classes({"Euclidean": 60, "Euclidean (scaled)": 94, "LMNN": 95}, 55)
    advice = advise(scaled, TABLE, methods="euclidean-scaled, lmnn", judging=judging)
    assert "--scale standard --methods euclidean,lmnn --folds 5 --seed 3 -o" in advice.command


def test_one_of_the_largest_classes():
    words = verdict_on_data(compare({"LMNN": 95})).text
    assert "Always answering 'w', one of the largest classes, would" in words


def test_classifiers_are_for_reference_only():
    rates = {"Euclidean": 60, "LMNN": 80}
    plain = verdict_on_data(compare(rates))
    names = ("SVM", "forest", "boosting")
    weak = compare({**rates, "SVM": 84, "forest": 50}, classifiers=names)
    assert verdict_on_data(weak) == plain
    one = compare({**rates, "SVM": 95, "forest": 50}, classifiers=names)
    assert verdict_on_data(one).details == (
        *plain.details,
        "For reference: SVM with 95.0 % is significantly better than every metric, but gives no "
        "distance.",
    )
    two = compare({**rates, "SVM": 95, "forest": 96}, classifiers=names)
    assert "SVM with 95.0 % and forest with 96.0 % are significantly" in verdict_on_data(two).text


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
    equal = verdict_on_data(compare({"a": 50, "b": 50}))
    assert equal.headline == "On toy both methods tie."
    assert equal.details[0].startswith("a and b are right on 50.0 % of 100 rows.")
    assert (
        verdict_on_data(compare({"a": 50})).headline == "a is right on 50.0 % of 100 rows of toy."
    )


def test_several_data_sets_by_score_and_rank():
    pytest.importorskip("scikit_posthocs")
    found = [compare({"a": 50, "b": 70, "c": 90}, name=str(i)) for i in range(12)]
    ranks = ranks_over(found)
    words = verdict_on_several(found, ranks)
    assert words == (
        "c has the best total score over 12 data sets, 24.0 of 24 points, before b with 12.0; "
        "the average rank of c, 1.00, is significantly better than that of b and a (Nemenyi test)."
    )
    # A method that was not run everywhere could not win as many points.
    fewer = [*found[:2], compare({"a": 50, "c": 90})]
    assert (
        "c has the best total score over 3 data sets, 5.0 of 5 points, before b with 2.0 of 4"
        in (verdict_on_several(fewer, "no ranks"))
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
