"""A cluster in this process, shared by the tests of a module."""

from __future__ import annotations

import pytest

from cluster import start

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    """Two workers in this process."""
    with start(2) as cluster, distributed.Client(cluster) as connected:
        yield connected
