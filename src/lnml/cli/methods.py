"""Estimators by the names that the command line gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lnml.errors import InputError, unknown_name

NAMES = ("euclidean", "lmnn", "ln-lmnn", "ln-lmnn-cv", "mcml", "ln-mcml", "nca", "itml", "mmc")


def check_method(name: str) -> None:
    """Refuse a name that is not known, before anything slow is imported."""
    if name not in NAMES:
        raise unknown_name("method", name, NAMES)


def make_estimator(name: str, sizes: dict[str, int], seed: int) -> Any:
    """Return an estimator that is not fitted; None for the Euclidean metric.

    Parameters
    ----------
    name : str
        One of ``NAMES``.
    sizes : dict
        ``k_min``, ``k_av`` and ``k_max`` where the user gave them.
    seed : int
        Seed of whatever is random.
    """
    check_method(name)
    from lnml import ITML, LMNN, LNML, LNMLCV, MCML, MMC, NCA

    makers: dict[str, Callable[[], Any]] = {
        "euclidean": lambda: None,
        "lmnn": LMNN,
        "ln-lmnn": lambda: LNML(LMNN()),
        "ln-lmnn-cv": lambda: LNMLCV(LMNN()),
        "mcml": MCML,
        "ln-mcml": lambda: LNML(MCML()),
        "nca": NCA,
        "itml": ITML,
        "mmc": MMC,
    }
    estimator = makers[name]()
    if sizes:
        if not isinstance(estimator, LNML):
            raise InputError(
                f"--k-min, --k-av and --k-max are sizes of learned neighbourhoods, which {name} "
                f"has not: leave them out, or use ln-lmnn or ln-mcml"
            )
        estimator.set_params(**sizes)
    if estimator is not None:
        seeds = [key for key in estimator.get_params() if key.split("__")[-1] == "random_state"]
        estimator.set_params(**dict.fromkeys(seeds, seed))
    return estimator
