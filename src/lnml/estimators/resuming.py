"""Go on where the last fit to the same rows ended: its certificate knows more than its metric."""

from __future__ import annotations

import numpy as np

from lnml.certificates import Certificate
from lnml.core.pairs import Multipliers, Pattern
from lnml.core.warm_start import WarmStart
from lnml.kernels.training import TrainingSet


def slopes_of_last_fit(
    certificate: Certificate | None,
    training: TrainingSet,
    targets: Pattern,
    components: np.ndarray,
) -> WarmStart | None:
    """Return the slopes of the hinges that a certificate lists, as a solve can begin with them.

    None if it lists none, or if it is about other target pairs or classes.

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
    return WarmStart(components, targets, multipliers)
