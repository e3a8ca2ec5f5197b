"""A trail on the device: between two evaluations only a few dozen numbers come to the host."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from scipy.linalg import solve_triangular

from lnml.core.trail import LEAST_CURVATURE, Trail
from lnml.kernels.torch.basics import to_numpy, to_tensor

# Components with fewer entries are faster on the host (docs/gpu.md).
SMALL = 2**13


class TorchTrail(Trail):
    """See :class:`lnml.core.trail.Trail`.

    The two loops over the pairs need products of steps, changes and the gradient with each other
    alone. Those of the pairs are on the host, those with a gradient come there in one message. So
    the loops are two triangular systems of the size of the number of pairs, and a direction is
    a sum of steps and changes (docs/gpu.md).
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
        # One place more than there are pairs: a new one is looked at before the oldest goes.
        self._n_places = self.most_pairs + 1
        # All steps, all changes, and the last gradient, in rows; made for the first pair.
        self._rows: torch.Tensor | None = None
        # Products of steps (rows) and changes (columns), and of changes with each other.
        shape = (self._n_places, self._n_places)
        self._with_steps, self._with_changes = np.zeros(shape), np.zeros(shape)
        # Places of the pairs, the oldest first, and those that are free.
        self._used: list[int] = []
        self._free = list(range(self._n_places))

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

    @staticmethod
    def dot(left: torch.Tensor, right: torch.Tensor) -> float:
        """Return the sum of the products of entries."""
        return float(torch.dot(left.reshape(-1), right.reshape(-1)))

    @staticmethod
    def length(values: torch.Tensor) -> float:
        """Return the root of the sum of squares of entries."""
        return float(np.sqrt(TorchTrail.dot(values, values)))

    def add(self, step: torch.Tensor, change: torch.Tensor) -> None:
        """Take a step and the change of the gradient, if they tell of a positive curvature."""
        if self._rows is None:
            shape = (2 * self._n_places + 1, step.numel())
            self._rows = torch.zeros(shape, dtype=torch.float64, device=self._device)
        place, n = self._free[0], self._n_places
        new = torch.stack([step.reshape(-1), change.reshape(-1)])
        self._rows[place], self._rows[n + place] = new
        products = to_numpy(self._rows[: 2 * n] @ new.T)
        with_steps, with_changes = products[:n], products[n:]
        lengths = np.sqrt(with_steps[place, 0] * with_changes[place, 1])
        if not with_steps[place, 1] > LEAST_CURVATURE * lengths:
            return
        self._with_steps[:, place], self._with_steps[place] = with_steps[:, 1], with_changes[:, 0]
        self._with_changes[:, place] = self._with_changes[place] = with_changes[:, 1]
        self._used.append(self._free.pop(0))
        if len(self._used) > self.most_pairs:
            self._free.append(self._used.pop(0))

    def forget(self) -> None:
        """Drop all pairs."""
        self._used, self._free = [], list(range(self._n_places))

    def downhill(self, gradient: torch.Tensor) -> tuple[torch.Tensor, float]:
        """Return minus the inverse of the curvature times a gradient (r x e), and the slope there.

        There must be a pair.
        """
        assert self._rows is not None, "there are pairs"
        self._rows[-1] = gradient.reshape(-1)
        products = to_numpy(self._rows @ self._rows[-1])
        used, n = np.array(self._used), self._n_places
        shares = np.zeros(len(products))
        shares[used], shares[n + used], shares[-1] = _two_loops(
            self._with_steps[np.ix_(used, used)], self._with_changes[np.ix_(used, used)],
            products[used], products[n + used],
        )  # fmt: skip
        direction = to_tensor(shares, self._device) @ self._rows
        return direction.reshape(gradient.shape), float(shares @ products)

    def _mapped(self, of_components: np.ndarray, of_gradients: np.ndarray) -> Self:
        """Multiply components and steps by one matrix, changes by another."""
        mapped = type(self)(
            self.components @ of_components, most_pairs=self.most_pairs, device=self._device
        )
        if not self._used or self._rows is None:
            return mapped
        n, (rank, _) = self._n_places, self.components.shape
        steps, changes = (
            (part.reshape(n, rank, -1) @ to_tensor(matrix, self._device)).reshape(n, -1)
            for part, matrix in (
                (self._rows[:n], of_components), (self._rows[n : 2 * n], of_gradients),
            )
        )  # fmt: skip
        mapped._rows = torch.cat([steps, changes, torch.zeros_like(steps[:1])])
        products = to_numpy(torch.cat([steps, changes]) @ changes.T)
        mapped._with_steps, mapped._with_changes = products[:n], products[n:]
        mapped._used, mapped._free = list(self._used), list(self._free)
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
    newer = np.triu(with_steps)
    sizes = np.diag(with_steps)
    first = solve_triangular(newer, of_steps, check_finite=False)
    unit = sizes[-1] / with_changes[-1, -1]
    left = unit * (of_changes - with_changes @ first)
    second = solve_triangular(newer, sizes * first - left, trans=1, check_finite=False)
    return -second, unit * first, -unit
