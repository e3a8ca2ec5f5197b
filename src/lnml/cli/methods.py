"""The methods of :mod:`lnml.registry`, for a command that fits one of them."""

from __future__ import annotations

from typing import Any

from lnml.errors import InputError
from lnml.registry import CLASSIFIERS, find_method, method_names, on_device

# Those that can be fitted: classifiers give no distance.
NAMES = tuple(name for name in method_names() if name not in {c.key for c in CLASSIFIERS})


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
    method = find_method(name)
    if method.classifier:
        raise InputError(
            f"{name} is a classifier and gives no distance: it can be compared (lnml compare), "
            f"not fitted; name one of {', '.join(NAMES)}"
        )
    estimator = on_device(method.make(seed), device)
    if not sizes:
        return estimator
    from lnml.estimators.lnml import LNML

    if not isinstance(estimator, LNML):
        raise InputError(
            f"--k-min, --k-av and --k-max are sizes of learned neighbourhoods, and {name} takes no "
            f"such sizes: leave them out, or use ln-lmnn or ln-mcml"
        )
    return estimator.set_params(**sizes)
