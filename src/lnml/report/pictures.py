"""The pictures of the page, as SVG."""

from __future__ import annotations

from dataclasses import dataclass

from lnml.evaluation.portraits import Portrait
from lnml.evaluation.ranks import CriticalDifference
from lnml.evaluation.results import Comparison
from lnml.plotting import (
    plot_accuracies,
    plot_convergence,
    plot_critical_difference,
    plot_embedding,
    plot_neighbor_counts,
)
from lnml.report.svg import new_axes, page_style, to_svg


@dataclass(frozen=True)
class Picture:
    """An ``<svg>`` element and the words below it."""

    svg: str
    caption: str


def accuracy_picture(comparison: Comparison, name: str, alpha: float) -> Picture:
    """Accuracies of one data set with intervals."""
    data = comparison.data.name
    values = "; ".join(f"{m} {100 * comparison.accuracy(m):.1f} %" for m in comparison.metrics)
    with page_style():
        ax = new_axes(2.5, 0.4 + 0.24 * len(comparison.metrics))
        plot_accuracies(comparison, alpha=alpha, ax=ax)
        ax.set_xlabel("")  # the heading above all of them says it
        return Picture(to_svg(ax, name, f"Accuracies on {data}: {values}"), data)


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
        ax = new_axes(4.6, 0.7 + 0.2 * len(ranks.methods))
        plot_critical_difference(ranks, ax=ax)
        return Picture(to_svg(ax, name, f"Average ranks: {values}"), caption)


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
            ax = new_axes(3.2, 2.0)
            plot_convergence(history, ax=ax)
            if len(ax.lines) > 1:
                ax.legend(frameon=False, loc="upper right")
            pictures.append(Picture(to_svg(ax, f"{name}-{number}", words), words + "."))
    return pictures


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
            ax = new_axes(4.4, 3.4)
            plot_embedding(points, portrait.labels, edges, rings=rings, ax=ax)
            words = f"{caption} {len(points)} rows, {len(edges)} lines."
            pictures.append(Picture(to_svg(ax, f"{name}-{number}", words), caption))
    return pictures


def counts_picture(portrait: Portrait, name: str) -> Picture:
    """How many target neighbours rows received, by class."""
    words = "; ".join(
        f"class {label}: "
        + ", ".join(f"{rows} rows with {size}" for size, rows in enumerate(counts) if rows)
        for label, counts in portrait.neighbor_counts.items()
    )
    with page_style():
        ax = new_axes(4.4, 0.35 + 0.26 * len(portrait.neighbor_counts))
        plot_neighbor_counts(portrait.neighbor_counts, ax=ax)
        caption = f"Target neighbours that {portrait.method} gave to the rows of each class."
        return Picture(to_svg(ax, name, words), caption)
