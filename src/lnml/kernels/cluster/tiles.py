"""What the rows of a cell are worked on with: the tiles of a CPU or of a GPU.

A cell has one block of rows or two. Arguments come block by block, in lists; pairs come by the
:func:`lnml.kernels.cluster.layout.ways` of the cell: rows are those of one block, partners are
numbered in the other. Everything is a pure function of its arguments.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from lnml.core.pairs import EdgeScatter, Multipliers, Pattern
from lnml.kernels.cluster.rows import RowMap

# Device of the workers; None lets each of them look for a GPU.
WORKER_DEVICE: str | None = None


class HingePart(NamedTuple):
    """Sums over the triplets of a cell, on the host.

    Attributes
    ----------
    totals : ndarray of shape (4,)
        The four numbers of a :class:`lnml.core.pairs.Hinge`.
    weights, hinges : lists of ndarrays
        Sums of slopes, and of max(0, h), for the target pairs of each block.
    push : ndarray of shape (r, d) or (d, d), or None
        What the candidate pairs add to the moment.
    """

    totals: np.ndarray
    weights: list[np.ndarray]
    hinges: list[np.ndarray]
    push: np.ndarray | None


class MappedRows(NamedTuple):
    """Rows of a block under a map.

    Attributes
    ----------
    rows : Any
        Where they are, as tiles have them.
    trail : Any
        How they came there (:meth:`Tiles.trail`); None if unknown.
    """

    rows: Any
    trail: Any = None


class Tiles(Protocol):
    """Work on the rows of a cell.

    Candidates and multipliers stay on a worker in a form of its own. They are pickled as lists
    of NumPy arrays, by ways, and every worker takes those.
    """

    def session(self) -> AbstractContextManager[None]:
        """Surround the work of a task."""

    def forget(self) -> None:
        """Give memory back that is not in use."""

    def mapped(self, rows: Any, row_map: RowMap) -> Any:
        """Return placed rows of a block under a map, where they are worked on.

        They are a NumPy array, or what the identity made of it.
        """

    def trail(self, found: MappedRows, before: MappedRows | None) -> Any:
        """Return how rows came to where they are, given where they were.

        None if no kernel asks for it.
        """

    def search(self, z: list[Any], codes: list[Any], radius: list[Any], most: int | None) -> Any:
        """Return the pairs of different class within a radius, by ways."""

    def nearest(self, z: list[Any], codes: list[Any], k: int) -> list[tuple[Any, Any]]:
        """Return distances and numbers of the nearest rows of the same class, by ways."""

    def lengths(self, z: list[Any], pairs: list[Pattern]) -> np.ndarray:
        """Squared distances of some pairs, one way after the other."""

    def moment(
        self,
        values: list[Any],
        data: list[Any],
        pairs: list[Pattern],
        weights: list[Any],
        exact: bool,
    ) -> np.ndarray:
        """Sum of weight * (v_i - v_j)^T (x_i - x_j) over some pairs; ``exact`` in float64."""

    def scatter(self, z: list[Any], pairs: list[Pattern], weights: list[Any]) -> EdgeScatter:
        """Sum of weight * v v^T over some pairs, with its rounding."""

    def hinge(
        self,
        z: list[Any],
        data: list[Any],
        triplets: CellTriplets,
        gamma: float,
        moment: str,
    ) -> HingePart:
        """Sum the hinges of a cell."""

    def slopes(self, z: list[Any], triplets: CellTriplets, gamma: float) -> Any:
        """Non-zero slopes of the triplets of a cell, by ways."""

    def carry_over(self, old: Any, old_targets: list[Pattern], targets: list[Pattern]) -> Any:
        """Multipliers of triplets whose target pair stays; targets are those of each block."""

    def to_host(self, multipliers: Any) -> list[Multipliers]:
        """Return multipliers in NumPy arrays, by ways."""

    def totals(self, z: list[Any], codes: list[Any]) -> list[np.ndarray]:
        """Return sums of the weights of each row's pairs, by kind: (2, n_b) for each block."""

    def products(
        self, z: list[Any], data: list[Any], codes: list[Any], factors: list[Any], full: bool
    ) -> np.ndarray:
        """V^T Lap(S) X, S_ij = (factor_i + factor_j) times the weight of the pair.

        V are the data if ``full``, else the coordinates.
        """


class CellTriplets(NamedTuple):
    """The triplets of a cell.

    Attributes
    ----------
    starts : list of ndarrays of shape (n_b + 1,)
        Where the targets of each row of a block begin, among those of the block.
    lengths : list of ndarrays
        Squared distances of the targets of each block.
    candidates : Any
        Impostors that may act, as a search returned them.
    multipliers : Any
        As they are on this worker; None if all are zero.
    trails : list
        How the rows of each block came to where they are; empty if that is not known.
    """

    starts: list[np.ndarray]
    lengths: list[np.ndarray]
    candidates: Any
    multipliers: Any
    trails: list[Any]


def block_ways(blocks: list[Any]) -> list[tuple[int, int]]:
    """Blocks of rows and of partners, by ways."""
    return [(0, 0)] if len(blocks) == 1 else [(0, 1), (1, 0)]


def class_starts(codes: list[np.ndarray]) -> list[np.ndarray]:
    """Where each class of a cell begins in each of its blocks, and the end of the block."""
    kinds = np.unique(np.concatenate(codes))
    return [np.append(np.searchsorted(each, kinds), each.size) for each in codes]


@cache
def tiles_on(device: str | None) -> Tiles:
    """Return the tiles of a device; None stands for the GPU of this process, if it has one."""
    if device is None:
        device = "cuda" if _has_gpu() else "cpu"
    if device == "cpu":
        from lnml.kernels.cluster.cpu_tiles import CpuTiles

        return CpuTiles()
    from lnml.kernels.cluster.torch_tiles import TorchTiles

    return TorchTiles(device)


def _has_gpu() -> bool:
    """Whether torch can use a GPU here. It is not imported where there is no driver."""
    if importlib.util.find_spec("torch") is None:
        return False
    if "torch" not in sys.modules:
        try:
            ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        except OSError:
            return False
    import torch

    return bool(torch.cuda.is_available())
