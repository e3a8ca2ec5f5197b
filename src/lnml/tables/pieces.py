"""What a worker of a cluster does with the rows of a few Parquet row groups.

Nothing here needs Dask: these are functions of what the client sends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from lnml.core.checks import largest_value
from lnml.errors import InputError, require
from lnml.tables.columns import MOST_CATEGORIES, as_categories, plain_column
from lnml.tables.parquet_files import DataFile, Footer, opened
from lnml.tables.preparation import Preparation
from lnml.tables.reading import mark_missing
from lnml.tables.table import Table, label_texts

# Number of rows, mean (d,), and sums of squares around it (d,) or their scatter (d, d).
Moments = tuple[int, np.ndarray, np.ndarray]


class Piece(NamedTuple):
    """A row group of a file.

    Attributes
    ----------
    file : DataFile
        The file.
    group : int
        Number of the row group.
    start : int
        Number of its first row in the file.
    n_rows : int
        How many rows it has.
    """

    file: DataFile
    group: int
    start: int
    n_rows: int


@dataclass(frozen=True)
class Plan:
    """How rows are read.

    Attributes
    ----------
    label : str
        Column of the labels.
    numbers, categories : tuple of str
        Feature columns.
    missing : tuple of str
        Values that stand for missing ones.
    drop_classes : tuple of str
        Labels whose rows are left out.
    """

    label: str
    numbers: tuple[str, ...]
    categories: tuple[str, ...]
    missing: tuple[str, ...] = ()
    drop_classes: tuple[str, ...] = ()


@dataclass
class Facts:
    """What a piece holds; arrays have one entry for each column of numbers.

    Attributes
    ----------
    piece : Piece
        The row group.
    n : int
        Rows that stay.
    classes : list of str
        Labels that occur.
    codes : ndarray of int, shape (n,)
        Label of each row, as a position in ``classes``.
    dropped : dict of str to int
        Rows that were left out, by label.
    n_missing, n_wrong : ndarray of int
        Missing values, and those that are infinite or whose squares overflow.
    mean, squares, lowest, highest : ndarray
        Mean, sum of squares around it, and range of the values.
    first, last : ndarray
        First and last value.
    rises : ndarray of bool
        Whether values rise by one from row to row.
    texts : dict of str to (dict or None)
        By column of categories, how often each text occurs; None if there are too many.
    n_empty : dict of str to int
        Missing values of columns of categories.
    digests : dict of str to str
        By column, SHA-256 of its content; that of the labels is one of them.
    """

    piece: Piece
    n: int
    classes: list[str]
    codes: np.ndarray
    dropped: dict[str, int]
    n_missing: np.ndarray
    n_wrong: np.ndarray
    mean: np.ndarray
    squares: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    first: np.ndarray
    last: np.ndarray
    rises: np.ndarray
    texts: dict[str, dict[str, int] | None] = field(default_factory=dict)
    n_empty: dict[str, int] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)


def told(task: Callable[..., Any], *given: Any) -> Any:
    """Return what a task finds, or the error that says what is wrong with the input.

    The client then raises the first error in the order of the files.
    """
    try:
        return task(*given)
    except InputError as error:
        return error


def read_piece(piece: Piece, plan: Plan) -> tuple[Table, dict[str, int]]:
    """Return the rows of a piece as a table, and how many were left out of which class."""
    names = [*plan.numbers, *plan.categories, plan.label]
    with opened(piece.file) as parquet:
        lacking = [name for name in names if name not in parquet.schema_arrow.names]
        if lacking:
            raise InputError(f"{piece.file.name} has no column {lacking[0]!r}")
        found = parquet.read_row_group(piece.group, columns=names, use_threads=False)
        if len(found) != piece.n_rows:
            raise InputError(f"{piece.file.name} changed while it was read: fit again")
        frame = found.select(names).to_pandas(ignore_metadata=True)
    frame = mark_missing(frame, plan.missing, keep=(plan.label,))
    labels = label_texts(frame[plan.label], f"{piece.file.name}: ", piece.start)
    left_out = np.isin(labels, plan.drop_classes)
    dropped = dict(zip(*np.unique(labels[left_out], return_counts=True), strict=True))
    frame, labels = frame[~left_out].reset_index(drop=True), labels[~left_out]
    columns = {name: frame[name].astype("float64") for name in plan.numbers}
    for name in plan.categories:
        columns[name] = as_categories(plain_column(name, frame[name], "categories"))
    features = require("pandas").DataFrame(columns, index=frame.index)
    counts = {str(name): int(count) for name, count in dropped.items()}
    return Table(piece.file.name, features, labels, plan.label), counts


def pieces_of(footer: Footer) -> list[Piece]:
    """Return the row groups of a file that have rows."""
    starts = np.concatenate([[0], np.cumsum(footer.groups)]).tolist()
    return [
        Piece(footer.file, group, starts[group], n) for group, n in enumerate(footer.groups) if n
    ]


def look_at(pieces: Sequence[Piece], plan: Plan) -> list[Facts]:
    """Return what pieces hold."""
    return [_facts(piece, plan) for piece in pieces]


def _facts(piece: Piece, plan: Plan) -> Facts:
    table, dropped = read_piece(piece, plan)
    classes, codes = np.unique(table.labels, return_inverse=True)
    columns = [_number_facts(table.features[name].to_numpy()) for name in plan.numbers]
    facts: Any = {
        name: np.array([column[name] for column in columns]) for name in _number_facts(np.zeros(0))
    }
    found = Facts(
        piece=piece,
        n=len(table.labels),
        classes=classes.tolist(),
        codes=codes.astype(np.int32),
        dropped=dropped,
        digests=table.column_digests,
        **facts,
    )
    for name in plan.categories:
        column = table.features[name]
        counts = column.value_counts()
        few = len(counts) <= MOST_CATEGORIES
        found.texts[name] = {str(t): int(c) for t, c in counts.items()} if few else None
        found.n_empty[name] = int(column.isna().sum())
    return found


def _number_facts(values: np.ndarray) -> dict[str, Any]:
    """Return what a column of numbers (n,) holds, as in :class:`Facts`."""
    missing = np.isnan(values)
    wrong = np.abs(values) > largest_value(np.float64)
    known = values[~missing & ~wrong]
    n = known.size
    mean = known.mean() if n else 0.0
    apart = known - mean
    with np.errstate(invalid="ignore"):
        rises = bool((np.diff(values) == 1.0).all())
    return {
        "n_missing": int(missing.sum()),
        "n_wrong": int(wrong.sum()),
        "mean": mean,
        # The second term is what rounding of the mean adds to the first.
        "squares": np.square(apart).sum() - apart.sum() ** 2 / n if n else 0.0,
        "lowest": known.min() if n else np.inf,
        "highest": known.max() if n else -np.inf,
        "first": values[0] if values.size else np.nan,
        "last": values[-1] if values.size else np.nan,
        "rises": rises,
    }


def matrix(pieces: Sequence[Piece], plan: Plan, preparation: Preparation) -> np.ndarray:
    """Return the rows of pieces as a matrix (n, d)."""
    return np.concatenate(
        [preparation.transform(read_piece(piece, plan)[0].features) for piece in pieces]
    )


def picked(
    pieces: Sequence[Piece], plan: Plan, preparation: Preparation, rows: Sequence[np.ndarray]
) -> np.ndarray:
    """Return some rows of each piece, by their numbers in it, as a matrix (m, d)."""
    return np.concatenate(
        [
            preparation.transform(read_piece(piece, plan)[0].features.iloc[numbers])
            for piece, numbers in zip(pieces, rows, strict=True)
            if len(numbers)
        ]
    )


def scatter(pieces: Sequence[Piece], plan: Plan, preparation: Preparation) -> Moments:
    """Return number of rows, mean (d,) and scatter around it (d, d)."""
    found = []
    for piece in pieces:
        X = matrix([piece], plan, preparation)
        mean = X.mean(axis=0) if len(X) else np.zeros(X.shape[1])
        apart = X - mean
        found.append((len(X), mean, apart.T @ apart))
    return all_joined(found)


def all_joined(parts: Iterable[Moments]) -> Moments:
    """Return number of rows, mean and squares of some sets of rows together."""
    return reduce(_joined, parts)


def _joined(left: Moments, right: Moments) -> Moments:
    """Return the same of two sets.

    Large numbers are never taken from each other, so that columns far from zero lose no digits.
    """
    (n, mean, squares), (m, other, others) = left, right
    if not n or not m:
        return left if n else right
    apart = other - mean
    between = np.square(apart) if squares.ndim == 1 else np.outer(apart, apart)
    total = n + m
    return total, mean + apart * (m / total), squares + others + between * (n * m / total)
