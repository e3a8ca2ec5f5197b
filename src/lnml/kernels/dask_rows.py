"""Rows as Dask holds them, an array or a DataFrame: checked from what is known without work.

Nothing here imports ``dask.dataframe`` or pandas before a DataFrame was given.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lnml.kernels.tensors import host_array, is_dask, is_frame


def local_labels(y: Any) -> Any:
    """Return labels on the host: those of Dask and of tensors are brought here."""
    return y.compute() if is_dask(y) else host_array(y)


def known_rows(values: Any) -> int | None:
    """Return the number of rows; None where Dask would have to count them."""
    if is_frame(values):
        return None
    count = (values if hasattr(values, "shape") else np.asarray(values)).shape[0]
    return None if np.isnan(count) else int(count)


def columns_of(X: Any) -> Any:
    """Return what has the names of the columns: an empty pandas DataFrame, or the array itself."""
    return X._meta if is_frame(X) else X


def dask_rows(X: Any) -> Any:
    """Return a Dask array of numbers, shape (n, d), or say what is wrong. It stays lazy.

    Parameters
    ----------
    X : dask array or DataFrame of shape (n, d)
        What the user gave. The number n need not be known.
    """
    if X.ndim != 2:
        kind = "Series: give a DataFrame, X.to_frame()" if is_frame(X) else "array"
        raise ValueError(f"X must have shape (n, d), got {X.ndim} dimension(s) in a Dask {kind}")
    if is_frame(X):
        return _frame_rows(X)
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X must hold numbers, got a Dask array of {X.dtype}: convert its columns")
    if not isinstance(X._meta, np.ndarray):
        raise ValueError(
            f"X must have chunks that are NumPy arrays, got {type(X._meta).__name__}: convert "
            f"them, for example with X.map_blocks(lambda chunk: chunk.toarray())"
        )
    if not X.shape[1] > 0:
        raise ValueError(
            f"X has {X.shape[1]} columns: it needs at least one, and their number must be known"
        )
    return X


def _frame_rows(X: Any) -> Any:
    """Return the rows of a DataFrame; float32 only if all columns are, as on one machine."""
    if not len(X.columns):
        raise ValueError("X has 0 columns: it needs at least one")
    _refuse_other_columns(X)
    narrow = all(kind == np.float32 for kind in X.dtypes)
    dtype = np.dtype(np.float32 if narrow else np.float64)
    return X.map_partitions(as_numbers, dtype, meta=X._meta.astype(dtype)).to_dask_array()


def _refuse_other_columns(X: Any) -> None:
    """Say which columns of a DataFrame hold no numbers, or share a name."""
    from pandas.api.types import is_complex_dtype, is_numeric_dtype

    shared = X.columns[X.columns.duplicated()]
    if len(shared):
        raise ValueError(f"X has more than one column named {shared[0]!r}: rename them")
    wrong = {
        name: kind
        for name, kind in zip(X.columns, X.dtypes, strict=True)
        if is_complex_dtype(kind) or not is_numeric_dtype(kind)
    }
    if wrong:
        names = ", ".join(f"{name!r} ({kind})" for name, kind in wrong.items())
        raise ValueError(
            f"X has columns that are no real numbers: {names}. Leave them out, "
            f"X.drop(columns={list(wrong)!r}), or make them numbers: text that stands for numbers "
            f"with X.astype({{{next(iter(wrong))!r}: float}}), categories with "
            f"dask.dataframe.get_dummies(X.categorize(columns={list(wrong)!r}))"
        )


def as_numbers(part: Any, dtype: np.dtype) -> Any:
    """Return a partition of a DataFrame in one type of float; runs on a worker.

    Its columns may hold other things than the DataFrame says, such as a word in a file.
    """
    try:
        return part.astype(dtype)
    except (TypeError, ValueError) as error:
        for place, name in enumerate(part.columns):
            try:
                part.iloc[:, place].astype(dtype)
            except (TypeError, ValueError):
                raise ValueError(
                    f"column {name!r} of X should hold numbers, and in a partition it does not "
                    f"({error}): mend or leave out such rows, or leave the column out"
                ) from error
        raise


def settled(X: Any, n_rows: int) -> Any:
    """Return a Dask array (n, d) that is on the workers, checked, and takes row numbers.

    Parameters
    ----------
    X : dask array of shape (n, d)
        The rows; it is computed once.
    n_rows : int
        How many there must be.
    """
    # Needs distributed, which is an extra.
    from lnml.kernels.cluster.given import Given

    return Given(X, n_rows).array()


def brought(X: Any, rows: np.ndarray) -> Any:
    """Return some rows of an array, tensor or settled Dask array; those of Dask come here."""
    if not is_dask(X):
        return X[rows]
    from lnml.kernels.cluster.given import gathered

    return gathered(X[rows]).astype(np.float32 if X.dtype == np.float32 else np.float64, copy=False)


def lazy_matmul(X: Any, components: np.ndarray) -> Any:
    """X @ components.T for a Dask array (n, d), computed when it is asked for."""
    whole = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    kind: Any = np.float32 if X.dtype == np.float32 else np.float64
    right = np.asarray(components, dtype=kind).T

    def mapped(rows: np.ndarray) -> np.ndarray:
        return _finite("X", rows, kind) @ right

    return whole.map_blocks(
        mapped,
        dtype=kind,
        chunks=(whole.chunks[0], (components.shape[0],)),
        meta=np.empty((0, 0), kind),
    )


def lazy_pair_lengths(pairs: Any, components: np.ndarray) -> Any:
    """Learned distance of each pair of a Dask array (m, 2, d), computed when it is asked for."""
    d = components.shape[1]
    if is_frame(pairs) or pairs.ndim != 3 or pairs.shape[1:] != (2, d):
        raise ValueError(
            f"pairs must be a Dask array of shape (m, 2, {d}), one pair of points in each entry; "
            f"got {type(pairs).__name__} of shape {pairs.shape}"
        )
    whole = pairs.rechunk({1: -1, 2: -1})
    right = np.asarray(components, dtype=np.float64).T

    def lengths(part: np.ndarray) -> np.ndarray:
        part = _finite("pairs", part, np.float64)
        return np.linalg.norm((part[:, 0] - part[:, 1]) @ right, axis=1)

    return whole.map_blocks(lengths, dtype=np.float64, drop_axis=[1, 2], meta=np.empty(0))


def numbers_in(name: str, chunk: Any, kind: np.dtype) -> np.ndarray:
    """Return a chunk as it is, if its numbers can be put into a type; runs on a worker.

    Chunks may hold other things than their Dask array says.
    """
    found = np.asarray(chunk)
    # Into float64 all numbers go as on one machine.
    narrowed = kind == np.float32 and not np.can_cast(found.dtype, kind)
    if found.dtype.kind not in "fiub" or narrowed:
        held = type(chunk).__name__ if found.ndim == 0 else f"values of type {found.dtype}"
        raise TypeError(
            f"a chunk of {name} holds {held}, and its Dask array says {kind}: convert the chunks, "
            f"{name}.map_blocks(lambda chunk: chunk.astype('{kind}'), dtype='{kind}'), or give "
            f"the right dtype where {name} is made"
        )
    return found


def _finite(name: str, part: Any, kind: Any) -> np.ndarray:
    """Return a chunk in a type, or say that it holds no numbers."""
    found = numbers_in(name, part, np.dtype(kind)).astype(kind, copy=False)
    if not np.isfinite(found).all():
        raise ValueError(
            f"a chunk of {name} contains NaN or infinity: replace or leave out such rows"
        )
    return found
