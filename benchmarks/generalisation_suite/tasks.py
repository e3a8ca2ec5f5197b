"""One fit on one outer fold, and the file that keeps its result."""

from __future__ import annotations

import json
import time
import traceback
import warnings
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from generalisation_suite.methods import METHODS, Method, variant
from generalisation_suite.sets import DataSet, split
from lnml import LMNN, LNML, NCA
from lnml.evaluation import predict_nearest
from lnml.files import atomic_output


@dataclass(frozen=True)
class Task:
    """A method on one fold.

    Attributes
    ----------
    data : DataSet
        The data set.
    seed, fold : int
        Seed of sample, folds and estimator, and the number of the outer fold.
    method : str
        Key of the method.
    expression : str or None
        What a variant is, if the method is one.
    """

    data: DataSet
    seed: int
    fold: int
    method: str
    expression: str | None = None

    def definition(self) -> Method:
        """Return the method."""
        if self.expression is not None:
            return variant(self.method, self.expression)
        return METHODS[self.method]

    @property
    def cost(self) -> float:
        """Guess of the time, in any unit."""
        n, d = self.data.size
        # Rows count less than columns: small sets of many columns take the most iterations.
        return n**0.5 * d * self.definition().cost

    def path(self, folder: Path) -> Path:
        """Return the file of the result."""
        name = f"seed{self.seed}-fold{self.fold}-{self.method}.json"
        return folder / self.data.group / self.data.name / name

    def __str__(self) -> str:
        return f"{self.data.name}, seed {self.seed}, fold {self.fold}, {self.method}"


@dataclass(frozen=True)
class Result:
    """What one fit gave.

    Attributes
    ----------
    rows : list of int
        Numbers of the outer test rows in the whole data set.
    correct : list of bool
        Whether each of them was classified correctly.
    seconds : float or None
        Time of the fit.
    estimator : str
        The estimator as one writes it.
    converged : bool or None
        None for an estimator that does not say.
    gap : float or None
        Proved relative gap.
    chosen : dict
        What an inner search chose.
    error : str
        Traceback, if the method failed; then there is nothing else.
    """

    rows: list[int]
    correct: list[bool]
    seconds: float | None
    estimator: str
    converged: bool | None
    gap: float | None
    chosen: dict[str, Any]
    error: str = ""


def read(path: Path) -> Result | None:
    """Return a stored result; None if there is none."""
    if not path.exists():
        return None
    return Result(**json.loads(path.read_text(encoding="utf-8")))


def write(path: Path, result: Result) -> None:
    """Store a result, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_output(path) as temporary:
        text = json.dumps(asdict(result), default=_plain, ensure_ascii=False)
        temporary.write_text(text + "\n", encoding="utf-8")


def compute(task: Task, folder: Path) -> str:
    """Fit, judge and store; return the last line of the error, if there was one."""
    warm_up()
    try:
        result = _fitted(task)
    except Exception:
        result = Result([], [], None, "", None, None, {}, traceback.format_exc())
    write(task.path(folder), result)
    return last_line(result.error)


def last_line(error: str) -> str:
    """Return what an error says, without where it was."""
    return error.strip().splitlines()[-1] if error else ""


@cache
def warm_up() -> None:
    """Load the compiled code of this process, so that no fit is timed with it."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), np.repeat([0, 1], 20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for estimator in (LNML(LMNN()), NCA()):
            predict_nearest(estimator.fit(X, y).transform(X), y, X)


def _fitted(task: Task) -> Result:
    method, part = task.definition(), split(task.data, task.seed, task.fold)
    model = method.make(task.seed)
    name = "None" if model is None else " ".join(repr(model).split())
    start = time.perf_counter()
    with warnings.catch_warnings():
        # The stored result says whether a fit converged.
        warnings.simplefilter("ignore")
        if model is not None:
            model.fit(part.train, part.known)
        seconds = time.perf_counter() - start
        if method.is_classifier:
            predicted = model.predict(part.test)
        else:
            spaces = [X if model is None else model.transform(X) for X in (part.train, part.test)]
            predicted = predict_nearest(spaces[0], part.known, spaces[1])
    return Result(
        rows=part.rows.tolist(),
        correct=(predicted == part.wanted).tolist(),
        seconds=seconds,
        estimator=name,
        converged=getattr(model, "converged_", None),
        gap=getattr(model, "duality_gap_", None),
        chosen=dict(getattr(model, "best_params_", None) or {}),
    )


def _plain(value: Any) -> Any:
    """Return what JSON can say of a value: numbers of NumPy, or an estimator as written."""
    return value.item() if isinstance(value, np.generic) else " ".join(repr(value).split())
