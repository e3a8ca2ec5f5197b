"""Find and open what a table is read from: a file, perhaps packed, or standard input."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from lnml.errors import InputError, require
from lnml.tables.limits import bounded
from lnml.tables.reading import Reading

# The name of standard input and of standard output.
STREAM = "-"
SYNONYMS = {".tab": ".tsv", ".pq": ".parquet", ".svm": ".svmlight", ".libsvm": ".svmlight"}
PACKABLE = (".csv", ".tsv", ".arff", ".svmlight")
FORMATS = (*PACKABLE, ".parquet", ".npz", ".npy", ".xlsx")
PACKINGS = (".gz", ".bz2", ".xz", ".zst", ".zip")
KNOWN = (
    ".csv, .tsv, .parquet, .arff, .npz, .npy, .svmlight and .xlsx (.csv, .tsv, .arff and "
    ".svmlight also with .gz, .bz2, .xz, .zst or .zip)"
)
# First bytes of what may come from standard input, and the extensions that stand for it.
_STARTS = {
    b"PAR1": ".parquet",
    b"\x93NUMPY": ".npy",
    b"\x1f\x8b": ".csv.gz",
    b"BZh": ".csv.bz2",
    b"\xfd7zXZ": ".csv.xz",
    b"\x28\xb5\x2f\xfd": ".csv.zst",
}
_MARKS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
# Control characters, and what Windows-1252 lacks.
_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f\x81\x8d\x8f\x90\x9d]")


@dataclass(frozen=True)
class Source:
    """Where a table is read from.

    Attributes
    ----------
    path : Path
        File on disk.
    name : str
        What messages call it.
    extension : str
        One of ``FORMATS``.
    packing : str
        One of ``PACKINGS``, or empty.
    reading : Reading
        What the user says about it.
    notes : list of str
        What a user should know, found while reading.
    """

    path: Path
    name: str
    extension: str
    packing: str
    reading: Reading
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return self.name

    def open_bytes(self) -> IO[bytes]:
        """Open it, unpacked; a small file does not become a huge one."""
        file = self._open_packed()
        return bounded(file, self.path, self.name) if self.packing else file

    def _open_packed(self) -> IO[bytes]:
        if self.packing == ".zip":
            archive = zipfile.ZipFile(self.path)
            return archive.open(_only_member(self.name, archive))
        if self.packing == ".zst":
            arrow = require("pyarrow")
            return arrow.CompressedInputStream(arrow.OSFile(str(self.path)), "zstd")
        openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
        return openers.get(self.packing, open)(self.path, "rb")

    def open_text(self) -> IO[str]:
        """Open it as text in its encoding, unpacked, with line ends as they are."""
        return io.TextIOWrapper(self.open_bytes(), encoding=self.encoding, newline="")

    @cached_property
    def encoding(self) -> str:
        """The encoding that the user named, or the one that the first bytes or all of them tell."""
        if self.reading.encoding is not None:
            named = codecs.lookup(self.reading.encoding).name
            return "utf-8-sig" if named == "utf-8" else named
        with self.open_bytes() as file:
            start = file.read(4)
        for mark, encoding in _MARKS.items():
            if start.startswith(mark):
                return encoding
        try:
            with io.TextIOWrapper(self.open_bytes(), encoding="utf-8") as text:
                while part := text.read(1 << 20):
                    if "\0" in part:
                        raise InputError(
                            f"{self} holds zero bytes: name its encoding, perhaps --encoding "
                            f"utf-16-le, or give it the extension of its format"
                        )
        except UnicodeDecodeError:
            return self._other_encoding()
        return "utf-8"

    def _other_encoding(self) -> str:
        """Return the encoding of text that is not UTF-8, or refuse what is no text."""
        with self.open_bytes() as file:
            content = file.read()
        try:
            content.decode()
        except UnicodeDecodeError as error:
            place = error.start
        # Some characters in UTF-8 mean that the file is damaged.
        utf8 = any(ord(character) > 127 for character in content.decode(errors="ignore"))
        if utf8 or _NO_TEXT.search(content):
            raise InputError(
                f"{self} is not UTF-8 text (byte {place} cannot be decoded): correct it, name its "
                f"encoding (--encoding), or give it the extension of its format"
            )
        self.notes.append(
            f"{self} is not UTF-8 text (byte {place}): read as Windows-1252, which includes "
            f"Latin-1; --encoding names another encoding"
        )
        return "cp1252"


@contextmanager
def open_source(path: str | Path, reading: Reading) -> Iterator[Source]:
    """Find out what a file is; ``-`` is standard input, which is copied to a file first."""
    if str(path) != STREAM:
        yield _source(Path(path), str(path), reading)
        return
    if sys.stdin is None:
        raise InputError("standard input is closed: name a file, or send a table to it")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "table"
        with copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        named = copy.rename(copy.with_suffix(_extension_of_content(copy)))
        yield _source(named, "standard input", reading)


def _source(path: Path, name: str, reading: Reading) -> Source:
    """Return a file as a source; refuse options that do not apply to its format."""
    if path.is_dir() and not path.suffix:
        raise InputError(
            f"{name} is a folder: name a file in it; lnml fit --cluster reads folders of Parquet "
            f"files"
        )
    extension, packing = split_extension(path)
    if not extension:
        with zipfile.ZipFile(path) as archive:
            extension, inside = split_extension(_only_member(name, archive))
        if inside or extension not in PACKABLE:
            raise InputError(f"{name} holds a file that cannot be read from an archive: unpack it")
    said = {"--delimiter": reading.delimiter, "--decimal": reading.decimal}
    if extension not in (".csv", ".tsv"):
        for option, value in said.items():
            if value is not None:
                raise InputError(f"{name}: {option} is for CSV and TSV files: leave it out")
    if reading.encoding is not None and extension not in (".csv", ".tsv", ".arff"):
        raise InputError(f"{name}: --encoding is for files of text: leave it out")
    return Source(path, name, extension, packing, reading)


def split_extension(path: str | Path) -> tuple[str, str]:
    """Return the extensions that tell the format and the packing of a file.

    The format of a ``.zip`` is empty if only the archive itself can tell it.

    Examples
    --------
    >>> split_extension("wine.csv.gz"), split_extension("wine.pq"), split_extension("wine.zip")
    (('.csv', '.gz'), ('.parquet', ''), ('', '.zip'))
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    packing = suffixes.pop() if suffixes and suffixes[-1] in PACKINGS else ""
    extension = suffixes[-1] if suffixes else ""
    extension = SYNONYMS.get(extension, extension)
    if packing == ".zip" and extension not in FORMATS:
        return "", packing
    if extension not in FORMATS or (packing and extension not in PACKABLE):
        raise InputError(f"{path}: the extension tells the format and must be one of {KNOWN}")
    return extension, packing


def _only_member(name: str, archive: zipfile.ZipFile) -> str:
    """Return the name of the one file in an archive; systems add folders and files of their own."""
    names = [
        info.filename
        for info in archive.infolist()
        if not info.is_dir() and not info.filename.startswith(("__MACOSX/", "."))
    ]
    if len(names) != 1:
        raise InputError(
            f"{name} holds {len(names)} files, and one table is wanted: unpack it, and name one"
        )
    return names[0]


def _extension_of_content(path: Path) -> str:
    """Return the extensions that stand for what the first bytes of a file show."""
    with path.open("rb") as file:
        start = file.read(1000)
    for mark, extension in _STARTS.items():
        if start.startswith(mark):
            return extension
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        if "xl/workbook.xml" in names:
            return ".xlsx"
        return ".npz" if all(name.endswith(".npy") for name in names) else ".zip"
    return ".arff" if re.search(rb"^\s*@relation\b", start, re.I | re.M) else ".csv"
