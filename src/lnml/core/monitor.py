"""Progress of a fit: history, a live line, the user's callback."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np


class Record(TypedDict, total=False):
    """One line of ``history_``; which keys are present depends on the method."""

    iteration: int
    objective: float
    bound: float | None
    gap: float | None
    n_active: int
    n_evaluations: int
    seconds: float


@dataclass(frozen=True)
class FitState:
    """What a callback sees: the newest record and the metric it belongs to.

    Attributes
    ----------
    method : str
        Name of the estimator.
    record : dict
        The newest line of ``history_``.
    components : ndarray of shape (r, d)
        The metric so far, in the coordinates of the data.

    Examples
    --------
    >>> from lnml import LMNN
    >>> from lnml.datasets import load_dataset
    >>> iris = load_dataset("iris")
    >>> seen = []
    >>> model = LMNN(callback=seen.append).fit(iris.data, iris.target)
    >>> state = seen[-1]
    >>> state.method, state.components.shape, "objective" in state.record
    ('LMNN', (4, 4), True)
    """

    method: str
    record: dict[str, Any]
    components: np.ndarray


Callback = Callable[[FitState], Any]
# Looks at the newest record and tells whether that is enough.
StoppingRule = Callable[[Any], bool]


class Monitor:
    """Collects records, shows them and asks the callback whether to go on.

    Parameters
    ----------
    method : str
        Name shown to the user.
    verbose : int, default=0
        Show a live line on stderr when positive.
    callback : callable, optional
        Called with a :class:`FitState`; the fit stops when it returns True.
    rule : callable, optional
        Ends this part of a fit early; see :mod:`lnml.solvers.stopping`.

    Attributes
    ----------
    history : list of dict
        The records so far.
    stopped : bool
        Whether the user's callback asked to stop.

    Examples
    --------
    >>> import numpy as np
    >>> from lnml.contract import Monitor
    >>> monitor = Monitor("mine", callback=lambda state: state.record["objective"] < 2.0)
    >>> [monitor.step({"objective": value}, lambda: np.eye(2)) for value in (3.0, 1.0)]
    [False, True]
    >>> len(monitor.history), monitor.stopped
    (2, True)
    """

    def __init__(
        self,
        method: str = "",
        verbose: int = 0,
        callback: Callback | None = None,
        rule: StoppingRule | None = None,
    ) -> None:
        self.method = method
        self.verbose = verbose
        self.callback = callback
        self.rule = rule
        self.history: list[Any] = []
        self.stopped = False
        self._start = time.perf_counter()
        self._width = 0

    def seconds(self) -> float:
        """Seconds since the fit began."""
        return time.perf_counter() - self._start

    def step(self, record: Any, components: Callable[[], np.ndarray]) -> bool:
        """Take a record; return True when the fit, or this part of it, should stop.

        ``components`` is a function, so that a metric nobody looks at costs nothing.
        """
        record["seconds"] = self.seconds()
        self.history.append(record)
        if self.verbose:
            self._show(record)
        if self.callback is not None:
            state = FitState(self.method, dict(record), components())
            answer = self.callback(state)
            self.stopped = isinstance(answer, bool | np.bool_) and bool(answer)
        return self.stopped or (self.rule is not None and self.rule(record))

    def within(self, prefix: str, rule: StoppingRule | None = None) -> Monitor:
        """Return a monitor for one part of a fit: its own history, the same line."""
        part = Monitor(f"{self.method} {prefix}", self.verbose, rule=rule)
        part._start = self._start
        part._width = self._width
        return part

    def close(self) -> None:
        """End the live line."""
        if self.verbose and self._width:
            sys.stderr.write("\n")
            sys.stderr.flush()

    def _show(self, record: Any) -> None:
        parts = [self.method]
        for key in ("candidate", "subsample", "round", "iteration"):
            if key in record:
                parts.append(f"{key} {record[key]}")
        if record.get("objective") is not None:
            parts.append(f"objective {record['objective']:.6g}")
        if record.get("gap") is not None:
            parts.append(f"gap {record['gap']:.1e}")
        if "n_changed" in record:
            parts.append(f"{record['n_changed']} pairs changed")
        parts.append(f"{record['seconds']:.1f} s")
        line = " · ".join(parts)
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = max(self._width, len(line))
