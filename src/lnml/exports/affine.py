"""A fitted metric, with the scaler and PCA before it, as one affine map."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from lnml.core.checks import kind_of
from lnml.estimators.metric import MahalanobisMetric
from lnml.kernels.tensors import host_array
from lnml.models import Model
from lnml.tables import Preparation

Steps = list[tuple[str, Any]]


@dataclass(frozen=True)
class AffineMap:
    """The map z = A (x - c) + o, in float64.

    The centre is kept apart, because A x - A c would lose digits of columns with an offset.

    Attributes
    ----------
    matrix : ndarray of shape (r, d), or (d,) while columns are only scaled
        A, or its diagonal.
    center : ndarray of shape (d,)
        c.
    offset : ndarray of shape (r,)
        o.
    names : tuple of str
        Names of the d columns; empty if they have none.
    spread : ndarray of shape (d,), or None
        How far values of a column are from its centre, if a scaler or PCA knows it.
    """

    matrix: np.ndarray
    center: np.ndarray
    offset: np.ndarray
    names: tuple[str, ...] = ()
    spread: np.ndarray | None = None

    @property
    def bias(self) -> np.ndarray:
        """What is added to A x: shape (r,)."""
        return self.offset - self.matrix @ self.center

    def __call__(self, X: Any) -> np.ndarray:
        """Map rows (n, d) to (n, r)."""
        return (np.asarray(X, dtype=np.float64) - self.center) @ self.matrix.T + self.offset

    def then(self, other: AffineMap) -> AffineMap:
        """Return this map followed by another one."""
        if self.matrix.ndim == 1:
            # Scaled columns: the other centre becomes part of this one.
            center = self.center + (other.center - self.offset) / self.matrix
            return replace(
                self, matrix=other.matrix * self.matrix, center=center, offset=other.offset
            )
        if other.matrix.ndim == 1:
            matrix = other.matrix[:, None] * self.matrix
            offset = other.matrix * (self.offset - other.center) + other.offset
        else:
            matrix = other.matrix @ self.matrix
            offset = other.matrix @ (self.offset - other.center) + other.offset
        return replace(self, matrix=matrix, offset=offset)


def affine_map(model: Any) -> AffineMap:
    """Return what a fitted metric does to rows.

    Parameters
    ----------
    model : fitted estimator, pipeline or Model
        An estimator of lnml, a pipeline of scalers, PCA and such an estimator, or what
        :func:`lnml.models.load_model` returns.

    Raises
    ------
    TypeError
        If it is something else, or holds a step that is not affine.
    """
    if isinstance(model, Model):
        return _of_preparation(model.preparation).then(_linear(model.components))
    steps = steps_of(model)
    if not any(isinstance(step, MahalanobisMetric) for _, step in steps):
        raise TypeError(
            f"an export takes a fitted metric of lnml, a pipeline that holds one, or a model file; "
            f"got {kind_of(model)}"
        )
    return _joined(steps)


def affine_start(steps: Steps) -> tuple[AffineMap | None, Steps]:
    """Split steps into a map, of those up to the first that is not affine, and the others.

    The map is None if the metric is not among its steps.
    """
    n_affine = 0
    while n_affine < len(steps) and _is_affine(steps[n_affine][1]):
        n_affine += 1
    start = steps[:n_affine]
    if not any(isinstance(step, MahalanobisMetric) for _, step in start):
        return None, steps
    return _joined(start), steps[n_affine:]


def steps_of(model: Any) -> Steps:
    """Return the steps of a pipeline, and of pipelines inside it; or an estimator itself."""
    return list(_flat(model))


def _flat(model: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(model, Pipeline):
        yield "", model
        return
    for name, step in model.steps:
        if isinstance(step, Pipeline):
            yield from _flat(step)
        elif step is not None and step != "passthrough":
            yield name, step


def _joined(steps: Steps) -> AffineMap:
    found = reduce(AffineMap.then, [_of_step(name, step) for name, step in steps])
    first = steps[0][1]
    return replace(found, names=tuple(map(str, getattr(first, "feature_names_in_", ()))))


def _is_affine(step: Any) -> bool:
    if isinstance(step, MahalanobisMetric):
        return True
    # A class derived from one of these may do something else.
    return type(step) in _RULES and not getattr(step, "clip", False)


def _of_step(name: str, step: Any) -> AffineMap:
    check_is_fitted(step)
    if isinstance(step, MahalanobisMetric):
        return _linear(step.components_)
    if getattr(step, "clip", False):
        raise TypeError(f"{kind_of(step)} with clip=True is no affine map: set clip=False")
    if _is_affine(step):
        return _RULES[type(step)](step)
    raise TypeError(
        f"the step {name!r} ({kind_of(step)}) cannot be exported: it takes scalers, PCA and "
        f"metrics of lnml; leave the steps after them out, as in pipeline[:-1]"
    )


def _scaled(step: Any, center: Any, factor: Any, offset: Any = None) -> AffineMap:
    """Return x -> factor (x - center) + offset, column by column; None is no change."""
    d = step.n_features_in_
    return AffineMap(
        np.ones(d) if factor is None else np.asarray(factor, dtype=np.float64),
        np.zeros(d) if center is None else np.asarray(center, dtype=np.float64),
        np.zeros(d) if offset is None else np.asarray(offset, dtype=np.float64),
        spread=_inverse(factor),
    )


def _inverse(scale: Any) -> Any:
    return None if scale is None else 1.0 / np.asarray(scale, dtype=np.float64)


def _of_minmax(step: MinMaxScaler) -> AffineMap:
    offset = step.min_ + step.data_min_ * step.scale_
    return _scaled(step, step.data_min_, step.scale_, offset)


def _of_pca(step: PCA) -> AffineMap:
    matrix = np.asarray(step.components_, dtype=np.float64)
    spread = np.sqrt(np.square(matrix).T @ step.explained_variance_)
    if step.whiten:
        # As scikit-learn does, a component without variance is divided by something tiny.
        lengths = np.sqrt(step.explained_variance_)
        matrix = matrix / np.maximum(lengths, np.finfo(lengths.dtype).eps)[:, None]
    center = np.asarray(step.mean_, dtype=np.float64)
    return AffineMap(matrix, center, np.zeros(len(matrix)), spread=spread)


def _linear(components: Any) -> AffineMap:
    matrix = np.asarray(host_array(components), dtype=np.float64)
    return AffineMap(matrix, np.zeros(matrix.shape[1]), np.zeros(matrix.shape[0]))


_RULES: dict[type, Callable[[Any], AffineMap]] = {
    # It knows a mean that it does not use.
    StandardScaler: lambda step: _scaled(
        step, step.mean_ if step.with_mean else None, _inverse(step.scale_)
    ),
    MinMaxScaler: _of_minmax,
    MaxAbsScaler: lambda step: _scaled(step, None, _inverse(step.scale_)),
    RobustScaler: lambda step: _scaled(step, step.center_, _inverse(step.scale_)),
    PCA: _of_pca,
}


def _of_preparation(preparation: Preparation) -> AffineMap:
    """Return what happens to the columns of numbers and the 0/1 columns of a table."""
    names = tuple(name for column in preparation.columns_ for name in column.output_names)
    d, numbers = len(names), preparation.centers_.size
    factor, center = np.ones(d), np.zeros(d)
    factor[:numbers], center[:numbers] = 1.0 / preparation.spreads_, preparation.centers_
    made = AffineMap(factor, center, np.zeros(d), names)
    if preparation.pca is not None:
        components = preparation.pca_components_
        projection = AffineMap(components, preparation.pca_mean_, np.zeros(len(components)))
        made = made.then(projection)
    return made
