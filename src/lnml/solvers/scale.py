"""The scale of a start."""

from __future__ import annotations


def worthwhile(multiple: float) -> float:
    """Return a multiple of the start that is far from 1, else 1.

    Multiples are estimates. A start that has about the right scale is kept as it
    is, so that a good one (a warm start) is never made worse.
    """
    return multiple if not 0.5 < multiple < 2.0 else 1.0
