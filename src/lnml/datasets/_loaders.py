"""Load the data sets that ship with the package."""

from importlib.resources import files
from typing import IO

import numpy as np
from sklearn.utils import Bunch

_DATA = files("lnml.datasets") / "data"
_SUFFIX = ".npz"


def list_datasets() -> list[str]:
    """Names of the data sets that ship with lnml.

    Returns
    -------
    list of str
        The names, sorted; each can be passed to `load_dataset`.

    Examples
    --------
    >>> from lnml.datasets import list_datasets
    >>> list_datasets()
    ['balance_scale', 'ionosphere', 'iris', 'letter', 'sonar', 'wine']
    """
    names = (entry.name for entry in _DATA.iterdir())
    return sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))


def load_dataset(name: str) -> Bunch:
    """Load a data set that ships with lnml.

    Feature values are raw: nothing is scaled and no row is removed. Sources and licences are
    given in ``datasets/data/README.md``.

    Parameters
    ----------
    name : str
        One of the names returned by `list_datasets`.

    Returns
    -------
    sklearn.utils.Bunch
        A dictionary-like object with attributes

        data : ndarray of shape (n_samples, n_features), float64
            The feature values.
        target : ndarray of shape (n_samples,)
            The class labels, strings or integers as the data set has them.
        feature_names : list of str
            One name per column of `data`; ``x0``, ``x1``, ... where the data set has none.
        name : str
            The name of the data set.

        The arrays are fresh on each call and may be modified freely.

    Raises
    ------
    ValueError
        If there is no data set called `name`.

    Examples
    --------
    >>> from lnml.datasets import load_dataset
    >>> iris = load_dataset("iris")
    >>> iris.data.shape
    (150, 4)
    >>> iris.feature_names
    ['sepal_length', 'sepal_width', 'petal_length', 'petal_width']
    >>> print(*sorted(set(iris.target)))
    setosa versicolor virginica
    """
    known = list_datasets()
    if name not in known:
        raise ValueError(f"Unknown data set {name!r}; the known ones are {', '.join(known)}.")
    with (_DATA / f"{name}{_SUFFIX}").open("rb") as file:
        return _read_bunch(file, name)


def _read_bunch(file: IO[bytes], name: str) -> Bunch:
    """Read arrays ``X``, ``y`` and, if present, ``feature_names`` from an npz file."""
    with np.load(file, allow_pickle=False) as arrays:
        data = arrays["X"].astype(np.float64)
        target = arrays["y"]
        if "feature_names" in arrays:
            feature_names = arrays["feature_names"].tolist()
        else:
            feature_names = [f"x{j}" for j in range(data.shape[1])]
    return Bunch(data=data, target=target, feature_names=feature_names, name=name)
