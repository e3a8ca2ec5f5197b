"""The measurements of lnml and scikit-learn; each task runs in a process of its own."""

from __future__ import annotations

import warnings
from statistics import median
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from suite.exchange import Reply, Stopwatch, repeat, serve

WARM_ROWS = 300


def fit_lmnn(
    X: np.ndarray,
    y: np.ndarray,
    tol: float = 1e-3,
    n_neighbors: int = 3,
    repeats: int = 1,
    **_: Any,
) -> Reply:
    """Fit LMNN from the identity; the trace comes from its callback, and seconds are medians."""
    from lnml import LMNN

    def fit(rows: slice, seen: list[Any]) -> LMNN:
        model = LMNN(n_neighbors=n_neighbors, tol=tol, callback=seen.append)
        return model.fit(X[rows], y[rows])

    fit(slice(WARM_ROWS), [])
    traces: list[list[Any]] = []
    models: list[LMNN] = []

    def measured() -> None:
        traces.append([])
        models.append(fit(slice(None), traces[-1]))

    seconds, peak = repeat(measured, repeats)
    model = models[-1]
    times = [[state.record["seconds"] for state in trace] for trace in traces]
    values = {
        "seconds": median(seconds),
        "peak_mb": peak,
        "objective": model.objective_,
        "bound": model.history_[-1]["bound"],
        "gap": model.duality_gap_,
        "n_iter": model.n_iter_,
        "n_searches": len(model.history_) + 1,
        "n_evaluations": sum(record["n_evaluations"] for record in model.history_),
    }
    arrays = {
        "seconds": np.median(times, axis=0),
        "trace": np.array([state.components for state in traces[-1]]),
        "L": model.components_,
        "targets": _targets(model),
    }
    return Reply(values, arrays)


def fit_lnml(X: np.ndarray, y: np.ndarray, tol: float, k: int = 3, **_: Any) -> Reply:
    """Fit LNML over LMNN with (k, k, k) neighbours, all rounds."""
    from lnml import LMNN, LNML

    def fit(rows: slice, max_rounds: int) -> LNML:
        model = LNML(LMNN(), k_min=k, k_av=k, k_max=k, tol=tol, max_rounds=max_rounds)
        return model.fit(X[rows], y[rows])

    fit(slice(WARM_ROWS), 2)
    with Stopwatch() as watch:
        model = fit(slice(None), 100)
    values = {
        "seconds": watch.seconds,
        "peak_mb": watch.peak_mb,
        "objective": model.objective_,
        "bound": model.objective_ * (1.0 - model.duality_gap_),
        "gap": model.duality_gap_,
        "n_rounds": model.n_iter_,
        "n_iter": sum(record["n_iter"] for record in model.history_),
        "converged": bool(model.converged_),
    }
    return Reply(values, {"L": model.components_, "targets": _targets(model)})


def _targets(model: Any) -> np.ndarray:
    """Return target neighbours (n x k); no rows at all if a class is too small for k."""
    graph = model.target_neighbors_
    k = int(np.diff(graph.indptr).max())
    if graph.nnz != k * graph.shape[0]:
        return np.zeros((0, k), dtype=np.int64)
    return graph.indices.reshape(-1, k)


def full_pass(X: np.ndarray, repeats: int = 3, block: int = 2048, **_: Any) -> Reply:
    """Time one n x n x r product in float32, over all row blocks, with BLAS on all cores."""
    Z = np.ascontiguousarray(X, dtype=np.float32)
    n, r = Z.shape
    out = np.empty((min(block, n), n), dtype=np.float32)

    def multiply(rows: int = n) -> None:
        for low in range(0, rows, block):
            part = Z[low : low + block]
            np.matmul(part, Z.T, out=out[: len(part)])

    one_block = min(block, n)
    with threadpool_limits(1, user_api="blas"):
        multiply(one_block)
        alone = median(repeat(lambda: multiply(one_block), 3)[0])
    multiply(one_block)
    seconds = median(repeat(multiply, repeats)[0])
    rates = [2e-9 * rows * n * r / s for rows, s in ((n, seconds), (one_block, alone))]
    return Reply({"seconds": seconds, "gflops": rates[0], "gflops_one_thread": rates[1]})


def search(X: np.ndarray, y: np.ndarray, k: int = 3, repeats: int = 3, **_: Any) -> Reply:
    """Time one exact impostor search under the identity, and the first search of a fit.

    The first finds all rows of other classes whose squared distance is below 1 plus that of the
    farthest target neighbour. Its time runs from the embedding to the list of pairs. The second is
    what LMNN does first: a search at the best multiple of the identity, in its conditioned
    coordinates, that looks further by the margin of its working set.
    """
    from lnml.core.pairs import Edge
    from lnml.kernels import get_kernels
    from lnml.kernels.training import TrainingSet
    from lnml.learning.targets import nearest_neighborhoods
    from lnml.objectives.conditioning import whiten_pull
    from lnml.objectives.lmnn import LMNNTask
    from lnml.objectives.triplet_task import SMOOTHING

    kernels, identity = get_kernels(), np.eye(X.shape[1])

    def measure(rows: slice, times: int) -> Reply:
        training = TrainingSet.from_labels(X[rows], y[rows], kernels)
        targets = nearest_neighborhoods(training, identity, k)
        found = []

        def plain() -> None:
            embedding = kernels.embed(training.points, identity)
            reach = kernels.distances(embedding, targets, longest=True)
            found[:] = [kernels.within(embedding, 1.0 + reach, limited=False).found]

        plain_seconds, peak = repeat(plain, times)
        conditioning = whiten_pull(kernels, training.points, Edge(targets))
        task = LMNNTask(kernels, conditioning, targets, 0.5)
        start = conditioning.to_conditioned(identity)
        start = start * np.sqrt(task.best_scale(start))
        margin = task.first_margin
        first_seconds, _ = repeat(lambda: task.search(start, SMOOTHING, margin), times)
        return Reply(
            {
                "seconds": median(plain_seconds),
                "peak_mb": peak,
                "n_pairs": found[0].size,
                "first_seconds": median(first_seconds),
                "first_n_pairs": task.working.candidates.size,
            }
        )

    with kernels.session():
        measure(slice(WARM_ROWS), 1)
        return measure(slice(None), repeats)


def assign(X: np.ndarray, y: np.ndarray, sizes: list[int], repeats: int = 1, **_: Any) -> Reply:
    """The assignment step at the identity, with its searches."""
    from lnml.kernels import get_kernels
    from lnml.kernels.training import TrainingSet
    from lnml.learning.assignment import Sizes
    from lnml.learning.targets import choose_ranked, rank_at_metric
    from lnml.objectives.lmnn import LMNNObjective
    from lnml.solvers.problem import ObjectiveProblem

    kernels, identity, bounds = get_kernels(), np.eye(X.shape[1]), Sizes(*sizes)

    def measure(rows: slice, times: int) -> Reply:
        training = TrainingSet.from_labels(X[rows], y[rows], kernels)
        problem = ObjectiveProblem(LMNNObjective(training, 0.5), 1)

        def step() -> Any:
            ranking = rank_at_metric(problem, training, identity, bounds.k_max)
            return choose_ranked(problem, training, ranking, bounds)

        seconds, peak = repeat(step, times)
        return Reply({"seconds": median(seconds), "peak_mb": peak})

    with kernels.session():
        measure(slice(WARM_ROWS), 1)
        return measure(slice(None), repeats)


def choose_given(
    rows: np.ndarray, columns: np.ndarray, costs: np.ndarray, y: np.ndarray, sizes: list[int]
) -> Reply:
    """Assign from given costs of all pairs, and from those of the K_max cheapest of each row."""
    from scipy import sparse

    from lnml.kernels.cpu.assignment import choose
    from lnml.kernels.cpu.ranking import rank_sparse
    from lnml.learning.assignment import assign_neighborhoods

    least, average, most = sizes
    n = y.size
    matrix = sparse.csr_array((costs, (rows, columns)), shape=(n, n))
    ranked = rank_sparse(matrix, None, np.unique(y, return_inverse=True)[1], most)

    def everything() -> Any:
        return assign_neighborhoods(matrix, y, k_min=least, k_av=average, k_max=most)

    def cheapest() -> Any:
        return choose(ranked, *sizes)[0]

    totals = [float(matrix[found.pairs()].sum()) for found in (everything(), cheapest())]
    return Reply(
        {
            "seconds": median(repeat(everything, 7)[0]),
            "seconds_cheapest": median(repeat(cheapest, 7)[0]),
            "total": totals[0],
            "total_cheapest": totals[1],
        }
    )


def highs(
    rows: np.ndarray, columns: np.ndarray, costs: np.ndarray, y: np.ndarray, sizes: list[int]
) -> Reply:
    """Solve the paper's linear programme over the given pairs by HiGHS' dual simplex."""
    from scipy import sparse
    from scipy.optimize import linprog

    least, average, most = sizes
    n, m = y.size, costs.size
    available = np.bincount(rows, minlength=n)
    sums = sparse.csr_array((np.ones(m), (rows, np.arange(m))), shape=(n, m))
    limits = np.concatenate([np.minimum(most, available), -np.minimum(least, available)])
    both = sparse.vstack([sums, -sums]).tocsr()
    everything = sparse.csr_array(np.ones((1, m)))
    budget = [np.minimum(average, available).sum()]
    with Stopwatch() as watch:
        found = linprog(
            costs,
            A_ub=both,
            b_ub=limits,
            A_eq=everything,
            b_eq=budget,
            bounds=(0, 1),
            method="highs-ds",
        )
    if found.status:
        raise RuntimeError(found.message)
    return Reply({"seconds": watch.seconds, "peak_mb": watch.peak_mb, "total": float(found.fun)})


def softmax_lnml(
    X: np.ndarray, y: np.ndarray, scale: float, method: str = "mcml", repeats: int = 5, **_: Any
) -> Reply:
    """Value and gradient of lnml's MCML or NCA at ``scale`` times the identity."""
    from lnml.kernels import get_kernels
    from lnml.kernels.training import TrainingSet
    from lnml.objectives.conditioning import class_pull, whiten_pull
    from lnml.objectives.mcml import MCMLTask
    from lnml.objectives.nca import NCATask

    kernels, L = get_kernels(), scale * np.eye(X.shape[1])

    def measure(rows: slice, times: int) -> Reply:
        training = TrainingSet.from_labels(X[rows], y[rows], kernels)
        conditioning = whiten_pull(kernels, training.points, class_pull(training.points))
        if method == "nca":
            task: Any = NCATask(kernels, conditioning)
        else:
            task = MCMLTask(kernels, conditioning)
        start = conditioning.to_conditioned(L)
        # Each time at another metric: MCML remembers its last pass.
        scales = (1.0 + 1e-9 * number for number in range(1, times + 1))
        seconds, peak = repeat(lambda: task.value_and_gradient(next(scales) * start), times)
        value, gradient = task.value_and_gradient(start)
        step = np.random.default_rng(0).standard_normal(start.shape)
        back = [conditioning.to_original(array, L.shape[0]) for array in (start, step)]
        # The benchmark's NCA counts rows that choose well, as scikit-learn does.
        sign, constant = (-1.0, float(len(y[rows]))) if method == "nca" else (1.0, 0.0)
        return Reply(
            {
                "seconds": median(seconds),
                "peak_mb": peak,
                "value": constant + sign * value,
                "slope": sign * float(np.vdot(gradient, step)),
            },
            {"L": back[0], "step": back[1]},
        )

    with kernels.session():
        measure(slice(WARM_ROWS), 1)
        return measure(slice(None), repeats)


def softmax_nca(X: np.ndarray, y: np.ndarray, scale: float, repeats: int = 5, **_: Any) -> Reply:
    """Time scikit-learn's value and gradient of NCA at ``scale`` times the identity."""
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    L = scale * np.eye(X.shape[1])

    def measure(rows: slice, times: int) -> Reply:
        model = NeighborhoodComponentsAnalysis()
        model.n_iter_ = 0
        data, labels = X[rows], y[rows]
        mask = labels[:, None] == labels
        start = L.ravel()
        seconds, peak = repeat(lambda: model._loss_grad_lbfgs(start, data, mask, -1.0), times)
        value, gradient = model._loss_grad_lbfgs(start, data, mask, -1.0)
        step = np.random.default_rng(0).standard_normal(L.shape)
        values = {
            "seconds": median(seconds),
            "peak_mb": peak,
            "value": -float(value),
            "slope": -float(gradient @ step.ravel()),
        }
        return Reply(values, {"L": L, "step": step})

    measure(slice(WARM_ROWS), 1)
    return measure(slice(None), repeats)


def fit_nca_lnml(X: np.ndarray, y: np.ndarray, **_: Any) -> Reply:
    """Fit lnml's NCA from the identity; the trace comes from its callback."""
    from lnml import NCA

    NCA(max_iter=2).fit(X[:WARM_ROWS], y[:WARM_ROWS])
    seen: list[Any] = []
    with Stopwatch() as watch:
        model = NCA(callback=seen.append).fit(X, y)
    values = {"seconds": watch.seconds, "peak_mb": watch.peak_mb, "n_iter": model.n_iter_}
    arrays = {
        "seconds": np.array([state.record["seconds"] for state in seen]),
        "trace": np.array([state.components for state in seen]),
        "L": model.components_,
    }
    return Reply(values, arrays)


def fit_nca_sklearn(X: np.ndarray, y: np.ndarray, **_: Any) -> Reply:
    """Fit scikit-learn's NCA from the identity."""
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    def fit(rows: slice, **options: Any) -> NeighborhoodComponentsAnalysis:
        model = NeighborhoodComponentsAnalysis(init="identity", **options)
        return model.fit(X[rows], y[rows])

    fit(slice(WARM_ROWS), max_iter=2)
    with Stopwatch() as watch:
        model = fit(slice(None))
    values = {"seconds": watch.seconds, "peak_mb": watch.peak_mb, "n_iter": model.n_iter_}
    return Reply(values, {"L": model.components_})


TASKS = (
    fit_lmnn,
    fit_lnml,
    full_pass,
    search,
    assign,
    choose_given,
    highs,
    softmax_lnml,
    softmax_nca,
    fit_nca_lnml,
    fit_nca_sklearn,
)

if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", UserWarning)
    serve({task.__name__: task for task in TASKS})
