"""What ``import lnml`` offers."""

import subprocess
import sys

import pytest

import lnml


def test_all_names_are_there() -> None:
    for name in lnml.__all__:
        assert getattr(lnml, name).__name__ == name
    assert set(lnml.__all__) <= set(dir(lnml))
    with pytest.raises(AttributeError, match="no attribute 'LMNM'"):
        lnml.LMNM  # noqa: B018


def test_import_is_quick() -> None:
    code = "import sys, lnml; assert not {'numpy', 'sklearn', 'numba'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
