"""What a finished fit proves, on small and on large data, and on every device."""

import warnings

import numpy as np
import pytest
from oracles import lmnn_objective, nearest_targets, pull_scatter, squared_distances
from sklearn.base import clone
from toy_data import blobs, device_targets, small_dataset, training_set

from lnml import LMNN, LNML, MCML, MMC, NCA, RelativeComparisons, SupportVectorMetric
from lnml.certificates import verify
from lnml.core.pairs import Edge, EdgeScatter
from lnml.objectives import triplet_proof
from lnml.objectives.conditioning import class_pull, whiten_pull
from lnml.objectives.large_proof import inside
from lnml.objectives.seen_slopes import KeptSlopes
from lnml.objectives.triplet_proof import embedding_error
from lnml.proofs.rounding import gamma
from lnml.proofs.slopes import Slopes
from lnml.solvers import path

pytestmark = pytest.mark.usefixtures("device")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_large_proofs_are_proofs(monkeypatch, dtype):
    """The way of large data, on small data: verified, and hardly weaker."""
    X, y = small_dataset("wine")
    X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(dtype)
    for name in ("LARGE", "LARGE_ON_DEVICE"):
        monkeypatch.setattr(triplet_proof, name, 0.0)
    monkeypatch.setattr(path, "MOST_WORK", (0.0,))
    model = LMNN().fit(X, y)
    assert model.duality_gap_ <= 1e-3
    seen = model.history_[-1]
    assert model.duality_gap_ <= seen["gap"] + 1e-4
    assert model.objective_ == pytest.approx(seen["objective"], rel=1e-6)
    found = verify(model.certificate(X, y), X, y)
    assert found.holds, found.reason
    assert model.objective_ == pytest.approx(
        found.objective, rel=1e-12 if dtype == np.float64 else 1e-6
    )


def test_large_proofs_of_mixtures(monkeypatch):
    """Where slopes at several metrics are mixed, these stay where the device has them."""
    for name in ("LARGE", "LARGE_ON_DEVICE"):
        monkeypatch.setattr(triplet_proof, name, 0.0)
    n_parts, mixed = [], KeptSlopes.mixed

    def counted(kept):
        n_parts.append(len(kept._parts))
        return mixed(kept)

    monkeypatch.setattr(KeptSlopes, "mixed", counted)
    for name in ("wine", "ionosphere"):
        X, y = small_dataset(name)
        spread = X.std(axis=0)
        X = ((X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)).astype(np.float32)
        model = LMNN().fit(X, y)
        assert model.duality_gap_ <= 1e-3
        found = verify(model.certificate(X, y), X, y)
        assert found.holds, found.reason
    assert max(n_parts) > 1


def test_large_proofs_where_no_target_differs(monkeypatch):
    """The dual matrix is zero: a check has its own rounding, for which it needs some slack."""
    for name in ("LARGE", "LARGE_ON_DEVICE"):
        monkeypatch.setattr(triplet_proof, name, 0.0)
    numbers = np.arange(40)
    y = numbers // 4 % 2
    for X in (numbers[:, None] % 2, np.stack([numbers % 2, numbers // 2 % 2, 0 * y], axis=1)):
        model = LMNN(n_neighbors=3).fit(X.astype(float), y)
        assert 0.0 < model.certificate_.slack < 1e-30
        assert model.duality_gap_ <= 1e-3
        found = verify(model.certificate_, X.astype(float), y)
        assert found.holds, found.reason


def test_sums_of_slopes_are_rounded():
    """A weight that is the sum of many has their rounding, in all directions at once."""
    one = EdgeScatter(np.ones((3, 3)), np.ones(3), np.zeros(3), np.zeros(3))
    few, many = (inside(one, np.eye(3), summed) for summed in (0, 1000))
    np.testing.assert_array_equal(few.matrix, many.matrix)
    # The matrix of ones has the eigenvalue three.
    assert (many.error >= 3.0 * gamma(1000)).all()
    assert (few.error < many.error).all()


@pytest.mark.parametrize("size", [1.6e9, 2e7])
@pytest.mark.parametrize(
    "estimator", [LMNN(), SupportVectorMetric(), RelativeComparisons(), MCML(), MMC()], ids=repr
)
def test_a_column_that_float32_hardly_tells_apart(estimator, size):
    """Seconds since 1970, in steps of 128: what is learned may leave them out, a bound may not."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80)
    steps = np.round(rng.standard_normal(80)) + 3 * y
    column = size + np.spacing(np.float32(size)) * steps
    X = np.stack([rng.standard_normal(80), column], axis=1).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator.fit(X, y)
    found = verify(model.certificate_, X, y)
    assert found.holds, found.reason


@pytest.mark.parametrize("rank", [1, 2, 100])
def test_the_error_of_coordinates_is_that_of_sums_over_all_columns(rank):
    """Also where a metric has fewer rows than columns."""
    rng = np.random.default_rng(rank)
    X, y = rng.standard_normal((60, 100)), np.repeat([0, 1], 30)
    training, components = training_set(X, y), rng.standard_normal((rank, 100))
    kernels, points = training.kernels, training.points
    wide = kernels.mapped(points, components.T, wide=True)
    found = embedding_error(kernels.columns(points), wide, components)
    largest = np.abs(np.asarray(kernels.to_host(points.data))).max(axis=0)
    assert found == pytest.approx(gamma(102) * largest @ np.linalg.norm(components, axis=0))


@pytest.mark.parametrize("care", [0, 1, 2])
@pytest.mark.parametrize("estimator", [MCML(), NCA(max_iter=30)], ids=repr)
def test_care_changes_digits_only(monkeypatch, estimator, care):
    X, y = small_dataset("ionosphere", n_rows=80)
    prove, proofs = path._prove, []

    def with_care(*arguments):
        proofs.append(prove(*arguments[:-1], care))
        return proofs[-1]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        usual = clone(estimator).fit(X, y)
        monkeypatch.setattr(path, "_prove", with_care)
        model = clone(estimator).fit(X, y)
    assert model.objective_ == pytest.approx(usual.objective_, rel=1e-9)
    assert proofs[0].error <= 1e-8 * proofs[0].objective
    if usual.duality_gap_ is not None:
        assert model.duality_gap_ == pytest.approx(usual.duality_gap_, abs=1e-6)


def nearly_equal(size, seed=0):
    """Two columns that differ by a class signal of some size, and a third."""
    X, y = blobs(seed, [12, 12], 3)
    signal = size * (np.where(y == 0, -1.0, 1.0) + 0.01 * X[:, 1])
    X[:, 1] = X[:, 0] + signal
    return X, y


@pytest.mark.parametrize("size", [1e-2, 1e-5, 1e-8, 1e-11])
def test_directions_of_any_size_are_kept_and_whitened(size):
    X, y = nearly_equal(size)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    P = nearest_targets(squared_distances(X), y, 2)
    training = training_set(X, y)
    found = whiten_pull(training.kernels, training.points, Edge(device_targets(P)))
    assert found.matrix.shape == (3, 3)
    np.testing.assert_array_equal(found.pull, 1.0)
    exact = X.astype(np.longdouble) @ found.matrix.astype(np.longdouble)
    np.testing.assert_allclose(pull_scatter(exact.astype(float), P), np.eye(3), atol=1e-3)


def test_columns_that_depend_on_each_other_exactly_are_left_out():
    X, y = blobs(1, [14, 10], 3)
    X = np.c_[X, 2.0 * X[:, 0], np.round(X[:, 1], 3) + np.round(X[:, 2], 3), np.full(24, 3.0)]
    X[:, 1:3] = np.round(X[:, 1:3], 3)
    training = training_set(X[np.argsort(y, kind="stable")], np.sort(y))
    found = whiten_pull(training.kernels, training.points, class_pull(training.points))
    assert found.matrix.shape == (6, 3)


@pytest.mark.parametrize("model", [LMNN(), LNML(), MCML(), MMC(), SupportVectorMetric()], ids=repr)
def test_a_missing_value_code_is_survived(model):
    """The data of docs/certificates.md: a third of one column is 99999999."""
    r = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = r.standard_normal((40, 3))
    X[:, 0] += 1.5 * y
    X[r.random(40) < 0.3, 0] = 99999999
    fitted = model.fit(X, y)
    assert fitted.duality_gap_ <= 1e-3
    assert verify(fitted.certificate(X, y), X, y).holds


def test_the_objective_is_that_of_the_rounded_components():
    """float32 components are not the float64 ones that the solver found."""
    X, y = small_dataset("iris", n_rows=60)
    X = X.astype(np.float32)
    model = LMNN().fit(X, y)
    assert model.components_.dtype == np.float32
    P = model.target_neighbors_.toarray()
    wide = X.astype(np.float64), model.components_.astype(np.float64)
    exact = lmnn_objective(wide[0], y, P, wide[1], 0.5)
    assert model.objective_ == pytest.approx(exact, rel=1e-11)


def test_weights_are_squares():
    X, y = small_dataset("wine")
    model = RelativeComparisons().fit(X, y)
    assert (np.diag(model.components_) >= 0.0).all()
    np.testing.assert_allclose(np.diag(model.components_) ** 2, model.weights_)


class TestSlopes:
    first = Slopes(np.array([0, 0, 2]), np.array([5, 7, 5]), np.array([0.5, 1.0, 0.25]))
    second = Slopes(np.array([0, 1]), np.array([7, 9]), np.array([1.0, 0.5]))

    def test_of_a_mixture(self):
        mixed = Slopes.mixture([(0.75, self.first), (0.25, self.second)])
        found = {(int(t), int(l)): v for t, l, v in zip(*mixed, strict=True)}
        assert found == {(0, 5): 0.375, (0, 7): 1.0, (1, 9): 0.125, (2, 5): 0.1875}

    def test_all_of_one(self):
        mixed = Slopes.mixture([(1.0, self.first)])
        assert all(one is other for one, other in zip(mixed, self.first, strict=True))

    def test_of_pairs(self):
        np.testing.assert_array_equal(self.first.per_target(4), [1.5, 0.0, 0.25, 0.0])
        rows, impostors, slopes = self.first.impostor_pairs(np.array([3, 3, 3, 4]))
        assert list(zip(rows, impostors, slopes, strict=True)) == [(3, 5, 0.75), (3, 7, 1.0)]

    def test_of_pairs_that_are_sorted(self):
        # As devices list them: by row and impostor, then target.
        sorted_ones = Slopes(np.array([0, 1, 0, 2]), np.array([5, 5, 7, 5]), np.arange(1.0, 5.0))
        rows, impostors, slopes = sorted_ones.impostor_pairs(np.array([3, 3, 4]))
        found = list(zip(rows, impostors, slopes, strict=True))
        assert found == [(3, 5, 3.0), (3, 7, 3.0), (4, 5, 4.0)]
        none = Slopes(*(np.zeros(0, kind) for kind in (int, int, float)))
        assert all(part.size == 0 for part in none.impostor_pairs(np.array([3, 3, 4])))
