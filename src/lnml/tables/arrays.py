"""Read NumPy's files and svmlight files, whose columns have no names: x0, x1, and so on."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from lnml.errors import InputError, require
from lnml.tables.sources import Source

# svmlight files leave zeros out; one line of text can name a column two thousand million.
MOST_NUMBERS = 2**27
_COLUMN = re.compile(r"x\d+")


def read_npz(source: Source) -> Any:
    """Read ``X`` (columns named by ``feature_names``, or x0, x1, ...) and ``y`` as column y."""
    pandas = require("pandas")
    try:
        with np.load(io.BytesIO(source.path.read_bytes()), allow_pickle=False) as arrays:
            wanted = [key for key in ("X", "y", "feature_names") if key in arrays]
            stored = {}
            for key in wanted:
                with _no_objects(source, f"the array {key}"):
                    stored[key] = _text(arrays[key])
    except InputError:
        raise
    except (ValueError, zipfile.BadZipFile, AttributeError, TypeError) as error:
        raise InputError(
            f"{source} is not an NPZ file of plain arrays, or was cut off: write it with "
            f"numpy.savez(file, X=..., y=...)"
        ) from error
    X = stored.get("X")
    if X is None or X.ndim != 2:
        found = "has none" if X is None else f"has shape {X.shape}"
        raise InputError(f"{source} must hold a two-dimensional array X of features, but {found}")
    names = [str(name) for name in stored.get("feature_names", [])] or _numbered(X)
    if len(names) != X.shape[1]:
        raise InputError(f"{source} has {len(names)} feature_names for {X.shape[1]} columns of X")
    frame = pandas.DataFrame(X, columns=names)
    if "y" in stored:
        if stored["y"].shape != (len(X),):
            raise InputError(
                f"{source}: y has shape {stored['y'].shape}, but X has {len(X)} rows: give one "
                f"label for each row"
            )
        frame = pandas.concat([frame, pandas.Series(stored["y"], name="y")], axis=1)
    return frame


def read_npy(source: Source) -> Any:
    """Read an array: two-dimensional, or with named fields."""
    pandas = require("pandas")
    try:
        with _no_objects(source, "the array"):
            array = np.load(io.BytesIO(source.path.read_bytes()), allow_pickle=False)
        names = array.dtype.names
        if names is not None and array.ndim == 1:
            return pandas.DataFrame({name: _text(array[name]) for name in names})
        if isinstance(array, np.ndarray) and array.ndim == 2:
            return pandas.DataFrame(_text(array), columns=_numbered(array))
    except InputError:
        raise
    except (ValueError, AttributeError, TypeError, EOFError) as error:
        raise InputError(
            f"{source} is not an NPY file of a plain array, or was cut off: write it with "
            f"numpy.save(file, array)"
        ) from error
    raise InputError(
        f"{source} must hold a two-dimensional array, or one with named fields, but has shape "
        f"{array.shape}"
    )


def read_svmlight(source: Source, wanted: Collection[str] = ()) -> Any:
    """Read rows of ``label column:value ...`` as columns of numbers and a column y of labels.

    A column is named by its number in the file, so that numbers mean the same in all files,
    whether they count from 0 or from 1. ``wanted`` are names of columns that the frame shall
    have, also where no row names them: such files leave zeros out.
    """
    from sklearn.datasets import load_svmlight_file

    pandas = require("pandas")
    with source.open_bytes() as file:
        content = io.BytesIO(file.read())
    try:
        # With another base, numbers would mean other columns wherever column 0 is not named.
        X, y = load_svmlight_file(content, zero_based=True)
    except (ValueError, OverflowError, IndexError) as error:
        raise InputError(f"{source} cannot be read as svmlight: {error}") from error
    if X.shape[0] * X.shape[1] > MOST_NUMBERS:
        raise InputError(
            f"{source} has {X.shape[0]} rows with {X.shape[1]} columns, zeros included, and at "
            f"most {MOST_NUMBERS} numbers are read from such a file: leave columns out"
        )
    frame = pandas.DataFrame(X.toarray(), columns=_numbered(X))
    if X.shape[1] and not X[:, [0]].nnz:
        frame = frame.drop(columns="x0")
    lacking = [name for name in wanted if _COLUMN.fullmatch(name) and name not in frame.columns]
    zeros = pandas.DataFrame(0.0, index=frame.index, columns=lacking)
    return pandas.concat([frame, zeros], axis=1).assign(y=y)


@contextmanager
def _no_objects(source: Source, what: str) -> Iterator[None]:
    """Say which array cannot be read because it holds objects of Python."""
    try:
        yield
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise InputError(
            f"{source}: {what} holds Python objects, which could run code when they are read: "
            f"store it as numbers or text, with astype(float) or astype(str)"
        ) from error


def _numbered(X: Any) -> list[str]:
    return [f"x{column}" for column in range(X.shape[1])]


def _text(array: np.ndarray) -> np.ndarray:
    """Return an array with texts as text; NumPy's may be bytes, or hold halves of characters."""
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8")
    if array.dtype.kind == "U":
        "".join(array.ravel().tolist()).encode()
    return array
