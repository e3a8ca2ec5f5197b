"""One value and gradient of MCML and NCA, compared with scikit-learn's NCA."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from objectives import mcml_objective, nca_objective

from suite.exchange import Reply, call
from suite.report import Group, Line, Table
from suite.rows import bundled, save
from suite.scale import Scale

STEP = 1e-4
# Letter's features are integers up to 15: here the softmax is neither flat nor a single point.
METRIC_SCALE = 0.3


def softmax(scale: Scale, folder: Path, python: str) -> Group:
    """Time and memory of one evaluation on 4,000 rows of Letter."""
    n = scale.softmax
    X, y = bundled("letter", n)
    data = save(folder, "softmax", X=X, y=y)
    theirs = call("suite.child", "softmax_nca", data, scale=METRIC_SCALE, repeats=5)
    mine = {
        method: call(
            "suite.child", "softmax_lnml", data, scale=METRIC_SCALE, method=method, repeats=25
        )
        for method in ("mcml", "nca")
    }
    group = Group(f"Softmax kernels: Letter, {n:,} rows, one value and gradient")
    for method, reply in mine.items():
        name = method.upper()
        group.lines += [
            Line(
                f"{name}'s value and gradient on {n:,} rows, speed-up over scikit-learn's NCA",
                theirs.values["seconds"] / reply.values["seconds"],
                15.0,
                unit=" ×",
            ),
            Line(
                f"{name}'s memory for these, as a share of scikit-learn's NCA",
                reply.values["peak_mb"] / theirs.values["peak_mb"],
                0.1,
                at_least=False,
            ),
        ]
    header = ["tool", "s", "peak MB", "value", "error of the value", "error of the slope"]
    table = Table(header)
    for tool, reply, objective in (
        ("lnml MCML", mine["mcml"], mcml_objective),
        ("lnml NCA", mine["nca"], nca_objective),
        ("scikit-learn NCA", theirs, nca_objective),
    ):
        values = reply.values
        errors = _errors(reply, X, y, objective)
        table.rows.append([tool, values["seconds"], values["peak_mb"], values["value"], *errors])
    group.tables.append(table)
    group.notes = [
        f"All values are at {METRIC_SCALE} times the identity, in float64. Each tool has its own "
        "process; seconds are medians of several calls. Memory is that of the calls alone: "
        "scikit-learn's mask of same-class pairs, an n × n array, is not counted.",
        "Errors are relative. The value is compared with plain NumPy. The slope, the derivative "
        "along a random direction, is compared with central differences.",
    ]
    return group


def _errors(
    reply: Reply, X: np.ndarray, y: np.ndarray, objective: Callable[..., float]
) -> list[float]:
    """Relative errors of value and directional derivative."""
    L, step = reply.arrays["L"], reply.arrays["step"]
    length = STEP * np.linalg.norm(L) / np.linalg.norm(step)
    value = objective(X, y, L)
    ahead, behind = (objective(X, y, L + sign * length * step) for sign in (1, -1))
    slope = (ahead - behind) / (2 * length)
    return [
        abs(reply.values["value"] / value - 1.0),
        abs(reply.values["slope"] / slope - 1.0),
    ]
