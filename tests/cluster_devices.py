"""Kernels of a cluster, spoken to in NumPy arrays: what the tests of the kernels use."""

from dataclasses import replace

import dask.array as da
import numpy as np

from lnml.core.neighborhoods import Neighborhoods
from lnml.core.pairs import Multipliers, Pattern, Search, WorkingSet
from lnml.core.points import Embedding, Points
from lnml.kernels.cluster.crew import same
from lnml.kernels.cluster.layout import listed
from lnml.kernels.cluster.patterns import CellMultipliers, CellPattern, HostPairs, joined
from lnml.kernels.cluster.rows import ClusterRows

# Data come in so many chunks, or a few more.
CHUNKS = 4


class ClusterHost:
    """Passes every call on to the kernels of a cluster, and brings its results back.

    What stays on the workers is remembered by its copy here: a copy that is given back stands for
    the original, and the same original has the same copy.
    """

    def __init__(self, kernels):
        self.kernels = kernels
        self._originals, self._copies = {}, {}

    def __getattr__(self, name):
        method = getattr(self.kernels, name)

        def call(*args, **kwargs):
            args = [self._there(value) for value in args]
            kwargs = {key: self._there(value) for key, value in kwargs.items()}
            return self._here(method(*args, **kwargs))

        return method if name == "session" else call

    def points(self, data, class_start, order=None):
        """Data come as a Dask array."""
        rows = max(1, len(data) // CHUNKS)
        chunks = da.from_array(data, chunks=(rows, data.shape[1]))
        return self._here(self.kernels.points(chunks, class_start, order))

    def working_set(self, targets, candidates, multipliers=None):
        """Candidates go to the workers of their cells."""
        given = WorkingSet(targets, candidates, multipliers)
        return self._here(self._there(given))

    def _here(self, value):
        """Return values, or what holds them, in NumPy arrays."""
        if id(value) in self._copies:
            return self._copies[id(value)][1]
        if isinstance(value, Points):
            return replace(value, data=self._here(value.data))
        if isinstance(value, Embedding):
            parts = {"coordinates": self._here(value.coordinates)}
            return replace(value, points=self._here(value.points), **parts)
        if isinstance(value, WorkingSet):
            parts = (value.targets, value.candidates, value.multipliers)
            return WorkingSet(*map(self._here, parts))
        if isinstance(value, tuple):
            parts = map(self._here, value)
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        copy = self._copy(value)
        if copy is not value:
            self._copies[id(value)] = self._originals[id(copy)] = value, copy
        return copy

    def _copy(self, value):
        """Return what the cluster holds, in NumPy arrays; other values as they are."""
        kernels = self.kernels
        if isinstance(value, ClusterRows):
            everything = np.arange(value.shape[0])
            found = kernels.rows(Embedding(value, None), everything)
            return found.astype(value.map.dtype)
        if isinstance(value, Search):
            return replace(value, found=self._here(value.found))
        if isinstance(value, HostPairs):
            return Neighborhoods(value.indptr, value.indices)
        if isinstance(value, CellMultipliers):
            return kernels.to_host(value)
        if isinstance(value, CellPattern):
            found = {cell: future.result() for cell, future in value.futures.items()}
            found = {cell: [_as_multipliers(half) for half in found[cell]] for cell in found}
            every = joined(found, kernels.layout)
            return Pattern(every.indptr, every.impostor)
        return value

    def _there(self, value):
        """Return what the cluster has of a value."""
        if id(value) in self._originals:
            return self._originals[id(value)][0]
        if isinstance(value, Points):
            return replace(value, data=self._there(value.data))
        if isinstance(value, Embedding):
            parts = {"coordinates": self._there(value.coordinates)}
            return replace(value, points=self._there(value.points), **parts)
        if isinstance(value, WorkingSet):
            candidates, targets = value.candidates, self._there(value.targets)
            if candidates is not None:
                candidates = self._candidates(candidates)
            multipliers = self._there(value.multipliers)
            return self.kernels.working_set(targets, candidates, multipliers)
        if isinstance(value, Multipliers):
            return self._multipliers(value)
        if isinstance(value, list):
            return [self._there(part) for part in value]
        return value

    def _candidates(self, pairs):
        """Candidates on the workers of their cells."""
        if id(pairs) in self._originals:
            return self._originals[id(pairs)][0]
        crew, cells = self.kernels.crew, self.kernels.layout.split(pairs)
        futures = {
            cell: crew.submit(listed, own.ends, own.sizes, cell=cell) for cell, own in cells.items()
        }
        return CellPattern(futures, pairs.size, int(pairs.sizes.max(initial=0)))

    def _multipliers(self, given):
        """Multipliers on the workers of their cells."""
        futures = {}
        for cell, own in self.kernels.layout.split(Pattern(given.indptr, given.impostor)).items():
            halves = listed(own.ends, own.sizes)
            cuts = np.cumsum([half.size for half in halves])[:-1]
            parts = [
                Multipliers(half.indptr, half.indices, given.slot[places], given.value[places])
                for half, places in zip(halves, np.split(own.places, cuts), strict=True)
            ]
            futures[cell] = self.kernels.crew.submit(same, parts, cell=cell)
        return CellMultipliers(futures, given.largest)


def _as_multipliers(pairs):
    """Pairs as triplets of their first target."""
    return Multipliers(pairs.indptr, pairs.indices, np.zeros(pairs.size, int), np.zeros(pairs.size))
