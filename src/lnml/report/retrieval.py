"""How methods are judged by a score of retrieval, beside accuracy."""

from __future__ import annotations

from dataclasses import dataclass

from lnml.evaluation.results import Comparison
from lnml.evaluation.retrieval import ACCURACY
from lnml.report.tables import text_table
from lnml.report.verdict import join_words

HEADER = ("mean", "lowest fold", "highest fold")


@dataclass(frozen=True)
class ScoreTable:
    """A score of retrieval of every metric on one data set.

    Attributes
    ----------
    title : str
        Name of the score, such as ``MAP@R``.
    rows : tuple of (str, tuple of float)
        Each method with its mean over all test rows, and its lowest and highest mean of a fold.
    verdict : str
        Which method is best, in one sentence, and that no test was made.
    """

    title: str
    rows: tuple[tuple[str, tuple[float, float, float]], ...]
    verdict: str

    @property
    def cells(self) -> list[list[str]]:
        """Methods and their numbers as text."""
        return [[name, *(f"{value:.3f}" for value in values)] for name, values in self.rows]

    @property
    def header(self) -> list[str]:
        """Titles of the columns."""
        return [self.title, *HEADER]

    def to_text(self) -> str:
        """Lay out as plain text."""
        return text_table(self.header, self.cells)


def score_table(comparison: Comparison) -> ScoreTable | None:
    """Lay out the score of retrieval of a comparison; None if that was judged by accuracy alone.

    Classifiers give no distance, so they have no such score.

    Examples
    --------
    >>> from lnml.datasets import load_dataset
    >>> from lnml.evaluation import compare
    >>> iris = load_dataset("iris")
    >>> methods = {"raw": None, "scaled": None}
    >>> found = compare(
    ...     iris.data, iris.target, methods, score="map@r", scaled=["scaled"], n_folds=3
    ... )
    >>> print(score_table(found).to_text())
    | MAP@R  |  mean | lowest fold | highest fold |
    |--------|------:|------------:|-------------:|
    | raw    | 0.776 |       0.764 |        0.789 |
    | scaled | 0.683 |       0.671 |        0.703 |
    """
    score = comparison.score
    if score.name == ACCURACY:
        return None
    rows = []
    for method in comparison.metrics:
        folds = comparison.fold_scores(method)
        rows.append(
            (method, (comparison.mean_score(method), float(folds.min()), float(folds.max())))
        )
    means = {name: values[0] for name, values in rows}
    return ScoreTable(score.title, tuple(rows), _verdict(comparison, score.title, means))


def _verdict(comparison: Comparison, title: str, means: dict[str, float]) -> str:
    top = max(means.values())
    leaders = [method for method, mean in means.items() if mean == top]
    behind = sorted((m for m in means if m not in leaders), key=lambda m: -means[m])
    text = f"{join_words(leaders)} {'has' if len(leaders) == 1 else 'have'} the best {title} on "
    text += f"{comparison.data.name}: {top:.3f}"
    if behind:
        text += f", {top - means[behind[0]]:.3f} more than {behind[0]}"
    return f"{text}. Differences of {title} are not tested; tests and scores are about accuracy."
