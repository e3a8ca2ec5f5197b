"""Dask arrays without a cluster are refused: they are never gathered in silence."""

from __future__ import annotations

import numpy as np
import pytest

from lnml import ITML, LMNN, AutoMetric, similarity_graph
from lnml.evaluation import compare, predict_nearest

da = pytest.importorskip("dask.array")


@pytest.mark.parametrize("model", [LMNN(), AutoMetric()], ids=str)
def test_the_error_says_how_to_start_a_cluster(model):
    X, y = da.ones((20, 2), chunks=5), np.arange(20) % 2
    with pytest.raises(ValueError, match="client = Client"):
        model.fit(X, y)
    assert not hasattr(model, "components_")


def test_learners_that_never_fit_there_say_so():
    X, y = da.ones((20, 2), chunks=5), np.arange(20) % 2
    with pytest.raises(TypeError, match="ITML cannot be fitted to a Dask array"):
        ITML().fit(X, y)


def test_device_and_data_must_agree():
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    with pytest.raises(ValueError, match="needs X as a Dask array"):
        LMNN(device="cluster").fit(X, y)
    with pytest.raises(ValueError, match="does not go with a Dask array"):
        LMNN(device="torch:cpu").fit(da.from_array(X, chunks=5), y)


def test_rows_are_not_gathered_in_silence():
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    lazy, model = da.from_array(X, chunks=5), LMNN().fit(X, y)
    for asked in (
        lambda: compare(lazy, y, {"Euclidean": None}),
        lambda: predict_nearest(lazy, y, X),
        lambda: predict_nearest(X, y, lazy),
        lambda: similarity_graph(model, lazy),
    ):
        with pytest.raises(TypeError, match="needs rows on this machine"):
            asked()
