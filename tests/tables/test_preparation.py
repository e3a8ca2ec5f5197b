"""The matrix of a table, against formulas written out here."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from lnml.errors import InputError
from lnml.tables import Preparation

NUMBERS = st.one_of(st.none(), st.integers(-1000, 1000), st.floats(-1e6, 1e6, width=32))
TEXTS = st.one_of(st.none(), st.sampled_from(["", "red", "blue", "grün"]))
ROWS = st.lists(st.tuples(NUMBERS, TEXTS, NUMBERS, TEXTS), min_size=2, max_size=20)
SETTINGS = st.tuples(
    st.sampled_from(["none", "standard", "minmax"]), st.sampled_from([None, 1, 0.9])
)


def fitted(rows: list, how: tuple) -> Preparation:
    """Fit, unless there are no principal components to find."""
    scale, pca = how
    frame = frame_of(rows)
    X = Preparation(scale=scale).fit_transform(frame)
    assume(pca is None or (X != X[0]).any())
    return Preparation(scale=scale, pca=pca).fit(frame)


def frame_of(rows: list) -> pd.DataFrame:
    columns = list(zip(*rows, strict=True))
    return pd.DataFrame(
        {
            "a": pd.Series(columns[0], dtype="float64"),
            "b": pd.Series(columns[1], dtype="object"),
            "c": pd.Series(columns[2], dtype="float64"),
            "d": pd.Series(columns[3], dtype="object"),
        }
    )


def by_hand(train: pd.DataFrame, test: pd.DataFrame) -> np.ndarray:
    """Medians and 0/1 columns, one entry at a time."""
    columns = []
    for name in ("a", "c"):
        present = [v for v in train[name] if not np.isnan(v)]
        fill = np.median(present) if present else 0.0
        columns.append([fill if np.isnan(v) else v for v in test[name]])
    for name in ("b", "d"):
        seen = sorted({v for v in train[name] if v is not None})
        for category in seen:
            columns.append([float(v == category) for v in test[name]])
        if any(v is None for v in train[name]):
            columns.append([float(v is None) for v in test[name]])
    return np.array(columns).T


@given(ROWS, ROWS)
def test_values(train: list, test: list) -> None:
    inside, outside = frame_of(train), frame_of(test)
    preparation = Preparation().fit(inside)
    np.testing.assert_array_equal(preparation.transform(outside), by_hand(inside, outside))
    names = preparation.get_feature_names_out()
    assert len(names) == len(set(names)) == preparation.transform(outside).shape[1]


@given(ROWS, ROWS, SETTINGS, st.permutations("abcd"))
@settings(max_examples=50)
def test_columns_are_found_by_name(train: list, test: list, how: tuple, order: list) -> None:
    preparation = fitted(train, how)
    outside = frame_of(test)
    shuffled = outside[list(order)].assign(extra=1.0)
    np.testing.assert_array_equal(preparation.transform(outside), preparation.transform(shuffled))


@given(ROWS, ROWS, SETTINGS)
@settings(max_examples=50)
def test_a_stored_copy_gives_the_same_bits(train: list, test: list, how: tuple) -> None:
    preparation = fitted(train, how)
    state, arrays = preparation.get_state()
    copy = Preparation.from_state(json.loads(json.dumps(state)), arrays)
    outside = frame_of(test)
    assert preparation.transform(outside).tobytes() == copy.transform(outside).tobytes()


@given(ROWS, SETTINGS)
@settings(max_examples=50)
def test_fit_transform_is_fit_and_transform(rows: list, how: tuple) -> None:
    frame = frame_of(rows)
    preparation = fitted(rows, how)
    np.testing.assert_array_equal(
        clone(preparation).fit_transform(frame), preparation.transform(frame)
    )


def test_unknown_categories_are_zeros_and_counted() -> None:
    train = pd.DataFrame({"color": ["red", "blue"], "x": [1.0, 2.0]})
    test = pd.DataFrame({"color": ["green", None, "red"], "x": [0.0, 0.0, 0.0]})
    preparation = Preparation().fit(train)
    np.testing.assert_array_equal(preparation.transform(test)[:, 1:], [[0, 0], [0, 0], [0, 1]])
    assert preparation.count_unknown(test) == {"color": 2}
    assert preparation.count_unknown(train) == {}


def test_numbers_stand_for_categories_of_digits() -> None:
    train = pd.DataFrame({"floor": pd.Categorical(["1", "2", "10"])})
    test = pd.DataFrame({"floor": [10.0, np.nan, 2.0]})
    np.testing.assert_array_equal(
        Preparation().fit(train).transform(test), [[0, 1, 0], [0, 0, 0], [0, 0, 1]]
    )


def test_texts_are_what_they_were_in_the_training_part() -> None:
    preparation = Preparation().fit(pd.DataFrame({"code": ["01", "a", "b"], "x": [1.0, 2.0, 3.0]}))
    test = pd.DataFrame({"code": ["01", "1"], "x": ["2.5", None]})
    np.testing.assert_array_equal(preparation.transform(test), [[2.5, 1, 0, 0], [2.0, 0, 0, 0]])
    assert preparation.count_unknown(test) == {"code": 1}


def test_scales_act_on_numbers_only() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(3, 7, 30), "same": 2.0, "kind": ["a", "b", "b"] * 10})
    standard = Preparation(scale="standard").fit_transform(frame)
    x = frame["x"].to_numpy()
    np.testing.assert_allclose(standard[:, 0], (x - x.mean()) / x.std(), atol=1e-12)
    np.testing.assert_array_equal(standard[:, 1], 0.0)
    assert set(standard[:, 2:].ravel()) == {0.0, 1.0}
    minmax = Preparation(scale="minmax").fit_transform(frame)
    np.testing.assert_allclose(minmax[:, 0], (x - x.min()) / (x.max() - x.min()), atol=1e-12)
    np.testing.assert_array_equal(minmax[:, 1], 0.0)


@pytest.mark.parametrize("n", [12, 300])
def test_pca_keeps_the_leading_variance(n: int) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 5)) * [9, 5, 2, 1, 0.1]
    frame = pd.DataFrame(X, columns=list("vwxyz"))
    values = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    Z = Preparation(pca=3).fit_transform(frame)
    np.testing.assert_allclose(np.linalg.norm(Z, axis=0), values[:3], rtol=1e-8)
    share = np.cumsum(values**2) / np.sum(values**2)
    kept = Preparation(pca=0.95).fit(frame)
    assert kept.transform(frame).shape[1] == np.searchsorted(share, 0.95) + 1
    assert kept.get_feature_names_out()[0] == "pca0"


def test_bad_use() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0], "z": [3.0, 5.0]})
    plain = Preparation().fit(frame)
    with pytest.raises(InputError, match="1 of the 2 feature columns are missing: 'z'"):
        plain.transform(frame[["x"]])
    with pytest.raises(InputError, match=r"holds text in 2 of 2 rows .*'a' in row 0"):
        plain.transform(frame.assign(x=["a", "b"]))
    with pytest.raises(InputError, match="scale must be one of"):
        Preparation(scale="log").fit(frame)
    for pca in (0, -1, 1.5):
        with pytest.raises(InputError, match="pca must be"):
            Preparation(pca=pca).fit(frame)
    with pytest.raises(InputError, match="all training rows are the same"):
        Preparation(pca=0.9).fit(frame * 0.0)
    with pytest.raises(InputError, match="use at most 2"):
        Preparation(pca=3).fit(frame)
    with pytest.raises(NotFittedError):
        Preparation().transform(frame)


def test_a_state_that_does_not_fit_is_refused() -> None:
    state, arrays = (
        Preparation(pca=1).fit(pd.DataFrame({"x": [1.0, 2.0], "z": [3.0, 5.0]})).get_state()
    )
    for name in arrays:
        for wrong in (np.zeros((7, 7)), np.full_like(arrays[name], np.nan)):
            with pytest.raises(ValueError, match=name):
                Preparation.from_state(state, {**arrays, name: wrong})
