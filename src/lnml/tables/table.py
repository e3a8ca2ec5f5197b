"""A user's table: its features, its labels, and the file they come from."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lnml.errors import InputError, require, unknown_name
from lnml.tables.columns import (
    as_categories,
    category_text,
    is_numeric,
    missing_codes,
    plain_column,
    reason_to_leave_out,
)
from lnml.tables.formats import read_labelled
from lnml.tables.limits import labels_fit
from lnml.tables.reading import AS_IT_IS, Reading
from lnml.tables.sources import STREAM
from lnml.tables.texts import is_number, is_text


@dataclass(frozen=True)
class Table:
    """Labelled rows as they were read.

    Attributes
    ----------
    name : str
        Name of the file, without its folder.
    features : pandas.DataFrame of shape (n, columns)
        Columns of numbers (NaN if missing) or of the type ``category``.
    labels : ndarray of str, shape (n,)
        Class of each row, as the file writes it.
    label : str
        Name of the column of labels.
    notes : tuple of str
        What a user should know, such as columns that were left out.
    missing : tuple of str
        Values that were read as missing, beside the usual ones.

    Examples
    --------
    >>> import pandas as pd
    >>> from lnml.tables import make_table
    >>> frame = pd.DataFrame({"size": [1, 2, 8, 9], "kind": list("aabb")})
    >>> table = make_table(frame, "kind")
    >>> table.class_sizes, list(table.features.columns), table.label
    ({'a': 2, 'b': 2}, ['size'], 'kind')
    """

    name: str
    features: Any
    labels: np.ndarray
    label: str
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def class_sizes(self) -> dict[str, int]:
        """Rows of each class, by label in sorted order."""
        classes, counts = np.unique(self.labels, return_counts=True)
        return {str(name): int(count) for name, count in zip(classes, counts, strict=True)}

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of column names, features and labels; the file's format does not matter."""
        digest = hashlib.sha256(b"lnml table 1")
        for name, column in self.features.items():
            _digest_column(digest, name, column)
        _digest_codes(digest, *np.unique(self.labels, return_inverse=True))
        return digest.hexdigest()

    @property
    def column_digests(self) -> dict[str, str]:
        """SHA-256 of each column by its name, also of that of the labels."""
        found = {name: hashlib.sha256() for name in (*self.features, self.label)}
        for name, column in self.features.items():
            _digest_column(found[name], name, column)
        _digest_codes(found[self.label], *np.unique(self.labels, return_inverse=True))
        return {name: digest.hexdigest() for name, digest in found.items()}


def read_table(
    path: str | Path,
    label: str | None = None,
    drop: Collection[str] = (),
    *,
    reading: Reading = AS_IT_IS,
    categories: Collection[str] = (),
    drop_classes: Collection[str] = (),
) -> Table:
    r"""Read labelled rows from a file.

    Parameters
    ----------
    path : str or Path
        A file of one of the formats in docs/cli.md, which its extension tells; ``-`` is standard
        input.
    label : str, optional
        Column that holds the labels. All formats need it but NPZ and svmlight, where it is ``y``.
    drop : collection of str
        Columns to leave out.
    reading : Reading
        What the file itself does not say, such as values that stand for missing ones.
    categories : collection of str
        Columns whose values are categories, also where they are numbers.
    drop_classes : collection of str
        Labels whose rows to leave out. The other rows are numbered anew.

    Returns
    -------
    table : Table

    Raises
    ------
    InputError
        If the file cannot be used. The rules are in docs/cli.md.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from lnml.tables import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "kinds.csv"
    ...     _ = path.write_text("size,kind\n1,a\n2,a\n8,b\n9,b\n")
    ...     table = read_table(path, label="kind")
    >>> table.name, table.labels.tolist()
    ('kinds.csv', ['a', 'a', 'b', 'b'])
    """
    notes: list[str] = []
    frame, label = read_labelled(path, label, reading=reading, notes=notes)
    # Names of files may hold bytes that are no text.
    name = Path(path).name.encode("utf-8", "backslashreplace").decode()
    table = make_table(
        frame,
        label,
        name="standard input" if name == STREAM else name,
        drop=drop,
        categories=categories,
        drop_classes=drop_classes,
    )
    return replace(table, notes=(*notes, *table.notes), missing=reading.missing)


def make_table(
    frame: Any,
    label: str | None,
    *,
    name: str = "data",
    drop: Collection[str] = (),
    categories: Collection[str] = (),
    drop_classes: Collection[str] = (),
) -> Table:
    """Turn a frame with a column of labels into a table, by the same rules as for files.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": [1, 2, 3, 4], "kind": ["a", "a", "b", "b"]})
    >>> make_table(frame, "kind").class_sizes
    {'a': 2, 'b': 2}
    """
    names = list(frame.columns)
    label = check_names(name, names, label, drop, categories)
    labels = label_texts(frame[label])
    check_dropped(drop_classes, np.unique(labels).tolist())
    kept = ~np.isin(labels, list(drop_classes))
    notes = notes_about_dropped({each: int(np.sum(labels == each)) for each in drop_classes})
    check_classes(*np.unique(labels[kept], return_inverse=True), label)
    used = [column for column in names if column != label and column not in drop]
    features, said = _features(frame[used], categories)
    notes += said
    if not len(features.columns):
        because = f" ({'; '.join(notes)})" if notes else ""
        raise InputError(f"{name} has no feature column beside the labels{because}")
    if not kept.all():
        left = features[kept].reset_index(drop=True)
        # Again, because some categories may have no row now.
        columns = {column: plain_column(column, left[column]) for column in left}
        features = require("pandas").DataFrame(columns)
    return Table(name, features, labels[kept], label, tuple(notes))


def _features(frame: Any, categories: Collection[str]) -> tuple[Any, list[str]]:
    """Return the columns that a distance can use, and notes about them and about the others."""
    columns, notes = {}, []
    for column in frame.columns:
        if column in categories:
            plain = as_categories(plain_column(column, frame[column], "categories"))
        else:
            plain = plain_column(column, frame[column])
        reason = reason_to_leave_out(column, plain)
        if reason is not None:
            notes.append(f"column {column!r} {reason}: left out")
            continue
        columns[column] = plain
        notes += missing_codes(column, plain)
        if is_numeric(plain) and is_text(frame[column]):
            notes.append(
                f"column {column!r} holds numbers as text: read as numbers, unless you say "
                f"--categories {column!r}"
            )
    return require("pandas").DataFrame(columns), notes


def label_texts(column: Any, where: str = "", start: int = 0) -> np.ndarray:
    """Return the labels of all rows (n,) as text; refuse rows without one.

    ``where`` begins the message, and ``start`` is the number of the first row.
    """
    missing = np.flatnonzero(column.isna().to_numpy())
    if missing.size:
        raise InputError(
            f"{where}{missing.size} of {len(column)} rows have no label in column "
            f"{column.name!r} (the first is row {start + missing[0]}, counted from 0): fill them "
            f"in, or remove these rows"
        )
    if column.dtype == object:
        # Not by codes: true and 1 are the same key, and different labels.
        codes, values = np.arange(len(column)), column
    else:
        codes, values = require("pandas").factorize(column)
    texts = [category_text(value) for value in values.astype("object")]
    longest = max(map(len, texts), default=0)
    if not labels_fit(longest, len(codes)):
        raise InputError(
            f"{where}column {column.name!r} holds a text of {longest} characters "
            f"({max(texts, key=len)[:20]!r}...), too long for a label of {len(codes)} rows: "
            f"shorten it, or choose another column"
        )
    return np.array(texts, dtype=str)[codes]


def check_names(
    name: str,
    names: Collection[str],
    label: str | None,
    drop: Collection[str],
    categories: Collection[str],
) -> str:
    """Return the column of labels; refuse names of columns that ``name`` does not have."""
    if label is None:
        raise InputError(
            f"{name} has columns {', '.join(list(names)[:20])}: say which one holds the labels "
            f"(--label)"
        )
    for column in (label, *drop, *categories):
        if column not in names:
            error = unknown_name("column", column, names)
            raise InputError(f"{name}: {error}")
    if label in drop:
        raise InputError(f"column {label!r} cannot hold the labels and be left out")
    return label


def check_dropped(dropped: Collection[str], classes: Collection[str]) -> None:
    """Refuse to leave out classes that do not occur."""
    for label in dropped:
        if label not in classes:
            raise unknown_name("class", label, classes)


def notes_about_dropped(counts: Mapping[str, int]) -> list[str]:
    """Say how many rows of which class are left out."""
    return [
        f"class {label!r}: {count} {'row' if count == 1 else 'rows'} left out; rows are numbered "
        f"without them"
        for label, count in counts.items()
    ]


def check_classes(classes: np.ndarray, codes: np.ndarray, name: str) -> None:
    """Refuse labels that are no classes, or too few.

    Parameters
    ----------
    classes : ndarray of str, shape (c,)
        Labels that occur.
    codes : ndarray of int, shape (n,)
        Label of each row, as a position in ``classes``.
    name : str
        Column of the labels.
    """
    fractions = np.array([_has_fraction(text) for text in classes], dtype=bool)
    if fractions.any() and all(is_number(text) for text in classes):
        row = int(fractions[codes].argmax())
        raise InputError(
            f"column {name!r} holds numbers with a fraction, such as {classes[codes[row]]} in row "
            f"{row} (counted from 0), not classes: divide them into groups, or choose another "
            f"column"
        )
    if classes.size < 2:
        shown = f"one class only ({str(classes[0])!r})" if classes.size else "no class"
        raise InputError(f"column {name!r} holds {shown}: give rows of at least two classes")
    if len(codes) == 2:
        raise InputError(
            "two rows are too few: give at least two rows of a class, and one of another class"
        )
    if np.bincount(codes).max() < 2:
        raise InputError(
            f"every class in column {name!r} has one row only: give at least two rows of a class, "
            f"or choose another column"
        )


def _has_fraction(text: str) -> bool:
    return is_number(text) and not float(text).is_integer()


def _digest_text(digest: Any, text: str) -> None:
    encoded = text.encode()
    digest.update(len(encoded).to_bytes(8, "little") + encoded)


def _digest_column(digest: Any, name: str, column: Any) -> None:
    _digest_text(digest, name)
    if is_numeric(column):
        # + 0.0: minus zero and zero are the same number.
        values = column.to_numpy(dtype="<f8") + 0.0
        values[np.isnan(values)] = np.nan
        digest.update(b"numbers" + values.tobytes())
    else:
        _digest_codes(digest, column.cat.categories, column.cat.codes.to_numpy())


def _digest_codes(digest: Any, values: Any, codes: np.ndarray) -> None:
    digest.update(b"categories" + len(values).to_bytes(8, "little"))
    for value in values:
        _digest_text(digest, str(value))
    digest.update(codes.astype("<i4").tobytes())
