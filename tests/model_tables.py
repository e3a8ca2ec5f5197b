"""A model of a table with numbers and categories, as a user has it: from its file."""

import numpy as np
import pandas as pd

from lnml import LMNN
from lnml.models import fit_model, load_model, save_model
from lnml.tables import Preparation, make_table


def fitted_model(folder, *, scale="standard", pca=None):
    """The model, and the frame of features that it was fitted to."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 60)
    frame = pd.DataFrame(
        {
            "size": kind + rng.normal(scale=0.4, size=60),
            "weight": 50.0 + 9.0 * rng.normal(size=60) + kind,
            "year": 2000.0 + rng.integers(0, 20, 60),
            "colour": np.where(rng.random(60) < 0.2 + 0.3 * kind, "red", "blue"),
            "kind": np.array(["a", "b", "c"])[kind],
        }
    )
    table = make_table(frame, "kind", name="things")
    model = fit_model(table, "lmnn", LMNN(), Preparation(scale=scale, pca=pca), k=3)
    save_model(folder / "things.model", model)
    return load_model(folder / "things.model"), table.features
