"""Blocks under a map, as a worker keeps them between the phases of a fit."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any

import numpy as np

from lnml.kernels.cluster.rows import RowMap
from lnml.kernels.cluster.tiles import MappedRows, Tiles


class MappedBlocks:
    """Blocks of the last map, as many as there is room for; and blocks that a GPU has.

    The phases of one evaluation need the same coordinates, so they are computed once if there is
    room. A block that had to go is computed again. Those of the map before stay until the block is
    mapped again, to see how far its rows moved. What a GPU has of blocks as they were placed stays
    there.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._token = ""
        self._mapped: OrderedDict[str, MappedRows] = OrderedDict()
        self._before: OrderedDict[str, MappedRows] = OrderedDict()
        self._placed: dict[tuple[str, str], Any] = {}

    def __len__(self) -> int:
        return len(self._mapped) + len(self._before) + len(self._placed)

    def clear(self) -> None:
        """Let go of all blocks."""
        with self._lock:
            self._mapped.clear()
            self._before.clear()
            self._placed.clear()

    def placed(self, name: str, block: np.ndarray, tiles: Tiles) -> Any:
        """Return the rows of a block as they were placed, where they are worked on."""
        row_map = RowMap.identity(block.dtype.str)
        key = row_map.token, name
        found = self._placed.get(key)
        if found is None:
            found = tiles.mapped(block, row_map)
            if found is not block:
                self._placed[key] = found
        return found

    def under(
        self, row_map: RowMap, name: str, block: np.ndarray, tiles: Tiles, most: int
    ) -> MappedRows:
        """Return the rows of a block under a map.

        Parameters
        ----------
        row_map : RowMap
            The map.
        name : str
            Name of the block.
        block : ndarray of shape (n_b, d)
            Its rows as they were placed.
        tiles : Tiles
            What maps rows here.
        most : int
            Bytes of mapped blocks that may be kept.
        """
        placed = self.placed(name, block, tiles)
        if row_map.token == RowMap.identity(block.dtype.str).token:
            return MappedRows(placed)
        with self._lock:
            if row_map.token != self._token:
                self._token = row_map.token
                self._before.update(self._mapped)
                self._mapped.clear()
            if name in self._mapped:
                self._mapped.move_to_end(name)
                return self._mapped[name]
            before = self._before.pop(name, None)
        size = len(block) * row_map.width(block.shape[1]) * np.dtype(row_map.dtype).itemsize
        self._make_room(most - size)
        found = MappedRows(tiles.mapped(placed, row_map))
        if size > most:
            return found
        found = found._replace(trail=tiles.trail(found, before))
        with self._lock:
            if row_map.token == self._token:
                self._mapped[name] = found
        return found

    def _make_room(self, most: int) -> None:
        """Let the blocks go that were not used for longest, until the others fit."""
        with self._lock:
            for kept in (self._before, self._mapped):
                while kept and self._nbytes() > most:
                    kept.popitem(last=False)

    def _nbytes(self) -> int:
        """Bytes of the mapped blocks."""
        kept = (self._before, self._mapped)
        return sum(each.rows.nbytes for blocks in kept for each in blocks.values())
