"""Pictures of comparisons and fitted models; every function takes and returns axes.

Needs matplotlib: ``pip install "lnml[plot]"``.
"""

try:
    import matplotlib as _matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError(
        "lnml.plotting needs matplotlib; install it with: pip install 'lnml[plot]'"
    ) from error

from lnml.plotting.columns import plot_column_pairs, plot_column_weights
from lnml.plotting.comparisons import (
    plot_accuracies,
    plot_confusion,
    plot_critical_difference,
    plot_leaderboard,
)
from lnml.plotting.convergence import plot_convergence
from lnml.plotting.neighborhoods import plot_embedding, plot_neighbor_counts, plot_neighborhoods
from lnml.plotting.paths import plot_trace_path

__all__ = [
    "plot_accuracies",
    "plot_column_pairs",
    "plot_column_weights",
    "plot_confusion",
    "plot_convergence",
    "plot_critical_difference",
    "plot_embedding",
    "plot_leaderboard",
    "plot_neighbor_counts",
    "plot_neighborhoods",
    "plot_trace_path",
]
