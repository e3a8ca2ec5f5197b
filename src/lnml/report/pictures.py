"""The pictures of the page, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lnml.core.text import shortened
from lnml.evaluation.groups import tied_groups
from lnml.evaluation.portraits import Portrait
from lnml.evaluation.ranks import CriticalDifference
from lnml.evaluation.results import Comparison
from lnml.evaluation.weights import ColumnWeights
from lnml.plotting import (
    plot_column_pairs,
    plot_column_weights,
    plot_convergence,
    plot_critical_difference,
    plot_embedding,
    plot_leaderboard,
    plot_neighbor_counts,
)
from lnml.report.svg import Mark, new_axes, page_style, to_svg

# Characters of a label in a tip.
TIP_WIDTH = 60
# Classes whose neighbours are drawn; more make a picture of many screens.
MOST_CLASSES = 40
# Columns in the picture of pairs, so that numbers stay readable.
MOST_PAIRED = 9


@dataclass(frozen=True)
class Picture:
    """An ``<svg>`` element and the words below it."""

    svg: str
    caption: str


def leaderboard_picture(comparison: Comparison, name: str, alpha: float) -> Picture:
    """Accuracies of one data set with intervals, sorted and grouped."""
    data = comparison.data.name
    methods = [method for group in tied_groups(comparison, alpha) for method in group]
    said = [f"{m}: {100 * comparison.accuracy(m):.1f} %" for m in methods]
    with page_style():
        ax = new_axes(3.2, 0.4 + 0.24 * len(comparison.methods))
        plot_leaderboard(comparison, alpha=alpha, ax=ax)
        ax.set_xlabel("")  # the heading above all of them says it
        marks = {f"method-{place}": Mark(text) for place, text in enumerate(said)}
        return Picture(to_svg(ax, name, f"Accuracies on {data}: {'; '.join(said)}", marks), data)


def ranks_picture(ranks: CriticalDifference, name: str) -> Picture:
    """Average ranks over data sets."""
    values = "; ".join(
        f"{method} {rank:.2f}" for method, rank in zip(ranks.methods, ranks.ranks, strict=True)
    )
    caption = (
        f"Average ranks over {ranks.n_datasets} data sets. Methods joined by a bar do not differ "
        f"significantly: their ranks are less than {ranks.difference:.2f} apart (Nemenyi test, "
        f"level {ranks.alpha:g})."
    )
    with page_style():
        ax = new_axes(7.5, 0.7 + 0.2 * len(ranks.methods))
        plot_critical_difference(ranks, ax=ax)
        return Picture(to_svg(ax, name, f"Average ranks: {values}"), caption)


def weights_picture(weights: ColumnWeights, method: str, name: str) -> Picture:
    """Shares of columns before and after learning."""
    said = [
        f"{shortened(column, TIP_WIDTH)}: {100 * before:.1f} % before, {100 * after:.1f} % after"
        for column, before, after in zip(weights.names, weights.before, weights.after, strict=True)
    ]
    caption = (
        "Share of each column in the squared distance: of Euclidean distance before, and of the "
        f"metric of {method} after. A share is what a difference of one standard deviation in that "
        "column adds, so units do not matter."
    )
    if weights.n_columns > len(said):
        rest = 100 * max(0.0, 1 - float(weights.after.sum()))
        caption += f" Columns left out, {weights.n_columns - len(said):,}: {rest:.1f} % after."
    marks: dict[str, Mark | Sequence[Mark]] = {
        f"column-{place}": Mark(text) for place, text in enumerate(said)
    }
    marks |= {gid: [Mark(text) for text in said] for gid in ("before", "after")}
    with page_style():
        ax = new_axes(4.4, 0.6 + 0.29 * len(said))
        plot_column_weights(weights, ax=ax)
        return Picture(to_svg(ax, name, "; ".join(said), marks), caption)


def pairs_picture(weights: ColumnWeights, name: str) -> Picture | None:
    """Pairs of columns; None if there is one column only."""
    if len(weights.names) < 2:
        return None
    names = [shortened(column, TIP_WIDTH) for column in weights.names[:MOST_PAIRED]]

    def about(a: int, b: int) -> str:
        share = 100 * weights.pairs[a, b]
        if a == b:
            return f"{names[a]}: {share:.1f} %"
        what = "add to the distance" if share >= 0 else "cancel each other"
        return (
            f"{names[a]} and {names[b]}: {share:+.1f} %, differences in the same direction {what}"
        ).replace("-", "−")

    marks = {f"pair-{a}-{b}": Mark(about(a, b)) for a, b in np.ndindex(len(names), len(names))}
    words = "; ".join(about(a, b) for a, b in weights.strongest_pairs() if max(a, b) < len(names))
    caption = (
        "The metric in units of column spreads, in % of the squared distance. Blue (positive): "
        "differences in the same direction in both columns add to the distance. Orange (negative): "
        "they cancel each other. Cells without a number are below half a per cent."
    )
    with page_style():
        ax = new_axes(0.42 * len(names) + 0.6, 0.36 * len(names) + 0.5)
        plot_column_pairs(weights, most=MOST_PAIRED, ax=ax)
        return Picture(to_svg(ax, name, words or "No pair of columns counts.", marks), caption)


def convergence_pictures(portrait: Portrait, name: str) -> list[Picture]:
    """Objective and bound against time, one picture a method."""
    pictures = []
    for number, (method, history) in enumerate(portrait.histories.items()):
        if not history:
            continue
        last = history[-1]
        words = f"{method}: objective {last['objective']:.4g} after {last['seconds']:.2g} s"
        if last.get("bound") is not None:
            words += f", no metric is below {last['bound']:.4g}"
        with page_style():
            ax = new_axes(4.6, 2.6)
            plot_convergence(history, ax=ax)
            if len(ax.get_legend_handles_labels()[0]) > 1:
                ax.legend(frameon=False, loc="upper right")
            svg = to_svg(ax, f"{name}-{number}", words, _history_marks(history))
            pictures.append(Picture(svg, words + "."))
    return pictures


def _history_marks(history: Sequence[Mapping[str, float]]) -> dict[str, list[Mark]]:
    """Return what the points of a fit's history say."""
    return {
        what: [
            Mark(f"{record['seconds']:.2g} s: {word} {record[what]:.5g}")
            for record in history
            if record.get(what) is not None
        ]
        for what, word in (("objective", "objective"), ("bound", "no metric is below"))
    }


def embedding_pictures(portrait: Portrait, name: str) -> list[Picture]:
    """Draw the data before and after, suspects ringed in both."""
    position = {row: i for i, row in enumerate(portrait.rows.tolist())}
    rings = {
        position[suspect.row]: str(suspect.row)
        for suspect in portrait.suspects
        if suspect.row in position
    }
    views = [
        (
            portrait.before,
            portrait.edges_before,
            "Before: input space, lines to the nearest rows of the same class.",
        ),
        (
            portrait.after,
            portrait.edges_after,
            f"After: metric of {portrait.method}, lines to the learned target neighbours.",
        ),
    ]
    pictures = []
    for number, (points, edges, caption) in enumerate(views):
        with page_style():
            ax = new_axes(5.0, 3.9)
            plot_embedding(points, portrait.labels, edges, rings=rings, ax=ax)
            words = f"{caption} {len(points)} rows, {len(edges)} lines."
            svg = to_svg(ax, f"{name}-{number}", words, _row_marks(portrait))
            pictures.append(Picture(svg, caption))
    return pictures


def _row_marks(portrait: Portrait) -> dict[str, list[Mark]]:
    """Return what the points of each class say: their rows and labels."""
    return {
        f"class-{number}": [
            Mark(f"row {row}, class {shortened(label, TIP_WIDTH)}", row)
            for row in portrait.rows[portrait.labels == label].tolist()
        ]
        for number, label in enumerate(np.unique(portrait.labels).tolist())
    }


def counts_picture(portrait: Portrait, name: str) -> Picture:
    """How many target neighbours rows received, by class."""
    shown = dict(list(portrait.neighbor_counts.items())[:MOST_CLASSES])
    words = "; ".join(
        f"class {shortened(label, TIP_WIDTH)}: "
        + ", ".join(f"{rows} rows with {size}" for size, rows in enumerate(counts) if rows)
        for label, counts in shown.items()
    )
    with page_style():
        ax = new_axes(7.5, 0.35 + 0.26 * len(shown))
        plot_neighbor_counts(shown, ax=ax)
        caption = f"Target neighbours that {portrait.method} gave to the rows of each class."
        if len(shown) < len(portrait.neighbor_counts):
            caption += f" The first {len(shown)} of {len(portrait.neighbor_counts)} classes."
        return Picture(to_svg(ax, name, words), caption)
