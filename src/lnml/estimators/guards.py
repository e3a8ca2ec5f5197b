"""What surrounds a fit: expected rounding is let pass, and a failure leaves no trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


def expected_rounding() -> np.errstate:
    """Let a fit work where the user asked NumPy to raise, as with ``np.errstate(all="raise")``.

    Weights of far rows are meant to underflow, and what overflows is caught where it matters.
    """
    state: Any = {kind: "warn" if how == "raise" else how for kind, how in np.geterr().items()}
    return np.errstate(**(state | {"under": "ignore"}))


@contextmanager
def untouched_on_failure(estimator: Any) -> Iterator[None]:
    """Give an estimator its old attributes back when a fit fails or is interrupted."""
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise
