"""Kernels of any device, spoken to in NumPy arrays: what the tests of the kernels use."""

from dataclasses import replace

import numpy as np

from lnml.core.neighborhoods import Neighborhoods
from lnml.core.pairs import Multipliers, Pattern, WorkingSet
from lnml.core.points import Embedding, Points
from lnml.kernels import get_kernels

# Methods whose plain arrays are small and stay on the host; handles are converted all the same.
HOST_ARGUMENTS = {
    "points", "training_points", "pattern", "array", "embed", "rows", "nearest", "columns",
    "standardized", "mapped", "class_scatter", "length_sums", "choose", "per_row",
}  # fmt: skip


def host(values):
    """Values, or what holds them, in NumPy arrays."""
    if hasattr(values, "detach"):
        return values.detach().cpu().numpy()
    if isinstance(values, Neighborhoods):
        return values.to_host()
    if isinstance(values, Points):
        return replace(values, data=host(values.data))
    if isinstance(values, Embedding):
        return Embedding(host(values.coordinates), host(values.points))
    if isinstance(values, Multipliers):
        parts = (values.indptr, values.impostor, values.slot, values.value)
        return Multipliers(*(host(part) for part in parts))
    if isinstance(values, WorkingSet):
        return WorkingSet(
            *(host(p) for p in (values.targets, values.candidates, values.multipliers))
        )
    if isinstance(values, tuple):
        converted = [host(part) for part in values]
        return type(values)(*converted) if hasattr(values, "_fields") else tuple(converted)
    return values


class HostKernels:
    """Passes every call on to the kernels of a device, and brings its results back.

    ``methods`` are those of the kernels, or of their arrays.
    """

    def __init__(self, kernels, methods=None):
        self.kernels = kernels
        self.methods = kernels if methods is None else methods

    @property
    def arrays(self):
        return HostKernels(self.kernels, self.kernels.arrays)

    def __getattr__(self, name):
        method = getattr(self.methods, name)

        def call(*args, **kwargs):
            arrays = name not in HOST_ARGUMENTS
            args = [self._there(value, arrays) for value in args]
            kwargs = {key: self._there(value, arrays) for key, value in kwargs.items()}
            return host(method(*args, **kwargs))

        return method if name == "session" else call

    def _there(self, value, arrays):
        """A value on the device."""
        if isinstance(value, np.ndarray):
            return self.kernels.arrays.array(value) if arrays else value
        if isinstance(value, Points):
            return replace(value, data=self._there(value.data, True))
        if isinstance(value, Embedding):
            points = self._there(value.points, True)
            return Embedding(self._there(value.coordinates, True), points)
        if isinstance(value, Pattern):
            return self.kernels.pattern(value)
        if isinstance(value, WorkingSet):
            return self.kernels.working_set(value.targets, value.candidates, value.multipliers)
        if isinstance(value, list | tuple):
            converted = [self._there(part, arrays) for part in value]
            return type(value)(*converted) if hasattr(value, "_fields") else type(value)(converted)
        return value


def host_kernels():
    """Kernels of the device under test, with NumPy arrays on both sides."""
    kernels = get_kernels()
    return kernels if type(kernels).__name__ == "CPUKernels" else HostKernels(kernels)
