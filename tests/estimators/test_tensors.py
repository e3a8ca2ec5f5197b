"""Tensors in, tensors out; and the same metric as from arrays."""

import numpy as np
import pytest
from conftest import DEVICES
from devices import host
from toy_data import blobs, small_dataset

from lnml import (
    ITML,
    LMNN,
    LNML,
    LNMLCV,
    MCML,
    MMC,
    NCA,
    RelativeComparisons,
    SupportVectorMetric,
)
from lnml.estimators.init import initial_components

torch = pytest.importorskip("torch") if DEVICES == ["cpu"] else __import__("torch")
HOMES = [name.removeprefix("torch:") for name in DEVICES if name != "cpu"]

ESTIMATORS = [
    LMNN(tol=1e-4),
    LMNN(n_components=2, init="pca", tol=1e-4),
    ITML(random_state=0),
    MCML(tol=1e-4),
    NCA(init="lda"),
    MMC(tol=1e-4),
    SupportVectorMetric(tol=1e-3),
    RelativeComparisons(tol=1e-4),
    LNML(LMNN(tol=1e-4), k_min=1, k_av=2, k_max=4),
]


def toy(seed=0):
    X, y = blobs(seed, [20, 15, 10], 3, separation=2.0)
    return X, np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_a_tensor_gives_what_an_array_gives(estimator, home):
    X, y = toy()
    expected = estimator.fit(X, y)
    components, objective = expected.components_, expected.objective_
    tensor = torch.tensor(X, device=home)
    found = estimator.fit(tensor, y)
    assert isinstance(found.components_, torch.Tensor)
    assert found.components_.device == tensor.device
    assert found.components_.dtype == tensor.dtype
    assert found.objective_ == pytest.approx(objective, rel=2e-3)
    close = {"rtol": 1e-3, "atol": 1e-3 * np.abs(components).max()}
    if not isinstance(estimator, LNML | SupportVectorMetric | RelativeComparisons):
        np.testing.assert_allclose(
            host(found.get_mahalanobis_matrix()), components.T @ components, **close
        )
    assert list(found.classes_) == ["a", "b", "c"]


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("init", ["pca", "lda"])
@pytest.mark.parametrize("name, rank", [("wine", 2), ("wine", 7), ("sonar", 60)])
def test_starts_of_a_tensor_are_those_of_an_array(init, name, rank, home):
    X, y = small_dataset(name, 100)
    codes = np.unique(y, return_inverse=True)[1]
    expected = initial_components(init, rank, X, codes, 0)
    found = initial_components(init, rank, torch.tensor(X, device=home), codes, 0)
    assert found.shape == expected.shape
    # Axes have no sign, and those that complete the others no order.
    found_metric, metric = found.T @ found, expected.T @ expected
    np.testing.assert_allclose(found_metric, metric, atol=1e-6 * np.abs(metric).max())


@pytest.mark.parametrize("convert", [np.asarray, torch.tensor])
def test_discriminant_analysis_needs_rows_that_differ(convert):
    X = convert(np.repeat([[0.0, 0.0, 1.0], [1.0, 2.0, 1.0]], 3, axis=0))
    with pytest.raises(ValueError, match="init='lda' needs classes whose rows differ"):
        LMNN(init="lda", n_neighbors=1).fit(X, np.repeat([0, 1], 3))


@pytest.mark.parametrize("home", HOMES)
def test_results_come_back_as_what_went_in(home):
    X, y = toy()
    tensor = torch.tensor(X, dtype=torch.float32, device=home)
    model = LMNN().fit(tensor, y)
    expected = X @ host(model.components_).T.astype(float)
    transformed = model.transform(tensor)
    assert transformed.device == tensor.device
    assert transformed.dtype == torch.float32
    np.testing.assert_allclose(host(transformed), expected, rtol=1e-4, atol=1e-4)
    from_array = model.transform(X)
    assert isinstance(from_array, np.ndarray)
    np.testing.assert_allclose(from_array, expected, rtol=1e-5, atol=1e-5)
    pairs = torch.stack([tensor[:5], tensor[5:10]], dim=1)
    distances = model.pair_distance(pairs)
    assert distances.device == tensor.device
    np.testing.assert_allclose(host(distances), model.pair_distance(host(pairs)), rtol=1e-4)
    metric = model.get_metric()
    assert metric(X[0], X[5]) == pytest.approx(float(distances[0]), rel=1e-4)
    assert model.target_neighbors_.shape == (45, 45)


@pytest.mark.parametrize("name", [name for name in DEVICES if name != "cpu"])
def test_arrays_stay_arrays_on_any_device(name):
    X, y = small_dataset("wine", 60)
    here = LMNN(tol=1e-6).fit(X, y)
    there = LMNN(tol=1e-6, device=name).fit(X, y)
    assert isinstance(there.components_, np.ndarray)
    np.testing.assert_allclose(
        there.get_mahalanobis_matrix(), here.get_mahalanobis_matrix(), rtol=1e-4, atol=1e-7
    )
    assert (there.target_neighbors_ != here.target_neighbors_).nnz == 0


@pytest.mark.parametrize("home", HOMES)
def test_warm_start_labels_and_neighbors_of_a_tensor(home):
    X, y = toy()
    codes = torch.tensor(np.unique(y, return_inverse=True)[1], device=home)
    tensor = torch.tensor(X, device=home)
    model = LMNN(warm_start=True, tol=1e-5).fit(tensor, codes)
    first = model.objective_
    again = model.fit(tensor, codes, target_neighbors=model.target_neighbors_)
    assert again.objective_ == pytest.approx(first, rel=1e-4)
    assert list(again.classes_) == [0, 1, 2]


@pytest.mark.parametrize("home", HOMES)
def test_the_base_estimator_may_name_the_device(home):
    X, y = toy()
    name = "torch:cpu" if home == "cpu" else home
    inner = LNML(LMNN(device=name), k_min=1, k_av=2, k_max=3).fit(X, y)
    outer = LNML(LMNN(), k_min=1, k_av=2, k_max=3, device=name).fit(X, y)
    np.testing.assert_array_equal(inner.components_, outer.components_)


@pytest.mark.parametrize("home", HOMES)
def test_cross_validated_sizes_of_a_tensor(home):
    X, y = toy()
    grid = [(2, 2, 2), (1, 2, 4)]
    expected = LNMLCV(LMNN(), grid=grid).fit(X, y)
    found = LNMLCV(LMNN(), grid=grid).fit(torch.tensor(X, device=home), y)
    assert found.best_params_ == expected.best_params_
    assert isinstance(found.components_, torch.Tensor)


@pytest.mark.parametrize("home", HOMES)
def test_pairs_and_triplets_in_tensors(home):
    X, _ = toy()
    rng = np.random.default_rng(0)
    pairs = X[rng.integers(len(X), size=(40, 2))]
    labels = np.where(np.arange(40) % 2, 1, -1)
    triplets = X[rng.integers(len(X), size=(40, 3))]
    for model, method, data in (
        (MMC(tol=1e-5), "fit_pairs", (pairs, labels)),
        (ITML(), "fit_pairs", (pairs, labels)),
        (SupportVectorMetric(tol=1e-4), "fit_triplets", (triplets,)),
    ):
        expected = getattr(model, method)(*data).get_mahalanobis_matrix()
        tensors = (torch.tensor(part, device=home) for part in data)
        found = getattr(model, method)(*tensors).get_mahalanobis_matrix()
        assert isinstance(found, torch.Tensor)
        np.testing.assert_allclose(host(found), expected, atol=2e-2 * np.abs(expected).max())


@pytest.mark.parametrize(
    "change, match",
    [
        (lambda X: X[0], r"shape \(n, d\)"),
        (lambda X: X[:1], "at least 2"),
        (lambda X: X.to(torch.complex64), "Complex"),
        (lambda X: torch.where(X == X.max(), torch.nan, X), "NaN"),
        (lambda X: X[:-1], "inconsistent"),
        (lambda X: 1e200 * X, "overflow"),
        (lambda X: 0 * X, "all rows of X are the same"),
    ],
)
def test_bad_tensors_are_refused(change, match):
    X, y = toy()
    X = change(torch.tensor(X))
    y = y[: len(X)] if len(X) == 1 else y
    with pytest.raises(ValueError, match=match):
        LMNN().fit(X, y)


def test_a_tensor_of_other_width_is_not_transformed():
    X, y = toy()
    model = LMNN().fit(torch.tensor(X), y)
    with pytest.raises(ValueError, match="learned on 3"):
        model.transform(torch.zeros((2, 4)))


def test_whole_numbers_and_gradients_are_fine():
    y = [0, 0, 1, 1]
    model = LMNN(n_neighbors=1).fit(torch.tensor([[0, 1], [1, 3], [5, 5], [6, 8]]), y)
    assert model.components_.dtype == torch.float64
    needs = torch.randn((20, 2), requires_grad=True)
    fitted = LMNN(n_neighbors=1).fit(needs, np.arange(20) % 2)
    assert not fitted.components_.requires_grad
