"""The fit behind the pictures."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from oracles import lmnn_pair_costs, squared_distances
from scipy.spatial.distance import pdist
from sklearn.exceptions import ConvergenceWarning

from lnml import LMNN, LNML
from lnml.datasets import load_dataset
from lnml.evaluation.peak import peak_memory
from lnml.evaluation.portrait import _narrow, _two_components, portray
from lnml.evaluation.portraits import Portrait


def test_portrait_of_iris():
    iris = load_dataset("iris")
    found = portray(iris.data, iris.target, shown_rows=60, fitted_rows=120)
    assert found.n_rows == 120
    assert found.rows.shape == (60,) and np.unique(found.rows).size == 60
    assert (found.labels == iris.target[found.rows]).all()
    assert found.before.shape == found.after.shape == (60, 2)
    for edges in (found.edges_before, found.edges_after):
        assert edges.max() < 60
        assert (found.labels[edges[:, 0]] == found.labels[edges[:, 1]]).all()
    counts = np.array(list(found.neighbor_counts.values()))
    assert counts.sum() == 120
    assert counts @ np.arange(counts.shape[1]) @ np.ones(3) == 3 * 120
    assert [s.label for s in found.suspects] == [iris.target[s.row] for s in found.suspects]
    assert all(point["bound"] <= point["objective"] for point in found.histories["LMNN"])
    again = Portrait.from_json(json.loads(json.dumps(found.to_json())))
    assert again.to_json() == found.to_json()


def test_a_single_feature_has_a_portrait():
    X = np.arange(20.0)[:, None]
    found = portray(X, np.repeat(["a", "b"], 10))
    assert not found.before[:, 1].any()


def seen_shapes(monkeypatch):
    """Shapes of the data that LMNN and LNML are fitted to, in order."""
    shapes = []
    for estimator in (LMNN, LNML):
        monkeypatch.setattr(estimator, "fit", recorded(estimator.fit, shapes))
    return shapes


def recorded(fit, shapes):
    return lambda self, X, y: (shapes.append(X.shape), fit(self, X, y))[1]


def test_rounding_is_no_second_component():
    """A metric of one dimension in three columns: its picture is a line."""
    rows = np.random.default_rng(0).normal(size=(30, 1)) @ [[1e3, -2e3, 0.7]]
    noise = 1e-12 * np.random.default_rng(1).normal(size=rows.shape)
    first, second = _two_components(rows + noise).T
    assert np.ptp(first) > 1e3 and not second.any()


def test_many_columns_are_replaced_by_components(monkeypatch):
    """Forty rows span less than forty dimensions: their distances stay."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 500)), np.repeat(["a", "b"], 20)
    shapes = seen_shapes(monkeypatch)
    portray(X, y)
    assert set(shapes) == {(40, 40)}
    np.testing.assert_allclose(pdist(_narrow(X)), pdist(X))
    assert _narrow(X[:, :7]).shape == (40, 7)
    assert _narrow(rng.standard_normal((400, 350))).shape == (400, 300)


def test_short_time_means_fewer_rows_and_an_early_end(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((500, 20)), np.repeat(["a", "b"], 250)
    shapes = seen_shapes(monkeypatch)
    hasty = portray(X, y, seconds=0.0)
    assert set(shapes) == {(200, 20)} and hasty.n_rows == 200
    patient = portray(X[hasty.rows], y[hasty.rows])
    for name, records in hasty.histories.items():
        assert 1 <= len(records) < len(patient.histories[name])
    shapes.clear()
    portray(X[::5], y[::5], seconds=1.0)
    assert set(shapes) == {(100, 20)}


def test_suspects_are_those_of_two_rounds_with_their_mean_costs():
    iris = load_dataset("iris")
    X, y = iris.data, iris.target.copy()
    y[[7, 80]] = "virginica"
    found = portray(X, y, n_suspects=len(y)).suspects
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LNML(LMNN(), k_min=1, k_av=3, k_max=5, max_rounds=2).fit(X, y)
    D = squared_distances(X, model.components_)
    costs = lmnn_pair_costs(D, y, push_weight=0.5)
    targets = model.target_neighbors_.toarray() > 0
    sizes = targets.sum(axis=1)
    means = np.array([costs[i, targets[i]].mean() for i in range(len(y))])
    rows = [s.row for s in found]
    assert sorted(rows) == list(range(len(y)))
    assert [s.n_neighbors for s in found] == sorted(sizes) == sizes[rows].tolist()
    np.testing.assert_allclose([s.cost for s in found], means[rows], rtol=1e-6, atol=1e-9)
    first = sorted(range(len(y)), key=lambda i: (sizes[i], -means[i]))[:6]
    assert rows[:6] == first
    np.fill_diagonal(D, np.inf)
    assert [s.nearest_label for s in found[:6]] == y[D[first].argmin(axis=1)].tolist()


def system_tells_peaks():
    """Whether the peak of this process's memory can be set back, as proc(5) says."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def test_peak_memory_sees_what_was_freed():
    with peak_memory() as peak:
        block = np.ones(30_000_000)
        del block
    if not system_tells_peaks():
        pytest.skip("the system cannot reset the peak of a process's memory")
    assert 200 < peak.megabytes < 300
