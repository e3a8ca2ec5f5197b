"""Learned metrics as an index that searches nearest rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from lnml.errors import require
from lnml.exports.affine import AffineMap, affine_map
from lnml.exports.digits import warn_of_lost_digits
from lnml.models import Model


def to_faiss(model: Any, X: Any = None) -> Any:
    """Return a Faiss index that searches by the learned distance.

    Give it rows as the model takes them: it maps them by itself. It returns squared learned
    distances, and numbers of rows in the order in which they were added.

    Parameters
    ----------
    model : fitted estimator, pipeline or Model
        An estimator of lnml, a pipeline of scalers, PCA and such an estimator, or what
        :func:`lnml.models.load_model` returns.
    X : array-like of shape (n, d), optional
        Rows to put into the index. By default the rows that a :class:`lnml.models.Model` keeps;
        for others the index is empty.

    Returns
    -------
    index : faiss.IndexPreTransform
        A ``LinearTransform`` before an exact ``IndexFlatL2``, in float32.

    Raises
    ------
    ImportError
        Without Faiss: ``pip install "lnml[faiss]"``.

    Warns
    -----
    UserWarning
        If float32, the only type of Faiss, loses digits because columns are far from 0.

    Notes
    -----
    The transform moves the rows so that their mean becomes 0, because float32 then loses the fewest
    digits. Distances do not depend on it.

    Examples
    --------
    >>> from lnml import LMNN
    >>> from lnml.datasets import load_dataset
    >>> from lnml.exports import to_faiss
    >>> iris = load_dataset("iris")
    >>> index = to_faiss(LMNN().fit(iris.data, iris.target), iris.data)
    >>> index.search(iris.data[:2].astype("float32"), 1)[1]
    array([[0],
           [1]])
    """
    faiss = require("faiss", "faiss-cpu", extra="faiss")
    found = affine_map(model)
    cure = "subtract a constant before the fit and before the index"
    warn_of_lost_digits(found, model, cure=cure)
    if X is not None:
        rows = np.asarray(X, dtype=np.float32)
        if rows.ndim != 2 or rows.shape[1] != found.matrix.shape[1]:
            raise ValueError(
                f"X must have {found.matrix.shape[1]} columns, as the metric has; got shape "
                f"{rows.shape}"
            )
        shift = (
            found(rows.mean(axis=0, dtype=np.float64)) if len(rows) else np.zeros(found.offset.size)
        )
        index = _empty(faiss, found, shift)
        index.add(np.ascontiguousarray(rows))
    elif isinstance(model, Model):
        shift = model.rows.mean(axis=0)
        index = _empty(faiss, found, shift)
        # They are mapped already.
        index.index.add(np.ascontiguousarray(model.rows - shift, dtype=np.float32))
        index.ntotal = index.index.ntotal
    else:
        index = _empty(faiss, found, found(found.center[None])[0])
    return index


def _empty(faiss: Any, found: AffineMap, shift: np.ndarray) -> Any:
    """Return an index without rows; ``shift`` (r,) of the learned space becomes 0."""
    r, d = found.matrix.shape
    transform = faiss.LinearTransform(d, r, True)
    faiss.copy_array_to_vector(found.matrix.astype(np.float32).ravel(), transform.A)
    faiss.copy_array_to_vector((found.bias - shift).astype(np.float32), transform.b)
    transform.is_trained = True
    return faiss.IndexPreTransform(transform, faiss.IndexFlatL2(r))
