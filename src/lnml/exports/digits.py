"""Whether float32 keeps enough digits of rows that are far from 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from lnml.core.warn import warn_user
from lnml.exports.affine import AffineMap
from lnml.models import Model

# Half the distance of 1 from the next number.
ROUNDING = 2.0**-24
# Share of the spread of mapped rows that rounding may reach in silence.
HARMLESS = 1e-3


def warn_of_lost_digits(found: AffineMap, model: Any, *, cure: str) -> None:
    """Warn if rounding the columns to float32 moves mapped rows by a part of their spread.

    A model that keeps no rows, and has no scaler or PCA, does not tell where its rows are.
    """
    # Shape (r, d): what each column adds to each coordinate, for a row at the centre.
    parts = np.abs(found.matrix) * np.abs(found.center)
    noise = ROUNDING * parts.sum(axis=1)
    if isinstance(model, Model):
        noise += ROUNDING * np.abs(model.rows.mean(axis=0))
        size = model.rows.std(axis=0).max()
    elif found.spread is None:
        return
    else:
        size = np.sqrt(np.square(found.matrix * found.spread).sum(axis=1)).max()
    share = noise.max() / size if size > 0.0 else 0.0
    if share > HARMLESS:
        warn_user(
            f"float32 has seven digits, and {_far_column(found, parts)} far from 0: mapped rows "
            f"are wrong by up to {100.0 * share:.2g} % of their spread; {cure}"
        )


def _far_column(found: AffineMap, parts: np.ndarray) -> str:
    if not parts.any():
        return "columns are"
    worst = int(parts.max(axis=0).argmax())
    name = repr(found.names[worst]) if found.names else f"number {worst}, counted from 0,"
    return f"the column {name} (around {found.center[worst]:.3g}) is"
