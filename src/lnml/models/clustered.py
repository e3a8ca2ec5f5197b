"""Fit a metric to a table whose rows stay on a cluster."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from lnml.errors import InputError
from lnml.models.model import Model, fitted_components, mapped, told_voters
from lnml.registry import built_in
from lnml.tables import Preparation
from lnml.tables.cluster_table import ClusterTable

# Rows that a model keeps, and that come to the client for that.
KEPT_ROWS = 10_000


def check_on_cluster(method: str, estimator: Any, k: int | Literal["auto"] | None) -> None:
    """Refuse what cannot be fitted there, before any work; None is the Euclidean metric."""
    outside = "it is no estimator of lnml"
    reason = "" if estimator is None else getattr(estimator, "not_on_cluster_because", outside)
    if reason:
        raise InputError(
            f"{method} cannot be fitted on a cluster, because {reason}: name one of "
            f"{', '.join(_possible())}, or fit it on one machine, without --cluster"
        )
    if k == "auto" and getattr(estimator, "n_neighbors", None) != "auto":
        raise InputError(
            f"--k auto needs fits by inner folds, and {method} makes none on a cluster: give a "
            f"number, or leave it out"
        )


def _possible() -> list[str]:
    """Return the methods of this library that can be fitted on a cluster."""
    made = {key: method.make(0) for key, method in built_in().items() if not method.classifier}
    return [
        key
        for key, estimator in made.items()
        if estimator is None or not getattr(estimator, "not_on_cluster_because", "")
    ]


def fit_cluster_model(
    table: ClusterTable,
    method: str,
    estimator: Any,
    preparation: Preparation,
    *,
    k: int | Literal["auto"] | None = None,
    seed: int = 0,
) -> Model:
    """Fit a metric to rows on a cluster; see :func:`lnml.models.fit_model`.

    The model keeps at most ``KEPT_ROWS`` rows, a stratified sample. ``k`` may be "auto" only with
    an estimator that chooses it.
    """
    numbers, kept = table.sample(KEPT_ROWS, seed)
    table.prepare(preparation, kept)
    components, facts = fitted_components(estimator, table.rows(preparation), table.labels)
    classes, codes = table.summary.classes, table.summary.codes
    is_sample = numbers.size < codes.size
    return Model(
        method=method,
        preparation=preparation,
        components=components,
        rows=mapped(preparation.finished(kept), components),
        classes=tuple(classes.tolist()),
        codes=codes[numbers].astype(np.int64),
        label=table.label,
        data={
            "name": table.name,
            "fingerprint": table.summary.fingerprint,
            "files": str(table.n_files),
        },
        k=told_voters(k, estimator, len(kept)),
        missing=table.summary.plan.missing,
        numbers=numbers.astype(np.int64) if is_sample else None,
        class_rows=tuple(np.bincount(codes).tolist()) if is_sample else (),
        **facts,
    )
