"""What a sceptic needs, beside the data, to check that a metric is close to the best one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = 1

# Axes of each dual array. Equal letters are equal lengths; d features, e coordinates.
_SHAPES: dict[str, dict[str, tuple[str | int, ...]]] = {
    "lmnn": {"triplets": ("T", 2), "slopes": ("T",)},
    "frobenius": {"triplets": ("T", 2), "slopes": ("T",), "dominator": ("d", "d")},
    "weighted_basis": {
        "triplets": ("T", 2),
        "slopes": ("T",),
        "basis": ("d", "m"),
        "weights": ("m",),
    },
    "mcml": {"dual_shares": ("s",), "dual_components": ("s", "rows", "d")},
    "mmc": {"dual_components": ("rows", "d")},
    "itml": {
        "pairs": ("m", 2),
        "similar": ("m",),
        "bounds": ("m",),
        "tightness": ("m",),
        "factor": ("d", "d"),
    },
}
# In place of triplets and their slopes, where these are too many to be listed.
_LISTED = ("triplets", "slopes")
_IMPLIED: dict[str, tuple[str | int, ...]] = {
    "dual_components": ("rows", "d"),
    "smoothing": (1,),
    "share": (1,),
}
_PARAMETERS = {
    "lmnn": "push_weight",
    "frobenius": "C",
    "weighted_basis": "C",
    "mmc": "diagonal",
    "itml": "gamma",
}
# Methods that may have a 'trace_weight'.
_PENALISED = ("lmnn", "mcml", "mmc")
# Kinds of numbers that are taken, and the type that they are kept as; others are float64.
_WHOLE = ("iu", np.dtype(np.int64))
_TYPES = {
    "targets": _WHOLE,
    "triplets": _WHOLE,
    "pairs": _WHOLE,
    "similar": ("b", np.dtype(np.bool_)),
}
_NUMBERS = ("objective", "objective_error", "bound", "gap", "slack", "limit")
_TITLES = {
    "lmnn": "LMNN",
    "frobenius": "support vector",
    "weighted_basis": "relative comparisons",
    "mcml": "MCML",
    "mmc": "MMC",
    "itml": "ITML",
}

METHODS = tuple(_SHAPES)


@dataclass(frozen=True, eq=False)
class Certificate:
    """A metric, its objective, a lower bound over all metrics, and what proves the bound.

    Check it with :func:`lnml.certificates.verify`. docs/certificates.md has the formulas.

    Parameters
    ----------
    method : {'lmnn', 'frobenius', 'weighted_basis', 'mcml', 'mmc', 'itml'}
        The objective.
    parameters : dict
        'push_weight' (lmnn), 'C' (frobenius, weighted_basis), 'diagonal' (mmc) or
        'gamma' (itml); none for mcml. With a trace penalty also 'trace_weight', for lmnn,
        mcml and mmc: the factor of the trace beside the pull.
    components : array of shape (r, d)
        The learned metric, exactly as the fit returned it.
    objective, objective_error : float
        Its objective, and how much of it rounding can explain.
    bound : float
        No metric that the certificate is about has a smaller objective.
    gap : float
        (objective - bound), relative to the objective or to its floor.
    coordinates : array of shape (d, e)
        W: the bound is about all metrics M = W A W^T, A positive semidefinite.
    left_out : int
        Number of directions that W leaves out: rows differ there by rounding alone.
    slack : float
        The dual matrix is at least -slack times the identity.
    limit : float
        If slack is not zero, the bound is about metrics with trace(A) <= limit, and has been
        lowered by slack * limit.
    duals : dict of arrays
        What proves the bound, by name. Indices are rows of X.

        targets : (P, 2) pairs (i, j); absent: all ordered pairs of the same class, sorted
        lmnn : triplets (T, 2), each an index into targets and an impostor l; slopes (T,)
        or, if these are too many, dual_components (rows, d), smoothing (1,) and share (1,): the
        slope of every triplet is share * min(max(h / smoothing, 0), 1), h = 1 + D_ij - D_il at
        these components
        frobenius : the same, and dominator (d, d)
        weighted_basis : the same, and basis (d, m), weights (m,)
        mcml : dual_shares (s,), dual_components (s, rows, d); what the shares lack of one is
        that of the ideal distribution
        mmc : dual_components (rows, d)
        itml : pairs (m, 2), similar (m,), bounds (m,), tightness (m,), factor (d, d);
        no targets

        A bound of at most zero needs none of these but the targets, and the pairs of itml with
        their bounds: no objective is negative.

    Examples
    --------
    Three points on a line, LMNN: row 0 is to be nearer to row 1 than to row 2.

    >>> import numpy as np
    >>> from lnml.certificates import Certificate, verify
    >>> certificate = Certificate(
    ...     method="lmnn",
    ...     parameters={"push_weight": 0.5},
    ...     components=[[0.5773502691896258]],
    ...     objective=1 / 6,
    ...     objective_error=1e-15,
    ...     bound=1 / 6 - 1e-15,
    ...     gap=1e-14,
    ...     coordinates=[[1.0]],
    ...     left_out=0,
    ...     slack=0.0,
    ...     limit=np.inf,
    ...     duals={"targets": [[0, 1]], "triplets": [[0, 2]], "slopes": [1 / 3 - 1e-15]},
    ... )
    >>> certificate
    <Certificate of lmnn: objective 0.166667, bound 0.166667, gap 1e-14>
    >>> verify(certificate, [[0.0], [1.0], [2.0]], ["a", "a", "b"]).holds
    True
    """

    method: str
    parameters: Mapping[str, float | bool]
    components: np.ndarray
    objective: float
    objective_error: float
    bound: float
    gap: float
    coordinates: np.ndarray
    left_out: int = 0
    slack: float = 0.0
    limit: float = np.inf
    duals: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require(self.method in METHODS, f"method must be one of {METHODS}, got {self.method!r}")
        put = object.__setattr__
        put(self, "parameters", _checked_parameters(self.method, self.parameters))
        for name in _NUMBERS:
            put(self, name, float(getattr(self, name)))
        _require(np.isfinite([getattr(self, name) for name in _NUMBERS[:5]]).all(), "not finite")
        _require(self.objective_error >= 0.0, "objective_error must not be negative")
        _require(
            self.slack >= 0.0
            and self.limit >= 0.0
            and (self.slack == 0.0) == (self.limit == np.inf),
            f"slack must be >= 0, and limit finite if slack is not zero; got slack={self.slack}, "
            f"limit={self.limit}",
        )
        put(self, "left_out", int(self.left_out))
        put(self, "components", _checked_array("components", self.components, 2))
        put(self, "coordinates", _checked_array("coordinates", self.coordinates, 2))
        d, e = self.components.shape[1], self.coordinates.shape[1]
        _require(
            self.coordinates.shape[0] == d and e + self.left_out == d and self.left_out >= 0,
            f"coordinates of shape {self.coordinates.shape} and left_out={self.left_out} do not "
            f"go with components of {d} columns",
        )
        put(self, "duals", self._checked_duals(d))

    def _checked_duals(self, d: int) -> dict[str, np.ndarray]:
        own = _SHAPES[self.method]
        if "smoothing" in self.duals and "slopes" in own:
            own = _IMPLIED | {name: axes for name, axes in own.items() if name not in _LISTED}
        shapes = {"targets": ("P", 2), **own}
        lengths: dict[str | int, int] = {"d": d, 1: 1, 2: 2}
        duals = {}
        for name, array in self.duals.items():
            _require(name in shapes, f"a certificate of {self.method} has no dual {name!r}")
            axes = shapes[name]
            duals[name] = array = _checked_array(name, array, len(axes))
            for axis, length in zip(axes, array.shape, strict=True):
                _require(
                    lengths.setdefault(axis, length) == length,
                    f"{name} has shape {array.shape}, which does not go with the other arrays: "
                    f"it should be {axes} with {lengths}",
                )
        needed = set(own)
        if self.bound <= 0.0:
            needed &= {"pairs", "similar", "bounds"}
        missing = sorted(needed - set(duals))
        _require(not missing, f"a certificate of {self.method} needs {', '.join(missing)}")
        return duals

    @property
    def about(self) -> str:
        """What is proved, in words."""
        title = _TITLES[self.method]
        if "trace_weight" in self.parameters:
            title = f"penalised {title}"
        given = "data and target neighbours" if "targets" in self.duals else "data and classes"
        metrics = "metric of any rank"
        if self.method == "itml":
            given = "data, pairs and bounds"
        elif self.method == "weighted_basis":
            metrics = "metric of this basis"
        elif self.parameters.get("diagonal"):
            metrics = "diagonal metric"
        text = (
            f"For these {given}, no {metrics} has a smaller {title} objective than "
            f"{self.bound:.6g}; the learned metric has {self.objective:.6g}."
        )
        if self.limit < np.inf:
            text += (
                f" This is proved for metrics of trace up to {self.limit:.3g} in the coordinates "
                f"of the certificate."
            )
        if self.left_out:
            text += (
                f" {self.left_out} of {self.components.shape[1]} directions are left out: rows "
                f"differ there by rounding alone."
            )
        return text

    def get_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all but the arrays as values for JSON, and the arrays by name."""
        values = {name: getattr(self, name) for name in ("method", "left_out", *_NUMBERS)}
        values["limit"] = None if self.limit == np.inf else self.limit
        values["parameters"] = dict(self.parameters)
        arrays = {"components": self.components, "coordinates": self.coordinates}
        return values, arrays | {f"duals.{name}": array for name, array in self.duals.items()}

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Certificate:
        """Return the certificate of :meth:`get_state`.

        Raises
        ------
        KeyError, TypeError, ValueError
            If the parts do not make a certificate.
        """
        duals = {
            name.removeprefix("duals."): array
            for name, array in arrays.items()
            if name.startswith("duals.")
        }
        limit = np.inf if values["limit"] is None else values["limit"]
        matrices = {name: arrays[name] for name in ("components", "coordinates")}
        return cls(**{**values, "limit": limit, **matrices, "duals": duals})

    def save(self, path: str | Path) -> None:
        """Write the certificate to one .npz file: arrays and a JSON text, nothing that can run."""
        values, arrays = self.get_state()
        text = json.dumps({"format": FORMAT, **values}, allow_nan=False)
        with Path(path).open("wb") as file:
            # savez declares its options beside the arrays, so that mypy takes these for options.
            np.savez_compressed(file, certificate=np.array(text), **arrays)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | Path) -> Certificate:
        """Read a certificate. The file may come from a stranger: nothing in it is run.

        Raises
        ------
        ValueError
            If the file is not a certificate.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            values = json.loads(str(arrays.pop("certificate")))
            version = values.pop("format")
            _require(version == FORMAT, f"its format is {version!r}, not {FORMAT}")
            return cls.from_state(values, arrays)
        except FileNotFoundError:
            raise
        except Exception as error:
            # Damaged zip files, pickles and other content raise errors of many types.
            raise ValueError(f"{path} is not a certificate of lnml: {error}") from error

    def __repr__(self) -> str:
        return (
            f"<Certificate of {self.method}: objective {self.objective:.6g}, "
            f"bound {self.bound:.6g}, gap {self.gap:.1g}>"
        )


def _require(condition: Any, message: str) -> None:
    if not condition:
        raise ValueError(f"this is no certificate: {message}")


def _checked_parameters(method: str, given: Mapping[str, Any]) -> dict[str, float | bool]:
    expected = {_PARAMETERS[method]} if method in _PARAMETERS else set()
    penalty = {"trace_weight"} & set(given) if method in _PENALISED else set()
    _require(
        set(given) == expected | penalty,
        f"the parameters of {method} are {sorted(expected)}, got {sorted(given)}",
    )
    checked: dict[str, float | bool] = {}
    for name, value in given.items():
        checked[name] = bool(value) if name == "diagonal" else float(value)
        highest = 1.0 if name == "push_weight" else np.inf
        _require(
            name == "diagonal" or 0.0 < checked[name] < highest,
            f"{name} must be above 0 and below {highest}, got {value!r}",
        )
    return checked


def _checked_array(name: str, given: Any, ndim: int) -> np.ndarray:
    kinds, dtype = _TYPES.get(name, ("biuf", np.dtype(np.float64)))
    array = np.asarray(given)
    if array.size == 0:
        array = array.astype(dtype)
    _require(array.dtype.kind in kinds, f"{name} holds {array.dtype}, which is the wrong type")
    _require(array.ndim == ndim, f"{name} has shape {array.shape}, it needs {ndim} axes")
    _require(np.isfinite(array).all(), f"{name} holds numbers that are not finite")
    return np.ascontiguousarray(array, dtype=dtype)
