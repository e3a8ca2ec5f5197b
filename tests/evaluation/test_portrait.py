"""The fit behind the pictures."""

import json

import numpy as np

from lnml.datasets import load_dataset
from lnml.evaluation.peak import peak_memory
from lnml.evaluation.portrait import portray
from lnml.evaluation.results import Portrait


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


def test_peak_memory_sees_what_was_freed():
    with peak_memory() as peak:
        block = np.ones(30_000_000)
        del block
    assert peak.megabytes is None or 200 < peak.megabytes < 300
