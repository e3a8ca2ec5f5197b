"""Runs a peer on given rows; executed by the Python of the peers' environment.

The weights have these meanings, read in the sources and checked by
``suite.contest.check_weights``:

- metric-learn minimises ``regularization * pull + (1 - regularization) * push`` over all
  impostors: its ``regularization`` is the weight of the *pull*, 1 - push_weight. It takes the
  target neighbours given here (``_select_targets`` is replaced) and starts from the identity.
- mlpack minimises ``(1 - regularization) * pull + regularization * push``: its
  ``regularization`` is the push_weight. But the push runs over the k nearest impostors of a row
  only, so it solves a smaller problem. It also chooses the target neighbours itself: they are the
  Euclidean nearest rows of the same class, too, but the norm of the rows decides ties.
"""

from __future__ import annotations

import platform
import statistics
import time
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np
from suite.exchange import Reply, Stopwatch, repeat, serve

TRACE_POINTS = 24


def versions() -> Reply:
    """Return the versions of this environment."""
    names = ("metric-learn", "mlpack", "numpy", "scipy", "scikit-learn")
    found = {name: version(name) for name in names}
    return Reply({"python": platform.python_version(), **found})


def metric_learn(
    X: np.ndarray,
    y: np.ndarray,
    targets: np.ndarray,
    repeats: int = 1,
    push_weight: float = 0.5,
    max_iter: int = 1000,
) -> Reply:
    """Fit metric-learn's LMNN from the identity; the trace comes from inside the run."""
    from metric_learn import LMNN

    warnings.simplefilter("ignore")

    class Traced(LMNN):
        """Keeps what each evaluation of the loss saw; uses the given targets."""

        def _select_targets(self, X: np.ndarray, label_inds: np.ndarray) -> np.ndarray:
            return self.given

        def _loss_grad(self, X: np.ndarray, L: np.ndarray, *rest: Any) -> Any:
            found = super()._loss_grad(X, L, *rest)
            self.seen.append((time.perf_counter() - self.start, found[1], L.copy()))
            return found

    def fit() -> Traced:
        model = Traced(
            init="identity",
            n_neighbors=targets.shape[1],
            regularization=1.0 - push_weight,
            max_iter=max_iter,
        )
        model.given, model.seen, model.start = targets, [], time.perf_counter()
        return model.fit(X, y)

    models: list[Traced] = []
    seconds, peak = repeat(lambda: models.append(fit()), repeats)
    model = models[seconds.index(statistics.median_low(seconds))]
    times, own, Ls = zip(*falling(model.seen), strict=True)
    values = {
        "seconds": statistics.median_low(seconds),
        "peak_mb": peak,
        "n_iter": model.n_iter_,
        "stopped_by_limit": model.n_iter_ >= max_iter - 1,
    }
    arrays = {"seconds": times, "own_objective": own, "trace": Ls, "L": model.components_}
    return Reply(values, {name: np.asarray(array) for name, array in arrays.items()})


def falling(seen: list[tuple[float, float, np.ndarray]]) -> list[tuple[float, float, np.ndarray]]:
    """Return some of the steps that lowered the loss, the last included, evenly spread in log."""
    kept, least = [], np.inf
    for step in seen:
        if step[1] <= least:
            kept.append(step)
            least = step[1]
    place = np.geomspace(1, len(kept), TRACE_POINTS).astype(int) - 1
    return [kept[i] for i in sorted(set(place.tolist()))]


def mlpack_lbfgs(X: np.ndarray, y: np.ndarray, targets: np.ndarray, **options: Any) -> Reply:
    """Run mlpack's L-BFGS until it stops by itself."""
    return _mlpack(X, y, targets, "lbfgs", "max_iterations", **options)


def mlpack_default(X: np.ndarray, y: np.ndarray, targets: np.ndarray, **options: Any) -> Reply:
    """Run mlpack's default, AMSGrad with 50 passes."""
    return _mlpack(X, y, targets, "amsgrad", "passes", **options)


def _mlpack(
    X: np.ndarray,
    y: np.ndarray,
    targets: np.ndarray,
    optimizer: str,
    limit: str,
    repeats: int = 1,
    push_weight: float = 0.5,
    budgets: tuple[int, ...] = (),
    last: int | None = None,
) -> Reply:
    """Run once to the end, and once for each smaller budget; together they are the trace.

    A run is deterministic (L-BFGS by nature, AMSGrad by its seed), so a run with a smaller
    budget is the beginning of the long one.
    """
    from mlpack import lmnn

    k = targets.shape[1]

    def run(budget: int | None) -> np.ndarray:
        found = lmnn(
            input_=X.copy(),
            labels=y.copy(),
            k=k,
            optimizer=optimizer,
            regularization=push_weight,
            seed=1,
            **({} if budget is None else {limit: budget}),
        )
        # The binding returns matrices transposed: ``output`` is the transpose of L.
        L = np.array(found["output"]).T
        if not np.allclose(X @ L.T, found["transformed_data"]):
            raise RuntimeError("mlpack's output is not the transformation it applied")
        return L

    found: list[np.ndarray] = []
    seconds, peak = repeat(lambda: found.append(run(last)), repeats)
    total = statistics.median_low(seconds)
    times, Ls, expected = [], [], 0.0
    for budget in budgets:
        if budget * expected >= total:
            break
        with Stopwatch() as watch:
            Ls.append(run(budget))
        times.append(watch.seconds)
        expected = watch.seconds / budget
    times.append(total)
    Ls.append(found[-1])
    arrays = {"seconds": times, "trace": Ls, "L": found[-1], "own_targets": own_targets(X, y, k)}
    return Reply(
        {"seconds": total, "peak_mb": peak},
        {name: np.asarray(array) for name, array in arrays.items()},
    )


def own_targets(X: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    """Return mlpack's target neighbours: the first k of its own k + 1 nearest, ties by norm."""
    from mlpack import knn

    norms = np.linalg.norm(X, axis=1)
    targets = np.empty((len(X), k), dtype=np.int64)
    for label in np.unique(y):
        members = np.flatnonzero(y == label)
        searched = min(k + 1, members.size - 1)
        found = knn(reference=X[members].copy(), k=searched)
        nearest = members[np.asarray(found["neighbors"], dtype=np.int64)]
        order = np.lexsort((norms[nearest], np.asarray(found["distances"])), axis=-1)
        targets[members] = np.take_along_axis(nearest, order, axis=1)[:, :k]
    return targets


if __name__ == "__main__":
    serve(
        {
            "versions": versions,
            "metric_learn": metric_learn,
            "mlpack_lbfgs": mlpack_lbfgs,
            "mlpack_default": mlpack_default,
        }
    )
