"""Finished folds on disk: found again, refused if damaged, removed without anything else."""

from pathlib import Path

import numpy as np
import pytest

from lnml.evaluation.results import DataSummary, FoldResult
from lnml.evaluation.store import FoldStore

SUMMARY = DataSummary("toy", 3, {"a": 4, "b": 5}, "abc")


@pytest.fixture
def store(tmp_path: Path) -> FoldStore:
    store = FoldStore(tmp_path / "work")
    store.open({"seed": 0})
    store.write_summary(SUMMARY)
    store.write(FoldResult("LMNN", 0, np.arange(3), np.array([True, False, True])))
    return store


def test_summaries_are_found_again(store: FoldStore, tmp_path: Path) -> None:
    assert store.read_summary() == SUMMARY
    assert FoldStore(tmp_path / "none").read_summary() is None
    assert FoldStore(tmp_path / "none").description() == {}


def test_clear_removes_own_files_only(store: FoldStore) -> None:
    (store.folder / ".0123456789ab-fold01-lmnn.json").write_text("half")
    others = {"notes.txt", "data.csv", "my-fold00-lmnn.json"}
    for name in others:
        (store.folder / name).write_text("mine")
    store.clear()
    assert {path.name for path in store.folder.iterdir()} == others
    for name in others:
        (store.folder / name).unlink()
    store.clear()
    assert not store.folder.exists()
    store.clear()
