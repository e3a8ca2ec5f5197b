"""The study: its protocol, and the paper's table as it is printed."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from lnml import LMNN
from lnml.datasets import MissingDataError, load_large_dataset
from lnml.errors import InputError
from lnml.study.pages import chosen_data
from lnml.study.paper import ACCURACY, LARGE_COLUMNS, SMALL_COLUMNS
from lnml.study.problems import LARGE, SMALL, UNOBTAINABLE
from lnml.study.run import run_data, run_study


def test_the_paper_has_twelve_data_sets():
    assert len(ACCURACY) == 12
    assert set(UNOBTAINABLE) < set(ACCURACY)
    ours = {data.title for data in (*SMALL, *LARGE)}
    assert set(ACCURACY) - ours == set(UNOBTAINABLE)
    assert all(set(ACCURACY[d.title]) == set(SMALL_COLUMNS) for d in SMALL)


def test_methods_are_those_of_the_tables():
    for data in SMALL:
        assert tuple(data.methods(0)) == SMALL_COLUMNS
    for data in LARGE[1:]:
        assert set(data.methods(0)) == set(LARGE_COLUMNS)
    assert {d.name: d.n_components for d in LARGE}["isolet"] == 173
    assert {d.name: d.n_components for d in LARGE}["mnist"] == 164


def test_small_data_are_raw_with_ten_folds():
    for data in SMALL:
        problem = data.problem(0)
        assert problem.prepare is problem.reduce is None
        tested = np.sort(np.concatenate([test for _, test in problem.splits]))
        assert len(problem.splits) == 10
        assert tested.tolist() == list(range(len(problem.labels)))


def test_names():
    assert [d.name for d in chosen_data([], False)] == [d.name for d in SMALL]
    assert len(chosen_data([], True)) == len(SMALL) + len(LARGE)
    assert [d.name for d in chosen_data(["wine"], True)] == ["wine"]
    with pytest.raises(InputError, match="isolet"):
        chosen_data(["isolett"], False)


def test_data_that_are_not_here_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("LNML_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match=r"gad_sentences\.csv\.gz"):
        load_large_dataset("gad")
    gad = next(data for data in LARGE if data.name == "gad")
    with pytest.raises(MissingDataError, match="LNML_DATA"):
        run_study([gad], tmp_path / "folds")


def test_isolet_comes_with_its_split(monkeypatch, tmp_path):
    """A file in the documented form, thirty rows of it."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 4)), np.tile([1, 2, 3], 10)
    np.savez(tmp_path / "isolet.npz", X=X, y=y, split=np.repeat([0, 1], 15))
    monkeypatch.setenv("LNML_DATA", str(tmp_path))
    problem = next(data for data in LARGE if data.name == "isolet").problem(0)
    assert [part.tolist() for part in problem.splits[0]] == [[*range(15)], [*range(15, 30)]]


def test_one_data_set_end_to_end(monkeypatch, tmp_path):
    iris = next(data for data in SMALL if data.name == "iris")
    monkeypatch.setattr(type(iris), "method_keys", ("lmnn", "euclidean"))
    found, portrait = run_data(iris, tmp_path)
    assert found.data.name == "Iris" and found.data.n_rows == 150
    assert found.methods == ("LMNN", "Euclidean")
    # Ten-fold accuracy of the raw features; the mean over ten seeds is 95.93 %.
    assert abs(found.accuracy("Euclidean") - 0.9593) < 0.01
    again, same = run_data(iris, tmp_path)
    assert again.to_json() == found.to_json()
    assert same.to_json() == portrait.to_json()


def test_on_a_device_all_methods_learn_from_all_rows(monkeypatch, tmp_path):
    iris = next(data for data in SMALL if data.name == "iris")
    monkeypatch.setattr(type(iris), "method_keys", ("lmnn",))
    seen = []
    fit = LMNN.fit
    monkeypatch.setattr(
        LMNN, "fit", lambda self, X, y: (seen.append((self.device, len(X))), fit(self, X, y))[1]
    )
    monkeypatch.setattr("lnml.evaluation.crossval.warm_up", lambda *_: None)
    data = replace(iris, shares={"LMNN": 0.5})
    run_data(data, tmp_path / "host", n_jobs=1)
    assert set(seen[:10]) == {(None, 67)}
    seen.clear()
    run_data(data, tmp_path / "device", n_jobs=1, device="torch:cpu")
    assert set(seen[:10]) == {("torch:cpu", 135)}


def test_letter_has_one_euclidean_metric_under_two_names(monkeypatch):
    letter = LARGE[0]
    assert letter.n_components is None
    assert set(letter.methods(0)) < set(LARGE_COLUMNS)


@pytest.mark.parametrize("data", SMALL, ids=lambda data: data.name)
def test_euclidean_accuracy_is_the_papers(data):
    """Mean over ten seeds, within 1.5 points."""
    accuracy = []
    for seed in range(10):
        problem = data.problem(seed)
        right = 0
        for train, test in problem.splits:
            known = KNeighborsClassifier(1).fit(problem.features[train], problem.labels[train])
            right += np.sum(known.predict(problem.features[test]) == problem.labels[test])
        accuracy.append(100 * right / len(problem.labels))
    assert abs(np.mean(accuracy) - ACCURACY[data.title]["Euclidean"]) <= 1.5
