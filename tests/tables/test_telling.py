"""Columns that predict the class alone are found, and honest ones are not."""

import numpy as np
import pandas as pd
import pytest

from lnml.datasets import load_dataset
from lnml.tables import make_table
from lnml.tables.telling import telling_columns, telling_notes

RNG = np.random.default_rng(0)
N = 120
KIND = np.repeat(["a", "b", "c"], N // 3)
GAPS = np.cumsum(RNG.integers(1, 4, N))


def told(kind=KIND, **columns):
    """The columns that tell the class, beside noise that does not."""
    frame = pd.DataFrame({"noise": RNG.normal(size=len(kind)), **columns, "kind": kind})
    return telling_columns(make_table(frame, "kind"))


def shuffled(values):
    order = RNG.permutation(N)
    return {"kind": KIND[order], "z": np.asarray(values)[order]}


TELLING = {
    "a number of the row": {"z": 3 * np.arange(N)},
    "with gaps": {"z": GAPS},
    "in another order": shuffled(5 + np.arange(N)),
    "a code of the class": {"z": pd.factorize(KIND)[0]},
    "a name of the class": {"z": np.char.add("kind ", KIND)},
    "missing in one class": {"z": np.where(KIND == "a", np.nan, np.where(KIND == "b", 1.5, 2.5))},
}


@pytest.mark.parametrize("columns", TELLING.values(), ids=TELLING)
def test_found(columns):
    found = told(**columns)
    assert list(found) == ["z"] and found["z"] >= 0.99


HONEST = {
    "noise": RNG.normal(size=N),
    "two values": np.arange(N) % 2,
    "categories": np.array(["x", "y"])[np.arange(N) % 2],
    "pairs of rows": np.arange(N) // 2 % 20,
    "constant": np.ones(N),
    "one class of three": np.where(KIND == "a", 1.0, 0.0),
}


@pytest.mark.parametrize("values", HONEST.values(), ids=HONEST)
def test_not_found(values):
    assert told(z=values) == {}


def test_a_frequent_class_is_no_prediction():
    kind = np.array(["rare"] + ["usual"] * 299)
    assert told(kind, z=RNG.permutation(300)) == {}


@pytest.mark.parametrize("name", ["sonar", "ionosphere", "wine", "iris", "balance_scale", "letter"])
def test_no_feature_of_the_bundled_data_is_suspected(name):
    data = load_dataset(name)
    frame = pd.DataFrame(data.data).rename(columns=str).assign(kind=data.target)
    assert telling_columns(make_table(frame, "kind")) == {}


def test_the_note_says_what_to_do():
    frame = pd.DataFrame({"x": RNG.normal(size=N), "id": GAPS, "kind": KIND})
    (note,) = telling_notes(make_table(frame, "kind"))
    assert note.startswith("column 'id' alone predicts the class of ") and "--drop 'id'" in note
