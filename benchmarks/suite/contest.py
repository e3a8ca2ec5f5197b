"""lnml and its peers on the same rows and targets, judged by the same exact objective."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from objectives import (
    lmnn_objective,
    lmnn_objective_nearest,
    nearest_same_class,
    squared_lengths,
)

from suite.exchange import ONE_THREAD, Reply, call
from suite.rows import bundled, save

K = 3
RUNNER = "peers.runner"
CLOSE = 1.01


@dataclass
class Run:
    """One tool's run: when it stopped, at which exact objective, and its objective over time."""

    tool: str
    seconds: float
    peak_mb: float
    objective: float
    times: list[float]
    objectives: list[float]
    values: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def reaches(self, objective: float) -> float:
        """Seconds of the first record at or below an objective; inf if there is none."""
        for seconds, value in zip(self.times, self.objectives, strict=True):
            if value <= objective:
                return seconds
        return float("inf")


class Contest:
    """All tools on given rows with k = 3 target neighbours and push weight 0.5.

    Parameters
    ----------
    name, X, y
        Name and rows.
    folder : Path
        Scratch directory.
    python : str
        The Python of the peers' environment.
    """

    def __init__(self, name: str, X: np.ndarray, y: np.ndarray, folder: Path, python: str) -> None:
        self.X, self.y, self.python = X, y, python
        self.targets = nearest_same_class(X, y, K)
        self.data = save(folder, name, X=X, y=y, targets=self.targets)

    def exact(self, L: np.ndarray) -> float:
        """Exact objective of a transformation."""
        return lmnn_objective(self.X, self.y, self.targets, L)

    def lnml(self, tol: float, repeats: int) -> Run:
        """Run LMNN of lnml; its time includes the search for targets."""
        reply = call("suite.child", "fit_lmnn", self.data, tol=tol, repeats=repeats)
        run = self._judge("lnml", reply)
        run.objective = self.exact(reply.arrays["L"])
        found = reply.arrays["targets"]
        if found.shape != self.targets.shape or np.any(found != np.sort(self.targets, axis=1)):
            raise RuntimeError("lnml used other target neighbours than the benchmark")
        apart = abs(reply.values["objective"] / run.objective - 1.0)
        run.remarks.append(
            f"lnml: its own objective agrees with the exact one to {apart:.0e}. It made "
            f"{run.values['n_searches']} full searches and {run.values['n_evaluations']} "
            f"evaluations. Seconds are medians of {repeats} fits and include the search for "
            f"targets. lnml keeps one record per iteration, so it may have reached an objective "
            f"earlier than the table says."
        )
        return run

    def metric_learn(self, both: bool, repeats: int = 1) -> Run:
        """Run metric-learn until it stops by itself."""
        reply, threads = self._fastest("metric_learn", both, repeats=repeats)
        run = self._judge("metric-learn", reply)
        own = reply.arrays["own_objective"]
        apart = float(np.max(np.abs(own / np.array(run.objectives) - 1.0)))
        run.remarks.append(
            f"metric-learn ({threads}): it was given the same target neighbours. Its own objective "
            f"agrees with the exact one to {apart:.0e} all the time. It stopped after "
            f"{run.values['n_iter']} iterations, "
            + ("which is its limit." if run.values["stopped_by_limit"] else "by its own rule.")
        )
        return run

    def mlpack(
        self,
        task: str,
        both: bool,
        budgets: tuple[int, ...],
        repeats: int = 1,
        last: int | None = None,
    ) -> Run:
        """Run mlpack with L-BFGS (``mlpack_lbfgs``) or its default (``mlpack_default``).

        ``last`` limits its iterations; without it, mlpack stops by itself.
        """
        reply, threads = self._fastest(task, both, budgets=budgets, repeats=repeats, last=last)
        names = {"mlpack_lbfgs": "mlpack L-BFGS", "mlpack_default": "mlpack default (AMSGrad)"}
        run = self._judge(names[task], reply)
        own = reply.arrays["own_targets"]
        shared = float((own[:, :, None] == self.targets[:, None]).any(axis=2).mean())
        reach = [
            np.sort(squared_lengths(self.X[:, None] - self.X[targets]), axis=1)
            for targets in (own, self.targets)
        ]
        why = "the others tie" if np.allclose(*reach) else "the others are not the nearest"
        objective = lmnn_objective(self.X, self.y, own, reply.arrays["L"])
        run.values |= {"own_targets_objective": objective, "shared_targets": shared}
        run.remarks.append(
            f"{run.tool} ({threads}): it chooses its own target neighbours. {shared:.1%} of them "
            f"are the same ({why}). With its own neighbours its objective is {objective:,.1f}."
        )
        return run

    def _fastest(self, task: str, both: bool, **options: Any) -> tuple[Reply, str]:
        """Run a peer with one thread, and with as many as it likes; keep the faster run."""
        settings: list[dict[str, str]] = [ONE_THREAD, {}] if both else [ONE_THREAD]
        replies = [
            call(RUNNER, task, self.data, python=self.python, environment=setting, **options)
            for setting in settings
        ]
        reply = min(replies, key=lambda one: one.values["seconds"])
        return reply, "the faster of 1 and all threads" if both else "1 thread"

    def _judge(self, tool: str, reply: Reply) -> Run:
        objectives = [self.exact(L) for L in reply.arrays["trace"]]
        return Run(
            tool,
            reply.values["seconds"],
            reply.values["peak_mb"],
            objectives[-1],
            reply.arrays["seconds"].tolist(),
            objectives,
            reply.values,
        )


HEADER = [
    "tool",
    "s until it stops",
    "exact objective",
    "gap",
    "peak MB",
    "s until lnml reaches this objective",
    "speed-up of lnml",
    "s until it is within 1 % of its last objective",
]


def standings(mine: Run, peers: list[Run]) -> list[list[Any]]:
    """Rows of the table: lnml, then its peers."""
    bound = mine.values["bound"]
    rows = []
    for run in (mine, *peers):
        reached = mine.reaches(run.objective) if run is not mine else None
        rows.append(
            [
                run.tool,
                run.seconds,
                run.objective,
                (run.objective - bound) / run.objective,
                run.peak_mb,
                reached,
                None if reached is None else run.seconds / reached,
                run.reaches(CLOSE * run.objective),
            ]
        )
    return rows


def traces(mine: Run, peers: list[Run]) -> dict[str, Any]:
    """What the figure needs: a line per tool, and the proved bound."""
    return {
        "bound": mine.values["bound"],
        "lines": {
            run.tool: {"seconds": run.times, "objective": run.objectives} for run in (mine, *peers)
        },
    }


def check_weights(folder: Path, python: str) -> list[str]:
    """Check what ``regularization`` means to the peers, on Iris with weights far from 0.5."""
    X, y = bundled("iris", 150)
    targets = nearest_same_class(X, y, K)
    data = save(folder, "iris", X=X, y=y, targets=targets)
    reply = call(
        RUNNER, "metric_learn", data, python=python, push_weight=0.8, environment=ONE_THREAD
    )
    exact = [lmnn_objective(X, y, targets, L, 0.8) for L in reply.arrays["trace"]]
    apart = float(np.max(np.abs(reply.arrays["own_objective"] / exact - 1.0)))
    if apart > 1e-6:
        raise RuntimeError(f"metric-learn's objective is not the expected one: {apart:.1e} apart")
    found = {
        weight: call(RUNNER, "mlpack_lbfgs", data, python=python, push_weight=weight).arrays["L"]
        for weight in (0.3, 0.7)
    }
    for weight, L in found.items():
        rivals = [*(other for w, other in found.items() if w != weight), 0.9 * L, 1.1 * L, L.T]
        mine, *others = (lmnn_objective_nearest(X, y, targets, one, weight) for one in (L, *rivals))
        if mine >= min(others):
            raise RuntimeError(f"mlpack's objective is not the expected one: {mine}, {others}")
    return [
        f"metric-learn's `regularization` is the weight of the pull, 1 − push weight (checked on "
        f"Iris at 0.2: its own objective agrees to {apart:.0e}).",
        "mlpack's `regularization` is the push weight (checked on Iris at 0.3 and 0.7: its metric "
        "is better than the metric for the other weight, and than larger and smaller multiples of "
        "itself). But it counts only the 3 nearest impostors of a row, so its problem is smaller.",
    ]
