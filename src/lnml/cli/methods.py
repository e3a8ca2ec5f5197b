"""The methods of :mod:`lnml.evaluation.methods`, for a command that fits one of them."""

from __future__ import annotations

from typing import Any

from lnml.errors import InputError, unknown_name

# Repeated here because the help shows them and must not wait for scikit-learn.
NAMES = (
    "mcml",
    "ln-mcml",
    "lmnn",
    "ln-lmnn",
    "ln-lmnn-cv",
    "euclidean",
    "nca",
    "itml",
    "ln-lmnn-cv-rounds",
    "ln-mcml-cv",
    "mmc",
    "support-vector",
    "relative",
)


def check_method(name: str) -> None:
    """Refuse a name that is not known, before anything slow is imported."""
    if name not in NAMES:
        raise unknown_name("method", name, NAMES)


def make_estimator(name: str, sizes: dict[str, int], seed: int, device: str | None = None) -> Any:
    """Return an estimator that is not fitted; None for the Euclidean metric.

    Parameters
    ----------
    name : str
        One of ``NAMES``.
    sizes : dict
        ``k_min``, ``k_av`` and ``k_max`` where the user gave them.
    seed : int
        Seed of whatever is random.
    device : str, default=None
        Where it fits, as :func:`lnml.cli.device.check_device` returns it.
    """
    check_method(name)
    from lnml.estimators.lnml import LNML
    from lnml.evaluation.methods import METHODS, on_device

    estimator = on_device(METHODS[name].make(seed), device)
    if not sizes:
        return estimator
    if not isinstance(estimator, LNML):
        raise InputError(
            f"--k-min, --k-av and --k-max are sizes of learned neighbourhoods, and {name} takes no "
            f"such sizes: leave them out, or use ln-lmnn or ln-mcml"
        )
    return estimator.set_params(**sizes)
