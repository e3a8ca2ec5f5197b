"""Similarity graphs against a dense computation, and in the methods they are for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.cluster import SpectralClustering
from sklearn.neighbors import kneighbors_graph
from sklearn.semi_supervised import LabelSpreading

import lnml
from lnml import LMNN, LNML, MCML, NCA, similarity_graph
from lnml.datasets import load_dataset


@pytest.fixture(scope="module")
def wine():
    data = load_dataset("wine")
    X = data.data[:, :6]
    return X, data.target, LNML(LMNN(), k_min=1, k_av=3, k_max=5).fit(X, data.target)


def dense_similarity(listed, distances, mutual):
    """The definition, pair by pair."""
    n = len(listed)
    scale = np.array([max(distances[i, j] for j in range(n) if listed[i, j]) for i in range(n)])
    expected = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            one, other = listed[i, j], listed[j, i]
            if (one and other) if mutual else (one or other):
                expected[i, j] = np.exp(-(distances[i, j] ** 2) / (scale[i] * scale[j]))
    return expected


@pytest.mark.parametrize("mutual", [False, True])
def test_model_with_distances(wine, mutual):
    X, _, model = wine
    Z = X @ model.components_.T
    distances = np.sqrt(((Z[:, None] - Z) ** 2).sum(axis=2))
    graph = similarity_graph(model, X, mutual=mutual)
    expected = dense_similarity(model.target_neighbors_.toarray() > 0, distances, mutual)
    assert_allclose(graph.toarray(), expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("mutual", [False, True])
def test_model_binary_needs_no_data(wine, mutual):
    _, y, model = wine
    listed = model.target_neighbors_.toarray() > 0
    graph = similarity_graph(model, weights="binary", mutual=mutual)
    assert_array_equal(graph.toarray(), listed & listed.T if mutual else listed | listed.T)
    rows, columns = graph.nonzero()
    assert (y[rows] == y[columns]).all()


@pytest.mark.parametrize("weights", ["distance", "binary"])
@pytest.mark.parametrize("mutual", [False, True])
def test_what_every_graph_keeps(wine, weights, mutual):
    X, _, model = wine
    nearest = kneighbors_graph(model.transform(X), 7, mode="distance")
    for graph in (
        similarity_graph(model, X, weights=weights, mutual=mutual),
        similarity_graph(nearest, weights=weights, mutual=mutual),
    ):
        assert isinstance(graph, sparse.csr_array)
        assert graph.has_sorted_indices
        assert abs(graph - graph.T).max() == 0
        assert graph.diagonal().max() == 0
        assert graph.data.min() > 0 and graph.data.max() <= 1


def test_scale_of_the_data_does_not_matter(wine):
    X, _, _ = wine
    one, other = (
        similarity_graph(kneighbors_graph(factor * X, 5, mode="distance")) for factor in (1.0, 1e4)
    )
    assert_allclose(one.toarray(), other.toarray(), rtol=1e-9)


def test_duplicates_are_alike():
    X = np.repeat([[0.0], [1.0], [3.0]], 2, axis=0)
    graph = similarity_graph(kneighbors_graph(X, 2, mode="distance")).toarray()
    assert graph[0, 1] == graph[2, 3] == graph[4, 5] == 1.0
    only_duplicates = similarity_graph(kneighbors_graph(np.zeros((3, 1)), 1, mode="distance"))
    assert_array_equal(only_duplicates.data, 1.0)


def test_diagonal_is_dropped():
    X = np.arange(5.0)[:, None]
    plain = kneighbors_graph(X, 2, mode="distance")
    own = kneighbors_graph(X, 3, mode="distance", include_self=True)
    assert_allclose(similarity_graph(own).toarray(), similarity_graph(plain).toarray())


def test_source_is_left_alone(wine):
    X, _, model = wine
    nearest = kneighbors_graph(X, 4, mode="distance", include_self=True)
    before, targets = nearest.copy(), model.target_neighbors_.copy()
    similarity_graph(nearest)
    similarity_graph(model, X)
    assert (nearest != before).nnz == 0 and nearest.nnz == before.nnz
    assert (model.target_neighbors_ != targets).nnz == 0


def test_in_spectral_clustering_and_label_spreading(wine):
    X, y, model = wine
    graph = similarity_graph(kneighbors_graph(model.transform(X), 10, mode="distance"))
    clusters = SpectralClustering(3, affinity="precomputed", random_state=0).fit_predict(graph)
    assert len(set(clusters)) == 3
    known = y.astype(int).copy()
    known[::2] = -1
    spread = LabelSpreading(kernel=lambda *_: graph).fit(X, known)
    assert np.mean(spread.transduction_[::2] == y[::2]) > 0.8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones((2, 3)),), "square"),
        ((-np.eye(3, k=1),), "negative"),
        ((np.full((2, 2), np.nan),), "non-finite"),
        ((LNML(),), "fit it first"),
        ((MCML(),), r"fit it first, or LNML\(MCML\(\)\)"),
        ((NCA(),), r"NCA has no target_neighbors_.*: fit LNML\(LMNN\(\)\), or give kneighbors_gr"),
        ((LMNN,), r"the class LMNN \(write LMNN\(\) instead\)"),
    ],
)
def test_bad_source(arguments, message):
    with pytest.raises(ValueError, match=message):
        similarity_graph(*arguments)


def test_bad_use_of_a_model(wine):
    X, _, model = wine
    with pytest.raises(ValueError, match="binary"):
        similarity_graph(model)
    with pytest.raises(ValueError, match="kneighbors_graph"):
        similarity_graph(model, X[:50])
    with pytest.raises(ValueError, match="weights must be"):
        similarity_graph(model, X, weights="heat")


@pytest.mark.parametrize(("estimator", "other"), [(NCA(), "LMNN"), (MCML(), "MCML")])
def test_advice_for_a_fitted_model_without_neighbours_works(wine, estimator, other):
    X, y = (part[::4] for part in wine[:2])
    model = estimator.set_params(tol=0.1).fit(X, y)
    with pytest.raises(ValueError, match=rf"fit LNML\({other}\(\)\)"):
        similarity_graph(model, X)
    graph = kneighbors_graph(model.transform(X), 5, mode="distance")
    assert similarity_graph(graph).nnz
    assert similarity_graph(LNML(getattr(lnml, other)(tol=0.1)).fit(X, y), X).nnz


def test_rows_that_list_only_copies_have_the_median_scale():
    """Rows 0 and 1 are copies, row 5 lists none; the others have scales 2, 3 and 10."""
    rows, columns = [0, 1, 2, 2, 3, 4, 4], [1, 0, 0, 3, 5, 2, 1]
    distances = np.array([0.0, 0.0, 2.0, 1.0, 3.0, 10.0, 8.0])
    graph = similarity_graph(sparse.csr_array((distances, (rows, columns)), shape=(6, 6))).toarray()
    assert graph[0, 1] == 1.0
    assert_allclose(graph[2, 0], np.exp(-(2.0**2) / (2.0 * 3.0)), rtol=1e-12)
    assert_allclose(graph[3, 5], np.exp(-(3.0**2) / (3.0 * 3.0)), rtol=1e-12)
    assert_allclose(graph[4, 1], np.exp(-(8.0**2) / (10.0 * 3.0)), rtol=1e-12)
