"""How much memory a fit needs, before it starts."""

from __future__ import annotations

from typing import Any

import numpy as np

from lnml.estimators.coupled import coupled_base
from lnml.estimators.lnml import LNML
from lnml.estimators.lnml_cv import LNMLCV
from lnml.objectives.triplet_task import PAIR_BYTES
from lnml.registry import LEARNERS, Work

# Copies of the n x d data that live at the same time in a fit: sorted, scaled,
# conditioned, embedded, centred, rotated, and a gradient.
DATA_COPIES = 7
# Impostors within reach of a row, typical of real data (docs/performance.md).
CANDIDATES_PER_ROW = 100


def estimate_memory(
    estimator: Any, n_samples: int, n_features: int, dtype: Any = np.float64, device: Any = "cpu"
) -> int:
    """Estimate the peak memory of a fit, beyond the data and the running process.

    This is an estimate for planning. What a fit with impostors needs depends on
    how many impostors are within reach of a row, and only the data tell that. A
    fit never keeps more impostors than fit scikit-learn's ``working_memory``, or a
    fifth of a GPU's free memory. If it would need more, it raises a MemoryError.

    Parameters
    ----------
    estimator : estimator
        A metric learner of this library, or LNML or LNMLCV around one, not necessarily
        fitted. ITML and learners from outside are refused. Of LNMLCV the last fit is
        meant, on all rows; with ``n_jobs`` every process needs memory of its own.
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
    >>> from lnml import LMNN, estimate_memory
    >>> print(f"{estimate_memory(LMNN(), 60_000, 164, 'float32') / 2**20:.0f} MiB")
    401 MiB
    """
    work = _work_of(estimator)
    itemsize = np.dtype(dtype).itemsize
    total = DATA_COPIES * n_samples * n_features * itemsize
    square = 6 * n_features * n_features * 8
    if str(device) != "cpu":
        pairs = n_samples * CANDIDATES_PER_ROW if work is Work.CANDIDATES else 0
        itemsize = 8 if work is Work.ROOTS else itemsize
        return total + square + _torch_scratch(n_samples, pairs, itemsize, str(device))
    if work is Work.SOFTMAX:
        # Imported here: numba takes a second to import.
        from lnml.kernels.cpu.pair_weights import scratch_bytes as softmax_bytes

        return total + square + softmax_bytes(n_samples)
    if work is Work.ROOTS:
        from lnml.kernels.cpu.roots import scratch_bytes

        # All but the sorted copy of the data are float64.
        total += (DATA_COPIES - 1) * n_samples * n_features * (8 - itemsize)
        return total + square + scratch_bytes(n_samples)
    pairs = n_samples * CANDIDATES_PER_ROW if work is Work.CANDIDATES else 0
    return total + square + pairs * PAIR_BYTES


def _work_of(estimator: Any) -> Work:
    """Return what a fit keeps in memory, or say that it is not known."""
    base = estimator
    if isinstance(estimator, LNML | LNMLCV):
        base = coupled_base(estimator.estimator)
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
            f"estimate_memory does not know {type(base).__name__}: it knows {', '.join(names)}, "
            f"and LNML and LNMLCV around them"
        )
    return work


def _torch_scratch(n_samples: int, n_pairs: int, itemsize: int, device: str) -> int:
    """Bytes of a working set of pairs, and of tiles of rows, in the torch kernels."""
    from lnml.kernels.torch import device as torch_device

    try:
        free = torch_device.free_bytes(torch_device.parse_device(device))
        room = torch_device.tile_bytes(free)
    except RuntimeError:
        # The GPU is elsewhere: a large one is assumed.
        room = torch_device.LARGEST_TILE
    return n_pairs * torch_device.PAIR_BYTES + min(room, 2 * n_samples * n_samples * itemsize)
