"""One fit of whatever lnml is on the path: any commit, so only what all of them offer is used."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from suite.exchange import Reply, Stopwatch, serve

WARM_ROWS = 300
# Fits shorter than this many seconds are repeated.
SHORT = 2.0


def one_fit(X: np.ndarray, y: np.ndarray, model: str, src: str, device: str, inner: int) -> Reply:
    """Fit an estimator, written as an expression, after a first fit that is not counted."""
    import lnml

    if not Path(lnml.__file__).is_relative_to(src):
        raise RuntimeError(f"lnml was imported from {lnml.__file__}, not from {src}")
    estimator = eval(model, {name: getattr(lnml, name) for name in lnml.__all__})
    fit, gpu_peak = _prepare(estimator, X, y, device)
    with counted_searches(device, len(X)) as searches, Stopwatch() as watch:
        fit()
    seconds, peak = [watch.seconds], watch.peak_mb if gpu_peak is None else gpu_peak()
    while len(seconds) < inner and seconds[0] < SHORT:
        with Stopwatch() as watch:
            fit()
        seconds.append(watch.seconds)
    counts = [record["n_evaluations"] for record in estimator.history_ if "n_evaluations" in record]
    return Reply(
        {
            "seconds": min(seconds),
            "peak_mb": peak,
            "searches": sum(searches),
            "evaluations": sum(counts) if counts else None,
            "objective": float(estimator.objective_),
        }
    )


def _prepare(
    estimator: Any, X: np.ndarray, y: np.ndarray, device: str
) -> tuple[Callable[[], Any], Callable[[], float] | None]:
    """Compile, forget the peak of memory so far; return the fit, and a GPU's peak in MB.

    On a GPU all rows are fitted, for a few iterations: code is compiled for the sizes it meets.
    """
    if not device.startswith("cuda"):
        if device != "cpu":
            import torch

            X = torch.as_tensor(X)
        estimator.fit(X[:WARM_ROWS], y[:WARM_ROWS])
        _reset_peak()
        return lambda: estimator.fit(X, y), None
    import torch

    data, given = torch.as_tensor(X, device=device), estimator.get_params(deep=False)
    limit = {"max_rounds": 3} if "max_rounds" in given else {"max_iter": 2}
    type(estimator)(**{**given, **limit}).fit(data, y)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    torch.cuda.synchronize(device)

    def fit() -> None:
        estimator.fit(data, y)
        torch.cuda.synchronize(device)

    return fit, lambda: torch.cuda.max_memory_allocated(device) / 1e6


def _reset_peak() -> None:
    """Forget the peak of this process's memory so far, see proc(5); on Linux only."""
    path = Path("/proc/self/clear_refs")
    if path.exists():
        path.write_text("5")


@contextmanager
def counted_searches(device: str, n: int) -> Iterator[list[float]]:
    """Count searches for impostors while a fit runs, those over some of n rows by their share."""
    module = import_module(f"lnml.kernels.{'cpu' if device == 'cpu' else 'torch'}.search")
    before, seen = module.within, []
    # Its arguments are in another order before some commit.
    arguments = signature(before)

    def within(*args: Any, **kwargs: Any) -> Any:
        rows = arguments.bind(*args, **kwargs).arguments.get("rows")
        seen.append(1.0 if rows is None else (rows[1] - rows[0]) / n)
        return before(*args, **kwargs)

    module.within = within
    try:
        yield seen
    finally:
        module.within = before


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve({"one_fit": one_fit})
