"""Folders to run commands in."""

from pathlib import Path

import pandas as pd
import pytest
from command_line import FLOWERS

from lnml.cli import main
from lnml.datasets import load_dataset


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a table, a model and rows to look up."""
    monkeypatch.chdir(tmp_path)
    FLOWERS.to_csv("flowers.csv", index=False)
    FLOWERS.head(7).to_csv("query.csv", index=False)
    arguments = "fit flowers.csv --label species --method euclidean -o flowers.model --quiet"
    assert main(arguments.split()) == 0
    return tmp_path


@pytest.fixture
def iris(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = load_dataset("iris")
    frame = pd.DataFrame(data.data, columns=data.feature_names)
    frame["species"] = data.target
    frame.to_csv("iris.csv", index=False)
    return tmp_path
