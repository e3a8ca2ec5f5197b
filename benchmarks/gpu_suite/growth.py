"""How single steps grow with rows and rank, and the share of the ceiling they reach."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from mixture import make_mixture
from suite.report import Group, Table

from gpu_suite.ceilings import Ceilings, seconds
from lnml.core.pairs import Edge
from lnml.kernels import get_kernels
from lnml.kernels.training import TrainingSet
from lnml.learning.targets import nearest_neighborhoods
from lnml.objectives.conditioning import whiten_pull
from lnml.objectives.lmnn import LMNNTask
from lnml.objectives.nca import NCATask
from lnml.objectives.scatter import total_scatter

ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
RANKS = (8, 16, 32, 64, 128)
ROWS_OF_RANKS = 100_000
# More rows would take minutes for one softmax pass.
MOST_SOFTMAX_ROWS = 300_000
# Columns of the table that are drawn: times, and shares with the colour of their step.
TIMES = ((1, "search"), (4, "evaluation"), (5, "softmax pass"))
SHARES = ((0, 2, "search, of float16"), (2, 6, "softmax pass, of float32"))


def growth(ceilings: Ceilings, device: str) -> Group:
    """Tables over rows at full rank and over ranks at a fixed number of rows."""
    X, y = make_mixture(max(ROWS))
    d = X.shape[1]
    group = Group(f"Growth with rows and rank: the mixture, {d} features, float32")
    by_rows = [[n, *_measure(ceilings, X[:n], y[:n], d, device)] for n in ROWS]
    n = ROWS_OF_RANKS
    by_rank = [[rank, *_measure(ceilings, X[:n], y[:n], rank, device)] for rank in RANKS]
    header = ["search ms", "share of float16 %", "pairs", "evaluation ms"]
    header += ["softmax pass ms", "share of float32 %"]
    group.tables = [Table(["rows", *header], by_rows), Table(["rank", *header], by_rank)]
    group.traces = {"rows": {"rows": by_rows}, "rank": {"rows": by_rank}}
    group.notes = [
        "A search finds all impostors within reach at the metric that LMNN starts from, without a "
        "margin. An evaluation is the smoothed value and gradient of LMNN over these pairs. A "
        "softmax pass is the value and gradient of NCA. A share compares the rate of the step with "
        "the measured rate of a large product in that type: 2 n² r operations divided by the time "
        "of a search, 4 n² r operations divided by the time of a softmax pass.",
        f"The second table has {n:,} rows and components of lower rank: the leading principal "
        f"axes of the whitened data, which tell classes apart best. In few dimensions the hundred "
        f"classes overlap, and a search must list every pair that does.",
    ]
    return group


def _measure(ceilings: Ceilings, X: np.ndarray, y: np.ndarray, rank: int, device: str) -> list[Any]:
    """One row of a table."""
    kernels, (n, d) = get_kernels(device), X.shape
    with kernels.session():
        training = TrainingSet.from_labels(torch.as_tensor(X, device=device), y, kernels)
        targets = nearest_neighborhoods(training, np.eye(d), 3)
        conditioning = whiten_pull(kernels, training.points, Edge(targets))
        task = LMNNTask(kernels, conditioning, targets, 0.5)
        axes = np.linalg.eigh(total_scatter(kernels, task.points))[1][:, ::-1].T[:rank]
        L = np.sqrt(task.best_scale(axes)) * axes
        search = seconds(lambda: task.search(L, 0.0, 1.0), 3)
        evaluation = seconds(lambda: task.smoothed(L, 0.15), 5)
        softmax = share = None
        if n <= MOST_SOFTMAX_ROWS:
            nca = NCATask(kernels, conditioning)
            softmax = seconds(lambda: nca.value_and_gradient(L), 2)
            share = 100.0 * 4.0 * n * n * rank / softmax / ceilings.float32
        reached = 100.0 * 2.0 * n * n * rank / search / ceilings.float16
        softmax_ms = None if softmax is None else 1e3 * softmax
        pairs = task.working.candidates.size
        return [1e3 * search, reached, pairs, 1e3 * evaluation, softmax_ms, share]


def draw(group: Group, path: Path) -> None:
    """Time of the three steps, and their share of the ceiling, against rows and against rank."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9, 6.4), layout="constrained", sharex="col")
    for (above, below), name, label in zip(
        axes.T, ("rows", "rank"), ("rows", "rank r"), strict=True
    ):
        rows = group.traces[name]["rows"]
        for color, (column, step) in enumerate(TIMES):
            above.loglog(*_points(rows, column), "o-", color=f"C{color}", label=step)
        for color, column, step in SHARES:
            below.semilogx(*_points(rows, column), "o-", color=f"C{color}", label=step)
        above.set(ylabel="milliseconds")
        below.set(xlabel=label, ylabel="share of the product's rate, %")
        for axis in (above, below):
            axis.grid(alpha=0.3)
    for axis in axes[:, 0]:
        axis.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _points(rows: list[list[Any]], column: int) -> tuple[list[float], list[float]]:
    """Sizes and values of a column of a table, where there are any."""
    found = [(row[0], row[column]) for row in rows if row[column] is not None]
    return [size for size, _ in found], [value for _, value in found]
