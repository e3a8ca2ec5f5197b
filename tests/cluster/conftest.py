"""A cluster in this process, shared by the tests of a module."""

from __future__ import annotations

import numpy as np
import pytest

from cluster import start
from lnml.datasets import load_dataset

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    """Two workers in this process."""
    with start(2) as cluster, distributed.Client(cluster) as connected:
        yield connected


@pytest.fixture(scope="module")
def iris():
    """Iris, rows in random order."""
    data = load_dataset("iris")
    order = np.random.default_rng(0).permutation(len(data.target))
    return data.data[order], data.target[order]
