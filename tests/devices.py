"""Kernels of any device, spoken to in NumPy arrays: what the tests of the kernels use."""

from contextlib import contextmanager
from dataclasses import fields, replace
from unittest.mock import patch

import numpy as np
from hypothesis import settings
from sklearn import config_context

from lnml.core.neighborhoods import Neighborhoods
from lnml.core.pairs import (
    PAIR_BYTES,
    Edge,
    Multipliers,
    Partners,
    Pattern,
    Search,
    Streamed,
    WorkingSet,
)
from lnml.core.points import Embedding, Points
from lnml.kernels import get_kernels

# Methods whose plain arrays are values of rows or pairs; those of others stay on the host.
DEVICE_ARGUMENTS = {"to_host", "choose", "within", "target_hinges"}


def host(values):
    """Values, or what holds them, in NumPy arrays."""
    if hasattr(values, "detach"):
        return values.detach().cpu().numpy()
    if isinstance(values, Neighborhoods):
        return values.to_host()
    if isinstance(values, Points | Embedding | Search | Multipliers):
        parts = {part.name: host(getattr(values, part.name)) for part in fields(values)}
        return replace(values, **parts)
    if isinstance(values, WorkingSet):
        return WorkingSet(
            *(host(p) for p in (values.targets, values.candidates, values.multipliers))
        )
    if isinstance(values, tuple):
        converted = [host(part) for part in values]
        return type(values)(*converted) if hasattr(values, "_fields") else tuple(converted)
    return values


class HostKernels:
    """Passes every call on to the kernels of a device, and brings its results back."""

    def __init__(self, kernels):
        self.kernels = kernels

    def __getattr__(self, name):
        method = getattr(self.kernels, name)
        there = self._values if name in DEVICE_ARGUMENTS else self._handle

        def call(*args, **kwargs):
            args = [there(value) for value in args]
            kwargs = {key: there(value) for key, value in kwargs.items()}
            return host(method(*args, **kwargs))

        return method if name == "session" else call

    def _values(self, value):
        """A handle, or values of rows or pairs, on the device."""
        if isinstance(value, np.ndarray):
            from lnml.kernels.torch.basics import to_tensor

            return to_tensor(value, self.kernels.device)
        return self._handle(value)

    def _handle(self, value):
        """A handle on the device; plain arrays stay as they are."""
        there = self._values
        if isinstance(value, Points):
            return replace(value, data=there(value.data))
        if isinstance(value, Embedding):
            return replace(value, coordinates=there(value.coordinates), points=there(value.points))
        if isinstance(value, Search):
            return replace(value, radius=there(value.radius), found=there(value.found))
        if isinstance(value, Pattern):
            return self.kernels.pattern(value)
        if isinstance(value, Streamed):
            return Streamed.of(self.kernels.working_set(value.targets, None))
        if isinstance(value, WorkingSet):
            return self.kernels.working_set(value.targets, value.candidates, value.multipliers)
        if isinstance(value, Partners):
            return Partners(*map(there, value))
        if isinstance(value, Edge):
            return value._replace(pairs=there(value.pairs))
        if isinstance(value, list):
            return [self._handle(part) for part in value]
        return value


def host_kernels():
    """Kernels of the device under test, with NumPy arrays on both sides."""
    kernels = device_kernels()
    return HostKernels(kernels) if type(kernels).__name__ == "TorchKernels" else kernels


def device_kernels():
    """Kernels of the device under test, which take NumPy data and keep what they hold of them."""
    kernels = get_kernels()
    if not kernels.remote:
        return kernels
    from cluster_devices import ClusterHost

    return ClusterHost(kernels)


def examples(device, most):
    """Settings of hypothesis: fewer examples on a cluster, where each call takes a while."""
    return settings(max_examples=4 if device == "cluster" else most)


@contextmanager
def room_for(kernels, n_pairs):
    """Give these kernels room for so many pairs of a working set, and no more.

    Yields how many these are: workers of a cluster have equal shares.
    """
    kernels = getattr(kernels, "kernels", kernels)
    n_workers = len(kernels.crew.workers()) if kernels.remote else 1
    share = n_pairs // n_workers
    with config_context(working_memory=(share + 0.5) * PAIR_BYTES / 2**20):
        if not hasattr(kernels, "free"):
            yield share * n_workers
            return
        # What a GPU may take is a share of what is free.
        from lnml.kernels.torch import device

        free = (n_pairs + 0.5) * device.PAIR_BYTES / device.PAIR_SHARE
        with patch.object(kernels, "free", free):
            yield n_pairs
