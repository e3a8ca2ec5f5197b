"""The pictures: objective against seconds, and growth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator

STYLES = {
    "lnml": ("#0072b2", "o"),
    "metric-learn": ("#d55e00", "s"),
    "mlpack L-BFGS": ("#009e73", "^"),
    "mlpack default (AMSGrad)": ("#cc79a7", "v"),
}

GROWTH = {
    "LMNN s": ("LMNN fit", "o"),
    "search s": ("one search", "s"),
    "MCML s": ("one MCML value and gradient", "^"),
}


def draw_objectives(traces: dict[str, dict[str, Any]], path: Path) -> None:
    """Exact objective against seconds, a panel per data set, a line per tool."""
    figure, panels = plt.subplots(
        1, len(traces), figsize=(6.0 * len(traces), 4.6), layout="constrained", squeeze=False
    )
    for axes, (title, trace) in zip(panels[0], traces.items(), strict=True):
        for tool, line in trace["lines"].items():
            colour, marker = STYLES[tool]
            axes.plot(
                line["seconds"],
                line["objective"],
                color=colour,
                marker=marker,
                markersize=4.5,
                linewidth=2.2 if tool == "lnml" else 1.4,
                label=tool,
                zorder=3 if tool == "lnml" else 2,
            )
        axes.axhline(trace["bound"], color="0.35", linestyle="--", linewidth=1, zorder=1)
        axes.annotate(
            "no metric is below (proved by lnml)",
            (0.985, trace["bound"]),
            xycoords=("axes fraction", "data"),
            xytext=(0, -4),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=8,
            color="0.35",
        )
        axes.set(xscale="log", yscale="log", title=title, xlabel="seconds")
        low, high = axes.get_ylim()
        axes.set_ylim(low * (low / high) ** 0.06, high)
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        plain_ticks(axes)
        axes.grid(alpha=0.25)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9)
    panels[0][0].set_ylabel("exact LMNN objective")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def draw_growth(series: dict[str, dict[str, Any]], path: Path) -> None:
    """Seconds and memory against rows and columns."""
    figure, panels = plt.subplots(
        2, len(series), figsize=(4.6 * len(series), 6.4), layout="constrained", squeeze=False
    )
    for column, (name, line) in enumerate(series.items()):
        against = "columns" if name.endswith("columns") else "rows"
        top, bottom = panels[0][column], panels[1][column]
        for title, (label, marker) in GROWTH.items():
            top.plot(line[against], _gaps(line[title]), marker=marker, label=label)
        top.plot(line[against], line["full pass s"], color="0.5", linestyle="--", label="full pass")
        bottom.plot(line[against], line["LMNN peak MB"], marker="o")
        top.set(title=name, ylabel="seconds")
        bottom.set(ylabel="peak MB above the data", xlabel=against)
        for axes in (top, bottom):
            axes.set(xscale="log", yscale="log")
            low, high = axes.get_ylim()
            axes.set_ylim(low / 2, max(high * 2, low * 10))
            axes.set_xticks(line[against])
            plain_ticks(axes)
            axes.grid(alpha=0.25)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def plain_ticks(axes: Any) -> None:
    """Numbers instead of powers of ten, at the major ticks only."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(_tick))
        axis.set_minor_formatter(FuncFormatter(lambda *_: ""))


def _tick(value: float, _: Any) -> str:
    if value >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if value >= 1e3 else f"{value:g}"


def _gaps(values: list[float | None]) -> list[float]:
    return [float("nan") if value is None else value for value in values]
