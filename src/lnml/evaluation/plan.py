"""What is done about methods that would take hours on a large table (docs/cli.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from lnml.evaluation.problem import Split
from lnml.registry import Method

# docs/performance.md has the measurements behind both.
LARGE = 10_000
SAMPLE = 5_000
# Sums over all pairs of rows, and many fits.
SLOW = frozenset({"mcml", "nca", "mmc", "ln-mcml", "ln-mcml-cv"})
SLOW |= {"ln-lmnn-cv", "ln-lmnn-cv-rounds", "auto"}

Wanted = int | Literal["auto", "all"]


class Plan(NamedTuple):
    """How many rows slow methods learn from.

    Attributes
    ----------
    rows : int
        Rows of the largest training part.
    most : int or None
        Rows of it that slow methods learn from; None if that is all of them.

    Examples
    --------
    >>> Plan(45_000, 5_000).setting
    'slow methods learn from at most 5,000 rows'
    """

    rows: int
    most: int | None

    @property
    def setting(self) -> str | None:
        """The plan as results store it; None if nothing is left out."""
        return None if self.most is None else f"slow methods learn from at most {self.most:,} rows"

    def most_rows(self, methods: Iterable[Method]) -> Mapping[str, int]:
        """Return the most rows that methods learn from, by name; others learn from all."""
        return {m.name: self.most for m in methods if m.key in SLOW and self.most is not None}

    def note(self, methods: Iterable[Method]) -> str | None:
        """Say which methods learn from a sample; None if there is none."""
        names = list(self.most_rows(methods))
        if not names:
            return None
        return (
            f"{', '.join(names)} {'learns' if len(names) == 1 else 'learn'} from {self.most:,} of "
            f"the {self.rows:,} training rows of a fold, drawn by class, to spare time; "
            f"neighbours are searched among all; --learn-from all learns from all"
        )


def make_plan(wanted: Wanted, splits: Sequence[Split]) -> Plan:
    """Return what is to be done about slow methods.

    Parameters
    ----------
    wanted : int, 'auto' or 'all'
        Most rows that slow methods learn from. 'auto' means 5,000 where a fold has more than
        10,000 training rows, and all where it has not.
    splits : sequence of (train, test)
        The folds.
    """
    rows = max(len(train) for train, _ in splits)
    if wanted == "auto":
        return Plan(rows, SAMPLE if rows > LARGE else None)
    return Plan(rows, None if wanted == "all" or wanted >= rows else wanted)
