"""What every device has to offer: the only code that does n x n work.

Rows are sorted by class before they come here, so the rows of one class are a
contiguous range and "another class" is the complement of a range. Objectives
and solvers speak to a device through :class:`Kernels` alone. What they hold of it is
opaque: rows, coordinates, pairs, and values of rows or pairs stay where the device has them.
Row values and pair values may be added, and multiplied by numbers; nothing else is
asked of them. Sums over all rows come back as numbers and small matrices. Each operation is
documented here and nowhere else. Two have a default, which a device may keep.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from lnml.core.neighborhoods import Neighborhoods
from lnml.core.pairs import (
    Edge,
    EdgeScatter,
    Hinge,
    MixedSlopes,
    Multipliers,
    Partners,
    Pattern,
    Search,
    WorkingSet,
)
from lnml.core.points import Columns, Embedding, Points
from lnml.core.trail import Trail
from lnml.kernels.mixed_slopes import mixed_slopes


class Kernels(Protocol):
    """Algorithms a device implements. Weights count a pair (i, j) once.

    For points that are ``far``, softmax and root sums take distances, and products with
    Laplacians, from differences of rows: exact where matrix products are not, and slower.

    Attributes
    ----------
    remote : bool
        Whether rows cannot come to the host: there may be too many.
        Then all candidates of a working set must be kept, see :meth:`hinge`.
    most_slopes : float
        How many slopes of triplets there is room for.
    """

    remote: bool = False
    most_slopes: float = np.inf

    # Data on the device.

    def session(self) -> AbstractContextManager[None]:
        """Context in which a whole fit runs."""

    def points(self, data: Any, class_start: np.ndarray, order: np.ndarray | None = None) -> Points:
        """Bring class-sorted data onto the device, or rows ``order`` of data to learn from.

        A common offset would cost digits of what is learned, so with ``order`` it is taken
        away: in a column whose values have one sign, the longest at most twice the shortest,
        one of its values is subtracted. No such difference is rounded. Other
        columns stay as they are: their offset is no longer than their range. So
        differences of rows are those of the data.
        """

    def pattern(self, pairs: Pattern) -> Neighborhoods:
        """Bring given pairs onto the device."""

    def to_host(self, values: Any) -> Any:
        """Bring values of rows or pairs, multipliers, or rows, to the host, if they may come."""

    def rows(self, embedding: Embedding, indices: np.ndarray) -> np.ndarray:
        """Coordinates of a few rows, in float64 on the host."""

    def trail(
        self,
        components: np.ndarray,
        most_bytes: int | None = None,
        most_pairs: int | None = None,
    ) -> Trail:
        """Return a trail without pairs; parameters are those of its class.

        Its arithmetic is done where that is fastest. :meth:`embed` takes components as it has
        them, and the moment of coordinates of :meth:`hinge` is of the same kind then.
        """
        return Trail(components, most_bytes, most_pairs)

    # Columns, and sums over rows and classes.

    def columns(self, points: Points) -> Columns:
        """Mean, spread and range of every column."""

    def mapped(
        self,
        points: Points,
        matrix: np.ndarray | None = None,
        *,
        shift: np.ndarray | None = None,
        scale: np.ndarray | None = None,
        far: bool = False,
        wide: bool = False,
    ) -> Points:
        """Return (data - shift) / scale, or (data - shift) @ matrix (d x e); never both.

        It is computed in float64 and kept in the type of the data, or in float64 if ``wide``.
        Without all of them, the data are the same, as far and as rounded as before; else
        ``far`` says whether the new points are (see :class:`lnml.core.points.Points`).
        """

    def pair_scatter(self, points: Points, same: Any, other: Any = None) -> np.ndarray:
        """Sum of weight * v v^T over all ordered pairs of rows (i, j), v = x_i - x_j, d x d.

        ``same`` weighs the pairs of a row with rows of its class, ``other`` those with all
        others; None stands for zero. Each is one number per class on the host, or row values.
        It takes one pass over the rows.
        """

    def edge_scatter(self, points: Points, edges: list[Edge]) -> EdgeScatter:
        """Sum of factor * weight * v v^T over the pairs of edges, v = x_i - x_j, in float64.

        Weights may be pair values, or on the host. A bound of the rounding comes with the sum.
        """

    # Distances and neighbours.

    def embed(self, points: Points, components: Any) -> Embedding:
        """Coordinates of the points under ``components`` (r x d), an array or of a trail."""

    def nearest(self, embedding: Embedding, queries: Any, k: int) -> tuple[Any, Any]:
        """Return squared distances and row numbers of the k rows nearest to queries (m x r).

        Nearest first; ties go to the lowest row number. Short rows are filled with -1 / inf.
        """

    def partners(self, embedding: Embedding, k: int, near: Pattern | None = None) -> Partners:
        """Return the k nearest other rows of its class for every row; ties as in ``nearest``.

        ``near`` are those at another metric: how far away they are now may tell how far to look.
        """

    def choose(
        self, partners: Partners, costs: Any, k_min: int, k_av: int, k_max: int, numbers: np.ndarray
    ) -> tuple[Neighborhoods, float]:
        """Return the pairs of least total cost among the first ``k_max`` partners, and that cost.

        Between k_min and k_max partners a row, k_av on average: see
        docs/neighborhoods.md. ``numbers`` of the rows decide ties between them. Costs are pair
        values of ``partners.pairs``. Costs that fall along a row are raised to the one before:
        the order of partners and that of their costs must agree, and up to rounding they do.
        """

    def distances(self, embedding: Embedding, pairs: Pattern, *, longest: bool = False) -> Any:
        """Squared distance of every pair in float64, or the longest of each row (-inf without)."""

    # Triplets of row, target and impostor.

    def within(
        self,
        embedding: Embedding,
        radius: Any,
        *,
        known: Search | None = None,
        needed: Any = None,
        limited: bool = True,
    ) -> Search:
        """Search for a superset of the pairs of different class with D_il < radius_i.

        ``known`` was made at this metric, and is returned if it reaches as far as is
        ``needed``, by default the radius. If ``limited``,
        more pairs than there is room for raise :class:`lnml.core.pairs.TooManyPairs`. There may
        be less room for a search that looks further than is ``needed``.
        """

    def working_set(
        self, targets: Pattern, candidates: Pattern | None, multipliers: Multipliers | None = None
    ) -> WorkingSet:
        """Return the triplets that the next operations look at; None stands for no candidates."""

    def carry_over(self, old: Multipliers, old_targets: Pattern, targets: Pattern) -> Multipliers:
        """Keep the multipliers of triplets whose target pair is also in ``targets``."""

    def hinge(
        self, embedding: Embedding, working: WorkingSet, gamma: float, *, moment: str = ""
    ) -> Hinge:
        """Hinge terms, their smoothed value and slopes (see :class:`lnml.core.pairs.Hinge`).

        ``moment`` asks for V^T Lap(W + W^T) data, W = the slopes at target pairs minus those
        at candidates, in float64: V are the "coordinates" (r x d; products of float32 data may
        be float32, enough for a gradient) or the "data" (d x d; enough for a certificate).
        A device that is not ``remote`` also takes a working set whose candidates are not kept
        (:class:`lnml.core.pairs.Streamed`). Then ``moment`` may be the "scatter", too: that of
        the data with a bound of its rounding.
        Hinges of single target pairs are promised without a moment only.
        """

    def slopes(self, embedding: Embedding, working: WorkingSet, gamma: float) -> Multipliers:
        """Return the non-zero maximising slopes: the next multipliers."""

    def mixed_slopes(self, parts: list[tuple[float, Multipliers]], targets: Pattern) -> MixedSlopes:
        """Mix slopes of triplets of ``targets``: shares of some, together at most one.

        Slopes that may come to the host can be mixed there.
        """
        here = [(share, self.to_host(slopes)) for share, slopes in parts]
        return mixed_slopes(here, self.pattern(targets).to_host())

    def target_hinges(self, embedding: Embedding, targets: Pattern, radius: Any) -> Any:
        """Sum of max(0, h) over the triplets of every target pair, a block of rows at a time.

        Slower than :meth:`hinge`, with no limit of candidates.
        """

    # Sums over all pairs.

    def softmax(
        self, embedding: Embedding, targets: Pattern | None, *, full: bool | None
    ) -> tuple[float, np.ndarray]:
        """Return the sum of log Z_i, Z_i = the sum over j != i of exp(-D_ij), and a moment.

        Only rows i with targets count; None stands for all rows of the class. The moment is
        V^T Lap(P + P^T) data, P_ij = exp(-D_ij) / Z_i. V are the data, which gives
        the expected scatter (d x d), if ``full``; else the coordinates (r x d), which is cheaper
        where r is below d / 2. With ``full`` None there is no moment, but an empty matrix.
        """

    def softmax_costs(self, embedding: Embedding, pairs: Pattern) -> Any:
        """(D_ij + log Z_i - log k_i) / k_i of every pair, k_i the number of pairs of row i."""

    def class_softmax(self, embedding: Embedding, *, full: bool | None) -> tuple[float, np.ndarray]:
        """Return the sum of 1 - p_i, and V^T Lap(W + W^T) data.

        p_i is the sum of P_ij over the class of i, P_ij = exp(-D_ij) / Z_i. W_ij = P_ij (1 - p_i)
        within the class, -P_ij p_i outside. V and ``full`` as in :meth:`softmax`.
        """

    def root_sums(self, embedding: Embedding) -> tuple[float, np.ndarray]:
        """Sum of sqrt(D_il) over pairs of different class, and its gradient in M.

        The gradient, d x d, is data^T Lap(W + W^T) data with W_il = 1 / (2 sqrt(D_il)).
        Pairs (i, l) and (l, i) both count. A root s below a tiny share of the
        typical one is continued by its tangent in D, so that W stays finite. The
        share is that of rounding where points are far: most roots may be short there.
        """

    def length_sums(self, points: Points, components: np.ndarray) -> tuple[float, np.ndarray]:
        """Sum of |L x| over rows x, and its gradient in M = L^T L (d x d).

        Short lengths are continued by a tangent, as in :meth:`root_sums`.
        """
