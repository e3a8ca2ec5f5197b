"""The sizes of the measurements: those of the requirements, or small ones for a quick look."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Rows of each measurement, and how often short ones are repeated."""

    name: str
    letter: int
    letter_large: int
    wine: int
    mnist: int
    components: int
    softmax: int
    highs: tuple[int, ...]
    growth_letter: tuple[int, ...]
    growth_mnist: tuple[int, ...]
    growth_softmax: int
    growth_rows: int
    growth_columns: tuple[int, ...]
    growth_repeats: int
    lbfgs_budgets: tuple[int, ...]
    pass_budgets: tuple[int, ...]
    both_thread_counts: bool


FULL = Scale(
    name="full",
    letter=4000,
    letter_large=18000,
    wine=160,
    mnist=60000,
    components=164,
    softmax=4000,
    highs=(1000, 2000, 4000, 8000),
    growth_letter=(1000, 2000, 4000, 8000, 20000),
    growth_mnist=(1000, 2000, 4000, 8000, 16000, 32000, 60000),
    growth_softmax=16000,
    growth_rows=8000,
    growth_columns=(10, 20, 41, 82, 164),
    growth_repeats=3,
    lbfgs_budgets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
    pass_budgets=(1, 4, 16),
    both_thread_counts=True,
)

QUICK = Scale(
    name="quick",
    letter=1000,
    letter_large=3000,
    wine=160,
    mnist=3000,
    components=164,
    softmax=1500,
    highs=(500, 1000, 2000),
    growth_letter=(1000, 3000),
    growth_mnist=(1000, 3000),
    growth_softmax=3000,
    growth_rows=2000,
    growth_columns=(20, 82),
    growth_repeats=1,
    lbfgs_budgets=(1, 4, 16, 64, 256),
    pass_budgets=(1, 8),
    both_thread_counts=False,
)
