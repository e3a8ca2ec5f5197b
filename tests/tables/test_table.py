"""The rules for labels and columns."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from lnml.errors import InputError
from lnml.tables import make_table

N = 12
Y = ["a", "b"] * (N // 2)


def table_of(**columns):
    return make_table(pd.DataFrame({"x": np.linspace(0, 1, N), **columns, "y": Y}), "y")


BAD_LABELS = {
    "missing": (["a", "b", None, "b"], "1 of 4 rows have no label .*row 2"),
    "one class": (["a"] * 4, "one class only"),
    "rows of their own": (["a", "b", "c", "d"], "one row only"),
    "numbers": ([1.0, 2.5, 2.5, 1.0], "such as 2.5 in row 1 .*, not classes"),
}


@pytest.mark.parametrize(("labels", "message"), BAD_LABELS.values(), ids=BAD_LABELS)
def test_bad_labels(labels: list, message: str) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.5], "y": labels})
    with pytest.raises(InputError, match=message):
        make_table(frame, "y")


def test_label_column_must_exist() -> None:
    frame = pd.DataFrame({"length": [1.0, 2.0], "species": ["a", "b"]})
    with pytest.raises(InputError, match="did you mean 'species'"):
        make_table(frame, "specis")
    with pytest.raises(InputError, match="say which one holds the labels"):
        make_table(frame, None)
    with pytest.raises(InputError, match="there are: length, species"):
        make_table(frame, "species", drop=["color"])
    with pytest.raises(InputError, match="cannot hold the labels and be left out"):
        make_table(frame, "species", drop=["species"])


def test_classes_can_be_left_out() -> None:
    frame = pd.DataFrame(
        {
            "x": [1.0, 2.0, 3.0, 4.5, 5.0],
            "color": ["red", "green", "blue", "blue", "red"],
            "y": [1, 2, 1, 3, 3],
        }
    )
    table = make_table(frame, "y", drop_classes=["2"])
    assert table.labels.tolist() == ["1", "1", "3", "3"]
    assert table.features["x"].tolist() == [1.0, 3.0, 4.5, 5.0]
    assert table.features["color"].cat.categories.tolist() == ["blue", "red"]
    assert table.notes == ("class '2': 1 row left out; rows are numbered without them",)
    assert table.fingerprint == make_table(frame[frame["y"] != 2], "y").fingerprint
    with pytest.raises(InputError, match=r"no class '2.5'.*there are: 1, 2, 3"):
        make_table(frame, "y", drop_classes=["2.5"])
    with pytest.raises(InputError, match="holds no class"):
        make_table(frame, "y", drop_classes=["1", "2", "3"])


def test_numbers_of_rows_are_found_although_rows_are_left_out() -> None:
    frame = pd.DataFrame({"x": np.sin(np.arange(N)), "id": range(N), "y": ["a", "b", "c"] * 4})
    table = make_table(frame, "y", drop_classes=["b"])
    assert list(table.features.columns) == ["x"]


def test_labels_of_all_kinds_become_text() -> None:
    kinds = {
        "integers": ([1, 2, 1, 2], ["1", "2"]),
        "whole floats": ([1.0, 2.0, 1.0, 2.0], ["1", "2"]),
        "booleans": ([True, False, True, False], ["false", "true"]),
        "categories": (pd.Categorical([3, 4, 3, 4]), ["3", "4"]),
    }
    for labels, expected in kinds.values():
        table = make_table(pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.5], "y": labels}), "y")
        assert list(table.class_sizes) == expected


CODES = {
    "-999": ([0.5, 30.0, -999.0, 12.0, -999.0, 3.0] * 2, {"-999": 4}),
    "9999 as integers": ([5, 30, 9999, 12, 7, 3] * 2, {"9999": 2}),
    "99999999": ([5, 30, 99999999, 12, 7, 3] * 2, {"99999999": 2}),
    "-99.9": ([0.5, 30.0, -99.9, 12.0, 4.0, 3.0] * 2, {"-99.9": 2}),
    "one within the other": ([1, 2, 99, 9999, 3, 2] * 2, {"9999": 2, "99": 2}),
    "on both sides": ([1, 2, 9999, -888, 3, 2] * 2, {"9999": 2, "-888": 2}),
    "not far": ([9000, 9500, 9999, 8000, 7000, 8500] * 2, {}),
    "another number": ([5, 30, 10000, 12, 7, 3] * 2, {}),
    "two values": ([0, 99] * 6, {}),
    "one digit": ([1, 2, 9, 1, 2, 1] * 2, {}),
}


@pytest.mark.parametrize(("values", "expected"), CODES.values(), ids=CODES)
def test_codes_for_missing_values_are_pointed_out(values: list, expected: dict) -> None:
    notes = table_of(age=values).notes
    assert len(notes) == len(expected)
    for code, count in expected.items():
        (note,) = (note for note in notes if note.endswith(f"--missing {code}"))
        assert f"column 'age': {count} of 12 values are {code}, far outside the others" in note


REFUSED = {
    "nothing": ([None] * N, "no value in any row"),
    "infinity": ([np.inf] + [0.0] * (N - 1), "infinite"),
    "short infinity": (np.array([0.0, -np.inf] * (N // 2), "f4"), "infinite value in row 1"),
    "overflow": ([0.0, -1e200] + [0.0] * (N - 2), r"holds -1e.200 \(row 1, .* square overflows"),
    "dates": (pd.date_range("2020-01-01", periods=N), "dates or times"),
    "dates as objects": ([datetime.date(2020, 1, 1)] * N, "dates or times"),
    "dates as text": ([f"2020-01-{day:02d}" for day in range(1, N + 1)], "dates or times"),
    "German dates": ([f"{day}.1.2020" for day in range(1, N + 1)], "dates or times"),
    "decimal comma": ([f"{i},5" for i in range(N)], "decimal comma"),
    "a slip": (
        ["1.5", "2.25", "abc"] + [f"{i}" for i in range(N - 3)],
        r"text in 1 of 12 rows \(the first is 'abc' in row 2",
    ),
    "a slip in a workbook": (
        [1.5, 2, "abc", None, *range(N - 4)],
        r"text in 1 of 11 rows \(the first is 'abc' in row 2",
    ),
    "times of day": ([f"{hour}:{hour + 10}" for hour in range(N)], "dates or times"),
    "precise times": (["7:30:00.5 pm", "12:00 AM"] * (N // 2), "dates or times"),
    "percentages": (["12 %", "3.5%"] * (N // 2), r"percentages \('12 %'\)"),
    "lists": ([[1, 2]] * N, "neither numbers nor text"),
    "complex": ([1j] * N, "complex"),
}


@pytest.mark.parametrize(("values", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_columns(values, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        table_of(z=values)
    assert "'z'" in str(caught.value)
    frame = pd.DataFrame({"x": np.linspace(0, 1, N), "z": values, "y": Y})
    assert list(make_table(frame, "y", drop=["z"]).features.columns) == ["x"]


def test_numbers_as_text_are_read_as_numbers() -> None:
    values = ["1.5", None, " 2e3", *["4"] * (N - 3)]
    table = table_of(z=values)
    assert table.features["z"].dtype == np.float64
    np.testing.assert_array_equal(table.features["z"][:4], [1.5, np.nan, 2000.0, 4.0])
    assert "'z' holds numbers as text: read as numbers" in table.notes[0]
    assert table_of(z=pd.Categorical(values)).features["z"].dtype == "category"


@pytest.mark.parametrize(
    "values", [["007", "8"] * 6, [7, 8] * 6, ["7", "8", "8", "8+"] * 3, [7, 8, 8, "8+"] * 3]
)
def test_columns_of_categories_stay_so(values: list) -> None:
    frame = pd.DataFrame({"x": np.linspace(0, 1, N), "z": values, "y": Y})
    table = make_table(frame, "y", categories=["z"])
    assert table.features["z"].tolist() == [str(value) for value in values]
    assert not table.notes
    with pytest.raises(InputError, match="no column 'w'"):
        make_table(frame, "y", categories=["w"])


def test_half_numbers_are_categories() -> None:
    assert table_of(z=["1", "a", "2", "b"] * (N // 4)).features["z"].nunique() == 4


def test_text_with_too_many_categories() -> None:
    n = 404
    frame = pd.DataFrame(
        {"x": np.linspace(0, 1, n), "z": [f"t{i // 2}" for i in range(n)], "y": ["a", "b"] * 202}
    )
    with pytest.raises(InputError, match="202 different texts"):
        make_table(frame, "y")


@pytest.mark.parametrize(("count", "accepted"), [(100, True), (101, False)])
def test_a_hundred_categories_are_the_most(count: int, accepted: bool) -> None:
    texts = [f"t{i}" for i in range(count)] * 2
    frame = pd.DataFrame({"z": texts, "y": ["a"] * count + ["b"] * count})
    if accepted:
        assert make_table(frame, "y").features["z"].nunique() == count
    else:
        with pytest.raises(InputError, match="101 different texts, more than the 100"):
            make_table(frame, "y")


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ([f"row {i}" for i in range(N)], "different text in every row"),
        (list(range(N)), "counts the rows"),
        ([float(i) for i in range(1, N + 1)], "counts the rows"),
        (list(range(1000, 1000 + N)), "counts the rows"),
        ([float(i) for i in range(-3, N - 3)], "counts the rows"),
        ([str(i) for i in range(7, 7 + N)], "counts the rows"),
        (list(range(2**62, 2**62 + N)), "counts the rows"),
    ],
)
def test_left_out_with_a_note(values, note: str) -> None:
    table = table_of(z=values)
    assert list(table.features.columns) == ["x"]
    assert len(table.notes) == 1
    assert note in table.notes[0]
    with pytest.raises(InputError, match="no feature column"):
        make_table(pd.DataFrame({"z": values, "y": Y}), "y")


@pytest.mark.parametrize(
    "values",
    [
        np.arange(N) + 0.5,
        2 * np.arange(N),
        np.arange(N)[::-1],
        [*range(N - 1), np.nan],
        np.append(np.arange(N - 1), 20),
    ],
)
def test_other_numbers_are_features(values) -> None:
    assert "z" in table_of(z=values).features


def test_short_whole_numbers_do_not_wrap_around() -> None:
    frame = pd.DataFrame({"z": np.arange(300).astype(np.uint8), "y": ["a", "b"] * 150})
    assert "z" in make_table(frame, "y").features


def test_few_rows_are_not_counted() -> None:
    table = make_table(pd.DataFrame({"x": [0, 1, 2], "y": ["a", "b", "b"]}), "y")
    assert list(table.features.columns) == ["x"]


def test_numbers_of_all_kinds() -> None:
    table = table_of(
        decimal=[Decimal("1.5")] * N,
        nullable=pd.array([None, *range(N - 1)], dtype="Int64"),
        small=np.arange(N, dtype=np.uint8) % 3,
    )
    kinds = {name: column.dtype.kind for name, column in table.features.items()}
    assert kinds == {"x": "f", "decimal": "f", "nullable": "f", "small": "u"}
    assert np.isnan(table.features["nullable"].iloc[0])


def test_fingerprint_tells_tables_apart() -> None:
    base = {"z": np.sin(np.arange(N)), "color": ["red", "blue", None] * (N // 3)}
    fingerprint = table_of(**base).fingerprint
    assert fingerprint == table_of(**base).fingerprint
    z, color = base["z"].copy(), list(base["color"])
    z[3] = np.nextafter(z[3], 1)
    color[0] = "green"
    changed = [
        table_of(z=z, color=base["color"]),
        table_of(z=base["z"], color=color),
        table_of(w=base["z"], color=base["color"]),
        table_of(color=base["color"], z=base["z"]),
        make_table(pd.DataFrame({"x": np.linspace(0, 1, N), **base, "y": Y[::-1]}), "y"),
    ]
    assert len({fingerprint, *(table.fingerprint for table in changed)}) == 6


def test_zero_has_one_fingerprint() -> None:
    zeros = [table_of(z=np.full(N, value)).fingerprint for value in (0.0, -0.0)]
    assert zeros[0] == zeros[1]
