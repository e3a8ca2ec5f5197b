"""What ``import lnml`` offers."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

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


def test_one_version() -> None:
    """Of the package as installed, of its code and of its citation."""
    assert lnml.__version__ == version("lnml")
    citation = (Path(__file__).parents[1] / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {lnml.__version__}\n" in citation
