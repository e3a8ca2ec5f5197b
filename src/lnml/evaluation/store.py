"""Finished folds on disk, written whole or not at all, so that they survive interruptions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from lnml.errors import InputError
from lnml.evaluation.portraits import Portrait
from lnml.evaluation.results import DataSummary, FoldResult
from lnml.files import atomic_output

_DESCRIPTION = "problem.json"
_SUMMARY = "data.json"
_PORTRAIT = "portrait.json"
# What a store writes, also under the temporary name that a killed process leaves behind.
_OWN = re.compile(r"(\.[0-9a-f]{12}-)?(problem|data|portrait|fold\d{2,}-[a-z0-9-]+)\.json")

Found = TypeVar("Found")


class StoreError(InputError):
    """A folder holds results of something else, or cannot be used."""


class FoldStore:
    """Results of one problem: one file for each fold and method.

    Parameters
    ----------
    folder : path
        Where the files are; it is made if it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        # Worker processes may have been started in another folder.
        self.folder = Path(folder).absolute()

    def open(self, description: Mapping[str, Any]) -> None:
        """Start, or continue the same problem; refuse the results of another one.

        ``description`` names everything that results depend on: data, folds, settings.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"the folder {self.folder} cannot be made: {error.strerror}: name another one"
            ) from error
        wanted = json.loads(json.dumps(dict(description)))
        if (self.folder / _DESCRIPTION).exists():
            self.check(wanted)
        else:
            write_whole(self.folder / _DESCRIPTION, json.dumps(wanted, indent=1))

    def check(self, wanted: Mapping[str, Any]) -> None:
        """Refuse results that depend on something other than what is wanted."""
        found = self.description()
        for key in wanted:
            if found.get(key) != wanted[key]:
                raise StoreError(
                    f"{self.folder} holds results for {key} = {found.get(key)!r}, but you asked "
                    f"for {wanted[key]!r}: name another folder, or delete this one"
                )

    def description(self) -> Mapping[str, Any]:
        """Return what the results depend on; empty if the folder holds none."""
        return self._read_if_there(_DESCRIPTION, dict) or {}

    def has(self, fold: int, method: str) -> bool:
        """Whether a result is there."""
        return self._path(fold, method).exists()

    def write(self, result: FoldResult) -> None:
        """Store a result."""
        write_whole(self._path(result.fold, result.method), json.dumps(result.to_json()))

    def read(self, fold: int, method: str) -> FoldResult:
        """Return a stored result."""

        def build(stored: Any) -> FoldResult:
            result = FoldResult.from_json(stored)
            if (result.fold, result.method) != (fold, method):
                raise ValueError(f"it is fold {result.fold} of {result.method}")
            return result

        return _read(self._path(fold, method), build)

    def count(self) -> int:
        """How many results are there."""
        return sum(1 for _ in self.folder.glob("fold*.json"))

    def write_summary(self, summary: DataSummary) -> None:
        """Store what the results are about, so that they can be read without the data."""
        write_whole(self.folder / _SUMMARY, json.dumps(asdict(summary)))

    def read_summary(self) -> DataSummary | None:
        """Return what the results are about, if that is there."""
        return self._read_if_there(_SUMMARY, lambda stored: DataSummary(**stored))

    def write_portrait(self, portrait: Portrait) -> None:
        """Store the fit for the pictures."""
        write_whole(self.folder / _PORTRAIT, json.dumps(portrait.to_json()))

    def read_portrait(self) -> Portrait | None:
        """Return the fit for the pictures, if it is there."""
        return self._read_if_there(_PORTRAIT, Portrait.from_json)

    def clear(self) -> None:
        """Remove what a store has written, and the folder if nothing else is in it."""
        if not self.folder.is_dir():
            return
        try:
            for path in self.folder.iterdir():
                if _OWN.fullmatch(path.name) and path.is_file():
                    path.unlink()
        except OSError as error:
            raise StoreError(f"{self.folder} cannot be emptied: {error.strerror}") from error
        with suppress(OSError):
            self.folder.rmdir()

    def _path(self, fold: int, method: str) -> Path:
        return self.folder / f"fold{fold:02d}-{file_name(method)}.json"

    def _read_if_there(self, name: str, build: Callable[[Any], Found]) -> Found | None:
        path = self.folder / name
        return _read(path, build) if path.exists() else None


def file_name(method: str) -> str:
    """Return the part of a file's name that stands for a method.

    Examples
    --------
    >>> file_name("LN-LMNN (CV)")
    'ln-lmnn-cv'
    """
    return re.sub(r"[^a-z0-9]+", "-", method.lower()).strip("-")


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader, or a crash, never sees half of it."""
    with atomic_output(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _read(path: Path, build: Callable[[Any], Found]) -> Found:
    """Return what a file holds; ``build`` makes it from the JSON value."""
    try:
        return build(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise StoreError(f"{path} is damaged ({error}): delete it to compute it again") from error
