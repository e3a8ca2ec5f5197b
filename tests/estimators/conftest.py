"""Every test of the estimators runs on every implementation of the kernels."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def every_device(device):
    """Run the tests of a module once for each device."""
