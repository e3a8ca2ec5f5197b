"""What the terminal shows while work is going on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lnml.core.text import visible


@contextmanager
def live_line(text: str, *, quiet: bool = False) -> Iterator[Callable[[Any], None] | None]:
    """Show a spinner on stderr; yield a callback for estimators that updates its text.

    If stderr is not a terminal, or if quiet, nothing is shown and None is yielded.

    Parameters
    ----------
    text : str
        What is being done.
    """
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    shown = Text(visible(text))
    with console.status(shown) as status:

        def update(state: Any) -> None:
            status.update(shown + describe(state.record))

        yield update


def describe(record: dict[str, Any]) -> str:
    """Return the newest record of a fit in words.

    Examples
    --------
    >>> describe({"round": 2, "objective": 12.5, "gap": 0.004, "seconds": 1.25})
    ' · round 2 · objective 12.5 · gap 4.0e-03 · 1.2 s'
    """
    parts = [f"{key} {record[key]}" for key in ("round", "iteration") if key in record]
    if record.get("objective") is not None:
        parts.append(f"objective {record['objective']:.6g}")
    if record.get("gap") is not None:
        parts.append(f"gap {record['gap']:.1e}")
    parts.append(f"{record['seconds']:.1f} s")
    return "".join(f" · {part}" for part in parts)


@contextmanager
def fold_bar(text: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], None] | None]:
    """Show a bar on stderr; yield a function that takes the numbers of finished and of all fits.

    If stderr is not a terminal, or if quiet, nothing is shown and None is yielded.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("fits"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(visible(text), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
