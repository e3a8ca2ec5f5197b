"""Slopes of triplets mixed, and added up by pair, on the host: for kernels and for proofs."""

from __future__ import annotations

import numpy as np

from lnml.core.neighborhoods import Neighborhoods
from lnml.core.pairs import MixedSlopes, Multipliers, Pattern


def mixed_slopes(parts: list[tuple[float, Multipliers]], targets: Neighborhoods) -> MixedSlopes:
    """See :meth:`lnml.kernels.protocol.Kernels.mixed_slopes`; all in NumPy arrays."""
    target, impostor, value = mixture(
        [
            (share, target_positions(slopes, targets), slopes.impostor, slopes.value)
            for share, slopes in parts
        ]
    )
    rows, impostors, sums = summed_by_pair(targets.pairs()[0][target], impostor, value)
    by_row = np.bincount(rows, minlength=targets.n_rows)
    return MixedSlopes(
        triplets=np.stack([target, impostor], axis=1),
        slopes=value,
        targets=np.bincount(target, value, targets.size),
        pairs=Pattern(np.concatenate([[0], np.cumsum(by_row)]), impostors.astype(np.int32)),
        impostors=sums,
        # No row has more targets than the longest list.
        most=max(int(np.bincount(target, minlength=1).max()), int(targets.sizes.max(initial=0))),
        total=float(value.sum()),
    )


def target_positions(slopes: Multipliers, targets: Neighborhoods) -> np.ndarray:
    """Position of the target pair of each slope in its pattern."""
    target = np.repeat(targets.indptr[:-1], np.diff(slopes.indptr))
    target += slopes.slot
    return target


def mixture(
    parts: list[tuple[float, np.ndarray, np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return shares, together at most one, of slopes: each triplet once.

    Parts, and what is returned, list target pairs, impostors and slopes.
    """
    if len(parts) == 1 and parts[0][0] == 1.0:
        return parts[0][1:]
    target, impostor = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
    value = np.concatenate([share * value for share, *_, value in parts])
    target, impostor, summed = summed_by_pair(target, impostor, value)
    # Rounding may lift a sum of shares of one above one.
    return target, impostor, np.minimum(summed, 1.0)


def summed_by_pair(
    rows: np.ndarray, impostors: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each pair (row, impostor) once, sorted, with the sum of its values."""
    width = int(impostors.max(initial=0)) + 1
    keys = rows.astype(np.int64, copy=False) * width + impostors
    if keys.size and (keys[1:] >= keys[:-1]).all():
        # As devices list them: nothing is left to sort.
        new = np.concatenate([[True], keys[1:] != keys[:-1]])
        first, sums = np.flatnonzero(new), np.bincount(np.cumsum(new) - 1, values)
        return rows[first], impostors[first], sums
    keys, place = np.unique(keys, return_inverse=True)
    return keys // width, keys % width, np.bincount(place, values, keys.size)
