"""Go on where the last fit to the same rows ended: its certificate knows more than its metric."""

from __future__ import annotations

import numpy as np

from lnml.certificates import Certificate
from lnml.core.pairs import Multipliers, Pattern
from lnml.core.warm_start import WarmStart
from lnml.kernels.training import TrainingSet

# Slopes less than this from one half are neither zero nor one; their hinges are nearly zero.
BETWEEN = 0.49
NEAR = 0.1


def slopes_of_last_fit(
    certificate: Certificate | None,
    training: TrainingSet,
    targets: Pattern,
    components: np.ndarray,
) -> WarmStart | None:
    """Return the slopes of the hinges that a certificate lists, as a solve can begin with them.

    None if it lists none, or if it is about other target pairs, classes or distances.

    Parameters
    ----------
    certificate : Certificate or None
        What the last fit proved.
    training : TrainingSet
        The rows of this fit.
    targets : Pattern
        Its target pairs.
    components : ndarray of shape (r, d)
        Where it starts.
    """
    kernels = training.kernels
    if certificate is None or kernels.remote or "slopes" not in certificate.duals:
        return None
    pattern = kernels.pattern(targets).to_host()
    rows, columns = pattern.pairs()
    duals, order = certificate.duals, training.order
    if not np.array_equal(order[np.stack([rows, columns], axis=1)], duals["targets"]):
        return None
    target, impostor = duals["triplets"].T
    # The targets do not name all rows: impostors may have become rows of the same class.
    row, impostor = rows[target], np.argsort(order)[impostor]
    kinds = training.points.row_class
    if (kinds[row] == kinds[impostor]).any():
        return None
    slot = target - pattern.indptr[row]
    sort = np.lexsort((slot, impostor, row))
    counts = np.bincount(row, minlength=order.size)
    multipliers = Multipliers(
        np.concatenate([[0], np.cumsum(counts)]),
        impostor[sort].astype(np.int32),
        slot[sort].astype(np.int32),
        duals["slopes"][sort],
    )
    if not _belong_to(multipliers, training, targets, components):
        return None
    return WarmStart(components, targets, multipliers)


def _belong_to(
    slopes: Multipliers, training: TrainingSet, targets: Pattern, components: np.ndarray
) -> bool:
    """Whether slopes between zero and one have hinges near their kink, as where they were made.

    Other rows, or the same ones in other units, may have the same target pairs.
    """
    kernels = training.kernels
    embedding = kernels.embed(training.points, components)
    triplets = kernels.pattern(Pattern(slopes.indptr, slopes.impostor))
    pushed = kernels.to_host(kernels.distances(embedding, triplets))
    pulled = kernels.to_host(kernels.distances(embedding, targets))
    starts = kernels.pattern(targets).to_host().indptr[:-1]
    hinges = 1.0 + pulled[np.repeat(starts, np.diff(slopes.indptr)) + slopes.slot] - pushed
    between = np.abs(slopes.value - 0.5) < BETWEEN
    return bool(between.any() and np.median(np.abs(hinges[between])) < NEAR)
