"""The same function on GPU and CPU: values, gradients, certificates, assignments, optima."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from suite.report import Group, Line, Table
from suite.rows import bundled, mnist

from lnml import LMNN
from lnml.core.pairs import Edge
from lnml.kernels import get_kernels
from lnml.kernels.training import TrainingSet
from lnml.learning.assignment import Sizes
from lnml.learning.targets import choose_ranked, nearest_neighborhoods, rank_at_metric
from lnml.objectives.conditioning import Conditioning, whiten_pull
from lnml.objectives.lmnn import LMNNObjective, LMNNTask
from lnml.objectives.mcml import MCMLTask
from lnml.objectives.nca import NCATask
from lnml.solvers.problem import ObjectiveProblem

SMALL = ("iris", "wine", "balance_scale", "ionosphere", "sonar")
TOLERANCE = 1e-5
SIZES = Sizes(1, 3, 5)


def agreement(device: str) -> Group:
    """Compare both devices at the same metric, and compare the intervals that their fits prove."""
    header = ["data", "type", "LMNN value", "gradient", "bound", "MCML value", "gradient"]
    header += ["dual matrix", "NCA value", "gradient", "pairs that differ", "optima overlap"]
    table = Table(header)
    largest, overlap = 0.0, True
    for name, X, y, tol in _data():
        eye = np.eye(X.shape[1])
        start = _shared_start(X, y)
        there, here = (_look(X, y, eye, start, name) for name in (device, "cpu"))
        errors = [_difference(there[key], here[key]) for key in here if key != "pairs"]
        changed = here["pairs"].to_host().n_changed(there["pairs"].to_host())
        both = _optima_overlap(X, y, device, tol)
        table.rows.append([name, str(X.dtype), *errors, changed, "yes" if both else "no"])
        largest = max(largest, *errors)
        overlap &= both
    group = Group("The same function as the CPU")
    group.lines = [
        Line(
            "largest relative difference of a value, gradient or certificate at the same metric",
            largest,
            TOLERANCE,
            at_least=False,
        ),
        Line("certified optima overlap on all data sets (1: yes)", float(overlap), 1.0),
    ]
    group.tables.append(table)
    group.notes = [
        "The table gives relative differences between the torch implementation on the GPU and the "
        "compiled one on the CPU, in the norm of the array, at the metric that LMNN starts from. "
        "«Bound» is the dual bound of LMNN; «dual matrix» is the matrix whose eigenvalues certify "
        "MCML.",
        f"«Pairs that differ» counts pairs of the assignment {tuple(SIZES)} at the identity. In "
        "float64 both devices round ties alike; in float32 distances that are equal up to rounding "
        "may swap.",
        "«Optima overlap» means that the larger of the two proved bounds of LMNN is not above the "
        "smaller of the two objectives.",
    ]
    return group


def _data() -> list[tuple[str, np.ndarray, np.ndarray, float]]:
    """Data sets, and how tightly LMNN is solved on them."""
    found = [(name, *bundled(name, 10**6), 1e-3) for name in SMALL]
    found.append(("letter", *bundled("letter", 10**6), 1e-2))
    folder = Path(os.environ.get("LNML_DATA", "."))
    if (folder / "isolet.npz").exists():
        with np.load(folder / "isolet.npz") as stored:
            X, y = stored["X"].astype(np.float64), np.unique(stored["y"], return_inverse=True)[1]
        found.append(("isolet", X, y, 5e-2))
    if (folder / "mnist.npz").exists():
        found.append(("mnist, 10,000 rows", *mnist(10_000, 164), 1e-2))
    return found


def _shared_start(X: np.ndarray, y: np.ndarray) -> tuple[Conditioning, np.ndarray]:
    """Coordinates and components LMNN starts from, found on the CPU for both."""
    kernels, eye = get_kernels("cpu"), np.eye(X.shape[1])
    with kernels.session():
        training = TrainingSet.from_labels(X, y, kernels)
        targets = nearest_neighborhoods(training, eye, 3)
        conditioning = whiten_pull(kernels, training.points, Edge(targets))
        task = LMNNTask(kernels, conditioning, targets, 0.5)
        components = conditioning.to_conditioned(eye)
        return conditioning, np.sqrt(task.best_scale(components)) * components


def _look(
    X: np.ndarray,
    y: np.ndarray,
    eye: np.ndarray,
    start: tuple[Conditioning, np.ndarray],
    device: str,
) -> dict[str, Any]:
    """Everything that is compared, computed on one device."""
    kernels = get_kernels(device)
    shared, components = start
    with kernels.session():
        training = TrainingSet.from_labels(X, y, kernels)
        targets = nearest_neighborhoods(training, eye, 3)
        points = kernels.points(shared.points.data, shared.points.class_start)
        conditioning = Conditioning(points, shared.matrix, shared.inverse, shared.pull)
        lmnn = LMNNTask(kernels, conditioning, targets, 0.5)
        lmnn.search(components, 0.3)
        lmnn.update_multipliers(1.05 * components, 0.3)
        value, gradient = lmnn.smoothed(components, 0.3)
        bound = lmnn.evaluate(components, 0.3).bound
        mcml = MCMLTask(kernels, conditioning)
        nca = NCATask(kernels, conditioning)
        mcml_value, mcml_gradient = mcml.value_and_gradient(components)
        nca_value, nca_gradient = nca.value_and_gradient(components)
        problem = ObjectiveProblem(LMNNObjective(training, 0.5), 1)
        ranking = rank_at_metric(problem, training, eye, SIZES.k_max)
        return {
            "lmnn": value,
            "lmnn gradient": gradient,
            "bound": bound,
            "mcml": mcml_value,
            "mcml gradient": mcml_gradient,
            "dual matrix": mcml.dual_point(components).matrix,
            "nca": nca_value,
            "nca gradient": nca_gradient,
            "pairs": choose_ranked(problem, training, ranking, SIZES).targets,
        }


def _difference(found: Any, expected: Any) -> float:
    """Relative difference in the norm; between numbers near zero the difference itself."""
    size = float(np.linalg.norm(expected))
    return float(np.linalg.norm(np.asarray(found) - expected)) / max(size, 1e-9)


def _optima_overlap(X: np.ndarray, y: np.ndarray, device: str, tol: float) -> bool:
    """Whether the intervals from bound to objective of fits on both devices meet."""
    fits = [LMNN(tol=tol, device=name).fit(X, y) for name in (device, "cpu")]
    bounds = [fit.history_[-1]["bound"] for fit in fits]
    return max(bounds) <= min(fit.objective_ for fit in fits)
