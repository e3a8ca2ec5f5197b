"""Fitted estimators and pipelines in model files: the same bits, and nothing that is run."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from learners import ALL, short_name
from model_files import HEADER, metadata_of, rewritten
from safetensors.numpy import load
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)
from toy_data import blobs, small_dataset

from lnml import ITML, LMNN, LNML, LNMLCV, AutoMetric
from lnml.certificates import verify
from lnml.cli import main
from lnml.errors import InputError
from lnml.models import load_model, save_model
from lnml.registry import built_in

X, Y = blobs(0, [20, 18, 16], 4)


def reloaded(path: Path, model):
    save_model(path / "a.model", model)
    return load_model(path / "a.model")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("learner", [*ALL, built_in()["itml"].make(0)], ids=short_name)
def test_same_bits_after_reload(tmp_path, learner, dtype):
    rows = X.astype(dtype)
    model = clone(learner).fit(rows, Y)
    loaded = reloaded(tmp_path, model)
    assert type(loaded) is type(model)
    assert loaded.transform(rows).tobytes() == model.transform(rows).tobytes()
    assert loaded.transform(rows).dtype == dtype
    for name in ("objective_", "duality_gap_", "converged_", "n_iter_", "n_features_in_"):
        assert getattr(loaded, name) == getattr(model, name)
    assert repr(loaded) == repr(model)
    # A loaded estimator can be fitted again.
    np.testing.assert_array_equal(clone(loaded).fit(rows, Y).components_, model.components_)


PIPELINES = {
    "standard": make_pipeline(StandardScaler(), LMNN()),
    "standard, mean only": make_pipeline(StandardScaler(with_std=False), LMNN()),
    "standard, spread only": make_pipeline(StandardScaler(with_mean=False), LMNN()),
    "standard, neither": make_pipeline(StandardScaler(with_mean=False, with_std=False), LMNN()),
    "minmax": make_pipeline(MinMaxScaler((-1, 2), clip=True), LMNN()),
    "maxabs": make_pipeline(MaxAbsScaler(), LMNN()),
    "robust": make_pipeline(RobustScaler(quantile_range=(10, 90)), LMNN()),
    "robust, centre only": make_pipeline(RobustScaler(with_scaling=False), LMNN()),
    "pca": make_pipeline(StandardScaler(), PCA(3), LMNN()),
    "whitened": make_pipeline(PCA(0.9, whiten=True), LNML(LMNN(), k_min=1, k_max=5)),
    "by names": Pipeline([("skip", "passthrough"), ("it", ITML(random_state=0))]),
    "scaler alone": make_pipeline(StandardScaler()),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("pipeline", PIPELINES.values(), ids=PIPELINES)
def test_pipelines(tmp_path, pipeline):
    model = clone(pipeline).fit(X, Y)
    loaded = reloaded(tmp_path, model)
    assert [name for name, _ in loaded.steps] == [name for name, _ in model.steps]
    for rows in (X, 1e3 * X[::-1]):
        assert loaded.transform(rows).tobytes() == model.transform(rows).tobytes()
    assert repr(loaded) == repr(model)
    assert np.array_equal(clone(loaded).fit_transform(X, Y), model.transform(X))


def test_names_of_columns_and_classes(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "ü", "d"])
    model = make_pipeline(StandardScaler().set_output(transform="pandas"), LMNN()).fit(frame, Y)
    loaded = reloaded(tmp_path, model)
    assert loaded[-1].feature_names_in_.tolist() == ["a", "b", "ü", "d"]
    assert loaded[0].get_feature_names_out().tolist() == ["a", "b", "ü", "d"]
    for labels in (Y, Y.astype(float), Y.astype(str), Y.astype(str).astype(object), Y == 1):
        classes = reloaded(tmp_path, LMNN(tol=0.1).fit(X, labels)).classes_
        np.testing.assert_array_equal(classes, np.unique(labels))


def test_parameters_come_back_and_functions_do_not(tmp_path):
    start = np.eye(4)[:2]
    model = LMNN(n_components=2, init=start, tol=0.1, callback=lambda state: None).fit(X, Y)
    loaded = reloaded(tmp_path, model)
    np.testing.assert_array_equal(loaded.init, start)
    assert loaded.callback is None and loaded.n_components == 2
    search = LNMLCV(grid=[(3, 3, 3), (1, 3, 5)], cv=StratifiedKFold(2), tol=0.1).fit(X, Y)
    loaded = reloaded(tmp_path, search)
    assert loaded.grid == [(3, 3, 3), (1, 3, 5)] and loaded.cv is None
    assert loaded.best_params_ == search.best_params_


def test_auto_metric_keeps_its_choice(tmp_path):
    model = AutoMetric(n_subsamples=2, tol=0.1).fit(X, Y)
    loaded = reloaded(tmp_path, model)
    for name in ("n_neighbors_", "best_params_", "best_score_", "reason_"):
        assert getattr(loaded, name) == getattr(model, name)
    with pytest.raises(ValueError, match="no certificate"):
        loaded.certificate(X, Y)


def test_the_proof_can_still_be_verified(tmp_path):
    rows, labels = small_dataset("wine", 90)
    loaded = reloaded(tmp_path, LNML(LMNN(), k_min=1, k_av=3, k_max=5).fit(rows, labels))
    assert verify(loaded.certificate(rows, labels), rows, labels).holds


class Outside(LMNN):
    """A class that no file may name."""


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (LMNN(), NotFittedError, "not fitted"),
        (make_pipeline(StandardScaler(), LMNN()), NotFittedError, "not fitted"),
        (LMNN, TypeError, r"the class LMNN \(write LMNN\(\) instead\)"),
        ({"components_": X}, TypeError, "cannot store dict: it takes a Model, a fitted estimator"),
        (None, TypeError, "cannot store NoneType"),
        (Outside().fit(X, Y), TypeError, "cannot store Outside"),
        (LNML(Outside()).fit(X, Y), InputError, "Outside is no estimator of lnml"),
        (
            make_pipeline(StandardScaler(), LMNN(), KNeighborsClassifier(1)).fit(X, Y),
            TypeError,
            r"the step 'kneighborsclassifier' of the pipeline .*: .*pipeline\[:-1\]",
        ),
        (make_pipeline(Normalizer(), LMNN()).fit(X, Y), TypeError, "the step 'normalizer'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_stored_is_named(tmp_path, model, error, message):
    with pytest.raises(error, match=message):
        save_model(tmp_path / "a.model", model)
    assert not list(tmp_path.iterdir())


def test_file_and_model_in_the_other_order(tmp_path):
    with pytest.raises(TypeError, match="takes the file first and the model second"):
        save_model(LMNN().fit(X, Y), tmp_path / "a.model")


def test_the_advice_for_a_classifier_at_the_end_works(tmp_path):
    model = make_pipeline(StandardScaler(), LMNN(), KNeighborsClassifier(1)).fit(X, Y)
    loaded = reloaded(tmp_path, model[:-1])
    assert np.array_equal(loaded.transform(X), model[:-1].transform(X))


@pytest.fixture(scope="module")
def content(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("models") / "a.model"
    save_model(path, make_pipeline(StandardScaler(), PCA(3), LNML(LMNN())).fit(X, Y))
    return path.read_bytes()


def put(place: int, **values):
    return lambda header, arrays: header["steps"][place].update(values)


def put_array(name: str, array):
    return lambda header, arrays: arrays.update({name: array})


def deep(header, arrays):
    value = {}
    for _ in range(400):
        value = {"estimator": {"estimator": "LNML", "parameters": value}}
    header["steps"][2]["parameters"] = value


HOSTILE = {
    "a class from elsewhere": put(2, **{"class": "os.system"}),
    "a class of scikit-learn": put(0, **{"class": "FunctionTransformer"}),
    "no class": lambda header, arrays: header["steps"][0].pop("class"),
    "another class": put(0, **{"class": "PCA"}),
    "parameters as text": put(2, parameters="k_min=3"),
    "an unknown parameter": put(2, parameters={"run": 1}),
    "a parameter of an unknown class": put(
        2, parameters={"estimator": {"estimator": "Popen", "parameters": {}}}
    ),
    "an unknown object": put(2, parameters={"estimator": {"call": "print"}}),
    "width as text": put(0, n_features_in="4"),
    "another width": put(1, n_features_in=5),
    "names as text": put(0, feature_names_in="abcd"),
    "too few names": put(0, feature_names_in=["a"]),
    "classes as text": put(2, classes="abc"),
    "classes as lists": put(2, classes=[[1], [2]]),
    "facts as text": put(2, facts="converged_"),
    "converged as text": put(2, facts={"converged_": "yes"}),
    "rounds as a truth value": put(2, facts={"n_iter_": True}),
    "gap as text": put(2, facts={"duality_gap_": "small"}),
    "kind unknown": lambda header, arrays: header.update(kind="function"),
    "one step too many": lambda header, arrays: header.update(kind="estimator"),
    "no steps": lambda header, arrays: header.update(steps=[]),
    "steps of one name": put(1, name="standardscaler"),
    "name of a step as number": put(1, name=3),
    "certificate as text": put(2, certificate="proved"),
    "mean missing": lambda header, arrays: arrays.pop("0.mean_"),
    "mean of another width": put_array("0.mean_", np.zeros(3)),
    "mean infinite": put_array("0.mean_", np.full(4, np.inf)),
    "spread zero": put_array("0.scale_", np.zeros(4)),
    "codes for components": put_array("2.components_", np.eye(3, dtype=np.int64)),
    "components missing": lambda header, arrays: arrays.pop("2.components_"),
    "components of another width": put_array("2.components_", np.eye(4)),
    "no components": put_array("2.components_", np.zeros((0, 3))),
    "another metric than that proved": put_array("2.components_", np.eye(3)),
    "too deep": deep,
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_what_does_not_hang_together_is_refused(tmp_path, content, change):
    path = tmp_path / "hostile.model"
    path.write_bytes(rewritten(content, lambda header, arrays: None))
    load_model(path)
    path.write_bytes(rewritten(content, change))
    with pytest.raises(InputError, match="damaged"):
        load_model(path)


def test_a_file_holds_text_and_numbers_only(content):
    header = json.loads(metadata_of(content)[HEADER])
    assert [step["class"] for step in header["steps"]] == ["StandardScaler", "PCA", "LNML"]
    assert all(array.dtype.kind in "fiub" for array in load(content).values())
    assert not isinstance(header["steps"][2]["parameters"], BaseEstimator)


@pytest.mark.parametrize(
    "command", ["info a.model", "transform a.model a.csv -o b.csv", "neighbors a.model a.csv"]
)
def test_commands_say_that_they_need_a_table(tmp_path, monkeypatch, capsys, content, command):
    monkeypatch.chdir(tmp_path)
    Path("a.model").write_bytes(content)
    Path("a.csv").write_text("a,b\n1,2\n")
    assert main(command.split()) == 2
    assert "a.model holds a Pipeline that was stored from Python" in capsys.readouterr().err
