"""The best mixture of the last dual points of LMNN (docs/lmnn.md, "Mixing")."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import linprog

from lnml.core.solution import DualPoint

# Points that are mixed, at most, and the sum of their slopes, which is about their number.
MOST_POINTS = 12
MOST_SLOPES = 4e6
# A point that proves less than this share of the objective is of no use in a mixture.
NEAR = 0.9
# Fewer points are not worth a programme, nor are points all of which leave a gap of more than so
# many times the tolerance: mixtures rarely make the smallest gap a quarter.
LEAST_POINTS = 3
HOPE = 4.0
# A mixture is good enough if no other proves more by this share.
ENOUGH = 1e-6
MOST_TRIALS = 20
# Share of the tolerance that a mixture aims at, so that rounding finds room in a proof.
AIM = 0.95
# Directions that a trial adds, at most, and how many are remembered.
DIRECTIONS = 8
MOST_DIRECTIONS = 200
# A direction is remembered if the mixture leaves at most this share of its pull.
TIGHT = 0.1


class Mixture(NamedTuple):
    """A bound, and the share of each point that is remembered, the newest last."""

    bound: float
    shares: tuple[float, ...]


class RecentPoints:
    """Dual points of the last metrics, in coordinates where the pull is near one or zero.

    Parameters
    ----------
    pull : ndarray of shape (e,)
        Diagonal of the dual matrix without slopes.
    weight : float
        Weight of the pull: the largest that an entry of its diagonal can be.
    """

    def __init__(self, pull: np.ndarray, weight: float) -> None:
        self.pull, self.weight = pull, weight
        self.points: list[DualPoint] = []
        # What each of them proves alone.
        self.proved: list[float] = []
        # Unit vectors (c x e) along which mixtures may be infeasible.
        self.directions = np.zeros((0, pull.size))
        self.least = np.inf

    def forget(self) -> None:
        """Drop all points: none of them can be mixed with later ones."""
        self.points, self.proved = [], []

    def mixed(self, new: DualPoint, alone: float, objective: float, tol: float) -> Mixture:
        """Take a point and return what is proved with it.

        Alone it proves ``alone``. A mixture is looked for if it may leave a gap of at most
        ``tol`` times the least objective so far.
        """
        self.least = min(self.least, objective)
        if alone < NEAR * objective:
            self.forget()
        room = int(np.clip(MOST_SLOPES / max(new.value, 1.0), 1, MOST_POINTS))
        self.points = [*self.points, new][-room:]
        self.proved = [*self.proved, alone][-room:]
        best = Mixture(alone, (*[0.0] * (len(self.points) - 1), 1.0))
        wanted = (1.0 - AIM * tol) * self.least
        hopeless = max(self.proved) < (1.0 - HOPE * tol) * self.least
        if alone >= wanted or len(self.points) < LEAST_POINTS or (hopeless and tol > 0.0):
            return best
        return max(best, self._best(wanted), key=lambda mixture: mixture.bound)

    def _best(self, wanted: float) -> Mixture:
        """Maximise the sum of the slopes by cutting planes, one for each direction.

        A linear programme stands for the mixtures that are feasible along the directions known so
        far. Its solution, scaled until it is feasible, proves a bound; the directions along which
        it was not are added. It ends with a bound as ``wanted``, or when there is none.
        """
        values = np.array([point.value for point in self.points])
        pushes = np.array([point.matrix for point in self.points])
        best, shares = Mixture(0.0, (0.0,) * values.size), np.zeros(values.size)
        loads, rooms = self._along(self.directions, pushes)
        for _ in range(MOST_TRIALS):
            found = self._most(values, loads, rooms)
            if found is None:
                break
            shares = found
            total, push = float(values @ shares), np.tensordot(shares, pushes, 1)
            dual = np.diag(self.pull) + push
            along, vectors = eigh(dual, subset_by_index=(0, min(DIRECTIONS, len(dual)) - 1))
            bound = total * self.weight / (self.weight + max(0.0, -float(along[0])))
            if bound > best.bound:
                best = Mixture(bound, tuple(shares.tolist()))
            if best.bound >= wanted or total - best.bound <= ENOUGH * total:
                break
            lowest = max(int((along < 0.0).sum()), 1)
            added = vectors[:, :lowest].T
            more = self._along(added, pushes)
            self.directions = np.vstack([self.directions, added])
            loads, rooms = np.vstack([loads, more[0]]), np.concatenate([rooms, more[1]])
            if total < wanted:
                break
        tight = rooms - loads @ shares <= TIGHT * np.maximum(rooms, np.abs(loads).max(axis=1))
        self.directions = self.directions[tight][-MOST_DIRECTIONS:]
        return best

    def _along(self, directions: np.ndarray, pushes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how much each push takes along directions (c x K), and how much there is (c)."""
        taken = [np.einsum("ce,ce->c", directions @ push, directions) for push in pushes]
        return -np.stack(taken, axis=1), directions**2 @ self.pull

    @staticmethod
    def _most(values: np.ndarray, loads: np.ndarray, rooms: np.ndarray) -> np.ndarray | None:
        """Shares of the largest total, together at most one, that no direction forbids."""
        unit = np.maximum(np.abs(loads).max(axis=1, initial=0.0), rooms)
        unit = np.where(unit > 0.0, unit, 1.0)
        found = linprog(
            -values / values.max(),
            A_ub=np.vstack([np.ones(values.size), loads / unit[:, None]]),
            b_ub=np.concatenate([[1.0], rooms / unit]),
            bounds=(0.0, None),
        )
        if found.x is None:
            return None
        shares = np.maximum(found.x, 0.0)
        return np.asarray(shares / max(1.0, float(shares.sum())))
