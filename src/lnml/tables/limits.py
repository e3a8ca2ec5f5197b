"""How much may come out of a small file: a stranger can pack gigabytes into a few bytes."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from lnml.errors import InputError

# Unpacked bytes that are always fine, and those for each byte of the file beyond. Tables of
# numbers seldom shrink to a tenth, so that a hundredth is no table, or one to be unpacked first.
ALWAYS = 2**25
RATIO = 100
# Characters of a label, and bytes of all labels if these are not short.
LONGEST_LABEL, SHORT_LABEL = 1000, 16
MOST_LABELS = 2**28


def most_bytes(path: Path, always: int = ALWAYS) -> int:
    """Return how many bytes may come out of a file."""
    return max(always, RATIO * path.stat().st_size)


def labels_fit(longest: int, n_rows: int) -> bool:
    """Whether labels of n rows fit: NumPy gives to each of them the room of the longest."""
    short = longest <= SHORT_LABEL or 4 * longest * n_rows <= MOST_LABELS
    return short and longest <= LONGEST_LABEL


def refuse_more(name: object, size: int, most: int, cure: str) -> None:
    """Refuse a file that becomes too large.

    Parameters
    ----------
    name : object
        What messages call the file.
    size, most : int
        Bytes that it becomes, at least, and that it may become.
    cure : str
        What the user can do.
    """
    if size > most:
        raise InputError(
            f"{name} would become more than {most / 2**20:.0f} MiB in memory, far more than it "
            f"holds: if you trust it, {cure}"
        )


def bounded(file: IO[bytes], path: Path, name: str) -> IO[bytes]:
    """Return an unpacked file that stops where too much has come out of it."""
    return io.BufferedReader(_Bounded(file, name, most_bytes(path)))


class _Bounded(io.RawIOBase):
    """Reads a file, and refuses to read more of it than it may hold."""

    def __init__(self, file: IO[bytes], name: str, most: int) -> None:
        self._file, self._name, self._most = file, name, most
        self._read = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, and return how much of it."""
        data = self._file.read(len(buffer))
        self._read += len(data)
        refuse_more(self._name, self._read, self._most, "unpack it, and read the unpacked file")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def check_archive(name: object, path: Path, members: Iterable[zipfile.ZipInfo], cure: str) -> None:
    """Refuse an archive whose members are too large; none unpacks to more than it declares."""
    refuse_more(name, sum(member.file_size for member in members), most_bytes(path), cure)
