"""How much memory a fit needs, before it starts."""

from __future__ import annotations

from typing import Any

import numpy as np

from lnml.core.checks import check_integer, kind_of
from lnml.estimators.coupled import coupled_base
from lnml.estimators.lnml import LNML
from lnml.estimators.lnml_cv import LNMLCV
from lnml.objectives.triplet_task import PAIR_BYTES
from lnml.registry import LEARNERS, Work
from lnml.solvers.path import MOST_WORK

# Copies of the n x d data that live at the same time in a fit: sorted, scaled,
# conditioned, embedded, centred, rotated, and a gradient. On the CPU most are in float64,
# because the proof at the end is.
DATA_COPIES = 7
NARROW_COPIES = 2
# Matrices of d x d: the history of a minimiser, and a proof. (measured, docs/performance.md)
SQUARES = 40
# Impostors within reach of a row, typical of real data, on the CPU and on a GPU.
CANDIDATES_PER_ROW = 60
GPU_CANDIDATES_PER_ROW = 100
# Tiles and buffers of one thread in a search for impostors, and what its allocator keeps.
SEARCH_BYTES = 7 * 2**20
# What the allocator keeps for one thread that sums roots.
ROOT_BYTES = 2 * 2**20
# Share of the arrays that groups of rows sum up which is touched, so that it takes memory.
TOUCHED = 0.75
# Blocks of pairs in a proof from differences, which some fits of few rows need: half of them.
BLOCK_BYTES = 3 * 2**20


def estimate_memory(
    estimator: Any, n_samples: int, n_features: int, dtype: Any = np.float64, device: Any = "cpu"
) -> int:
    """Estimate the peak memory of a fit, beyond the data and the running process.

    This is an estimate for planning. What a fit with impostors needs depends on
    how many impostors are within reach of a row, and only the data tell that: on real
    data the estimate is mostly within a factor 1.5, on classes that hardly differ a fit
    can take several times as much (docs/performance.md). A fit never keeps more impostors
    than fit scikit-learn's ``working_memory``, or a fifth of a GPU's free memory: beside the
    copies of the data, 1.5 times ``working_memory`` is the most that it takes. If it would
    need more, it finds impostors again and again, a few rows at a time (docs/lmnn.md); on a
    cluster it raises a MemoryError.

    Parameters
    ----------
    estimator : estimator
        A metric learner of this library, or LNML or LNMLCV around one, not necessarily
        fitted. ITML, means of metrics, pipelines and learners from outside are refused. Of
        LNMLCV the last fit is meant, on all rows; with ``n_jobs`` every process needs memory
        of its own.
    n_samples, n_features : int
        Shape of the training data.
    dtype : dtype, default=float64
        float32 or float64.
    device : str or torch.device, default='cpu'
        Where the fit runs. For a GPU, this estimates the memory of the GPU.

    Returns
    -------
    n_bytes : int

    Examples
    --------
    >>> from lnml import MCML, estimate_memory
    >>> 40 < estimate_memory(MCML(), 20_000, 50) / 2**20 < 80  # MiB; more threads take more
    True
    """
    base = _base_of(estimator)
    work = _work_of(base)
    n = check_integer("n_samples", n_samples, 1)
    d = check_integer("n_features", n_features, 1)
    itemsize = _itemsize(dtype)
    if str(device) != "cpu":
        return _gpu_bytes(work, n, d, itemsize, str(device))
    return data_bytes(n, d, itemsize) + _scratch_bytes(work, n, _rank(base, d), d)


def data_bytes(n: int, d: int, itemsize: int) -> int:
    """Bytes of what a fit on the CPU keeps of the data, and of small matrices."""
    copies = NARROW_COPIES * itemsize + (DATA_COPIES - NARROW_COPIES) * 8
    return n * d * copies + SQUARES * d * d * 8


def _scratch_bytes(work: Work, n: int, rank: int, d: int) -> int:
    """Bytes that the kernels of the CPU take beside copies of the data."""
    # Imported here: numba takes a second to import.
    from lnml.kernels.cpu import pair_weights, roots
    from lnml.kernels.cpu.threads import pair_budget, thread_count

    if work is Work.CANDIDATES:
        pairs = min(n * CANDIDATES_PER_ROW, pair_budget())
        return thread_count() * SEARCH_BYTES + pairs * PAIR_BYTES
    if work is Work.ROOTS:
        return roots.scratch_bytes(n) + thread_count() * ROOT_BYTES
    if work is Work.SOFTMAX:
        return pair_weights.scratch_bytes(n)
    if work is Work.CLASS_SOFTMAX:
        groups = min(pair_weights.GROUPS, -(-n // pair_weights.BLOCK))
        # A gradient through the coordinates has sums of its own in each group.
        mirrored = groups * n * rank * 8 if 2 * rank < d else 0
        blocks = BLOCK_BYTES if n * n * rank * d < MOST_WORK[0] else 0
        return pair_weights.scratch_bytes(n) + int(TOUCHED * mirrored) + blocks
    return 0


def _itemsize(dtype: Any) -> int:
    """Bytes of a number of the data, or say that fits do not take such numbers."""
    try:
        kind = np.dtype(dtype)
    except TypeError as error:
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}") from error
    if kind not in (np.float32, np.float64):
        raise ValueError(
            f"dtype must be float32 or float64, got {dtype!r}: a fit turns other numbers into "
            f"float64"
        )
    return kind.itemsize


def _rank(base: Any, n_features: int) -> int:
    """Rows of the components that will be learned."""
    given = getattr(base, "n_components", None)
    return n_features if given is None else min(check_integer("n_components", given, 1), n_features)


def _base_of(estimator: Any) -> Any:
    """Return the metric learner, also from inside LNML."""
    if isinstance(estimator, LNML | LNMLCV):
        return coupled_base(estimator.estimator)
    return estimator


def _work_of(base: Any) -> Work:
    """Return what a fit keeps in memory, or say that it is not known."""
    known = {entry.estimator_class: entry.work for entry in LEARNERS}
    work = known.pop(type(base), None)
    if work is Work.CONSTRAINTS:
        raise TypeError(
            f"estimate_memory does not know {type(base).__name__}: what it needs depends on the "
            f"number of constraints, not of rows"
        )
    if work is None:
        names = [each.__name__ for each, work in known.items() if work is not Work.CONSTRAINTS]
        raise TypeError(
            f"estimate_memory does not know {kind_of(base)}: it knows {', '.join(names)}, "
            f"and LNML and LNMLCV around them"
        )
    return work


def _gpu_bytes(work: Work, n: int, d: int, itemsize: int, device: str) -> int:
    """Bytes of copies, of a working set of pairs, and of tiles of rows in the torch kernels."""
    from lnml.kernels.torch import device as torch_device

    try:
        free = torch_device.free_bytes(torch_device.parse_device(device))
        room = torch_device.tile_bytes(free)
    except RuntimeError:
        # The GPU is elsewhere: a large one is assumed.
        room = torch_device.LARGEST_TILE
    pairs = n * GPU_CANDIDATES_PER_ROW if work is Work.CANDIDATES else 0
    tile = 2 * n * n * (8 if work is Work.ROOTS else itemsize)
    copies = DATA_COPIES * n * d * itemsize + 6 * d * d * 8
    return copies + pairs * torch_device.PAIR_BYTES + min(room, tile)
