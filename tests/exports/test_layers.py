"""Layers of torch and Sentence Transformers."""

import warnings

import numpy as np
import pytest
from model_tables import fitted_model
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)

from lnml import LMNN
from lnml.datasets import load_dataset
from lnml.exports import to_sentence_transformers, to_torch

pytestmark = pytest.mark.extras
torch = pytest.importorskip("torch", reason="needs lnml[torch]")
WINE = load_dataset("wine")


class OwnScaler(StandardScaler):
    """It could do anything."""


PIPELINES = {
    "metric": (lambda: LMNN(), False),
    "standard": (lambda: make_pipeline(StandardScaler(), LMNN()), True),
    "mean only": (lambda: make_pipeline(StandardScaler(with_std=False), LMNN()), True),
    "spread only": (lambda: make_pipeline(StandardScaler(with_mean=False), LMNN()), False),
    "range": (lambda: make_pipeline(MinMaxScaler((-2, 1)), LMNN()), True),
    "largest": (lambda: make_pipeline(MaxAbsScaler(), LMNN()), False),
    "robust": (lambda: make_pipeline(RobustScaler(), LMNN()), True),
    "robust centre": (lambda: make_pipeline(RobustScaler(with_scaling=False), LMNN()), True),
    "projected": (lambda: make_pipeline(PCA(5), LMNN()), True),
    "whitened": (
        lambda: make_pipeline(StandardScaler(), "passthrough", PCA(4, whiten=True), LMNN()),
        True,
    ),
    "nested": (
        lambda: make_pipeline(make_pipeline(RobustScaler(), PCA(6)), MinMaxScaler(), LMNN()),
        True,
    ),
    "scaled after the metric": (lambda: make_pipeline(LMNN(), StandardScaler()), True),
    "two scalers": (lambda: make_pipeline(MinMaxScaler((1, 3)), StandardScaler(), LMNN()), True),
    "after the metric": (lambda: make_pipeline(StandardScaler(), LMNN(), PCA(2)), True),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_layer_does_what_transform_does(name):
    make, has_bias = PIPELINES[name]
    model = make().fit(WINE.data, WINE.target)
    expected = model.transform(WINE.data)
    layer = to_torch(model, dtype=torch.float64)
    assert (layer.bias is not None) == has_bias
    found = layer(torch.as_tensor(WINE.data)).detach().numpy()
    np.testing.assert_allclose(found, expected, atol=1e-10 * np.abs(expected).max())
    single = to_torch(model)(torch.as_tensor(WINE.data, dtype=torch.float32))
    assert single.dtype == torch.float32
    largest = np.abs(WINE.data).max() * np.abs(layer.weight.detach().numpy()).max()
    np.testing.assert_allclose(single.detach().numpy(), expected, atol=1e-5 * largest)


def test_layer_can_be_trained_and_draws_nothing():
    torch.manual_seed(0)
    wanted = torch.rand(1)
    torch.manual_seed(0)
    layer = to_torch(LMNN().fit(WINE.data, WINE.target))
    assert torch.equal(torch.rand(1), wanted)
    layer(torch.ones(1, 13)).sum().backward()
    assert layer.weight.grad is not None


def test_columns_far_from_zero_warn():
    model = make_pipeline(StandardScaler(), LMNN(max_iter=20)).fit(WINE.data + 1e6, WINE.target)
    with pytest.warns(UserWarning, match=r"number 7, counted from 0, \(around 1e\+06\).*float64"):
        to_torch(model)
    pytest.importorskip("sentence_transformers", reason="needs lnml[sentence-transformers]")
    with pytest.warns(UserWarning, match="subtract their mean from the embeddings"):
        to_sentence_transformers(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        to_torch(model, dtype=torch.float64)
        to_torch(model.fit(WINE.data + 1000.0, WINE.target))


def test_models_of_tables(tmp_path):
    model, frame = fitted_model(tmp_path, pca=3)
    X = np.column_stack(
        [frame[["size", "weight", "year"]], frame["colour"] == "blue", frame["colour"] == "red"]
    ).astype(float)
    found = to_torch(model, dtype=torch.float64)(torch.as_tensor(X)).detach().numpy()
    np.testing.assert_allclose(found, model.transform(frame), atol=1e-10)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (make_pipeline(LMNN(), KNeighborsClassifier()), r"step 'kneigh.*as in pipeline\[:-1\]"),
        (make_pipeline(Normalizer(), LMNN()), "step 'normalizer'"),
        (make_pipeline(OwnScaler(), LMNN()), "step 'ownscaler'"),
        (make_pipeline(MinMaxScaler(clip=True), LMNN()), "clip=True is no affine map"),
        (StandardScaler(), "takes a fitted metric of lnml"),
    ],
)
def test_refusals(model, message):
    model.fit(WINE.data, WINE.target)
    with pytest.raises(TypeError, match=message):
        to_torch(model)


def test_unfitted_is_refused():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        to_torch(LMNN())


@pytest.fixture(scope="module")
def sentences():
    """A SentenceTransformer without weights from elsewhere: it looks words up in a small table."""
    pytest.importorskip("sentence_transformers", reason="needs lnml[sentence-transformers]")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules
    from sentence_transformers.sentence_transformer.modules import tokenizer

    words = [f"{kind}{number}" for kind in ("red", "green", "blue") for number in range(20)]
    rng = np.random.default_rng(0)
    table = rng.normal(size=(60, 8)) + 3.0 * np.eye(8)[np.repeat([0, 1, 2], 20)]
    table[:, 7] *= 5.0
    bag = modules.WordEmbeddings(
        tokenizer.WhitespaceTokenizer(words), table.astype(np.float32), update_embeddings=False
    )
    base = [bag, modules.Pooling(8, pooling_mode="mean")]
    plain = SentenceTransformer(modules=base, device="cpu")
    labels = np.repeat(["red", "green", "blue"], 20)
    return plain, words, labels


@pytest.mark.parametrize("before", [[], [StandardScaler], [StandardScaler, lambda: PCA(4)]])
def test_sentence_transformer_keeps_learned_distances(sentences, before, tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    plain, words, labels = sentences
    X = plain.encode(words).astype(float)
    model = make_pipeline(*(make() for make in before), LMNN()).fit(X, labels)
    dense = to_sentence_transformers(model)
    assert isinstance(dense, modules.Dense) and dense.linear.bias is None
    assert isinstance(dense.activation_function, torch.nn.Identity)
    learned = SentenceTransformer(
        modules=[*plain, dense], device="cpu", similarity_fn_name="euclidean"
    )
    Z = model.transform(X)
    exact = np.linalg.norm(Z[:, None] - Z, axis=2)
    found = -learned.similarity(learned.encode(words), learned.encode(words)).numpy()
    np.testing.assert_allclose(found, exact, atol=2e-3 * exact.max())
    dense.save(str(tmp_path))
    again = modules.Dense.load(str(tmp_path))
    assert isinstance(again.activation_function, torch.nn.Identity)
    assert torch.equal(again.linear.weight, dense.linear.weight)


def test_cosines_rank_as_distances_of_directions(sentences):
    """As docs/exports.md claims: like learned distances between outputs of length 1."""
    from sentence_transformers import SentenceTransformer

    plain, words, labels = sentences
    X = plain.encode(words).astype(float)
    model = LMNN().fit(X, labels)
    learned = SentenceTransformer(modules=[*plain, to_sentence_transformers(model)], device="cpu")
    cosines = learned.similarity(learned.encode(words), learned.encode(words)).numpy()
    Z = model.transform(X)
    unit = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    np.testing.assert_allclose(cosines, unit @ unit.T, atol=1e-5)
    distances = np.linalg.norm(unit[:, None] - unit, axis=2)
    np.testing.assert_allclose(1.0 - distances**2 / 2.0, cosines, atol=1e-5)
    ranking = np.argsort(np.linalg.norm(Z[:, None] - Z, axis=2), axis=1)
    assert (np.argsort(-cosines, axis=1) != ranking).any()
