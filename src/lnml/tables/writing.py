"""Write a frame; the extension of the file tells the format."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from lnml.errors import InputError
from lnml.files import atomic_output
from lnml.tables.sources import STREAM, split_extension

# Extensions of what lnml writes, and of packings of CSV and TSV files.
WRITTEN, PACKED = (".csv", ".tsv", ".parquet", ".npz"), ("", ".gz", ".bz2", ".xz")


def check_writable(path: str | Path) -> None:
    """Refuse a name whose extension stands for a format that lnml does not write."""
    if str(path) == STREAM:
        return
    extension, packing = split_extension(path)
    if extension not in WRITTEN or packing not in PACKED:
        raise InputError(
            f"{path}: {packing or extension} files are read, not written: use .csv, .tsv, .parquet "
            f"or .npz"
        )


def write_matrix(
    path: str | Path, matrix: Any, label: str | None = None, *, replace: bool = True
) -> None:
    """Write a frame of numbers, optionally with one column of labels.

    Parameters
    ----------
    path : str or Path
        A name with the extension of CSV, TSV, Parquet or NPZ; ``-`` writes CSV to standard output.
        NPZ files get the arrays
        ``X``, ``feature_names`` and, with labels, ``y``, which
        :func:`lnml.tables.read_table` reads.
    matrix : pandas.DataFrame of shape (n, columns)
        What to write.
    label : str, optional
        Column of labels.
    replace : bool, default=True
        Whether an older file is replaced, or this one refused.
    """
    check_writable(path)
    if str(path) == STREAM:
        matrix.to_csv(sys.stdout, index=False)
        return
    extension, _ = split_extension(path)
    with atomic_output(path, replace=replace) as temporary:
        if extension == ".parquet":
            matrix.to_parquet(temporary, index=False)
        elif extension == ".npz":
            _write_npz(temporary, matrix, label)
        else:
            matrix.to_csv(temporary, index=False, sep="\t" if extension == ".tsv" else ",")


def _write_npz(path: Path, matrix: Any, label: str | None) -> None:
    features = matrix.drop(columns=[] if label is None else [label])
    arrays = {
        "X": features.to_numpy(dtype=np.float64),
        "feature_names": np.array(features.columns, dtype=str),
    }
    if label is not None:
        # Plain strings: an array of objects could only be read by unpickling it.
        arrays["y"] = np.array(["" if v != v else str(v) for v in matrix[label]], dtype=str)
    np.savez_compressed(path, **arrays)
