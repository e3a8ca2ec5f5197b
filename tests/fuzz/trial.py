"""Try one input through Python and through a command, and judge what becomes of it."""

from __future__ import annotations

import contextlib
import io
import os
import random
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

from fuzz.originals import Original, flowers, numbers
from lnml.cli import main
from lnml.errors import InputError
from lnml.models import load_model
from lnml.tables import read_table

# What stderr may hold: errors, notes and warnings of lnml.
SAYS = "lnml: "
FLOWERS, WINE = "flowers.csv", "wine.csv"


class Outcome(NamedTuple):
    """What became of an input.

    Attributes
    ----------
    command : str
        What was run.
    verdict : str
        'done' or 'refused', or what is wrong.
    said : str
        The message, or what was raised.
    """

    command: str
    verdict: str
    said: str

    @property
    def wrong(self) -> bool:
        """Whether this must not happen."""
        return self.verdict not in ("done", "refused")


def prepare(folder: Path) -> None:
    """Put good tables and models into a folder, which becomes the working directory."""
    os.chdir(folder)
    warnings.simplefilter("always", UserWarning)
    warnings.simplefilter("always", RuntimeWarning)
    flowers().to_csv(FLOWERS, index=False)
    X, y = numbers()
    lines = [",".join(["x0", "x1", "x2", "x3", "y"])]
    lines += [",".join(map(str, [*row, kind])) for row, kind in zip(X, y, strict=True)]
    Path(WINE).write_text("\n".join(lines))
    for table, label in ((FLOWERS, "species"), (WINE, "y")):
        for method in ("euclidean", "lmnn"):
            output = f"{Path(table).stem}-{method}.model"
            outcome = run(f"fit {table} -l {label} -m {method} -o {output}".split())
            assert not outcome.wrong, outcome


def run(arguments: list[str], stdin: bytes | None = None) -> Outcome:
    """Run a command in this process, with streams that encode what they get."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    err.reconfigure(errors="backslashreplace")
    shown = " ".join(arguments)
    before = sys.stdin
    try:
        if stdin is not None:
            sys.stdin = SimpleNamespace(buffer=io.BytesIO(stdin))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(arguments)
    except BaseException as error:
        return Outcome(shown, "raised", _described(error))
    finally:
        sys.stdin = before
    err.flush()
    said = err.buffer.getvalue().decode()
    lines = said.splitlines()
    strange = [line for line in lines if not line.startswith(SAYS)]
    if strange:
        return Outcome(shown, "strange words", said)
    if code == 2 and len(lines) == 1:
        # What a limit of the process stopped would have taken more than this.
        return Outcome(shown, "out of memory" if _is_memory(said) else "refused", said)
    if code == 2:
        return Outcome(shown, f"{len(lines)} lines with exit code 2", said)
    if code == 0 or (code == 1 and "--verify" in arguments and "does not hold" in said):
        return Outcome(shown, "done", said)
    return Outcome(shown, f"exit code {code}", said)


def _is_memory(said: str) -> bool:
    return any(words in said for words in ("out of memory", "Unable to allocate", "malloc of size"))


def _described(error: BaseException) -> str:
    where = []
    trace = error.__traceback__
    while trace is not None:
        where.append(f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return f"{type(error).__name__}: {str(error)[:300]} at {' '.join(where[-8:])}"


def _read(path: str, label: str) -> Outcome:
    """Read a table, or a model if there are no labels, from Python."""
    called = f"read_table({path!r}, {label!r})" if label else f"load_model({path!r})"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read_table(path, label) if label else load_model(path)
    except InputError as error:
        return Outcome(called, "refused", str(error))
    except BaseException as error:
        return Outcome(called, "raised", _described(error))
    return Outcome(called, "done", "")


def _arguments(path: str, label: str, chance: random.Random) -> list[str]:
    """Choose a command for a file."""
    metric = chance.choice(["euclidean", "lmnn"])
    if not label:
        table = chance.choice([FLOWERS, WINE])
        return chance.choice(
            [
                ["info", path],
                ["info", path, "--json"],
                ["info", path, "--verify", FLOWERS],
                ["transform", path, table, "-o", "z.csv", "-f"],
                ["neighbors", path, table],
                ["neighbors", path, FLOWERS, "-k", "2", "--without-self", "-o", "n.json", "-f"],
            ]
        )
    model = f"{'flowers' if label == 'species' else 'wine'}-{metric}.model"
    method = chance.choice(["euclidean", "euclidean", "lmnn", "nca"])
    fit = ["fit", path, "-l", label, "-m", method, "-o", "a.model", "-f"]
    return chance.choice(
        [
            fit,
            [*fit, "--scale", chance.choice(["standard", "minmax"]), "--pca", "2"],
            [*fit, "--missing", "-1"],
            ["transform", model, path, "-o", chance.choice(["z.csv", "z.npz", "z.parquet"]), "-f"],
            ["transform", model, path, "-o", "-"],
            ["neighbors", model, path],
            ["neighbors", model, path, "-k", "2", "-o", "n.json", "-f"],
            ["info", model.replace("euclidean", "lmnn"), "--verify", path],
            [
                *["compare", path, "-l", label, "-m", "euclidean", "--folds", "2", "-j", "1"],
                *["--no-pictures", "-o", "r.html", "-f"],
            ],
        ]
    )


def trial(given: Original, chance: random.Random) -> list[Outcome]:
    """Read an input from Python, and run a command on it; one in 20 comes by standard input."""
    path = f"input{given.extension}"
    Path(path).write_bytes(given.content)
    arguments = _arguments(path, given.label, chance)
    streamed = bool(given.label) and chance.random() < 0.05
    if streamed:
        arguments = ["-" if word == path else word for word in arguments]
    return [_read(path, given.label), run(arguments, given.content if streamed else None)]
