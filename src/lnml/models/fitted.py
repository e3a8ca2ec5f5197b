"""Fitted estimators and pipelines as JSON and arrays, for model files.

A file names classes, but no name is ever imported: it picks one of the classes listed here, and
what it says of them is checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from lnml.certificates import Certificate
from lnml.core.checks import kind_of
from lnml.errors import InputError
from lnml.estimators.auto import AutoMetric
from lnml.estimators.averaged import AveragedMetric
from lnml.estimators.lnml import LNML
from lnml.estimators.lnml_cv import LNMLCV
from lnml.estimators.tuned import TunedMetric
from lnml.kernels.tensors import host_array
from lnml.models.parameters import from_plain, plain_parameters, plain_value, value_of
from lnml.registry import LEARNERS

Arrays = dict[str, np.ndarray]
_CERTIFICATE = "certificate."


class Parts(NamedTuple):
    """What a kind of step is stored as.

    Attributes
    ----------
    arrays : dict of str to str
        Fitted arrays and their axes: d columns, r columns of the result.
    facts : dict of str to type
        Other fitted attributes; all may be absent or None.
    switches : dict of str to str
        Parameters without which an array may be None.
    """

    arrays: Mapping[str, str]
    facts: Mapping[str, type]
    switches: Mapping[str, str] = MappingProxyType({})


_METRIC = Parts(
    {"components_": "rd"},
    {
        "objective_": float,
        "duality_gap_": float,
        "converged_": bool,
        "n_iter_": int,
        "n_neighbors_": int,
        "best_params_": dict,
        "best_index_": int,
        "best_score_": float,
        "reason_": str,
        "n_splits_": int,
        "_n_rows": int,
        "_stopped": bool,
    },
)
# Every metric of this library.
METRIC_CLASSES: tuple[type, ...] = (
    *(entry.estimator_class for entry in LEARNERS),
    *(LNML, LNMLCV, AveragedMetric, AutoMetric, TunedMetric),
)
_SEEN = {"n_samples_seen_": int}
_STEPS: dict[type, Parts] = {
    StandardScaler: Parts(
        {"mean_": "d", "var_": "d", "scale_": "d"},
        _SEEN,
        {"mean_": "with_mean", "var_": "with_std", "scale_": "with_std"},
    ),
    MinMaxScaler: Parts(
        dict.fromkeys(("min_", "scale_", "data_min_", "data_max_", "data_range_"), "d"), _SEEN
    ),
    MaxAbsScaler: Parts({"max_abs_": "d", "scale_": "d"}, _SEEN),
    RobustScaler: Parts(
        {"center_": "d", "scale_": "d"}, {}, {"center_": "with_centering", "scale_": "with_scaling"}
    ),
    PCA: Parts(
        {
            "components_": "rd",
            "mean_": "d",
            "explained_variance_": "r",
            "explained_variance_ratio_": "r",
            "singular_values_": "r",
        },
        {"n_components_": int, "n_samples_": int, "noise_variance_": float},
    ),
    **dict.fromkeys(METRIC_CLASSES, _METRIC),
}
_CLASSES = {each.__name__: each for each in _STEPS}
_METRICS = [each.__name__ for each in METRIC_CLASSES]
_SKIPPED = "passthrough"


def state_of(model: Any) -> tuple[dict[str, Any], Arrays]:
    """Return a fitted estimator or pipeline as a dict that JSON can hold, and arrays by name.

    Raises
    ------
    TypeError
        If it is, or holds, something else.
    """
    is_pipeline = isinstance(model, Pipeline)
    steps = model.steps if is_pipeline else [("metric", model)]
    states: list[dict[str, Any]] = []
    arrays: Arrays = {}
    for place, (name, step) in enumerate(steps):
        if is_pipeline and (step is None or step == _SKIPPED):
            states.append({"name": name, "class": _SKIPPED})
            continue
        if type(step) not in _STEPS:
            raise TypeError(_refusal(name if is_pipeline else None, step))
        check_is_fitted(step)
        state, parts = _step_state(step)
        states.append({"name": name, **state})
        arrays |= {f"{place}.{part}": array for part, array in parts.items()}
    transposed = [name for name, array in arrays.items() if _is_transposed(array)]
    arrays = {name: array.T if name in transposed else array for name, array in arrays.items()}
    kind = "pipeline" if is_pipeline else "estimator"
    return {"kind": kind, "steps": states, "transposed": transposed}, arrays


def from_state(state: Mapping[str, Any], arrays: Arrays) -> Any:
    """Undo :func:`state_of`; refuse a state whose parts do not fit each other."""
    arrays = {
        name: array.T if name in state["transposed"] else array for name, array in arrays.items()
    }
    steps: list[tuple[str, Any]] = []
    width = None
    for place, stored in enumerate(state["steps"]):
        if not isinstance(stored["name"], str):
            raise ValueError("the name of a step must be text")
        if stored["class"] == _SKIPPED:
            steps.append((stored["name"], _SKIPPED))
            continue
        prefix = f"{place}."
        parts = {
            name.removeprefix(prefix): array
            for name, array in arrays.items()
            if name.startswith(prefix)
        }
        step = _fitted_step(stored, parts)
        if width not in (None, step.n_features_in_):
            raise ValueError(f"step {stored['name']} has another width than the one before it")
        width = getattr(step, "components_", np.zeros((step.n_features_in_, 0))).shape[0]
        steps.append((stored["name"], step))
    if state["kind"] == "estimator" and len(steps) == 1:
        return steps[0][1]
    if state["kind"] != "pipeline" or not steps or len(dict(steps)) < len(steps):
        raise ValueError("the steps do not make a pipeline")
    return Pipeline(steps)


def _refusal(name: str | None, step: Any) -> str:
    what = kind_of(step)
    if name is None:
        return (
            f"save_model cannot store {what}: it takes a Model, a fitted estimator of lnml "
            f"({', '.join(_METRICS)}), or a pipeline of scalers, PCA and such an estimator"
        )
    return (
        f"save_model cannot store the step {name!r} of the pipeline ({what}): it takes scalers, "
        f"PCA and estimators of lnml; store the steps before it, as in pipeline[:-1]"
    )


def _step_state(step: Any) -> tuple[dict[str, Any], Arrays]:
    """Return what is stored of one step, and its arrays."""
    kinds = _STEPS[type(step)]
    found = {name: getattr(step, name, None) for name in kinds.arrays}
    arrays = {
        name: np.asarray(host_array(array)) for name, array in found.items() if array is not None
    }
    state: dict[str, Any] = {
        "class": type(step).__name__,
        "parameters": plain_parameters(step),
        "n_features_in": int(step.n_features_in_),
        "facts": {
            name: _plain_fact(getattr(step, name), kind)
            for name, kind in kinds.facts.items()
            if hasattr(step, name)
        },
    }
    if hasattr(step, "feature_names_in_"):
        state["feature_names_in"] = [str(name) for name in step.feature_names_in_]
    if hasattr(step, "classes_"):
        state["classes"] = step.classes_.tolist()
    certificate = getattr(step, "certificate_", None)
    if certificate is not None:
        state["certificate"], proof = certificate.get_state()
        arrays |= {_CERTIFICATE + name: array for name, array in proof.items()}
    return state, arrays


def _plain_fact(value: Any, kind: type) -> Any:
    """Return a fitted attribute as JSON can hold it; None for a number that is not finite."""
    if value is None or (kind is float and not np.isfinite(value)):
        return None
    if kind is dict:
        return plain_value(value)
    if kind is int and np.ndim(value):
        # Rows seen by column, where some had missing values.
        return int(np.max(value))
    return kind(value)


def _fitted_step(stored: Mapping[str, Any], arrays: Arrays) -> Any:
    """Return a step as it was fitted, or refuse what cannot be one."""
    kind = _CLASSES[stored["class"]]
    step: BaseEstimator = kind(**from_plain(stored["parameters"], _CLASSES))
    width = stored["n_features_in"]
    if type(width) is not int or width < 1:
        raise ValueError("n_features_in must be a number of columns")
    step.n_features_in_ = width
    if "feature_names_in" in stored:
        names = _texts("feature_names_in", stored["feature_names_in"])
        if len(names) != width:
            raise ValueError("feature_names_in must have one name for each column")
        step.feature_names_in_ = np.array(names, dtype=object)
    _set_arrays(step, _STEPS[kind], arrays)
    for name, wanted in _STEPS[kind].facts.items():
        if name in stored["facts"]:
            value = value_of(stored["facts"][name], _CLASSES)
            if value is not None and type(value) is not wanted:
                raise ValueError(f"{name} must be of type {wanted.__name__}")
            setattr(step, name, value)
    if "classes" in stored:
        step.classes_ = _classes(stored["classes"])
    if _STEPS[kind] is _METRIC:
        step.certificate_ = _certificate(stored, arrays, step.components_)
    return step


def _set_arrays(step: Any, parts: Parts, arrays: Arrays) -> None:
    """Set the fitted arrays; None where a parameter of the step turned one off."""
    sizes = {"d": step.n_features_in_}
    if "components_" in parts.arrays:
        sizes["r"] = len(arrays["components_"])
    for name, letters in parts.arrays.items():
        array = arrays.get(name)
        setattr(step, name, array)
        shape = tuple(sizes[letter] for letter in letters)
        if array is None:
            if name not in parts.switches or getattr(step, parts.switches[name]):
                raise ValueError(f"{name} is missing")
        elif array.shape != shape or 0 in shape:
            raise ValueError(f"{name} must have shape {shape}")
        elif array.dtype not in (np.float64, np.float32) or not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite numbers")
        elif name == "scale_" and not array.all():
            raise ValueError("scale_ must not be zero")


def _classes(values: Any) -> np.ndarray:
    """Return class labels from what JSON holds of them."""
    kinds = {type(value) for value in values}
    if not isinstance(values, list) or not values or not kinds <= {str, int, float, bool}:
        raise ValueError("classes must be a list of labels")
    return np.array(values, dtype=object if len(kinds) > 1 else None)


def _certificate(
    stored: Mapping[str, Any], arrays: Arrays, components: np.ndarray
) -> Certificate | None:
    if "certificate" not in stored:
        return None
    parts = {
        name.removeprefix(_CERTIFICATE): array
        for name, array in arrays.items()
        if name.startswith(_CERTIFICATE)
    }
    certificate = Certificate.from_state(stored["certificate"], parts)
    if not np.array_equal(certificate.components, components):
        raise ValueError("the certificate is about another metric")
    return certificate


def _texts(name: str, values: Any) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} must be a list of texts")
    return values


def _is_transposed(array: np.ndarray) -> bool:
    """Whether an array lies in memory by columns, which decides the last bits of products."""
    return array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous


def check_storable(model: Any) -> tuple[dict[str, Any], Arrays]:
    """Return the state of a model that can be loaded again, or say why it cannot be stored."""
    state, arrays = state_of(model)
    try:
        from_state(state, arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{kind_of(model)} cannot be stored: {error}") from error
    return state, arrays
