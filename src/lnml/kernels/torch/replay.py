"""Repeats of the same operations on a GPU, without the host's share of the work.

A small evaluation takes the GPU less time than the host needs to launch its forty programs. So
they are recorded once for a working set, as a CUDA graph, and launched together afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache
from typing import Any

import torch

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
        here, aside = torch.cuda.current_stream(device), torch.cuda.Stream(device)
        self._inputs = tuple(each.clone() for each in given)
        aside.wait_stream(here)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.stream(aside):
                graph.capture_begin(_pool())
                try:
                    self._output = function(*self._inputs)
                finally:
                    graph.capture_end()
        except RuntimeError:
            return False
        here.wait_stream(aside)
        return graph


@cache
def _pool() -> Any:
    """Memory that all recordings share: only one of them is repeated at a time."""
    return torch.cuda.graph_pool_handle()
