"""Fits of all of MNIST and of a million points on the GPU, beside the least time they can take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from mixture import make_mixture
from suite.report import Group, Line, Table
from suite.rows import mnist, mnist_test

from gpu_suite.ceilings import Ceilings
from lnml import LMNN, LNML, MCML, NCA
from lnml.kernels.torch.backend import TorchKernels
from lnml.learning.knn import predict_nearest

COMPONENTS = 164
MILLION = 1_000_000
HELD_OUT = 10_000
WARM_ROWS = 200_000
ITERATIONS = 100


@contextmanager
def counted() -> Iterator[dict[str, list[int]]]:
    """Count pairs of every search, and passes over all pairs, while fits run."""
    seen: dict[str, list[int]] = {"within": [], "smoothed": []}
    names = ("within", "hinge", "softmax", "class_softmax")
    before = {name: getattr(TorchKernels, name) for name in names}

    def within(self: Any, *args: Any, known: Any = None, **kwargs: Any) -> Any:
        found = before["within"](self, *args, known=known, **kwargs)
        if found is not known:
            seen["within"].append(found.found.size)
        return found

    def hinge(self: Any, embedding: Any, working: Any, gamma: float, *, moment: str = "") -> Any:
        if moment:
            seen["smoothed"].append(working.targets.size + working.candidates.size)
        return before["hinge"](self, embedding, working, gamma, moment=moment)

    def passes(name: str) -> Any:
        def one(self: Any, *args: Any, full: bool | None) -> Any:
            if full is not None:
                seen.setdefault("passes", []).append(1)
            return before[name](self, *args, full=full)

        return one

    replaced = {"within": within, "hinge": hinge}
    replaced |= {name: passes(name) for name in names[2:]}
    try:
        for name, method in replaced.items():
            setattr(TorchKernels, name, method)
        yield seen
    finally:
        for name, method in before.items():
            setattr(TorchKernels, name, method)


def timed_fit(model: Any, X: Any, y: np.ndarray) -> tuple[Any, float, float]:
    """Fit; return the model, seconds, and the peak of the GPU's memory in GB, data included."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    model.fit(X, y)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    return model, seconds, torch.cuda.max_memory_allocated() / 1e9


def accuracy_of(model: Any, data: Any, y: np.ndarray, test: Any, truth: np.ndarray) -> float:
    """Share of test rows whose nearest training row, by the learned metric, has their label."""
    predicted = predict_nearest(model.transform(data), y, model.transform(test))
    return float(np.mean(predicted == truth))


def hinge_floor(ceilings: Ceilings, seen: dict[str, list[int]], n: int, d: int) -> float:
    """Least time of the searches and evaluations that a fit made, at full rank."""
    searches = len(seen["within"]) * ceilings.floor(float16=2.0 * n * n * d, moved=8.0 * n * d)
    evaluations = sum(
        ceilings.floor(float32=4.0 * n * d * d + 6.0 * pairs * d, moved=16.0 * n * d + 12.0 * pairs)
        for pairs in seen["smoothed"]
    )
    return searches + evaluations


def softmax_floor(ceilings: Ceilings, seen: dict[str, list[int]], n: int, d: int) -> float:
    """Least time of the passes over all pairs: two products each."""
    one = ceilings.floor(float32=4.0 * n * n * d, moved=16.0 * n * d)
    return len(seen.get("passes", [])) * one


def mnist_fits(ceilings: Ceilings, device: str) -> Group:
    """LMNN, LN-LMNN, NCA and MCML on all of MNIST."""
    X, y = mnist(60_000, COMPONENTS)
    Xt, yt = mnist_test(COMPONENTS)
    data, test = (torch.as_tensor(part, device=device) for part in (X, Xt))
    group = Group(f"MNIST, {len(X):,} × {COMPONENTS} (PCA, float32)")
    header = ["fit", "s", "floor s", "objective", "gap", "iterations", "passes or evaluations"]
    table = Table([*header, "peak GB", "1-NN test accuracy %"])
    euclidean = np.mean(predict_nearest(data, y, test) == yt)
    table.rows.append(["Euclidean", *[None] * 7, 100.0 * euclidean])
    methods: dict[str, Any] = {
        "LMNN, tol = 1e-2": LMNN(tol=1e-2),
        "LN-LMNN (3, 3, 3), tol = 1e-2": LNML(LMNN(), tol=1e-2),
        "NCA, default tolerance": NCA(),
        # This tolerance never ends the fit; only the limit or the precision of float32 does.
        f"NCA, at most {ITERATIONS} iterations, tol = 1e-12": NCA(max_iter=ITERATIONS, tol=1e-12),
        "MCML, tol = 1e-2": MCML(tol=1e-2),
    }
    found = {}
    for name, model in methods.items():
        # A first fit compiles what is missing; it is not counted.
        limit = {"max_rounds": 3} if isinstance(model, LNML) else {"max_iter": 2}
        type(model)(**{**model.get_params(deep=False), **limit}).fit(data, y)
        with counted() as seen:
            model, seconds, peak = timed_fit(model, data, y)
        floor = softmax_floor if isinstance(model, (NCA, MCML)) else hinge_floor
        work = len(seen.get("passes", [])) or len(seen["smoothed"])
        row = [name, seconds, floor(ceilings, seen, *X.shape), model.objective_]
        row += [model.duality_gap_, model.n_iter_, work, peak]
        accuracy = accuracy_of(model, data, y, test, yt)
        table.rows.append([*row, 100.0 * accuracy])
        found[name] = (seconds, model.n_iter_, work, accuracy)
    group.tables.append(table)
    group.lines = _mnist_lines(list(found.values()))
    return group


def _mnist_lines(found: list[tuple[float, int, int, float]]) -> list[Line]:
    """Return the verdicts; seconds per hundred iterations are scaled from those that were made.

    An iteration of MCML is a whole minimisation, so its evaluations are counted instead.
    """
    lmnn, lnml, _, nca, mcml = found
    nca_seconds = nca[0] * ITERATIONS / nca[1]
    mcml_seconds = mcml[0] * ITERATIONS / mcml[2]
    return [
        Line("MNIST: LMNN to a certified gap of 1e-2, s", lmnn[0], 0.2, at_least=False),
        Line("MNIST: LN-LMNN (3, 3, 3), all rounds, s", lnml[0], 2.0, at_least=False),
        Line("MNIST: 1-NN test accuracy of LN-LMNN, %", 100.0 * lnml[3], 97.5),
        Line("MNIST: NCA, s per 100 iterations", nca_seconds, 20.0, at_least=False),
        Line("MNIST: MCML, s per 100 evaluations", mcml_seconds, 20.0, at_least=False),
        Line("MNIST: MCML to a certified gap of 1e-2, s", mcml[0], 10.0, at_least=False),
    ]


def million(ceilings: Ceilings, device: str) -> Group:
    """Three rounds of LN-LMNN on a million points of known structure."""
    return _mixture(ceilings, device, "a million points", MILLION, 128, (8.0, 20.0))


def four_million(ceilings: Ceilings, device: str) -> Group:
    """Four million points, whose impostors do not all fit into memory with a margin."""
    return _mixture(ceilings, device, "four million points", 4 * MILLION, 64, (240.0, 120.0))


def _mixture(
    ceilings: Ceilings,
    device: str,
    name: str,
    rows: int,
    columns: int,
    limits: tuple[float, float],
) -> Group:
    """Three rounds of LN-LMNN on a mixture; ``limits`` are seconds and GB."""
    X, y = make_mixture(rows, n_features=columns)
    Xt, yt = make_mixture(HELD_OUT, n_features=columns, part=1)
    data, test = (torch.as_tensor(part, device=device) for part in (X, Xt))
    euclidean = float(np.mean(predict_nearest(data, y, test) == yt))
    model = LNML(LMNN(), tol=1e-2, max_rounds=3)
    # A first fit compiles what is missing; it is not counted.
    type(model)(**model.get_params(deep=False)).fit(data[:WARM_ROWS], y[:WARM_ROWS])
    with counted() as seen:
        model, seconds, peak = timed_fit(model, data, y)
    accuracy = accuracy_of(model, data, y, test, yt)
    gain = 100.0 * (accuracy - euclidean)
    group = Group(f"{name.capitalize()}: mixture of {rows:,} × {columns}, 100 classes, float32")
    group.lines = [
        Line(f"{name}: LN-LMNN, three rounds, s", seconds, limits[0], at_least=False),
        Line(f"{name}: peak memory, GB, data included", peak, limits[1], at_least=False),
        Line(f"{name}: accuracy gained over Euclidean, percentage points", gain, 0.0),
    ]
    header = ["s", "floor s", "peak GB", "gap", "pairs in the largest working set", "searches"]
    header += ["evaluations", "Euclidean 1-NN %", "learned 1-NN %"]
    floor = hinge_floor(ceilings, seen, *X.shape)
    row = [seconds, floor, peak, model.duality_gap_, max(seen["within"]), len(seen["within"])]
    row += [len(seen["smoothed"]), 100.0 * euclidean, 100.0 * accuracy]
    group.tables.append(Table(header, [row]))
    return group
