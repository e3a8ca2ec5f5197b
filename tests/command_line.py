"""A table, and commands that must fail, for tests of the command line."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lnml.cli import main

RNG = np.random.default_rng(3)
N = 60
FLOWERS = pd.DataFrame(
    {
        "length": RNG.normal(size=N) + 3.0 * (np.arange(N) % 3),
        "width": np.where(np.arange(N) % 9 == 0, np.nan, RNG.normal(size=N)),
        "color": np.where(RNG.random(N) < 0.5, "red", "blue"),
        "species": np.array(["iris", "lily", "rose"])[np.arange(N) % 3],
    }
)


def fails(capsys: pytest.CaptureFixture, arguments: str) -> str:
    """Run a command that must fail; return its one line."""
    capsys.readouterr()
    before = sorted(Path().iterdir())
    assert main(arguments.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("lnml: ")
    assert err.count("\n") == 1
    assert sorted(Path().iterdir()) == before
    return err


def finished_folds():
    """Files of finished folds, and when they were written."""
    return {path: path.stat().st_mtime_ns for path in Path("work").glob("fold*.json")}
