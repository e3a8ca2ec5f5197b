"""ONNX graphs, run by onnxruntime."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from model_tables import fitted_model
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)

from lnml import LMNN, LNML, MMC, NCA, AutoMetric, SupportVectorMetric
from lnml.contract import MetricLearner
from lnml.datasets import list_datasets, load_dataset
from lnml.errors import InputError
from lnml.exports import register_onnx_converters, to_onnx
from lnml.models import fit_model
from lnml.models.fitted import METRIC_CLASSES
from lnml.tables import Preparation, make_table

pytestmark = pytest.mark.extras
onnxruntime = pytest.importorskip("onnxruntime", reason="needs lnml[onnx] and onnxruntime")
pytest.importorskip("skl2onnx", reason="needs lnml[onnx]")

PARTS = {
    "metric": [],
    "scaler": [StandardScaler],
    "scaler and PCA": [StandardScaler, lambda: PCA(0.95)],
}


def answers(graph, X):
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    kind = {"tensor(float)": np.float32, "tensor(double)": np.float64}[session.get_inputs()[0].type]
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X.astype(kind)}), strict=True))


def assert_same_embedding(found, expected):
    """To 1e-5 of the largest value: single coordinates may be near 0."""
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def table_of(X, y=None):
    """A table as a user has it, with labels or without."""
    frame = pd.DataFrame(X, columns=[f"x{place}" for place in range(X.shape[1])])
    return frame if y is None else make_table(frame.assign(label=y), "label")


def tied(references, queries, k):
    """Whether the distances of neighbours k and k + 1 of a query are equal but for rounding."""
    distances = np.linalg.norm(queries[:, None] - references, axis=2)
    distances.sort(axis=1)
    return distances[:, k] - distances[:, k - 1] < 1e-5 * distances[:, k]


def split(name):
    data = load_dataset(name)
    keep = slice(None) if len(data.data) < 2000 else slice(2000)
    return train_test_split(data.data[keep], data.target[keep], test_size=0.3, random_state=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("name", list_datasets())
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_same_embedding_and_labels_on_all_data(name, parts, dtype):
    inside, outside, y, _ = split(name)
    before = [make() for make in PARTS[parts]]
    pipeline = make_pipeline(*before, LMNN(max_iter=20), KNeighborsClassifier(3))
    pipeline.fit(inside, y)
    metric = pipeline[:-1]
    rows = outside.astype(dtype).astype(float)
    assert_same_embedding(
        answers(to_onnx(metric, dtype=dtype), outside)["embedding"], metric.transform(rows)
    )
    found = answers(to_onnx(pipeline, dtype=dtype), outside)
    sure = slice(None)
    if name == "balance_scale":
        # Whole numbers from 1 to 5: rounding decides which of equally far rows scikit-learn takes.
        sure = ~tied(metric.transform(inside), metric.transform(rows), 3)
        assert sure.mean() > 0.6
    predicted, shares = pipeline.predict(rows), pipeline.predict_proba(rows)
    np.testing.assert_array_equal(found["label"].astype(y.dtype)[sure], predicted[sure])
    np.testing.assert_allclose(found["probabilities"][sure], shares[sure], atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("prepared", [{}, {"scale": "standard"}, {"scale": "minmax", "pca": 0.95}])
@pytest.mark.parametrize("name", list_datasets())
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_same_votes_on_all_data(name, prepared, dtype):
    """No exception here: the graph has lnml's rule for rows that are equally far."""
    inside, outside, y, _ = split(name)
    model = fit_model(table_of(inside, y), "lmnn", LMNN(max_iter=20), Preparation(**prepared), k=3)
    rows = outside.astype(dtype).astype(float)
    distances, neighbors = model.neighbors(table_of(rows))
    found = answers(to_onnx(model, dtype=dtype, labels=True), outside)
    assert list(found) == ["embedding", "distances", "neighbors", "label"]
    assert_same_embedding(found["embedding"], model.transform(table_of(rows)))
    np.testing.assert_array_equal(found["neighbors"], neighbors)
    np.testing.assert_array_equal(found["label"], model.vote(neighbors))
    assert found["distances"].dtype == dtype
    np.testing.assert_allclose(found["distances"], distances, rtol=1e-5, atol=1e-5)
    if name == "balance_scale":
        # The test would be empty if no rows were equally far.
        assert tied(model.rows, model.transform(table_of(rows)), 3).sum() > 20


def test_votes_by_hand():
    """Four rows on a line: of equally far ones the first counts, of equal counts the nearest."""
    frame = pd.DataFrame({"x": [0.0, 2.0, 4.0, 7.0], "label": ["a", "b", "b", "c"]})
    queries = np.array([[1.0], [3.0], [6.0], [0.0]])
    wanted = {1: "abca", 2: "abca", 3: "bbbb", 4: "bbbb"}
    for k, labels in wanted.items():
        model = fit_model(make_table(frame, "label"), "euclidean", None, Preparation(), k=k)
        found = answers(to_onnx(model, labels=True), queries)
        assert "".join(found["label"]) == labels
        nearest = [[0, 1, 2, 3], [1, 2, 0, 3], [3, 2, 1, 0], [0, 1, 2, 3]]
        assert found["neighbors"].tolist() == [row[:k] for row in nearest]
        assert found["label"].tolist() == model.vote(model.neighbors(table_x(queries))[1]).tolist()
    assert answers(to_onnx(model, labels=True), queries[:0])["label"].shape == (0,)


def table_x(X):
    return pd.DataFrame({"x": X[:, 0]})


def test_votes_need_rows():
    iris = load_dataset("iris")
    with pytest.raises(TypeError, match=r"votes need a model of `lnml fit`.*got LMNN"):
        to_onnx(LMNN().fit(iris.data, iris.target), labels=True)
    frame = pd.DataFrame({"x": [0.0, 1.0, 5.0, 6.0], "label": list("aabb")})
    model = fit_model(make_table(frame, "label"), "euclidean", None, Preparation())
    with pytest.raises(InputError, match="5 rows cannot vote, since the model keeps 4"):
        to_onnx(model, labels=True)


@pytest.mark.parametrize("parts", PARTS)
def test_columns_far_from_zero(parts):
    """All digits that the input has are used, and if it lacks some, a warning says so."""
    inside, outside, y, _ = split("wine")
    pipeline = make_pipeline(*(make() for make in PARTS[parts]), LMNN(max_iter=20))
    for offset, warns in ((3000.0, False), (1e6, parts != "metric")):
        pipeline.fit(inside + offset, y)
        rows = outside + offset
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            graph = to_onnx(pipeline)
        told = [str(each.message) for each in caught if "float32" in str(each.message)]
        assert len(told) == warns
        if warns:
            assert "far from 0" in told[0] and "export float64 (dtype)" in told[0]
        rounded = rows.astype(np.float32).astype(float)
        assert_same_embedding(answers(graph, rows)["embedding"], pipeline.transform(rounded))
        exact = answers(to_onnx(pipeline, dtype="float64"), rows)["embedding"]
        assert_same_embedding(exact, pipeline.transform(rows))


def test_models_of_tables_far_from_zero():
    inside, outside, y, _ = split("wine")
    for scale in ("none", "standard", "minmax"):
        model = fit_model(
            table_of(inside + 1e7, y), "lmnn", LMNN(max_iter=20), Preparation(scale=scale), k=3
        )
        with pytest.warns(UserWarning, match="float32 has seven digits.*far from 0"):
            to_onnx(model)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            graph = to_onnx(model, dtype="float64", labels=True)
        rows = table_of(outside + 1e7)
        expected = model.vote(model.neighbors(rows)[1])
        np.testing.assert_array_equal(answers(graph, outside + 1e7)["label"], expected)


@pytest.mark.parametrize("last", [KNeighborsClassifier(3), LogisticRegression(max_iter=1000)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_that_are_not_affine(last, dtype):
    """Before the metric, between metric and classifier, and both inside a pipeline of pipelines."""
    inside, outside, y, _ = split("wine")
    for steps in (
        [Normalizer(), LMNN()],
        [StandardScaler(), LMNN(), Normalizer()],
        [make_pipeline(StandardScaler(), PCA(5)), StandardScaler(), LMNN()],
    ):
        pipeline = make_pipeline(*steps, clone(last)).fit(inside, y)
        rows = outside.astype(dtype).astype(float)
        found = answers(to_onnx(pipeline, dtype=dtype), outside)
        assert found["probabilities"].dtype in (np.float32, dtype)
        np.testing.assert_array_equal(found["label"].astype(y.dtype), pipeline.predict(rows))


@pytest.mark.parametrize(
    "metric",
    [
        NCA(max_iter=5),
        MMC(max_iter=20),
        LNML(LMNN(max_iter=20)),
        AutoMetric(),
        SupportVectorMetric(),
        LMNN(n_components=2),
    ],
    ids=lambda metric: type(metric).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_metrics_convert(metric):
    inside, outside, y, _ = split("wine")
    scaler = StandardScaler().fit(inside)
    metric.fit(scaler.transform(inside), y)
    rows = scaler.transform(outside)
    assert_same_embedding(answers(to_onnx(metric), rows)["embedding"], metric.transform(rows))


@pytest.mark.parametrize("scaler", [MinMaxScaler((-1, 2)), MaxAbsScaler(), RobustScaler()])
def test_scalers_convert(scaler):
    inside, outside, y, _ = split("wine")
    pipeline = make_pipeline(scaler, LMNN()).fit(inside, y)
    assert_same_embedding(
        answers(to_onnx(pipeline), outside)["embedding"], pipeline.transform(outside)
    )


def test_all_metrics_are_registered():
    from skl2onnx import supported_converters
    from skl2onnx._supported_operators import sklearn_operator_name_map

    register_onnx_converters()
    assert len(METRIC_CLASSES) > 10
    for each in METRIC_CLASSES:
        assert sklearn_operator_name_map[each] == f"Lnml{each.__name__}"
    assert supported_converters()


def test_own_call_of_skl2onnx():
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import Int64TensorType

    inside, outside, y, _ = split("balance_scale")
    metric = LMNN().fit(inside, y)
    register_onnx_converters()
    graph = convert_sklearn(metric, initial_types=[("X", Int64TensorType([None, 4]))])
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    found = session.run(None, {"X": outside.astype(np.int64)})[0]
    assert_same_embedding(found, metric.transform(outside))


def test_learner_from_outside():
    class Own(LMNN):
        pass

    assert issubclass(Own, MetricLearner)
    inside, outside, y, _ = split("iris")
    metric = Own().fit(inside, y)
    assert_same_embedding(answers(to_onnx(metric), outside)["embedding"], metric.transform(outside))
    with pytest.raises(TypeError, match="PCA is no metric learner"):
        register_onnx_converters(PCA)


@pytest.mark.parametrize("pca", [None, 3])
@pytest.mark.parametrize("scale", ["none", "standard", "minmax"])
def test_models_of_tables(tmp_path, scale, pca):
    model, frame = fitted_model(tmp_path, scale=scale, pca=pca)
    graph = to_onnx(model)
    stored = {entry.key: entry.value for entry in graph.metadata_props}
    names = json.loads(stored["columns"])
    assert names == ["size", "weight", "year", "colour=blue", "colour=red"]
    X = pd.DataFrame(
        {
            **{name: frame[name] for name in names[:3]},
            **{name: frame["colour"] == name.split("=")[1] for name in names[3:]},
        }
    ).to_numpy(dtype=float)
    assert_same_embedding(answers(graph, X)["embedding"], model.transform(frame))


def test_refusals():
    iris = load_dataset("iris")
    with pytest.raises(TypeError, match=r"an export takes a fitted metric .* got .*PCA"):
        to_onnx(PCA().fit(iris.data))
    with pytest.raises(NotFittedError):
        to_onnx(make_pipeline(StandardScaler(), LMNN()))
    with pytest.raises(ValueError, match="dtype must be one of float32, float64"):
        to_onnx(LMNN().fit(iris.data, iris.target), dtype="float16")
