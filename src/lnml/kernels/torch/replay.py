"""Repeats of the same operations on a GPU, without the host's share of the work.

A small evaluation takes the GPU less time than the host needs to launch its forty programs. So
they are recorded once for a working set, as a CUDA graph, and launched together afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache
from typing import Any

import torch

from lnml.kernels.torch.first_use import wait_for_programs

Function = Callable[..., torch.Tensor]


class Replay:
    """A function of tensors, whose operations are recorded when it is asked for again.

    Elsewhere than on a GPU, and where recording fails, the function is called each time.
    """

    def __init__(self) -> None:
        self._key: Hashable = None
        self._graph: Any = None
        self._inputs: tuple[torch.Tensor, ...] = ()
        self._output = torch.empty(0)

    @property
    def recorded(self) -> bool:
        """Whether operations are recorded now."""
        return self._graph is not None and self._graph is not False

    def __call__(
        self, function: Function, given: tuple[torch.Tensor, ...], key: Hashable
    ) -> torch.Tensor:
        """Return the function of tensors; the next call overwrites it.

        ``key`` tells all else that the function depends on.
        """
        if not given[0].is_cuda:
            return function(*given)
        key = (key, *((each.shape, each.dtype) for each in given))
        if key != self._key:
            # The first call makes what is cached, and compiles.
            self._key, self._graph = key, None
            return function(*given)
        if self._graph is None:
            self._graph = self._recorded(function, given)
        if self._graph is False:
            return function(*given)
        for own, new in zip(self._inputs, given, strict=True):
            own.copy_(new)
        self._graph.replay()
        return self._output

    def _recorded(self, function: Function, given: tuple[torch.Tensor, ...]) -> Any:
        """Return the recorded operations, or False if they cannot be recorded."""
        device = given[0].device
        self._inputs = tuple(each.clone() for each in given)
        # What a thread loads for this fit may not come between.
        wait_for_programs(device)
        try:
            graph, self._output = _pool(device).record(lambda: function(*self._inputs))
        except RuntimeError:
            return False
        return graph


class _Pool:
    """Memory that all recordings share: only one of them is repeated at a time.

    Torch refuses a pool that no recording uses any more, so that one of its own stays.
    """

    def __init__(self, device: torch.device) -> None:
        self._device, self._stream = device, torch.cuda.Stream(device)
        self._handle = torch.cuda.graph_pool_handle()
        self._first = self.record(lambda: torch.zeros(1, device=device))

    def record(self, function: Callable[[], torch.Tensor]) -> tuple[Any, torch.Tensor]:
        """Record what a function does, and return it with the output."""
        here, graph = torch.cuda.current_stream(self._device), torch.cuda.CUDAGraph()
        self._stream.wait_stream(here)
        with torch.cuda.stream(self._stream):
            graph.capture_begin(self._handle, capture_error_mode="thread_local")
            try:
                output = function()
            finally:
                graph.capture_end()
        here.wait_stream(self._stream)
        return graph, output


# Kept while a fit runs.
_pool = cache(_Pool)


def forget_pool() -> None:
    """Let go of the memory of recordings that are not used any more."""
    _pool.cache_clear()
