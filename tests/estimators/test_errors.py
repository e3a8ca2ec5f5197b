"""Bad input gets an error that names the cause and the cure, before any work."""

import pickle

import numpy as np
import pandas as pd
import pytest
from learners import ALL, short_name
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline

import lnml
from lnml import ITML, LMNN, LNML, MCML, SupportVectorMetric

RNG = np.random.default_rng(0)
X = RNG.standard_normal((24, 3))
Y = np.repeat(["a", "b", "c"], 8)


@pytest.fixture(params=ALL, ids=short_name)
def learner(request):
    return clone(request.param)


def with_entry(value):
    data = X.copy()
    data[3, 1] = value
    return data


@pytest.mark.parametrize(
    ("data", "labels", "message"),
    [
        (with_entry(np.nan), Y, "contains NaN"),
        (with_entry(np.inf), Y, "infinity"),
        (X, np.repeat("a", 24), "at least two classes"),
        (X, Y[:-1], "inconsistent numbers of samples"),
        (X, np.where(np.arange(24) == 3, np.nan, 1.0), "y contains NaN"),
        (X, RNG.standard_normal(24), "Unknown label type"),
        (X, None, "requires y"),
        (X, ["a", None] * 12, "or missing"),
        (sparse.csr_array(X), Y, "toarray"),
        (X + 1j, Y, "separate columns"),
        (np.full((24, 3), "red"), Y, "OneHotEncoder"),
        (np.zeros((0, 3)), Y[:0], "0 sample"),
        (np.zeros((24, 0)), Y, "0 feature"),
        (np.ones((24, 3)), Y, "all rows of X are the same"),
        (1e200 * X, Y, "rescale"),
        (X[:3], Y[::8], "every class has one row"),
        (X[0], Y[:3], "2D array"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_data(learner, data, labels, message):
    with pytest.raises((ValueError, TypeError), match=message):
        learner.fit(data, labels)
    assert not hasattr(learner, "components_")


@pytest.mark.parametrize("argument", ["sample_weight", "groups"])
def test_unknown_fit_argument(learner, argument):
    message = "repeat rows" if argument == "sample_weight" else "does not know"
    with pytest.raises(TypeError, match=message):
        learner.fit(X, Y, **{argument: np.ones(24)})


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (LMNN(n_components=4), "exceeds the 3 features"),
        (LMNN(n_components=0), "n_components must be a whole number >= 1"),
        (LMNN(init=np.eye(2)), r"init has shape \(2, 2\)"),
        (LMNN(init=np.full((3, 3), np.nan)), "finite"),
        (LMNN(init="best"), "init must be"),
        (LMNN(n_neighbors=0), "n_neighbors must be a whole number >= 1"),
        (LMNN(n_neighbors=2.5), "n_neighbors must be a whole number"),
        (LMNN(push_weight=1.0), "push_weight must be a number above 0"),
        (LMNN(push_weight="half"), "push_weight must be a number"),
        (LMNN(tol=0), "tol must be a number above 0"),
        (LMNN(max_iter=0), "max_iter must be a whole number >= 1"),
        (MCML(tol=-1), "tol must be a number above 0"),
        (MCML(n_components=9), "exceeds the 3 features"),
        (LNML(k_min=4), "k_min <= k_av <= k_max"),
        (LNML(k_av=6), "k_min <= k_av <= k_max"),
        (LNML(k_min=1.5), "k_min must be a whole number"),
        (LNML(k_min=-1), "k_min must be a whole number"),
        (LNML(k_min=0, k_av=0, k_max=0), "k_av >= 1"),
        (LNML(max_rounds=0), "max_rounds must be a whole number >= 1"),
        (LNML(tol=2), "tol must be a number"),
        (LNML(MCML(), k_min=1), "MCML needs k_min = k_av = k_max"),
        (LNML(LMNN(n_components=4)), "exceeds the 3 features"),
        (ITML(gamma=0), "gamma must be a number above 0"),
        (ITML(gamma=np.inf), "gamma must be a number above 0"),
        (ITML(n_constraints=0), "n_constraints must be a whole number >= 1"),
        (ITML(percentiles=(95, 5)), "from 0 to 100 in rising order"),
        (ITML(percentiles=5), "percentiles must be two numbers"),
        (ITML(bounds=(2.0, 1.0)), "0 < u <= l"),
        (ITML(bounds=(0.0, 1.0)), "0 < u <= l"),
        (ITML(bounds="tight"), "bounds must be two numbers"),
        (ITML(tol=0), "tol must be a number above 0"),
        (ITML(max_iter=0), "max_iter must be a whole number >= 1"),
    ],
    ids=repr,
)
def test_bad_parameter(estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, Y)


def test_estimator_that_cannot_be_coupled():
    with pytest.raises(TypeError, match="metric_problem"):
        LNML(NeighborhoodComponentsAnalysis()).fit(X, Y)
    with pytest.raises(TypeError, match=r"ITML, because .* random pairs of rows"):
        LNML(ITML()).fit(X, Y)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (np.ones((24, 3)), "24 rows"),
        (np.eye(24), "its own target neighbour"),
        (np.eye(24, k=12), "of another class"),
        (np.zeros((24, 24)), "nothing to learn from"),
        ("nearest", "n x n matrix"),
        (lnml.Neighborhoods.from_graph(np.eye(5, k=1)), "covers 5 rows"),
    ],
)
def test_bad_target_neighbors(graph, message):
    with pytest.raises(ValueError, match=message):
        LMNN().fit(X, Y, target_neighbors=graph)


def test_target_neighbors_inside_cross_validation():
    """Only rows are sliced there, so the error has to say so."""
    import sklearn

    graph = LMNN().fit(X, Y).target_neighbors_
    with sklearn.config_context(enable_metadata_routing=True):
        model = LMNN().set_fit_request(target_neighbors=True)
        pipeline = make_pipeline(model, KNeighborsClassifier(1))
        with pytest.raises(ValueError, match="slices rows only"):
            cross_val_score(
                pipeline, X, Y, params={"target_neighbors": graph}, cv=2, error_score="raise"
            )


def test_warm_start_of_another_shape():
    model = LMNN(warm_start=True).fit(X, Y)
    with pytest.raises(ValueError, match="warm_start=False"):
        model.fit(X[:, :2], Y)


def test_transform_before_fit_and_of_other_width(learner):
    with pytest.raises(NotFittedError):
        learner.transform(X)
    with pytest.raises(ValueError, match="3 features"):
        learner.fit(X, Y).transform(X[:, :2])


@pytest.mark.parametrize(
    ("dtype", "largest"),
    [(np.float32, 1.5e16), (np.float64, 1e18), (np.float64, 1e151)],
    ids=["float32", "float64", "large-float64"],
)
def test_squares_that_just_do_not_overflow(dtype, largest):
    """Squares and sums of them stay below 3.4e38 in float32, 1.8e308 in float64."""
    data = (X * (largest / np.abs(X).max())).astype(dtype)
    assert LMNN(max_iter=2, tol=0.9).fit(data, Y).components_.dtype == dtype


@pytest.mark.parametrize(
    ("dtype", "largest"), [(np.float32, 2.5e16), (np.float32, 1e18), (np.float64, 2e151)], ids=str
)
def test_squares_that_overflow_are_refused(learner, dtype, largest):
    data = (X * (largest / np.abs(X).max())).astype(dtype)
    with pytest.raises(ValueError, match=f"squares overflow {dtype.__name__}: rescale"):
        learner.fit(data, Y)
    assert not hasattr(learner, "components_")


@pytest.mark.parametrize(("dtype", "largest"), [(np.float32, 1e-30), (np.float64, 1e-200)], ids=str)
def test_squares_that_underflow_are_refused(learner, dtype, largest):
    data = (X * (largest / np.abs(X).max())).astype(dtype)
    with pytest.raises(ValueError, match=r"underflow.*rescale"):
        learner.fit(data, Y)


@pytest.mark.parametrize("scale", [1e-200, 1e-310])
def test_one_column_that_underflows_is_named(learner, scale):
    data = X * np.array([1.0, scale, 1.0])
    with pytest.raises(ValueError, match=r"column 1 .*underflow"):
        learner.fit(data, Y)


def test_units_too_far_apart_are_refused(learner):
    data = X * np.array([1e100, 1e-100, 1.0])
    with pytest.raises(ValueError, match=r"square overflows: rescale|differ by"):
        learner.fit(data, Y)


def fit_all_ways(learner, data):
    """Fits of a learner to rows, or to pairs or triplets made of them."""
    name, ends = learner
    estimator = getattr(lnml, name)()
    if ends == "rows":
        return estimator.fit(data, Y)
    if ends == "pairs":
        labels = np.where(Y[:-1] == Y[1:], 1, -1)
        return estimator.fit_pairs(np.stack([data[:-1], data[1:]], axis=1), labels)
    return estimator.fit_triplets(np.stack([data[:8], data[1:9], data[8:16]], axis=1))


FROBENIUS = [
    (name, ends)
    for name in ("SupportVectorMetric", "RelativeComparisons")
    for ends in ("rows", "triplets")
]


@pytest.mark.parametrize("learner", [*FROBENIUS[1::2], ("MMC", "pairs")], ids="-".join)
def test_one_column_of_pairs_or_triplets_that_underflows_is_named(learner):
    with pytest.raises(ValueError, match=rf"column 1 of {learner[1]} differ by .*underflow"):
        fit_all_ways(learner, X * np.array([1.0, 1e-155, 1.0]))


@pytest.mark.parametrize("scale", [1e-150, 1e-80, 1e80, 1e148])
@pytest.mark.parametrize("learner", FROBENIUS, ids="-".join)
def test_fourth_powers_that_are_no_numbers_are_refused(learner, scale):
    """The square of the metric's norm is one of them."""
    for scales in ([scale, scale, scale], [1.0, scale, 1.0]):
        column = 0 if scales[0] == scale else 1
        with pytest.raises(ValueError, match=rf"column {column} .* needs fourth powers .*rescale"):
            fit_all_ways(learner, X * np.array(scales))


@pytest.mark.filterwarnings("error:.*encountered:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scale", [1e-73, 1e73])
@pytest.mark.parametrize("learner", FROBENIUS, ids="-".join)
def test_fourth_powers_that_are_numbers_work(learner, scale):
    assert np.isfinite(fit_all_ways(learner, X * scale).components_).all()


def test_fourth_powers_inside_lnml():
    with pytest.raises(ValueError, match="needs fourth powers"):
        LNML(lnml.SupportVectorMetric()).fit(X * 1e-100, Y)


@pytest.mark.parametrize(
    "use",
    [
        lambda: LNML(LMNN).fit(X, Y),
        lambda: lnml.LNMLCV(LMNN).fit(X, Y),
        lambda: lnml.AutoMetric(LMNN).fit(X, Y),
        lambda: lnml.AveragedMetric(LMNN).fit(X, Y),
        lambda: lnml.trace_path(LMNN, X, Y),
    ],
    ids=["LNML", "LNMLCV", "AutoMetric", "AveragedMetric", "trace_path"],
)
def test_a_class_is_told_from_an_estimator(use):
    with pytest.raises(TypeError, match=r"the class LMNN \(write LMNN\(\) instead\)"):
        use()


@pytest.mark.parametrize(
    "learner, factor, told",
    [
        (LMNN(), 1e-200, "column 'height' differ by .* underflow"),
        (LNML(LMNN()), 1e-200, "column 'height' differ by .* underflow"),
        (SupportVectorMetric(), 1e-90, "column 'height' differ by .* fourth powers"),
    ],
)
def test_a_column_is_called_by_its_name(learner, factor, told):
    X = pd.DataFrame(RNG.standard_normal((30, 2)), columns=["width", "height"])
    X["height"] *= factor
    y = np.arange(30) % 2
    with pytest.raises(ValueError, match=told):
        clone(learner).fit(X, y)
    with pytest.raises(ValueError, match="column 1 of X differ by") as raised:
        clone(learner).fit(X.to_numpy(), y)
    # Searches fit in other processes, whose errors are pickled.
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
