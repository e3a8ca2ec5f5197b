"""Warnings that point at the user's line, however deep in the library they arise."""

from __future__ import annotations

import sys
import warnings


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn as if the line that called this library had done so.

    Inside a pipeline that is a line of scikit-learn.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("lnml."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
