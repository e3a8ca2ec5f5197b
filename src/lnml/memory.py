"""How much memory a fit needs, before it starts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import clone

from lnml.core.checks import check_integer, kind_of
from lnml.estimators.coupled import coupled, coupled_base
from lnml.estimators.lnml import LNML
from lnml.estimators.lnml_cv import LNMLCV
from lnml.estimators.validation import check_training_data
from lnml.kernels import get_kernels
from lnml.registry import LEARNERS, Work
from lnml.solvers.multipliers import first_smoothing
from lnml.solvers.path import MOST_WORK, scaled_start

# Copies of the n x d data that live at the same time in a fit: sorted, scaled,
# conditioned, embedded, centred, rotated, and a gradient. On the CPU most are in float64,
# because the proof at the end is.
DATA_COPIES = 7
NARROW_COPIES = 2
# Sums over all pairs: sorted, conditioned, embedded, centred, laid out by columns, centred data,
# the product with weights, and twice what becomes the gradient.
SOFTMAX_COPIES = 9
# Fits with impostors. While triplets are sampled for the scale of a start: sorted, conditioned and
# embedded. In a search: the filter's coordinates, too, in float32. Later: sorted, conditioned,
# embedded at two metrics, and either at a multiple of one or rotated, with a part for the axes.
SAMPLE_COPIES = 3
SEARCH_COPIES = 4
LATER_COPIES = 6
# Matrices of d x d: the history of a minimiser, and a proof. (measured, docs/performance.md)
SQUARES = 40
# For sums over all pairs, SciPy keeps twice 40 steps and five more, and a fit about 15.
SOFTMAX_SQUARES = 100
# Impostors within reach of a row, typical of real data, on the CPU and on a GPU.
CANDIDATES_PER_ROW = 60
GPU_CANDIDATES_PER_ROW = 100
# Triplets of a row that act, typical of real data, and those of its pairs within reach.
ACTIVE_PER_ROW = 8
LISTED_PER_ROW = 12
# Classes of data that are not given.
TYPICAL_CLASSES = 10
# A pair that a search found: row and impostor in a list, and the impostor in the pattern.
FOUND_BYTES = 12
# A candidate that is kept: its number, and the bound of its distance.
CANDIDATE_BYTES = 8
# A pair in the buffer of a tile of a search: row and impostor. A buffer doubles, so that it has
# room for half as many pairs again, on average, and the one before is half as large: about twice 8.
BUFFER_BYTES = 16
# A triplet that acts, while a fit goes on: impostor, target and value of a multiplier, and of a
# slope.
ACTIVE_BYTES = 32
# In a proof: the multiplier; target, impostor and value of the dual point; and the keys of its
# pairs, sorted, with their order, their places and what these are made from.
PROOF_BYTES = 16 + 16 + 40
# Where slopes of several metrics are mixed: multipliers of two more at least.
MIXED_BYTES = PROOF_BYTES + 32
# Rows whose impostors are counted, if there are rows to count them in, and ranges of rows.
COUNTED_ROWS = 256
COUNTED_RANGES = 8
# Arrays of as many numbers as there are sampled triplets, and as a proof lists at a time: in
# :func:`lnml.proofs.objective.hinge_sum`.
SAMPLE_ARRAYS = 4
LISTED_ARRAYS = 7
# Share of the arrays that groups of rows sum up which is touched, so that it takes memory.
TOUCHED = 0.75
# Blocks of pairs in a proof from differences, which some fits of few rows need.
BLOCK_BYTES = 3 * 2**20
# MCML needs it where the rounding of its first proof is too large, as it is with many columns.
CAREFUL_COLUMNS = 50


class _Reach(NamedTuple):
    """What a fit keeps of impostors, over all rows.

    Attributes
    ----------
    pairs : int
        Impostors that its first search finds.
    triplets : int
        Triplets with a hinge that is not zero.
    listed : int
        Triplets of the impostors that are within reach of the farthest target of their row.
    targets : float
        Target pairs of a row, on average.
    fullest : float
        Pairs that are found from one row, on average over the rows where these are most: a pair
        is found from its first row.
    largest_class : int
        Rows of the largest class.
    """

    pairs: int
    triplets: int
    listed: int
    targets: float
    fullest: float
    largest_class: int


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
        where the fit will begin. That takes about as long as one search of the fit; for LNML, as
        its first assignment.

    Returns
    -------
    n_bytes : int

    Examples
    --------
    >>> from lnml import MCML, estimate_memory
    >>> 40 < estimate_memory(MCML(), 20_000, 50) / 2**20 < 120  # MiB; more threads take more
    True
    """
    base = _base_of(estimator)
    work = _work_of(base)
    n = check_integer("n_samples", n_samples, 1)
    d = check_integer("n_features", n_features, 1)
    itemsize = _itemsize(dtype)
    if str(device) != "cpu":
        return _gpu_bytes(work, n, d, itemsize, str(device))
    if work in (Work.CANDIDATES, Work.MIXED_CANDIDATES):
        if data is None:
            reach = _typical_reach(base, n)
        else:
            reach = _count_reach(estimator, clone(base), *_checked_data(data, (n, d)))
        each = MIXED_BYTES if work is Work.MIXED_CANDIDATES else PROOF_BYTES
        rounds = isinstance(estimator, LNML | LNMLCV)
        return _impostor_bytes(reach, n, d, itemsize, each, rounds)
    return _scratch_bytes(work, n, _rank(base, d), d, itemsize)


def data_bytes(
    n: int, d: int, itemsize: int, copies: int = DATA_COPIES, squares: int = SQUARES
) -> int:
    """Bytes of what a fit on the CPU keeps of the data, and of small matrices."""
    return _copied_bytes(n, d, itemsize, copies) + squares * d * d * 8


def _copied_bytes(n: int, d: int, itemsize: int, copies: int) -> int:
    """Bytes of copies of the data alone."""
    return n * d * (NARROW_COPIES * itemsize + (copies - NARROW_COPIES) * 8)


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


def _typical_reach(base: Any, n: int) -> _Reach:
    """Return what is within reach of the rows of real data, about."""
    return _Reach(
        n * CANDIDATES_PER_ROW,
        n * ACTIVE_PER_ROW,
        n * LISTED_PER_ROW,
        getattr(base, "n_neighbors", 1),
        2.0 * CANDIDATES_PER_ROW,
        -(-n // TYPICAL_CLASSES),
    )


def _first_task(estimator: Any, base: Any, X: Any, y: Any) -> tuple[Any, Any, np.ndarray]:
    """Return what a fit solves first, its targets, and the components where it begins."""
    rows, kernels = check_training_data(base, X, y), get_kernels()
    if isinstance(estimator, LNML):
        coupling = coupled(base, rows.X, rows.codes, kernels)
        training, components = coupling.training, coupling.start
        targets = coupling.first_targets(estimator._sizes())
    else:
        components = base.initial_components(rows.X, rows.codes)
        training, targets = base._prepared(rows, kernels, None)
    return base.metric_problem(training).objective.task(targets), targets, components


def _count_reach(estimator: Any, base: Any, X: Any, y: Any) -> _Reach:
    """Count what is within reach of some rows at the metric where a fit begins."""
    task, targets, components = _first_task(estimator, base, X, y)
    kernels = task.kernels
    start = scaled_start(task, task.to_conditioned(components))
    z, smoothing = kernels.embed(task.points, start).coordinates, first_smoothing(task, start)
    codes = task.points.row_class
    chosen = np.sort(np.random.default_rng(0).permutation(len(z))[:COUNTED_ROWS])
    pairs, met = np.zeros((2, chosen.size))
    triplets = listed = 0
    for place, row in enumerate(chosen):
        mine = targets.indices[targets.indptr[row] : targets.indptr[row + 1]]
        if not mine.size:
            continue
        impostors = np.flatnonzero(codes != codes[row])
        others = cdist(z[row : row + 1], z[impostors], "sqeuclidean")[0]
        near = cdist(z[row : row + 1], z[mine], "sqeuclidean")[0]
        radius = task.first_margin * (near.max() + 1.0 + smoothing)
        pairs[place] = np.count_nonzero(others < radius)
        # Both ways, if the impostor's radius is about the same.
        met[place] = 2 * np.count_nonzero(others[impostors > row] < radius)
        triplets += sum(int(np.count_nonzero(others < 1.0 + each)) for each in near)
        listed += near.size * int(np.count_nonzero(others < 1.0 + near.max()))
    all_pairs = int(pairs.sum())
    all_pairs, triplets, listed = (
        count * len(z) // chosen.size for count in (all_pairs, triplets, listed)
    )
    ranges = np.array_split(met, min(COUNTED_RANGES, met.size))
    fullest = max(float(each.mean()) for each in ranges)
    largest_class = int(task.points.class_sizes.max())
    return _Reach(all_pairs, triplets, listed, targets.size / len(z), fullest, largest_class)


def _impostor_bytes(
    reach: _Reach, n: int, d: int, itemsize: int, proof_bytes: int, rounds: bool
) -> int:
    """Bytes of a fit with impostors: of the step that takes most, and of tiles.

    ``proof_bytes`` are those of a triplet in a proof. With ``rounds``, a round looks for impostors
    while those of the last one are kept.
    """
    # Imported here: numba takes a second to import.
    from lnml.kernels.cpu.threads import pair_budget, slope_budget
    from lnml.objectives.triplet_proof import AT_A_TIME

    pairs, triplets = min(reach.pairs, pair_budget()), min(reach.triplets, slope_budget())
    sampling = _copied_bytes(n, d, itemsize, SAMPLE_COPIES) + _sample_bytes(n, reach)
    searching = _copied_bytes(n, d, itemsize, SEARCH_COPIES) + pairs * FOUND_BYTES
    later = data_bytes(n, d, itemsize, LATER_COPIES)
    solving = later + pairs * CANDIDATE_BYTES + triplets * ACTIVE_BYTES
    listed = min(reach.listed, AT_A_TIME) * 8 * LISTED_ARRAYS
    proving = later + triplets * proof_bytes + listed
    again = later + pairs * (FOUND_BYTES + CANDIDATE_BYTES) if rounds else 0
    return _tile_bytes(n, reach, pairs) + max(sampling, searching, solving, proving, again)


def _tile_bytes(n: int, reach: _Reach, pairs: int) -> int:
    """Bytes of the largest tiles of all threads, which keep that memory to the end of a fit."""
    from lnml.kernels.cpu.nearest import tile_rows
    from lnml.kernels.cpu.search import CACHED, TILE_ROWS
    from lnml.kernels.cpu.threads import thread_count

    largest = reach.largest_class
    nearest = min(tile_rows(largest, 8), largest) * largest * 8
    if n <= TILE_ROWS:
        # One tile has no thread of its own: what it took is free again.
        return nearest
    found = min(int(TILE_ROWS * reach.fullest), pairs) * BUFFER_BYTES
    return thread_count() * max(nearest, 4 * CACHED + found)


def _sample_bytes(n: int, reach: _Reach) -> int:
    """Bytes of the triplets that are sampled to find the scale of a start."""
    from lnml.objectives.margins import SAMPLED_COLUMNS, sampled_rows

    pairs = sampled_rows(n) * min(SAMPLED_COLUMNS, n)
    apart = 1.0 - reach.largest_class / n
    return int(pairs * 8 * (1.0 + SAMPLE_ARRAYS * reach.targets * apart))


def _scratch_bytes(work: Work, n: int, rank: int, d: int, itemsize: int) -> int:
    """Bytes of a fit with sums over all pairs, or with nothing but copies of the data."""
    # Imported here: numba takes a second to import.
    from lnml.kernels.cpu import pair_weights, roots

    kept = data_bytes(n, d, itemsize)
    # The sums are free again before a proof.
    proving = kept + (BLOCK_BYTES if n * n * rank * d < MOST_WORK[0] else 0)
    if work is Work.ROOTS:
        return max(kept + roots.scratch_bytes(n), proving)
    sums = pair_weights.scratch_bytes(n)
    if work is Work.SOFTMAX:
        sums += data_bytes(n, d, itemsize, SOFTMAX_COPIES, SOFTMAX_SQUARES)
        return max(sums, proving) if d >= CAREFUL_COLUMNS else sums
    if work is Work.CLASS_SOFTMAX:
        groups = min(pair_weights.GROUPS, -(-n // pair_weights.BLOCK))
        # A gradient through the coordinates has sums of its own in each group.
        mirrored = groups * n * rank * 8 if 2 * rank < d else 0
        sums += data_bytes(n, d, itemsize, SOFTMAX_COPIES) + int(TOUCHED * mirrored)
        return max(sums, proving)
    return kept


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
    impostors = work in (Work.CANDIDATES, Work.MIXED_CANDIDATES)
    pairs = n * GPU_CANDIDATES_PER_ROW if impostors else 0
    tile = 2 * n * n * (8 if work is Work.ROOTS else itemsize)
    copies = DATA_COPIES * n * d * itemsize + 6 * d * d * 8
    return copies + pairs * torch_device.PAIR_BYTES + min(room, tile)
