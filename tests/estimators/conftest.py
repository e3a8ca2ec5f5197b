"""Every test of the estimators runs on every implementation of the kernels.

Repetitions that would cost minutes are left to one of them: long tests on real data and
scikit-learn's checks of searches run on the compiled kernels only, and hard data are tried on
torch in float32 only.
"""

import pytest


@pytest.fixture(scope="module", autouse=True)
def every_device(device):
    """Run the tests of a module once for each device."""


def _is_repetition(item):
    values = getattr(item, "callspec", None) and item.callspec.params
    if not values or values.get("device", "cpu") == "cpu":
        return False
    if item.get_closest_marker("slow"):
        return True
    if item.originalname == "test_converges":
        return "float64" in item.name
    searches = ("LNML", "AveragedMetric", "AutoMetric")
    return item.originalname == "test_scikit_learn_check" and any(
        name in item.name for name in searches
    )


def pytest_collection_modifyitems(config, items):
    """Leave repetitions out."""
    left_out = [item for item in items if _is_repetition(item)]
    config.hook.pytest_deselected(items=left_out)
    gone = set(left_out)
    items[:] = [item for item in items if item not in gone]
