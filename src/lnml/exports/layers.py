"""Learned metrics as layers of networks."""

from __future__ import annotations

from typing import Any

from lnml.errors import require
from lnml.exports.affine import affine_map
from lnml.exports.digits import warn_of_lost_digits


def to_torch(model: Any, *, dtype: Any = None) -> Any:
    """Return a metric as a linear layer.

    Euclidean distances between outputs are the learned distances.

    Parameters
    ----------
    model : fitted estimator, pipeline or Model
        An estimator of lnml, a pipeline of scalers, PCA and such an estimator, or what
        :func:`lnml.models.load_model` returns.
    dtype : torch.dtype, optional
        Type of the layer; by default that of torch, float32.

    Returns
    -------
    layer : torch.nn.Linear
        From d to r columns. It has a bias only if a scaler or PCA before the metric moves rows.
        Its weights can be trained further.

    Raises
    ------
    ImportError
        Without torch: ``pip install "lnml[torch]"``.

    Warns
    -----
    UserWarning
        If float32 loses digits because columns are far from 0.

    Examples
    --------
    >>> from lnml import LMNN
    >>> from lnml.datasets import load_dataset
    >>> from lnml.exports import to_torch
    >>> iris = load_dataset("iris")
    >>> to_torch(LMNN().fit(iris.data, iris.target))
    Linear(in_features=4, out_features=4, bias=False)
    """
    torch = require("torch", extra="torch")
    found = affine_map(model)
    r, d = found.matrix.shape
    bias = found.bias
    dtype = dtype or torch.get_default_dtype()
    if torch.finfo(dtype).eps > torch.finfo(torch.float64).eps:
        cure = "export float64 (dtype), or subtract a constant before the fit and before the layer"
        warn_of_lost_digits(found, model, cure=cure)
    # Random weights would be drawn for nothing, and change what is drawn later.
    layer = torch.nn.utils.skip_init(torch.nn.Linear, d, r, bias=bool(bias.any()), dtype=dtype)
    with torch.no_grad():
        layer.weight.copy_(torch.as_tensor(found.matrix))
        if layer.bias is not None:
            layer.bias.copy_(torch.as_tensor(bias))
    return layer


def to_sentence_transformers(model: Any) -> Any:
    """Return a metric of sentence embeddings as a module for the end of a SentenceTransformer.

    Learned distances are Euclidean distances between its outputs; docs/exports.md says what that
    means for cosines. The bias that a scaler or PCA would need is left out: distances do not
    depend on it.

    Parameters
    ----------
    model : fitted estimator, pipeline or Model
        As for :func:`to_torch`, learned from embeddings of sentences.

    Returns
    -------
    module : sentence_transformers Dense
        From d to r columns, float32, without bias, with the identity as activation.

    Raises
    ------
    ImportError
        Without Sentence Transformers: ``pip install "lnml[sentence-transformers]"``.

    Warns
    -----
    UserWarning
        If float32 loses digits because columns are far from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from lnml import LMNN
    >>> from lnml.exports import to_sentence_transformers
    >>> rng = np.random.default_rng(0)
    >>> embeddings, kinds = rng.normal(size=(40, 8)), np.arange(40) % 2
    >>> dense = to_sentence_transformers(LMNN().fit(embeddings, kinds))
    >>> dense.in_features, dense.out_features, dense.linear.bias
    (8, 8, None)
    """
    torch = require("torch", extra="sentence-transformers")
    modules = require(
        "sentence_transformers.sentence_transformer.modules",
        "sentence-transformers",
        extra="sentence-transformers",
    )
    found = affine_map(model)
    cure = "subtract their mean from the embeddings before the fit and before the module"
    warn_of_lost_digits(found, model, cure=cure)
    matrix = found.matrix
    return modules.Dense(
        matrix.shape[1],
        matrix.shape[0],
        bias=False,
        activation_function=torch.nn.Identity(),
        init_weight=torch.as_tensor(matrix, dtype=torch.float32),
    )
