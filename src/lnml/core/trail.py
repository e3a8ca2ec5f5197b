"""What a path of similar problems remembers: where it is, and how its gradient changed."""

from __future__ import annotations

from collections import deque
from typing import Any, Self

import numpy as np
from scipy.linalg.blas import daxpy, ddot

# More save a few evaluations, and take more time than these where rows are few.
MOST_PAIRS = 200
MOST_BYTES = 2**28
LEAST_PAIRS = 10
# A change of the gradient this much across its step says nothing about curvature.
LEAST_CURVATURE = 1e-8


class Trail:
    """Components, and the steps of a descent with the changes of its gradient.

    L-BFGS makes its model of the curvature from these pairs. They are worth keeping if the
    next problem has about the same curvature. A descent does its arithmetic with what a trail
    gives it: here arrays, elsewhere what a device has. It begins with :meth:`start`; then it looks
    at where a step would end, and advances to there or looks at a shorter one.

    Parameters
    ----------
    components : ndarray of shape (r, e)
        Where the last descent ended.
    most_bytes : int or None
        What the pairs may take, if there is room for a few; None for the usual.
    most_pairs : int or None
        How many there may be; None for the usual.

    Attributes
    ----------
    most_pairs : int
        How many pairs there may be.
    gradient : ndarray of shape (r, e), or what a device has
        Where the trail is, once a descent has started.
    steps, changes : deques of ndarrays of shape (r, e)
        The newest last; of a trail on the host alone.
    products : deque of float
        Step times change, for each of these pairs.
    bends : bool
        Whether the last step told of a positive curvature. Where it did not, a longer one is safe.
    """

    gradient: Any
    bends: bool = True

    def __init__(
        self,
        components: np.ndarray,
        most_bytes: int | None = None,
        most_pairs: int | None = None,
    ) -> None:
        self._at: Any = components
        self._seen: Any = None
        room = (most_bytes or MOST_BYTES) // (16 * max(components.size, 1))
        self.most_pairs = most = min(most_pairs or MOST_PAIRS, max(LEAST_PAIRS, room))
        self.steps: deque[np.ndarray] = deque(maxlen=most)
        self.changes: deque[np.ndarray] = deque(maxlen=most)
        self.products: deque[float] = deque(maxlen=most)

    @property
    def n_pairs(self) -> int:
        """How many pairs there are."""
        return len(self.products)

    @property
    def components(self) -> np.ndarray:
        """Where the trail is, on the host."""
        return np.asarray(self._at)

    @property
    def at(self) -> Any:
        """The components, as a descent works on them."""
        return self._at

    def move_to(self, at: Any) -> None:
        """Go to components: an array, or what a descent works on."""
        self._at = at

    def start(self, gradient: Any) -> None:
        """Begin a descent where the trail is, with the gradient there."""
        self.gradient = gradient

    def look(self, components: Any, value: Any, gradient: Any) -> float:
        """Take note of value and gradient at the end of a step; return the value as a number."""
        self._seen = components, gradient
        return float(value)

    def advance(self) -> None:
        """Go to where a descent looked last; keep the step, if it tells of a positive curvature."""
        components, gradient = self._seen
        step, change = components - self._at, gradient - self.gradient
        product = self.dot(step, change)
        self.bends = product > LEAST_CURVATURE * self.length(step) * self.length(change)
        if self.bends:
            self.steps.append(step)
            self.changes.append(change)
            self.products.append(product)
        self._at, self.gradient = components, gradient

    @staticmethod
    def dot(left: Any, right: Any) -> float:
        """Return the sum of the products of entries."""
        return float(np.vdot(left, right))

    @staticmethod
    def length(values: Any) -> float:
        """Return the root of the sum of squares of entries."""
        return float(np.linalg.norm(values))

    def forget(self) -> None:
        """Drop all pairs."""
        self.steps.clear()
        self.changes.clear()
        self.products.clear()

    def downhill(self) -> tuple[Any, float]:
        """Return minus the inverse of the curvature times the gradient, and the slope there.

        By two loops over the pairs.
        """
        q, shares = self.gradient.ravel().copy(), []
        # BLAS adds in place, which takes half the time where pairs are many.
        pairs = [
            (step.ravel(), change.ravel(), product)
            for step, change, product in zip(self.steps, self.changes, self.products, strict=True)
        ]
        for step, change, product in reversed(pairs):
            shares.append(ddot(step, q) / product)
            q = daxpy(change, q, a=-shares[-1])
        if pairs:
            step, change, product = pairs[-1]
            q *= product / ddot(change, change)
        for step, change, product in pairs:
            q = daxpy(step, q, a=shares.pop() - ddot(change, q) / product)
        direction = -q.reshape(self.gradient.shape)
        return direction, self.dot(direction, self.gradient)

    def along(self, direction: Any, size: float) -> Any:
        """Return where a step along a direction ends."""
        return self._at + size * direction

    def inside(self, coordinates: Any) -> Self | None:
        """Return the same in linear coordinates; None if they are of another kind.

        Other directions are left out of them, or have no pull: a start needs more than this.
        """
        if self.components.shape[0] != coordinates.matrix.shape[1] or not coordinates.pull.all():
            return None
        return self._mapped(coordinates.inverse.T, coordinates.matrix)

    def outside(self, coordinates: Any) -> Self:
        """Undo :meth:`inside`."""
        return self._mapped(coordinates.matrix.T, coordinates.inverse)

    def _mapped(self, of_components: np.ndarray, of_gradients: np.ndarray) -> Self:
        """Multiply components and steps by one matrix, changes by another."""
        mapped = type(self)(self.components @ of_components, most_pairs=self.most_pairs)
        mapped.steps.extend(step @ of_components for step in self.steps)
        mapped.changes.extend(change @ of_gradients for change in self.changes)
        # The same in all linear coordinates.
        mapped.products.extend(self.products)
        return mapped
