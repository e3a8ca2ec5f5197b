"""Finished folds on disk, written whole or not at all, so that they survive interruptions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lnml.errors import InputError
from lnml.evaluation.results import FoldResult, Portrait
from lnml.files import atomic_output

_DESCRIPTION = "problem.json"
_PORTRAIT = "portrait.json"


class StoreError(InputError):
    """A folder holds results of something else."""


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
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / _DESCRIPTION
        wanted = json.loads(json.dumps(dict(description)))
        if not path.exists():
            write_whole(path, json.dumps(wanted, indent=1))
            return
        found = _read(path)
        for key in wanted:
            if found.get(key) != wanted[key]:
                raise StoreError(
                    f"{self.folder} holds results for {key} = {found.get(key)!r}, but you asked "
                    f"for {wanted[key]!r}: name another folder, or delete this one"
                )

    def has(self, fold: int, method: str) -> bool:
        """Whether a result is there."""
        return self._path(fold, method).exists()

    def write(self, result: FoldResult) -> None:
        """Store a result."""
        write_whole(self._path(result.fold, result.method), json.dumps(result.to_json()))

    def read(self, fold: int, method: str) -> FoldResult:
        """Return a stored result."""
        return FoldResult.from_json(_read(self._path(fold, method)))

    def count(self) -> int:
        """How many results are there."""
        return sum(1 for _ in self.folder.glob("fold*.json"))

    def write_portrait(self, portrait: Portrait) -> None:
        """Store the fit for the pictures."""
        write_whole(self.folder / _PORTRAIT, json.dumps(portrait.to_json()))

    def read_portrait(self) -> Portrait | None:
        """Return the fit for the pictures, if it is there."""
        path = self.folder / _PORTRAIT
        return Portrait.from_json(_read(path)) if path.exists() else None

    def _path(self, fold: int, method: str) -> Path:
        return self.folder / f"fold{fold:02d}-{file_name(method)}.json"


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


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise StoreError(f"{path} is damaged ({error}): delete it to compute it again") from error
