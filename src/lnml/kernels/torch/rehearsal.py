"""A rehearsal on a few rows, beside other work, when a GPU is first asked for.

Torch loads a program when it is first launched, which takes about a second for those of a fit
(docs/gpu.md). The rehearsal launches most of them while a fit checks its data and does its first
steps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import torch

from lnml.core.pairs import Edge
from lnml.core.points import Points
from lnml.kernels.protocol import Kernels

# Rows of each of two classes, and columns.
ROWS, COLUMNS = 48, 32
SMOOTHING = 0.1


_starting = threading.Lock()
_started: set[torch.device] = set()


def start(kernels_of: Callable[[str], Kernels], device: torch.device) -> threading.Thread | None:
    """Begin the rehearsal on a GPU, once in a process; return its thread when it begins."""
    with _starting:
        if device in _started:
            return None
        _started.add(device)
    thread = threading.Thread(target=_run, args=(kernels_of, device), name="lnml-rehearsal")
    thread.start()
    return thread


def _run(kernels_of: Callable[[str], Kernels], device: torch.device) -> None:
    """Rehearse on a stream of its own, so that recordings of the fit are not disturbed."""
    # The fit meets the same error where it matters, and says so.
    with suppress(Exception), torch.no_grad(), torch.cuda.device(device):
        with torch.cuda.stream(torch.cuda.Stream(device)):
            rehearse(kernels_of(str(device)), device)


def rehearse(kernels: Kernels, device: torch.device) -> None:
    """Do once, on a few rows, what a fit with impostors does again and again."""
    rows = np.random.default_rng(0).normal(size=(2 * ROWS, COLUMNS)).astype(np.float32)
    order, ones = np.arange(2 * ROWS), np.ones(2)
    data = torch.as_tensor(rows, device=device)
    points = kernels.points(data, np.array([0, ROWS, 2 * ROWS]), order)
    columns = kernels.columns(points)
    points = kernels.mapped(points, shift=columns.mean, scale=columns.spread)
    kernels.pair_scatter(points, ones, ones)
    points = kernels.mapped(points, np.eye(COLUMNS))
    _impostors(kernels, points, order)


def _impostors(kernels: Kernels, points: Points, order: np.ndarray) -> None:
    embedding = kernels.embed(points, np.eye(COLUMNS))
    partners = kernels.partners(embedding, 4)
    costs = kernels.distances(embedding, partners.pairs)
    targets, _ = kernels.choose(partners, costs, 1, 3, 4, order)
    targets.renumbered(order).to_graph()
    kernels.edge_scatter(points, [Edge(targets)])
    reach = kernels.distances(embedding, targets, longest=True)
    found = kernels.within(embedding, reach + 10.0).found
    working = kernels.working_set(targets, found)
    for moment in ("data", "coordinates"):
        kernels.hinge(embedding, working, SMOOTHING, moment=moment)
    slopes = kernels.slopes(embedding, working, SMOOTHING)
    working = kernels.working_set(targets, found, kernels.carry_over(slopes, targets, targets))
    kernels.hinge(embedding, working, SMOOTHING, moment="coordinates")
    kernels.to_host(slopes)
