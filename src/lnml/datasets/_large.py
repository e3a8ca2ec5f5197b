"""Find the data sets that are too large, or not free enough, to ship with the package."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import fetch_openml
from sklearn.utils import Bunch

from lnml.errors import InputError

VARIABLE = "LNML_DATA"

# Rows that the original files give for training; the rest are for testing.
_TRAINING_ROWS = {"isolet": 6238, "mnist": 60000}
_OPENML = {"isolet": "isolet", "mnist": "mnist_784"}
_TEXTS = {
    "ade": "ade_sentences.csv.gz",
    "gad": "gad_sentences.csv.gz",
    "hoc": "hoc_sentences.csv.gz",
    "medical_abstracts": "medical_abstracts.csv.gz",
}


class MissingDataError(InputError):
    """A data set is not on this machine.

    Examples
    --------
    >>> import os
    >>> from lnml.datasets import MissingDataError, load_large_dataset
    >>> folder = os.environ.pop("LNML_DATA", None)
    >>> try:
    ...     load_large_dataset("mnist", download=False)
    ... except MissingDataError as error:
    ...     print(error)
    mnist is not on this machine: set LNML_DATA to a directory that holds mnist.npz
    >>> if folder is not None:
    ...     os.environ["LNML_DATA"] = folder
    """


def list_large_datasets() -> list[str]:
    """Names that :func:`load_large_dataset` knows.

    Examples
    --------
    >>> from lnml.datasets import list_large_datasets
    >>> list_large_datasets()
    ['ade', 'gad', 'hoc', 'isolet', 'medical_abstracts', 'mnist']
    """
    return sorted([*_OPENML, *_TEXTS])


def load_large_dataset(name: str, *, download: bool = True) -> Bunch:
    """Load a data set of the study that does not ship with lnml.

    The environment variable ``LNML_DATA`` names the directory of the files:
    ``isolet.npz`` and ``mnist.npz`` (arrays ``X``, ``y`` and ``split``, which is 0
    for training rows and 1 for test rows), and the gzipped CSV files of the text
    corpora (columns ``text`` and ``label``; if there is a column ``subset4k``, only
    rows with 1 in it are used). If they are not there, Isolet and MNIST are fetched
    from OpenML.

    Parameters
    ----------
    name : str
        One of the names returned by :func:`list_large_datasets`.
    download : bool, default=True
        Whether Isolet and MNIST may be fetched from OpenML.

    Returns
    -------
    sklearn.utils.Bunch
        A dictionary-like object with attributes

        data : ndarray of shape (n, d), or of shape (n,) with texts
            Numbers are float64 for Isolet and uint8 for MNIST.
        target : ndarray of shape (n,)
            The class labels.
        split : ndarray of shape (n,) or None
            0 for training rows and 1 for test rows, if the data set has a default split.
        name : str
            The name of the data set.

    Raises
    ------
    MissingDataError
        If the data are not there and cannot be fetched.

    Examples
    --------
    >>> import os
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from unittest.mock import patch
    >>> import numpy as np
    >>> from lnml.datasets import load_large_dataset
    >>> with TemporaryDirectory() as folder, patch.dict(os.environ, LNML_DATA=folder):
    ...     arrays = {"X": np.zeros((3, 2)), "y": np.array([0, 1, 1]), "split": np.array([0, 0, 1])}
    ...     np.savez(Path(folder) / "mnist.npz", **arrays)
    ...     mnist = load_large_dataset("mnist")
    >>> mnist.data.shape, mnist.split
    ((3, 2), array([0, 0, 1]))
    """
    if name in _TEXTS:
        return _find(name, _TEXTS[name], _read_texts)
    if name not in _OPENML:
        known = ", ".join(list_large_datasets())
        raise ValueError(f"Unknown data set {name!r}; the known ones are {known}.")
    try:
        return _find(name, f"{name}.npz", _read_arrays)
    except MissingDataError as error:
        if not download:
            raise
        return _fetch(name, error)


def _find(name: str, file_name: str, read: Callable[[str, Path], Bunch]) -> Bunch:
    folder = os.environ.get(VARIABLE)
    path = Path(folder or ".") / file_name
    if folder is None or not path.exists():
        raise MissingDataError(
            f"{name} is not on this machine: set {VARIABLE} to a directory that holds {file_name}"
        )
    return read(name, path)


def _read_arrays(name: str, path: Path) -> Bunch:
    with np.load(path, allow_pickle=False) as arrays:
        split = arrays["split"].astype(np.int64)
        return Bunch(data=arrays["X"], target=arrays["y"], split=split, name=name)


def _read_texts(name: str, path: Path) -> Bunch:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row.get("subset4k", "1") == "1"]
    texts = np.array([row["text"] for row in rows], dtype=object)
    labels = np.array([row["label"] for row in rows])
    return Bunch(data=texts, target=labels, split=None, name=name)


def _fetch(name: str, missing: MissingDataError) -> Bunch:
    try:
        found = fetch_openml(_OPENML[name], version=1, as_frame=False, parser="liac-arff")
    except OSError as error:
        cause = f"{missing}; OpenML could not be reached either ({error})"
        raise MissingDataError(cause) from error
    split = (np.arange(len(found.target)) >= _TRAINING_ROWS[name]).astype(np.int64)
    data = found.data.astype(np.uint8) if name == "mnist" else found.data
    return Bunch(data=data, target=found.target, split=split, name=name)
