"""A trail on the device: between two evaluations fewer than a thousand numbers come here."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import torch
from scipy.linalg.lapack import dtrtrs

from lnml.core.trail import LEAST_CURVATURE, Trail
from lnml.kernels.torch.basics import to_numpy, to_tensor

# Products with a gradient are sums from its start on; a square that fell below this share of the
# first one has few digits left.
FADED = 1e-8
# Components with fewer entries are faster on the host (docs/gpu.md).
SMALL = 2**13


class Message(NamedTuple):
    """What comes to the host when a descent looks at the end of a step.

    Attributes
    ----------
    with_step, with_change : ndarrays of shape (1 + 2 m,)
        Products of the rows of a trail with the step, and with the change of the gradient.
    step_change, change_change : float
        Products of these two.
    lengths : float
        Product of their lengths.
    """

    with_step: np.ndarray
    with_change: np.ndarray
    step_change: float
    change_change: float
    lengths: float


class TorchTrail(Trail):
    """See :class:`lnml.core.trail.Trail`. A step sends one message to the host.

    The two loops over the pairs need products of steps, changes and the gradient with each other
    alone, which are kept on the host; those of a new pair come there with the value at its end. So
    the loops are two triangular systems of the size of the number of pairs, and a direction is a
    sum of steps and changes (docs/gpu.md).
    """

    def __init__(
        self,
        components: np.ndarray,
        most_bytes: int | None = None,
        most_pairs: int | None = None,
        *,
        device: torch.device,
    ) -> None:
        self._device = device
        super().__init__(components, most_bytes, most_pairs)
        self._host: np.ndarray | None = components
        # The gradient, then step and change of each place, in rows; made for the first descent.
        # One place more than there may be pairs: that of the pair which a descent looks at.
        self._rows: torch.Tensor | None = None
        # Whether the first row is not the gradient yet: that can wait until the device has work.
        self._late = False
        places = self.most_pairs + 1
        # Products of steps (rows) and changes (columns), and of changes with each other.
        self._with_steps, self._with_changes = np.zeros((2, places, places))
        # Products of the rows with the gradient.
        self._slopes = np.zeros(1 + 2 * places)
        self._first_square = 0.0
        # Places of the pairs, the oldest first; the first free one; and how many were ever used.
        self._used: list[int] = []
        self._free = self._n_places = 0

    @property
    def components(self) -> np.ndarray:
        """Where the trail is, on the host."""
        if self._host is None:
            self._host = to_numpy(self._at)
        return self._host

    @property
    def n_pairs(self) -> int:
        """How many pairs there are."""
        return len(self._used)

    @property
    def at(self) -> torch.Tensor:
        """The components on the device, float64."""
        if not isinstance(self._at, torch.Tensor):
            self._at = to_tensor(self._at, self._device, torch.float64)
        return self._at

    def move_to(self, at: Any) -> None:
        """Go to components: an array, or a tensor on the device."""
        self._at, self._host = at, None if isinstance(at, torch.Tensor) else at

    def start(self, gradient: torch.Tensor) -> None:
        """Begin a descent where the trail is, with the gradient there."""
        if self._rows is None:
            shape = (self._slopes.size, *gradient.shape)
            self._rows = torch.zeros(shape, dtype=torch.float64, device=self._device)
        self._take_gradient(gradient)
        self._see_slopes()

    def look(self, components: torch.Tensor, value: torch.Tensor, gradient: torch.Tensor) -> float:
        """Take note of value and gradient at the end of a step; return the value as a number."""
        assert self._rows is not None, "a descent has started"
        first, self._n_places = 1 + 2 * self._free, max(self._n_places, self._free + 1)
        torch.sub(components, self.at, out=self._rows[first])
        torch.sub(gradient, self.gradient, out=self._rows[first + 1])
        rows = self._flat()
        products = rows @ rows[first : first + 2].T
        sent = to_numpy(torch.cat([products.ravel(), value.reshape(1)]))
        with_step, with_change = sent[:-1].reshape(-1, 2).T
        (step_step, step_change), (_, change_change) = sent[2 * first : 2 * first + 4].reshape(2, 2)
        lengths = np.sqrt(step_step) * np.sqrt(change_change)
        message = Message(with_step, with_change, step_change, change_change, lengths)
        self._seen = components, gradient, message
        return float(sent[-1])

    def advance(self) -> None:
        """Go to where a descent looked last; keep the step, if it tells of a positive curvature."""
        components, gradient, message = self._seen
        self._slopes[: message.with_change.size] += message.with_change
        self._slopes[0] += message.with_change[0] + message.change_change
        self.bends = bool(message.step_change > LEAST_CURVATURE * message.lengths)
        if self.bends:
            self._keep(message)
        self._take_gradient(gradient)
        self.move_to(components)
        if not self._slopes[0] > FADED * self._first_square:
            self._see_slopes()

    def _flat(self) -> torch.Tensor:
        """Return the gradient, and steps and changes of all places that were used, as rows."""
        assert self._rows is not None, "a descent has started"
        if self._late:
            self._rows[0], self._late = self.gradient, False
        return self._rows[: 1 + 2 * self._n_places].flatten(1)

    def _see_slopes(self) -> None:
        """Compute the products of all rows with the gradient anew."""
        rows = self._flat()
        self._slopes[: len(rows)] = to_numpy(rows @ rows[0])
        self._first_square = self._slopes[0]

    def _take_gradient(self, gradient: torch.Tensor) -> None:
        self.gradient, self._late = gradient, True

    def _keep(self, message: Message) -> None:
        """Keep the pair at the free place, and free that of the oldest if there are too many."""
        place, known = self._free, self._n_places
        self._with_steps[:known, place] = message.with_change[1::2]
        self._with_steps[place, :known] = message.with_step[2::2]
        self._with_changes[:known, place] = message.with_change[2::2]
        self._with_changes[place, :known] = message.with_change[2::2]
        self._slopes[1 + 2 * place] = message.with_step[0] + message.step_change
        self._slopes[2 + 2 * place] = message.with_change[0] + message.change_change
        self._used.append(place)
        self._free = self._used.pop(0) if len(self._used) > self.most_pairs else len(self._used)

    @staticmethod
    def dot(left: torch.Tensor, right: torch.Tensor) -> float:
        """Return the sum of the products of entries."""
        return float(torch.dot(left.ravel(), right.ravel()))

    @staticmethod
    def length(values: torch.Tensor) -> float:
        """Return the root of the sum of squares of entries."""
        return float(np.sqrt(TorchTrail.dot(values, values)))

    def forget(self) -> None:
        """Drop all pairs."""
        self._used, self._free, self._n_places = [], 0, 0

    def downhill(self) -> tuple[torch.Tensor, float]:
        """Return minus the inverse of the curvature times the gradient, and the slope there.

        There must be a pair.
        """
        assert self._rows is not None, "there are pairs"
        used = np.array(self._used)
        shares = np.zeros(1 + 2 * self._n_places)
        slopes = self._slopes[: shares.size]
        shares[1 + 2 * used], shares[2 + 2 * used], shares[0] = _two_loops(
            self._with_steps[np.ix_(used, used)], self._with_changes[np.ix_(used, used)],
            slopes[1 + 2 * used], slopes[2 + 2 * used],
        )  # fmt: skip
        there, pairs = to_tensor(shares[1:], self._device), self._rows[1 : shares.size].flatten(1)
        direction = torch.addmv(self.gradient.reshape(-1), pairs.T, there, beta=float(shares[0]))
        return direction.reshape(self.gradient.shape), float(shares @ slopes)

    def along(self, direction: torch.Tensor, size: float) -> torch.Tensor:
        """Return where a step along a direction ends."""
        return torch.add(self.at, direction, alpha=size)

    def _mapped(self, of_components: np.ndarray, of_gradients: np.ndarray) -> Self:
        """Multiply components and steps by one matrix, changes by another."""
        mapped = type(self)(
            self.components @ of_components, most_pairs=self.most_pairs, device=self._device
        )
        if not self._used or self._rows is None:
            return mapped
        n, (rank, _) = self._n_places, self.components.shape
        rows, width = self._rows[1 : 1 + 2 * n].unflatten(0, (n, 2)), of_components.shape[1]
        moved = torch.empty((n, 2, rank, width), dtype=torch.float64, device=self._device)
        for kind, matrix in enumerate((of_components, of_gradients)):
            moved[:, kind] = rows[:, kind] @ to_tensor(matrix, self._device)
        mapped._rows = moved.new_zeros((mapped._slopes.size, rank, width))
        mapped._rows[1 : 1 + 2 * n], flat = moved.flatten(0, 1), moved.reshape(2 * n, -1)
        products = to_numpy(flat @ flat[1::2].T)
        mapped._with_steps[:n, :n], mapped._with_changes[:n, :n] = products[::2], products[1::2]
        mapped._used, mapped._free, mapped._n_places = list(self._used), self._free, n
        return mapped


def _two_loops(
    with_steps: np.ndarray, with_changes: np.ndarray, of_steps: np.ndarray, of_changes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the shares of steps, changes and the gradient in a direction of L-BFGS.

    Parameters
    ----------
    with_steps, with_changes : ndarrays of shape (m, m)
        Products of steps (rows) and of changes with changes (columns), the oldest pair first.
    of_steps, of_changes : ndarrays of shape (m,)
        Products with the gradient.
    """
    newer, sizes = with_steps, np.diag(with_steps)
    first = dtrtrs(newer, of_steps)[0]
    unit = sizes[-1] / with_changes[-1, -1]
    left = unit * (of_changes - with_changes @ first)
    second = dtrtrs(newer, sizes * first - left, trans=1)[0]
    return -second, unit * first, -unit
