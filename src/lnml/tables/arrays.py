"""Read NumPy's files and svmlight files, whose columns have no names: x0, x1, and so on."""

from __future__ import annotations

import io
import math
import re
import sys
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from lnml.core.text import rows_text
from lnml.errors import InputError, require
from lnml.tables.limits import check_archive, most_bytes
from lnml.tables.sources import Source

_COLUMN = re.compile(r"x\d+")
# What NumPy and pandas raise for damaged or odd arrays.
_DAMAGED = (
    ValueError,
    TypeError,
    AttributeError,
    KeyError,
    OverflowError,
    NotImplementedError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
)
# Wrong sizes below are found by NumPy itself.
_SMALL = 2**20


def read_npz(source: Source) -> Any:
    """Read ``X`` (columns named by ``feature_names``, or x0, x1, ...) and ``y`` as column y."""
    pandas = require("pandas")
    try:
        with zipfile.ZipFile(source.path) as archive:
            return _frame(source, pandas, _members(source, archive))
    except InputError:
        raise
    except _DAMAGED as error:
        raise InputError(
            f"{source} is not an NPZ file of plain arrays, or was cut off: write it with "
            f"numpy.savez(file, X=..., y=...)"
        ) from error


def _frame(source: Source, pandas: Any, stored: dict[str, np.ndarray]) -> Any:
    """Return the arrays of an NPZ file as a frame."""
    X = stored.get("X")
    if X is None or X.ndim != 2:
        found = "has none" if X is None else f"has shape {X.shape}"
        raise InputError(f"{source} must hold a two-dimensional array X of features, but {found}")
    _refuse_empty(source, X)
    names = [str(name) for name in stored.get("feature_names", [])] or _numbered(X)
    if len(names) != X.shape[1]:
        raise InputError(f"{source} has {len(names)} feature_names for {X.shape[1]} columns of X")
    frame = pandas.DataFrame(X, columns=names)
    if "y" in stored:
        if stored["y"].shape != (len(X),):
            raise InputError(
                f"{source}: y has shape {stored['y'].shape}, but X has {rows_text(len(X))}: give "
                f"one label for each row"
            )
        frame = pandas.concat([frame, pandas.Series(stored["y"], name="y")], axis=1)
    return frame


def read_npy(source: Source) -> Any:
    """Read an array: two-dimensional, or with named fields."""
    pandas = require("pandas")
    try:
        array = _array(source, "the array", source.path.read_bytes())
        names = array.dtype.names
        if names is not None and array.ndim == 1:
            return pandas.DataFrame({name: _text(array[name]) for name in names})
        if array.ndim == 2:
            _refuse_empty(source, array)
            return pandas.DataFrame(_text(array), columns=_numbered(array))
    except InputError:
        raise
    except _DAMAGED as error:
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
    most = most_bytes(source.path) // X.dtype.itemsize
    if X.shape[0] * X.shape[1] > most:
        raise InputError(
            f"{source} has {X.shape[0]} rows with {X.shape[1]} columns, zeros included, and at "
            f"most {most} numbers are read from a file of this size: leave columns out"
        )
    frame = pandas.DataFrame(X.toarray(), columns=_numbered(X))
    if X.shape[1] and not X[:, [0]].nnz:
        frame = frame.drop(columns="x0")
    lacking = [name for name in wanted if _COLUMN.fullmatch(name) and name not in frame.columns]
    zeros = pandas.DataFrame(0.0, index=frame.index, columns=lacking)
    return pandas.concat([frame, zeros], axis=1).assign(y=y)


def _members(source: Source, archive: zipfile.ZipFile) -> dict[str, np.ndarray]:
    """Return those arrays of an archive that make a table."""
    names = {name.removesuffix(".npy"): name for name in archive.namelist()}
    wanted = {key: names[key] for key in ("X", "y", "feature_names") if key in names}
    cure = "write it with numpy.savez, which does not compress"
    check_archive(source, source.path, map(archive.getinfo, wanted.values()), cure)
    return {
        key: _text(_array(source, f"the array {key}", archive.read(name)))
        for key, name in wanted.items()
    }


def _array(source: Source, what: str, content: bytes) -> np.ndarray:
    """Return the array of an NPY file; refuse one that claims to be larger than the file."""
    file = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(file)
        # Version 3 differs from 2 by the encoding of names alone.
        of_version = {(1, 0): np.lib.format.read_array_header_1_0}
        shape, _, dtype = of_version.get(version, np.lib.format.read_array_header_2_0)(file)
    except Exception as error:
        # The header is an expression of Python, and its parser says in many ways that it is none.
        raise ValueError("the header is damaged") from error
    # Neither an axis without length nor an item without bytes hides the others.
    size = math.prod(max(length, 1) for length in shape) * max(dtype.itemsize, 1)
    if size > max(len(content), _SMALL):
        raise InputError(
            f"{source}: {what} should have shape {shape} and {size} bytes, but the file holds "
            f"{len(content)}: write it again"
        )
    with _no_objects(source, what):
        return np.load(io.BytesIO(content), allow_pickle=False)


def _refuse_empty(source: Source, X: np.ndarray) -> None:
    if 0 in X.shape:
        what = "rows" if not X.shape[0] else "columns"
        raise InputError(f"{source} has no {what}: its array has shape {X.shape}")


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
    """Return an array with texts as text; NumPy's may be bytes, or hold what are no characters."""
    if array.dtype.kind not in "biufcmMSU":
        raise ValueError(f"{array.dtype} is neither numbers nor text")
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8")
    if array.dtype.kind == "U" and array.nbytes:
        codes = np.ascontiguousarray(array).view(array.dtype.byteorder + "u4")
        if ((codes > sys.maxunicode) | ((codes >= 0xD800) & (codes < 0xE000))).any():
            raise ValueError("it holds numbers that stand for no character")
    # pandas knows the order of bytes of this machine alone.
    return array.astype(array.dtype.newbyteorder("="), copy=False)
