"""ONNX graphs, run by onnxruntime."""

import json

import numpy as np
import pandas as pd
import pytest
from model_tables import fitted_model
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)

from lnml import LMNN, LNML, MMC, NCA, AutoMetric, SupportVectorMetric
from lnml.contract import MetricLearner
from lnml.datasets import list_datasets, load_dataset
from lnml.exports import register_onnx_converters, to_onnx
from lnml.models.fitted import METRIC_CLASSES

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
        # Whole numbers from 1 to 5: which of equally far rows votes is a matter of rounding.
        sure = ~tied(metric.transform(inside), metric.transform(rows), 3)
        assert sure.mean() > 0.6
    predicted, shares = pipeline.predict(rows), pipeline.predict_proba(rows)
    np.testing.assert_array_equal(found["label"].astype(y.dtype)[sure], predicted[sure])
    np.testing.assert_allclose(found["probabilities"][sure], shares[sure], atol=1e-6)


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
