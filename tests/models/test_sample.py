"""Models that keep a sample of their training rows, as those of a cluster do."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from model_files import rewritten

from lnml.errors import InputError
from lnml.models import fit_model, load_model, save_model
from lnml.tables import Preparation, make_table

N = 12
FRAME = pd.DataFrame({"x": np.arange(N) ** 2.0, "kind": ["a", "b", "b"] * 4})


@pytest.fixture
def path(tmp_path):
    """A model of every third row of a table of 36."""
    whole = fit_model(make_table(FRAME, "kind"), "euclidean", None, Preparation())
    sample = replace(whole, numbers=np.arange(0, 3 * N, 3), class_rows=(12, 24))
    save_model(tmp_path / "a.model", sample)
    return tmp_path / "a.model"


def test_it_is_stored(path):
    model = load_model(path)
    assert model.n_rows == 36 and model.class_sizes == {"a": 12, "b": 24}
    assert model.numbers.tolist() == list(range(0, 36, 3))
    assert model.neighbors(FRAME, 1)[1].ravel().tolist() == list(range(N))


def test_others_have_all_rows(tmp_path):
    whole = fit_model(make_table(FRAME, "kind"), "euclidean", None, Preparation())
    save_model(tmp_path / "b.model", whole)
    model = load_model(tmp_path / "b.model")
    assert model.n_rows == N and model.numbers is None and model.class_rows == ()
    # So do files of older versions.
    older = rewritten((tmp_path / "b.model").read_bytes(), lambda h, a: h.pop("class_rows"))
    (tmp_path / "b.model").write_bytes(older)
    assert load_model(tmp_path / "b.model").class_sizes == {"a": 4, "b": 8}


HOSTILE = {
    "no numbers": lambda header, arrays: arrays.pop("numbers"),
    "no class_rows": lambda header, arrays: header.update(class_rows=[]),
    "class_rows as text": lambda header, arrays: header.update(class_rows="12"),
    "class_rows of text": lambda header, arrays: header.update(class_rows=["12", "24"]),
    "a class too many": lambda header, arrays: header.update(class_rows=[12, 12, 12]),
    "fewer rows than are kept": lambda header, arrays: header.update(class_rows=[3, 33]),
    "numbers too large": lambda header, arrays: header.update(class_rows=[5, 9]),
    "numbers below zero": lambda header, arrays: arrays.update(numbers=np.arange(-1, N - 1)),
    "a number twice": lambda header, arrays: arrays.update(numbers=np.arange(N) // 2),
    "fewer numbers": lambda header, arrays: arrays.update(numbers=np.arange(N - 1)),
    "no whole numbers": lambda header, arrays: arrays.update(numbers=np.arange(N) * 1.0),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_what_does_not_hang_together_is_refused(path, change):
    path.write_bytes(rewritten(path.read_bytes(), change))
    with pytest.raises(InputError, match="damaged"):
        load_model(path)
