"""Dask arrays without a cluster are refused: they are never gathered in silence."""

from __future__ import annotations

import numpy as np
import pytest

from lnml import ITML, LMNN

da = pytest.importorskip("dask.array")


def test_the_error_says_how_to_start_a_cluster():
    X, y = da.ones((20, 2), chunks=5), np.arange(20) % 2
    model = LMNN()
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
