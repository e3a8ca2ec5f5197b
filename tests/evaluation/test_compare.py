"""Cross-validated comparisons: against plain scikit-learn, and their finished folds on disk."""

import json

import numpy as np
import pytest
from sklearn import config_context, get_config
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from lnml import LMNN
from lnml.datasets import load_dataset
from lnml.errors import InputError
from lnml.estimators.metric import MahalanobisMetric
from lnml.evaluation import compare, predict_nearest
from lnml.evaluation.crossval import run_problem
from lnml.evaluation.problem import FoldData, Problem, fingerprint, stratified_folds
from lnml.evaluation.results import Comparison, FoldResult
from lnml.evaluation.store import FoldStore, StoreError
from lnml.registry import PAPER_METHODS, built_in, methods_by_name


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
def test_finished_folds_are_not_repeated(tmp_path):
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
def test_a_share_of_the_rows(tmp_path):
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
