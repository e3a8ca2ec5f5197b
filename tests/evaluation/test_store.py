"""Finished folds on disk: found again, refused if damaged, removed without anything else."""

from pathlib import Path

import numpy as np
import pytest

from lnml.evaluation.results import DataSummary, FoldResult
from lnml.evaluation.store import FoldStore, StoreError

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


DAMAGES = {
    "no JSON": b"{",
    "no text": b"\xff\xfe",
    "a list": b"[]",
    "nothing in it": b"{}",
    "another fold": b'{"method": "LMNN", "fold": 1, "test": [0], "correct": [true]}',
    "one answer for two": b'{"method": "LMNN", "fold": 0, "test": [0, 1], "correct": [true]}',
    "a word for a number": b'{"method": "LMNN", "fold": 0, "test": [0], "correct": [true], '
    b'"seconds": "many"}',
    "an unknown name": b'{"method": "LMNN", "fold": 0, "test": [0], "correct": [true], "x": 1}',
    "lists without end": b"[" * 100_000,
}


@pytest.mark.parametrize("content", DAMAGES.values(), ids=DAMAGES)
def test_damaged_files_are_named(store: FoldStore, content: bytes) -> None:
    path = next(store.folder.glob("fold00*"))
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"fold00-lmnn\.json is damaged .* delete it"):
        store.read(0, "LMNN")


@pytest.mark.parametrize("name", ["problem", "data", "portrait"])
def test_other_damaged_files_are_named(store: FoldStore, name: str) -> None:
    (store.folder / f"{name}.json").write_text('{"a": 1')
    with pytest.raises(StoreError, match=rf"{name}\.json is damaged"):
        (store.description(), store.read_summary(), store.read_portrait())


def test_folders_that_cannot_be_made_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(StoreError, match="cannot be made"):
        FoldStore(tmp_path / "file" / "work").open({"seed": 0})


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
