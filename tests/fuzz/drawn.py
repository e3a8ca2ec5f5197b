"""Inputs that hypothesis draws: odd tables and odd arrays, in every format."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from model_files import rewritten

from fuzz.originals import PACKERS, Original, originals, saved

# Also what is no character on its own.
_character = (
    st.characters() | st.sampled_from("\0\r\n\t\",;|\x1b\u202e\ufeff{}%@'[]") | st.just("\ud800")
)
_text = st.text(_character, max_size=12)
_number = st.floats(allow_nan=True, allow_infinity=True).map(repr) | st.integers().map(str)
_field = st.one_of(
    st.floats(-10, 10).map(lambda value: f"{value:.3g}"),
    st.sampled_from(["a", "b", "", "NA", "?", "1", "0", "true"]),
    _number,
    _text,
)


@st.composite
def delimited(draw) -> Original:
    """A table of any texts, quoted or not, in some encoding."""
    separator = draw(st.sampled_from(",,,;\t|"))
    names = draw(st.lists(_text, min_size=1, max_size=5))
    rows = draw(st.lists(st.lists(_field, min_size=len(names), max_size=len(names)), max_size=12))
    label = draw(st.sampled_from(["a", "b", "1"]))
    lines = [[*names, "species"], *([*row, label if i % 2 else "c"] for i, row in enumerate(rows))]

    def quoted(field: str) -> str:
        plain = draw(st.booleans())
        return field if plain else '"' + field.replace('"', '""') + '"'

    text = draw(st.sampled_from(["\n", "\r\n"])).join(
        separator.join(map(quoted, line)) for line in lines
    )
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1", "cp437"]))
    content = text.encode(encoding, draw(st.sampled_from(["ignore", "replace"])))
    if draw(st.booleans()):
        content = text.encode("utf-8", "surrogatepass")
    ending = draw(st.sampled_from(["", "", "", *PACKERS]))
    content = PACKERS[ending](content) if ending else content
    extension = ".tsv" if separator == "\t" else ".csv"
    return Original("drawn text", extension + ending, "species", content)


@st.composite
def arff(draw) -> Original:
    """Declarations and rows that need not fit each other."""
    kinds = st.sampled_from(["numeric", "real", "string", "{a, b}", "{}", "date", "INTEGER"])
    names = draw(st.lists(_text | st.sampled_from(["x", "z"]), min_size=1, max_size=4))
    head = [f"@attribute {json.dumps(name)} {draw(kinds | _text)}" for name in names]
    row = st.lists(_field, min_size=len(names), max_size=len(names) + 1)
    rows = draw(st.lists(row, max_size=10))
    body = [",".join([*fields, draw(st.sampled_from(["a", "b", "c"]))]) for fields in rows]
    lines = ["@relation r", *head, "@attribute species {a, b}", "@data", *body]
    return Original("drawn text", ".arff", "species", "\n".join(lines).encode("utf-8", "replace"))


@st.composite
def svmlight(draw) -> Original:
    """Pairs of numbers, some of which are none."""
    entry = st.tuples(st.integers(-2, 40) | _number, _number | st.integers(0, 9).map(str))
    rows = draw(st.lists(st.tuples(_number | st.sampled_from("01"), st.lists(entry, max_size=5))))
    lines = [f"{label} {' '.join(f'{a}:{b}' for a, b in pairs)}" for label, pairs in rows]
    return Original("drawn text", ".svm", "y", "\n".join(lines).encode())


_types = st.one_of(
    hnp.floating_dtypes(),
    hnp.integer_dtypes(),
    hnp.unsigned_integer_dtypes(),
    hnp.boolean_dtypes(),
    hnp.complex_number_dtypes(),
    hnp.unicode_string_dtypes(max_len=4),
    hnp.byte_string_dtypes(max_len=4),
    hnp.datetime64_dtypes(),
    hnp.timedelta64_dtypes(),
    hnp.array_dtypes(max_size=3),
)


@st.composite
def arrays(draw) -> Original:
    """An NPY or NPZ file with arrays of any type and shape."""
    shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=8)
    X = draw(hnp.arrays(draw(_types), draw(shapes | st.just((8, 2)))))
    if draw(st.booleans()):
        return Original("drawn arrays", ".npy", draw(st.sampled_from(["x0", "x1", "f0"])), _npy(X))
    y = draw(hnp.arrays(draw(_types), draw(st.just(X.shape[:1]) | shapes)))
    return Original("drawn arrays", ".npz", "y", saved(np.savez, X=X, y=y))


def _npy(X: np.ndarray) -> bytes:
    return saved(np.save, X)


_cell = st.one_of(
    st.none(),
    st.booleans(),
    st.floats(),
    st.integers(-(2**63), 2**63 - 1),
    _text,
    st.datetimes(),
    st.binary(max_size=4),
    st.decimals(allow_nan=False, places=2, min_value=-99, max_value=99),
    st.lists(st.integers(-5, 5), max_size=3),
)


@st.composite
def frames(draw) -> Original:
    """A Parquet file or a workbook with cells of any type."""
    cells = draw(st.sampled_from([_cell, st.floats(), st.floats(-5, 5), _text, st.dates()]))
    rows = draw(st.integers(0, 12))
    names = draw(st.lists(_text, min_size=1, max_size=4, unique=True))
    columns = {name: draw(st.lists(cells, min_size=rows, max_size=rows)) for name in names}
    frame = pd.DataFrame({**columns, "species": [f"k{i % 2}" for i in range(rows)]})
    try:
        if draw(st.integers(0, 3)):
            return Original("drawn frames", ".parquet", "species", saved(_to_parquet, frame))
        return Original("drawn frames", ".xlsx", "species", saved(_to_excel, frame))
    except Exception:
        # What their writers refuse is written as text.
        content = frame.to_csv(index=False).encode("utf-8", "replace")
        return Original("drawn frames", ".csv", "species", content)


def _to_parquet(file, frame: pd.DataFrame) -> None:
    frame.to_parquet(file)


def _to_excel(file, frame: pd.DataFrame) -> None:
    frame.to_excel(file, index=False)


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters() | st.just("\ud800"), max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["class", "parameters", "array", "dict", "tuple", "a"]), inner
        )
    ),
    max_leaves=6,
)


@st.composite
def models(draw) -> Original:
    """A model in whose header any value stands in some place, with a right checksum."""
    good = draw(st.sampled_from([each for each in originals() if each.kind == "model"]))
    value = draw(_json)

    def change(header: dict, arrays: dict) -> None:
        place = header
        while True:
            name = draw(st.sampled_from(sorted(place)))
            if not isinstance(place[name], dict) or not place[name] or draw(st.booleans()):
                place[name] = value
                return
            place = place[name]

    return Original("drawn models", ".model", "", rewritten(good.content, change))


inputs = st.one_of(delimited(), delimited(), arff(), svmlight(), arrays(), frames(), models())
