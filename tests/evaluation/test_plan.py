"""The plan for large tables, and the guess of the time that a comparison takes."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from lnml.evaluation.crossval import run_problem
from lnml.evaluation.forecast import forecast, guess_fold
from lnml.evaluation.plan import make_plan
from lnml.evaluation.problem import FoldData, Problem, stratified_folds
from lnml.evaluation.store import FoldStore
from lnml.registry import built_in

SLOW = {"mcml", "nca", "mmc", "ln-mcml", "ln-mcml-cv", "ln-lmnn-cv", "ln-lmnn-cv-rounds", "auto"}


class Clock:
    """A clock that stands still unless somebody turns it."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Counting(BaseEstimator):
    """The Euclidean metric; it notes how many rows it saw, and turns a clock."""

    seen: ClassVar[list[int]] = []
    clock = Clock()

    def __init__(self, power=2.0):
        self.power = power

    def fit(self, X, y):
        self.seen.append(len(X))
        self.clock.now += 1e-6 * len(X) ** self.power
        return self

    def transform(self, X):
        return X


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b", "c"], [40, 200, 360])
    folds = stratified_folds(labels, 3, 0)
    Counting.seen.clear()
    return Problem("toy", rng.normal(size=(600, 3)), labels, folds, most_rows={"few": 50})


def sized_folds(n_rows):
    """One fold with so many training rows."""
    return [(np.arange(n_rows), np.arange(n_rows, n_rows + 10))]


def test_only_slow_methods_of_large_tables_learn_from_a_sample():
    methods = list(built_in().values())
    for rows, most in ((150, None), (10_000, None), (10_001, 5_000), (45_000, 5_000)):
        plan = make_plan("auto", sized_folds(rows))
        assert (plan.rows, plan.most) == (rows, most)
        assert (plan.setting is None) == (most is None)
        slow = set() if most is None else {built_in()[key].name for key in SLOW}
        assert set(plan.most_rows(methods)) == slow
    assert plan.note([built_in()["lmnn"], built_in()["itml"]]) is None
    note = plan.note([built_in()["lmnn"], built_in()["nca"]])
    assert note.startswith("NCA learns from 5,000 of the 45,000 training rows")
    assert "--learn-from all" in note


def test_the_user_decides_how_many_rows():
    folds = sized_folds(45_000)
    assert make_plan("all", folds).most is None
    assert make_plan(800, folds).most == 800
    assert make_plan(45_000, folds).setting is None
    assert make_plan(800, sized_folds(900)).setting == "slow methods learn from at most 800 rows"


def test_a_fold_learns_from_a_sample_and_searches_all_rows(problem, tmp_path):
    methods = {"few": Counting(), "all": Counting()}
    found = run_problem(problem, methods, FoldStore(tmp_path), n_jobs=1)
    # Before each is measured, it is fitted to a toy of 20 rows.
    sizes = [size for size in Counting.seen if size != 20]
    assert sizes == [50, 400] * 3
    assert [r.n_learned for r in found.of("few")] == [50] * 3
    assert [r.n_learned for r in found.of("all")] == [400] * 3
    # The same metric and the same rows to search.
    assert (found.correct("few") == found.correct("all")).all()


def test_shares_and_most_rows_both_count():
    problem = Problem("toy", np.zeros((9, 1)), np.zeros(9), [], shares={"a": 0.5, "b": 0.1})
    assert [problem.learned_rows(name, 1000) for name in "abc"] == [500, 100, 1000]
    both = Problem("toy", np.zeros((9, 1)), np.zeros(9), [], shares={"a": 0.5}, most_rows={"a": 70})
    assert [both.learned_rows("a", n) for n in (1000, 100)] == [70, 50]


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_time_is_guessed_from_fits_that_grow(power):
    rng = np.random.default_rng(1)
    labels = np.arange(30_000) % 3
    folds = stratified_folds(labels, 10, 0)
    data = FoldData(Problem("large", rng.normal(size=(30_000, 2)), labels, folds), 0)
    Counting.seen.clear()
    guess = guess_fold("all", Counting(power), data, clock=Counting.clock)
    assert guess.seconds == pytest.approx(1e-6 * 27_000**power, rel=1e-6)
    assert guess.rows == max(Counting.seen) <= 27_000
    # It stops when a fit takes a second or two, so that it takes no time itself.
    assert sum(1e-6 * n**power for n in Counting.seen) < 12.0
    auto = guess_fold("all", Counting(power), data, k="auto", clock=Counting.clock)
    inner = 3 * (1e-6 * 18_000**power)
    assert auto.seconds == pytest.approx(guess.seconds + inner, rel=1e-6)


def test_a_long_first_fit_does_not_say_how_time_grows():
    class Slow(Counting):
        def fit(self, X, y):
            self.clock.now += 0.01 * len(X)
            return self

    rng = np.random.default_rng(1)
    labels = np.arange(30_000) % 3
    folds = stratified_folds(labels, 10, 0)
    data = FoldData(Problem("large", rng.normal(size=(30_000, 2)), labels, folds), 0)
    guess = guess_fold("all", Slow(), data, clock=Counting.clock)
    assert guess.seconds == pytest.approx(270.0, rel=1e-6)
    assert guess.rows == 1000


def test_a_forecast_counts_what_is_missing_and_admits_what_it_does_not_know(problem):
    class Broken(Counting):
        def fit(self, X, y):
            raise ValueError("no")

    methods = {"Euclidean": None, "few": Counting(), "done": Counting(), "broken": Broken()}
    missing = {"Euclidean": 3, "few": 3, "done": 0, "broken": 3}
    said = forecast(problem, methods, missing, n_jobs=2)
    assert said.startswith("this will take about ") and "without broken: not known" in said
    assert "Euclidean" in said and "few" in said and "done" not in said
    assert max(size for size in Counting.seen if size != 20) == 50
