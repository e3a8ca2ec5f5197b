"""Cross-validated comparisons: against plain scikit-learn, and their finished folds on disk."""

import json

import numpy as np
import pytest
from joblib import parallel_config
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lnml import LMNN
from lnml.datasets import load_dataset
from lnml.errors import InputError
from lnml.estimators.classifiers import StoppedBoosting
from lnml.estimators.metric import MahalanobisMetric
from lnml.evaluation import compare, predict_nearest
from lnml.evaluation.crossval import run_problem
from lnml.evaluation.problem import FoldData, Problem, fingerprint, stratified_folds
from lnml.evaluation.results import Comparison, FoldResult
from lnml.evaluation.store import FoldStore, StoreError
from lnml.learning.votes import cross_validated_votes
from lnml.registry import CLASSIFIERS, PAPER_METHODS, built_in, methods_by_name


@pytest.fixture
def no_warm_up(monkeypatch):
    """Let a test count the real fits only."""
    monkeypatch.setattr("lnml.evaluation.crossval.warm_up", lambda *_: None)


def wine():
    data = load_dataset("wine")
    return data.data, data.target


@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize("method", [None, LMNN(max_iter=2)], ids=["Euclidean", "LMNN"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_accuracy_is_that_of_scikit_learn(method, k):
    X, y = wine()
    found = compare(X, y, {"it": method}, n_folds=4, seed=3, k=k)
    steps = [KNeighborsClassifier(k)] if method is None else [method, KNeighborsClassifier(k)]
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    theirs = cross_val_predict(make_pipeline(*steps), X, y, cv=folds) == y
    # Votes without a majority are settled by another rule there.
    assert np.mean(found.correct("it") != theirs) <= (0.0 if k == 1 else 0.03)


def test_votes_without_majority_go_to_the_nearest():
    train, labels = np.array([[0.0], [3.0], [10.0], [11.0]]), np.array(["a", "b", "b", "a"])
    assert predict_nearest(train, labels, np.array([[1.0], [2.0]]), k=2).tolist() == ["a", "b"]
    assert predict_nearest(train, labels, np.array([[6.0]]), k=3).tolist() == ["b"]


def test_votes_need_enough_rows():
    with pytest.raises(ValueError, match="k must be from 1 to 2"):
        predict_nearest(np.eye(2), np.array(["a", "b"]), np.eye(2), k=3)


def test_too_many_folds():
    with pytest.raises(ValueError, match="smallest class has 2"):
        stratified_folds(np.array(["a"] * 9 + ["b"] * 2), 3, 0)


class Shift(TransformerMixin, BaseEstimator):
    """Changes no distance; counts its fits, and may know how many neighbours vote."""

    def __init__(self, own=None):
        self.own = own

    def fit(self, X, y):
        FITS.append(len(y))
        if self.own is not None:
            self.n_neighbors_ = self.own
        return self

    def transform(self, X):
        return X + 1.0


FITS = []


def test_k_is_chosen_in_each_fold_from_its_training_rows(no_warm_up):
    X, y = wine()
    noisy = np.where(np.random.default_rng(0).random(y.size) < 0.2, "1", y)
    FITS.clear()
    found = compare(X, noisy, {"it": Shift(), "raw": None}, n_folds=3, k="auto", scaled=["it"])
    n = [len(train) for train, _ in stratified_folds(noisy, 3, 0)]
    # One fit to all training rows, then three to two thirds of them.
    assert FITS[::4] == n
    assert sum(FITS) == sum(n) + sum(2 * size for size in n)
    for (train, test), part in zip(stratified_folds(noisy, 3, 0), found.of("it"), strict=True):
        scaler = StandardScaler().fit(X[train])
        inside, outside = scaler.transform(X[train]), scaler.transform(X[test])
        assert part.k == cross_validated_votes(lambda X, y: None, inside, noisy[train])
        predicted = predict_nearest(inside, noisy[train], outside, part.k)
        assert part.correct.tolist() == (predicted == noisy[test]).tolist()
    assert {part.k for part in found.of("it")} != {1}


def test_a_method_that_knows_its_k_is_not_fitted_again(no_warm_up):
    X, y = wine()
    FITS.clear()
    found = compare(X, y, {"it": Shift(own=7)}, n_folds=2, k="auto")
    assert len(FITS) == 2
    assert [part.k for part in found.of("it")] == [7, 7]
    assert compare(X, y, {"it": Shift(own=7)}, n_folds=2).of("it")[0].k == 1


def test_classifiers_predict_for_themselves():
    X, y = wine()
    methods = {"Euclidean": None, "Bayes": GaussianNB(), "scaled": StandardScaler()}
    found = compare(X, y, methods, n_folds=4, seed=3, k="auto")
    assert (found.metrics, found.classifiers) == (("Euclidean", "scaled"), ("Bayes",))
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    theirs = cross_val_predict(GaussianNB(), X, y, cv=folds) == y
    assert found.correct("Bayes").tolist() == theirs.tolist()
    assert {part.k for part in found.of("Bayes")} == {None}


@pytest.mark.parametrize("method", CLASSIFIERS, ids=[m.key for m in CLASSIFIERS])
def test_classifiers_of_the_registry(method, monkeypatch):
    monkeypatch.setattr("lnml.estimators.classifiers.TREES", 20)
    X, y = wine()
    X = StandardScaler().fit_transform(X)
    model = method.make(0).fit(X[::2], y[::2])
    assert not hasattr(model, "transform")
    assert (model.predict(X[1::2]) == y[1::2]).mean() > 0.9
    again = method.make(0).fit(X[::2], y[::2])
    assert (again.predict(X) == model.predict(X)).all()


@pytest.mark.parametrize("sizes", [(1, 9, 9), (2,) * 12])
def test_boosting_of_few_rows(sizes):
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = np.random.default_rng(0).standard_normal((y.size, 2))
    model = StoppedBoosting().fit(X, y)
    assert model.predict(X).shape == y.shape
    assert not model.model_.do_early_stopping_


class Counting(LMNN):
    """Counts its fits in a file, since they happen in other processes."""

    def __init__(self, path=None):
        super().__init__(max_iter=1)
        self.path = path

    def fit(self, X, y):
        with open(self.path, "a") as file:
            file.write("x")
        return super().fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_finished_folds_are_not_repeated(tmp_path, no_warm_up):
    X, y = wine()
    problem = Problem("wine", X, y, stratified_folds(y, 3, 0))
    counter, store = tmp_path / "count", FoldStore(tmp_path / "folds")
    store.open({"data": "wine"})
    methods = {"it": Counting(str(counter)), "Euclidean": None}
    first = run_problem(problem, methods, store)
    assert counter.read_text() == "xxx"
    (store.folder / "fold01-it.json").unlink()
    seen = []
    again = run_problem(problem, methods, store, progress=lambda *n: seen.append(n))
    assert counter.read_text() == "xxxx"
    assert seen[-1] == (6, 6)
    assert again.correct("it").tolist() == first.correct("it").tolist()


def test_workers_that_do_not_see_the_folder(tmp_path, no_warm_up):
    """As on another machine: their results come back, and are stored here."""

    class Elsewhere(FoldStore):
        def __reduce__(self):
            return FoldStore, (tmp_path / "of another machine",)

    X, y = wine()
    problem = Problem("wine", X, y, stratified_folds(y, 2, 0))
    store = Elsewhere(tmp_path / "folds")
    store.open({"data": "wine"})
    with parallel_config(backend="multiprocessing"):
        found = run_problem(problem, {"Euclidean": None}, store, n_jobs=2)
    assert store.count() == 2 and not (tmp_path / "of another machine").exists()
    assert 0.5 < found.accuracy("Euclidean") < 1.0


def test_a_store_refuses_another_problem(tmp_path):
    FoldStore(tmp_path).open({"data": "a", "seed": 0})
    FoldStore(tmp_path).open({"data": "a", "seed": 0})
    with pytest.raises(StoreError, match="seed = 0, but you asked for 1"):
        FoldStore(tmp_path).open({"data": "a", "seed": 1})


def test_a_damaged_fold_is_named(tmp_path):
    store = FoldStore(tmp_path)
    store.open({})
    store.write(FoldResult("LMNN", 0, np.arange(2), np.array([True, False])))
    path = next(tmp_path.glob("fold*.json"))
    path.write_text(path.read_text()[:-5])
    with pytest.raises(InputError, match="is damaged"):
        store.read(0, "LMNN")


def test_results_survive_json():
    X, y = wine()
    found = compare(X, y, {"Euclidean": None}, n_folds=2)
    again = Comparison.from_json(json.loads(json.dumps(found.to_json())))
    assert again.to_json() == found.to_json()
    assert again.accuracy("Euclidean") == found.accuracy("Euclidean")


def test_preparation_is_fitted_on_the_training_part_only():
    texts = np.array(["red apple", "red pear", "green apple", "green pear", "blue plum"], object)
    split = (np.arange(4), np.array([4]))
    problem = Problem("fruit", texts, np.array(list("aabbb")), [split], CountVectorizer())
    inside, outside = FoldData(problem, 0).matrices("LMNN")
    assert inside.shape == (4, 4)
    assert not outside.any()


def test_a_method_may_have_a_preparation_of_its_own():
    X, y = wine()
    train, test = stratified_folds(y, 2, 0)[0]
    own = {"a": StandardScaler(), "b": StandardScaler()}
    problem = Problem("wine", X, y, [(train, test)], prepare_for=own)
    data = FoldData(problem, 0)
    inside, outside = data.matrices("a")
    np.testing.assert_allclose(inside.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(outside, (X[test] - X[train].mean(0)) / X[train].std(0))
    assert data.matrices("raw")[0].tolist() == X[train].tolist()


def test_reduction_is_for_those_who_want_it():
    X, y = wine()
    problem = Problem(
        "wine", X, y, stratified_folds(y, 2, 0), reduce=PCA(2), unreduced=["raw"], dtype="float32"
    )
    data = FoldData(problem, 0)
    assert data.matrices("raw")[0].shape[1] == 13
    assert data.matrices("LMNN")[1].shape[1] == 2
    assert data.matrices("LMNN")[0].dtype == np.float32


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_share_of_the_rows(tmp_path, no_warm_up):
    X, y = wine()
    sizes = []

    class Sized(LMNN):
        def fit(self, X, y):
            sizes.append(len(X))
            return super().fit(X, y)

    split = stratified_folds(y, 2, 0)[:1]
    problem = Problem("wine", X, y, split, shares={"it": 0.5})
    run_problem(problem, {"it": Sized(max_iter=1)}, FoldStore(tmp_path))
    assert sizes == [len(split[0][0]) // 2]


def test_fingerprints_tell_data_apart():
    X, y = wine()
    changed = X.copy()
    changed[3, 4] += 1e-9
    prints = {fingerprint(*pair) for pair in ((X, y), (changed, y), (X, y[::-1]), (X[:, :5], y))}
    assert len(prints) == 4
    assert fingerprint(X.copy(), y.copy()) == fingerprint(X, y)


def test_methods_by_name():
    made = methods_by_name(["lmnn", "euclidean", "lmnn"], 0)
    assert list(made) == ["LMNN", "Euclidean"]
    assert made["Euclidean"] is None
    assert set(PAPER_METHODS) <= set(built_in())
    with pytest.raises(ValueError, match="did you mean 'lmnn'"):
        methods_by_name(["lmn"], 0)
    with pytest.raises(ValueError, match="no method"):
        methods_by_name([], 0)


def test_workers_have_the_configuration_of_their_parent():
    """Or a limit on memory would hold in one process only."""

    class Probe(MahalanobisMetric):
        def fit(self, X, y):
            assert get_config()["working_memory"] == 7
            self.components_, self.n_features_in_ = np.eye(X.shape[1]), X.shape[1]
            return self

    iris = load_dataset("iris")
    with config_context(working_memory=7):
        found = compare(iris.data, iris.target, {"probe": Probe()}, n_folds=2, n_jobs=2)
    assert len(found.of("probe")) == 2
