"""How much memory a fit needs, before it starts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import clone

from lnml.core.checks import check_integer, kind_of
from lnml.core.pairs import SLOPE_BYTES
from lnml.estimators.coupled import coupled_base
from lnml.estimators.lnml import LNML
from lnml.estimators.lnml_cv import LNMLCV
from lnml.estimators.validation import check_training_data
from lnml.kernels import get_kernels
from lnml.registry import LEARNERS, Work
from lnml.solvers.multipliers import FIRST_MARGIN, FIRST_SMOOTHING
from lnml.solvers.path import MOST_WORK, scaled_start

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
# Triplets of a row that act, typical of real data.
ACTIVE_PER_ROW = 8
# An impostor that does not act: its number and the weight zero.
IDLE_BYTES = 12
# Rows whose impostors are counted, if there are rows to count them in.
COUNTED_ROWS = 256
# Tiles and buffers of one thread in a search for impostors, and what its allocator keeps.
SEARCH_BYTES = 7 * 2**20
# What the allocator keeps for one thread that sums roots.
ROOT_BYTES = 2 * 2**20
# Share of the arrays that groups of rows sum up which is touched, so that it takes memory.
TOUCHED = 0.75
# Blocks of pairs in a proof from differences, which some fits of few rows need.
BLOCK_BYTES = 3 * 2**20


class _Reach(NamedTuple):
    """What a fit keeps of impostors, over all rows.

    Attributes
    ----------
    pairs : int
        Impostors that its first search finds.
    triplets : int
        Triplets with a hinge that is not zero.
    """

    pairs: int
    triplets: int


def estimate_memory(
    estimator: Any,
    n_samples: int,
    n_features: int,
    dtype: Any = np.float64,
    device: Any = "cpu",
    *,
    data: tuple[Any, Any] | None = None,
) -> int:
    """Estimate the peak memory of a fit, beyond the data and the running process.

    This is an estimate for planning. What a fit with impostors needs depends on
    how many impostors are within reach of a row, and only the data tell that. Without
    ``data`` a typical number is taken; on classes that hardly differ, a fit can take several
    times as much (benchmarks/results/memory.md). A fit never keeps more impostors
    than fit scikit-learn's ``working_memory``, or 0.6 of a GPU's free memory: beside the
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
    data : tuple (X, y), optional
        The training data, for a fit on the CPU. With it, the impostors of some rows are counted
        where the fit will begin. That takes about as long as one search of the fit.

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
    reach = _Reach(n * CANDIDATES_PER_ROW, n * ACTIVE_PER_ROW)
    if data is not None and work is Work.CANDIDATES:
        reach = _count_reach(clone(base), *_checked_data(data, (n, d)))
    return data_bytes(n, d, itemsize) + _scratch_bytes(work, n, _rank(base, d), d, reach)


def data_bytes(n: int, d: int, itemsize: int) -> int:
    """Bytes of what a fit on the CPU keeps of the data, and of small matrices."""
    copies = NARROW_COPIES * itemsize + (DATA_COPIES - NARROW_COPIES) * 8
    return n * d * copies + SQUARES * d * d * 8


def _checked_data(data: Any, shape: tuple[int, int]) -> tuple[Any, Any]:
    """Return X and y, or say that they are not the data that are meant."""
    if not isinstance(data, tuple) or len(data) != 2:
        raise TypeError(f"data must be a tuple (X, y), got {kind_of(data)}")
    if np.shape(data[0]) != shape:
        raise ValueError(
            f"n_samples={shape[0]} and n_features={shape[1]}, but the X of data has shape "
            f"{np.shape(data[0])}"
        )
    return data


def _count_reach(base: Any, X: Any, y: Any) -> _Reach:
    """Count what is within reach of some rows at the metric where a fit begins."""
    rows, kernels = check_training_data(base, X, y), get_kernels()
    components = base.initial_components(rows.X, rows.codes)
    training, targets = base._prepared(rows, kernels, None)
    task = base.metric_problem(training).objective.task(targets)
    z = kernels.embed(task.points, scaled_start(task, task.to_conditioned(components))).coordinates
    codes = task.points.row_class
    chosen = np.random.default_rng(0).permutation(len(z))[:COUNTED_ROWS]
    pairs = triplets = 0
    for row in chosen:
        mine = targets.indices[targets.indptr[row] : targets.indptr[row + 1]]
        if not mine.size:
            continue
        others = cdist(z[row : row + 1], z[codes != codes[row]], "sqeuclidean")[0]
        near = cdist(z[row : row + 1], z[mine], "sqeuclidean")[0]
        radius = FIRST_MARGIN * (near.max() + 1.0 + FIRST_SMOOTHING)
        pairs += int(np.count_nonzero(others < radius))
        triplets += sum(int(np.count_nonzero(others < 1.0 + each)) for each in near)
    return _Reach(pairs * len(z) // chosen.size, triplets * len(z) // chosen.size)


def _scratch_bytes(work: Work, n: int, rank: int, d: int, reach: _Reach) -> int:
    """Bytes that the kernels of the CPU take beside copies of the data."""
    # Imported here: numba takes a second to import.
    from lnml.kernels.cpu import pair_weights, roots
    from lnml.kernels.cpu.search import TILE_COLUMNS, TILE_ROWS
    from lnml.kernels.cpu.threads import pair_budget, slope_budget, thread_count

    if work is Work.CANDIDATES:
        pairs, triplets = min(reach.pairs, pair_budget()), min(reach.triplets, slope_budget())
        # Few rows fill neither a tile nor its buffers.
        filled = min(n / TILE_ROWS, 1.0) * min(n / TILE_COLUMNS, 1.0)
        held = pairs * IDLE_BYTES + triplets * SLOPE_BYTES
        return int(thread_count() * SEARCH_BYTES * filled) + held
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
