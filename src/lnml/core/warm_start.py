"""What one solve hands to the next: values that say what they were made for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lnml.core.pairs import Multipliers, Pattern, Search
from lnml.core.trail import Trail


@dataclass(eq=False)
class WarmStart:
    """What helps the next solve of a similar problem, or the costs of pairs after this one.

    Attributes
    ----------
    components : ndarray of shape (r, d)
        The metric that the solve ended at, in the coordinates of the data.
    targets : Pattern or None
        The target pairs whose slots the multipliers refer to.
    multipliers : Multipliers or None
        Slopes of the hinges.
    at_end_of_path : bool
        Whether the metric is the end of a barrier path, near which the next path may begin.
    search : Search or None
        The last search, if it was made at a metric that is still of interest.
    trail : Trail or None
        Where the solve ended and what it knows of the curvature, in the coordinates of the
        data, if the next problem is similar.
    """

    components: np.ndarray
    targets: Pattern | None = None
    multipliers: Multipliers | None = None
    at_end_of_path: bool = False
    search: Search | None = None
    trail: Trail | None = None

    def helps_at(self, components: np.ndarray) -> bool:
        """Whether a solver that starts at components (r x d) can begin near its end.

        Multipliers help at any metric, the end of a barrier path at that end alone.
        """
        ended_here = np.array_equal(self.components, components)
        return self.multipliers is not None or (
            ended_here and (self.at_end_of_path or self.trail is not None)
        )

    def take_trail(self, components: np.ndarray) -> Trail | None:
        """Hand the trail over, if it ended at components (r x d); it is large, and gone then."""
        trail, self.trail = self.trail, None
        return trail if np.array_equal(self.components, components) else None

    def take_search(self, components: np.ndarray) -> Search | None:
        """Hand the search over, if it was made at this metric.

        It is gone from here then: a search is large, and its new owner may replace it.
        """
        search, self.search = self.search, None
        return search if search is not None and search.made_at(components) else None
