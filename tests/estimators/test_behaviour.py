"""Progress, interruption, warm starts, repeatability."""

import numpy as np
import pytest
from learners import ALL, COUPLED, METHODS, short_name
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.utils import check_random_state
from toy_data import blobs, small_dataset

from lnml import ITML, LMNN, LNML, AveragedMetric, SupportVectorMetric, registry
from lnml.certificates import verify
from lnml.datasets import load_dataset

LEARNERS = [*METHODS, *COUPLED]

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def rows():
    """Overlapping classes: fits take hundredths of a second, and some iterations."""
    return blobs(0, [20, 18, 16], 4)


def unfinished(learner):
    """A clone that runs into its limit of three iterations."""
    coupled = isinstance(learner, LNML)
    limits = ["max_rounds", "estimator__max_iter"] if coupled else ["max_iter"]
    return clone(learner).set_params(tol=1e-14, **dict.fromkeys(limits, 3))


@pytest.mark.parametrize("learner", LEARNERS, ids=short_name)
def test_callback_sees_progress_and_may_stop(learner, rows, recwarn):
    states = []

    def stop_at_second(state):
        states.append(state)
        return len(states) == 2

    model = unfinished(learner).set_params(callback=stop_at_second).fit(*rows)
    assert len(states) == 2
    assert states[0].method == type(learner).__name__
    assert states[0].components.shape == (4, 4)
    assert states[1].record["seconds"] > 0
    assert model.n_iter_ == 2
    assert not model.converged_
    assert np.isfinite(model.transform(rows[0])).all()
    assert not recwarn.list, "stopping on request is not a convergence failure"


def test_only_true_stops(rows):
    model = LMNN(callback=lambda state: "go on").fit(*rows)
    assert model.converged_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("learner", LEARNERS, ids=short_name)
def test_verbose_is_one_live_line(learner, rows, capsys):
    unfinished(learner).set_params(verbose=1).fit(*rows)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1 and shown.err.endswith("\n")
    assert shown.err.count("\r") >= 2
    assert type(learner).__name__ in shown.err and "objective" in shown.err
    unfinished(learner).fit(*rows)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("learner", LEARNERS, ids=short_name)
def test_interrupt_leaves_data_and_estimator_untouched(learner, rows):
    X, y = rows
    fitted = clone(learner).fit(X[:, :3], y)
    before = fitted.components_.copy()

    def interrupt(state):
        raise KeyboardInterrupt

    data = X.copy()
    fitted.callback = interrupt
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(data, y)
    assert_array_equal(data, X)
    assert_array_equal(fitted.components_, before)
    assert fitted.n_features_in_ == 3
    assert fitted.transform(X[:, :3]).shape == (54, 3)


@pytest.mark.parametrize(
    "learner",
    [learner for learner in LEARNERS if hasattr(learner, "warm_start")],
    ids=short_name,
)
def test_warm_start_goes_on(learner, rows):
    model = clone(learner).set_params(warm_start=True).fit(*rows)
    first = model.objective_
    model.fit(*rows)
    assert model.converged_
    assert model.objective_ <= first * (1 + 1e-6)


def test_warm_start_saves_iterations():
    wine = load_dataset("wine")
    X, y = wine.data, wine.target
    model = LMNN(warm_start=True).fit(X, y).set_params(tol=1e-4).fit(X, y)
    assert model.n_iter_ < LMNN(tol=1e-4).fit(X, y).n_iter_


def n_evaluations(model):
    return sum(record["n_evaluations"] for record in model.history_)


@pytest.mark.parametrize("name", ["iris", "sonar", "balance_scale"])
@pytest.mark.parametrize("learner", [LMNN(), SupportVectorMetric()], ids=short_name)
def test_a_warm_start_on_the_same_rows_has_little_to_do(name, learner):
    """Its slopes are in the certificate: without them the dual point is sought again."""
    data = load_dataset(name)
    model = clone(learner).set_params(warm_start=True).fit(data.data, data.target)
    first = n_evaluations(model), model.objective_
    model.fit(data.data, data.target)
    assert model.converged_
    assert model.objective_ <= first[1] * (1 + 1e-9)
    assert n_evaluations(model) < 0.5 * first[0]
    assert verify(model.certificate_, data.data, data.target).holds


def test_a_warm_start_on_other_rows_or_classes_takes_the_metric_alone():
    X, y = small_dataset("wine", n_rows=60)
    for other in ((X[::-1], y[::-1]), (X[1:], y[1:]), (X, np.roll(y, 1)), (X, y == y[0])):
        model = LMNN(warm_start=True).fit(X, y)
        start = LMNN(init=model.components_).fit(*other)
        model.fit(*other)
        assert model.converged_
        assert model.objective_ == pytest.approx(start.objective_, rel=2e-3)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_a_warm_start_in_other_units_takes_the_metric_alone(factor):
    """The target pairs are the same ones, and the slopes of the last fit mislead."""
    wine = load_dataset("wine")
    model = LMNN(warm_start=True).fit(wine.data, wine.target)
    wanted = model.objective_
    model.set_params(max_iter=20).fit(factor * wine.data, wine.target)
    assert model.converged_
    np.testing.assert_allclose(model.objective_, wanted, rtol=2e-3)


def test_a_warm_start_forgets_impostors_that_are_none_any_more():
    X, targets = np.array([[0.0], [1.0], [4.0], [5.0], [1.5]]), np.zeros((5, 5))
    targets[0, 1] = targets[2, 3] = 1.0
    model = LMNN(warm_start=True).fit(X, list("aabbc"), target_neighbors=targets)
    assert 4 in model.certificate_.duals["triplets"][:, 1]
    model.fit(X, list("aabba"), target_neighbors=targets)
    fresh = LMNN().fit(X, list("aabba"), target_neighbors=targets)
    assert model.objective_ == pytest.approx(fresh.objective_, rel=2e-3)
    assert verify(model.certificate_, X, list("aabba")).holds


@pytest.mark.parametrize("learner", [*ALL, LMNN(init="random", random_state=3)], ids=short_name)
def test_same_input_same_result(learner, rows):
    first, second = (clone(learner).fit(*rows) for _ in range(2))
    assert_array_equal(first.components_, second.components_)


RANDOM = [ITML(), LMNN(init="random"), AveragedMetric(random_state=None)]


@pytest.mark.parametrize("learner", [*ALL, *RANDOM], ids=repr)
def test_the_random_numbers_of_the_program_stay_as_they_are(learner, rows):
    program = check_random_state(None)
    program.seed(7)
    before = program.get_state()[1:3]
    clone(learner).fit(*rows)
    after = program.get_state()[1:3]
    assert_array_equal(before[0], after[0])
    assert before[1] == after[1]


def test_itml_draws_other_pairs_without_a_seed(rows):
    drawn = [ITML(random_state=seed).fit(*rows).pairs_ for seed in (None, None, 3, 3)]
    assert not np.array_equal(drawn[0], drawn[1])
    assert_array_equal(drawn[2], drawn[3])


@pytest.mark.parametrize("learner", ALL, ids=short_name)
def test_data_that_cannot_be_written_to(learner, rows):
    """As joblib passes large arrays to its workers."""
    X, y = (part.copy() for part in rows)
    expected = clone(learner).fit(X, y).components_
    for part in (X, y):
        part.setflags(write=False)
    assert_array_equal(clone(learner).fit(X, y).components_, expected)


@pytest.mark.parametrize("learner", ALL, ids=short_name)
def test_refit_forgets_the_last_fit(learner, rows):
    X, y = rows
    again = clone(learner).fit(X[:, :3], np.where(y == y[0], "one", "other")).fit(X, y)
    fresh = clone(learner).fit(X, y)
    assert_array_equal(again.components_, fresh.components_)
    assert_array_equal(again.classes_, fresh.classes_)
    assert vars(again).keys() == vars(fresh).keys()


def test_order_of_rows_comes_back(rows):
    X, y = rows
    model = LNML(LMNN()).fit(X, y)
    rows, columns = model.target_neighbors_.nonzero()
    assert (y[rows] == y[columns]).all()
    assert (rows != columns).all()
    assert_allclose(np.bincount(rows, minlength=len(y)), model.n_target_neighbors_)


WARM = [learner for learner in LEARNERS if "warm_start" in learner.get_params()]


@pytest.mark.parametrize("learner", WARM, ids=short_name)
def test_the_first_fit_of_a_warm_start_is_cold(learner):
    X, y = small_dataset("wine", n_rows=60)
    cold = clone(learner).fit(X, y)
    first = clone(learner).set_params(warm_start=True).fit(X, y)
    np.testing.assert_array_equal(first.components_, cold.components_)
    assert first.objective_ == cold.objective_


def test_parameters_may_end_as_fitted_attributes_do():
    class Underscored(LMNN):
        def __init__(self, *, lambda_=0.5):
            super().__init__()
            self.lambda_ = lambda_

    X, y = small_dataset("iris", n_rows=60)
    assert Underscored(lambda_=0.7).fit(X, y).get_params() == {"lambda_": 0.7}


@pytest.mark.parametrize("entry", registry.LEARNERS, ids=lambda entry: entry.key)
def test_a_gap_where_the_registry_says_so(entry):
    X, y = small_dataset("iris", n_rows=60)
    gap = entry.make(0).fit(X, y).duality_gap_
    assert (gap is None) == entry.proof.startswith("nothing")


def test_a_subclass_may_set_attributes_before_it_fits():
    class Centred(LMNN):
        def fit(self, X, y):
            self.mean_ = X.mean(axis=0)
            return super().fit(X - self.mean_, y)

    X, y = small_dataset("iris", n_rows=60)
    model = Centred().fit(X, y).fit(X, y)
    np.testing.assert_array_equal(model.mean_, X.mean(axis=0))


@pytest.mark.filterwarnings("error:.*encountered:RuntimeWarning")
@pytest.mark.parametrize("learner", ALL, ids=short_name)
def test_numpy_may_be_told_to_raise(learner):
    """Weights of far rows underflow, which must not end a fit."""
    X, y = small_dataset("wine", 90)
    with np.errstate(all="raise"):
        model = clone(learner).fit(X, y)
        assert np.geterr()["under"] == "raise"
    assert_array_equal(model.components_, clone(learner).fit(X, y).components_)


def test_what_numpy_was_told_to_ignore_stays_ignored(rows):
    seen = []
    with np.errstate(all="ignore"):
        LMNN(callback=lambda state: seen.append(np.geterr())).fit(*rows)
    assert set(seen[0].values()) == {"ignore"}
