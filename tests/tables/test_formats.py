"""Every format gives the same table; every bad file gives one line with its cause."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lnml.errors import InputError
from lnml.tables import read_table
from lnml.tables.formats import read_frame
from lnml.tables.reading import Reading
from lnml.tables.sources import split_extension
from lnml.tables.writing import write_matrix

FRAME = pd.DataFrame(
    {
        "length": [1.5, 0.1 + 0.2, np.nan, 4.0, -2e-7, 1e150],
        "count": [3, 1, 4, 1, 5, 9],
        "color": ["red", "blue", None, "red", "blue", 'it\'s, "green"'],
        "species": ["a", "b", "a", "b", "a", "b"],
    }
)


def write_arff(path: Path) -> None:
    def field(value) -> str:
        if pd.isna(value):
            return "?"
        return repr(value) if isinstance(value, float) else str(value)

    color = '{red, blue, "it\'s, \\"green\\""}'
    lines = ["@relation flowers", "@attribute length real", "@attribute count integer"]
    lines += [f"@attribute color {color}", "@attribute species {a, b}", "@data"]
    for row in FRAME.itertuples(index=False):
        quoted = '"it\'s, \\"green\\""' if str(row.color).startswith("it") else field(row.color)
        lines.append(f"{field(row.length)},{row.count},{quoted},{row.species}".replace("nan", "?"))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def written(tmp_path: Path) -> dict[str, Path]:
    paths = {
        name: tmp_path / f"flowers{name}"
        for name in (".csv", ".tsv", ".csv.gz", ".tsv.xz", ".csv.bz2", ".parquet", ".arff", ";.csv")
    }
    for name, path in paths.items():
        if name == ".parquet":
            FRAME.to_parquet(path)
        elif name == ".arff":
            write_arff(path)
        else:
            separator = "\t" if ".tsv" in name else ";" if ";" in name else ","
            FRAME.to_csv(path, index=False, sep=separator)
    return paths


def test_formats_give_the_same_table(written: dict[str, Path]) -> None:
    tables = {name: read_table(path, "species") for name, path in written.items()}
    for table in tables.values():
        assert table.features["length"].equals(FRAME["length"])
        assert table.features["count"].tolist() == FRAME["count"].tolist()
        colors = table.features["color"].astype("object")
        assert [c if isinstance(c, str) else None for c in colors] == [
            c if isinstance(c, str) else None for c in FRAME["color"]
        ]
        assert table.labels.tolist() == FRAME["species"].tolist()
    assert len({table.fingerprint for table in tables.values()}) == 1


def test_nominal_digits_of_arff_are_categories(tmp_path: Path) -> None:
    path = tmp_path / "a.arff"
    lines = [
        "@relation r",
        "@attribute z {1, 2}",
        "@attribute y {a, b}",
        "@data",
        *["1,a", "2,b"] * 3,
    ]
    path.write_text("\n".join(lines) + "\n")
    assert read_table(path, "y").features["z"].tolist() == ["1", "2"] * 3


def test_numbers_as_text_in_parquet_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    FRAME.assign(length=FRAME["length"].map(str, na_action="ignore")).to_parquet(path)
    assert read_table(path, "species").features["length"].equals(FRAME["length"])


def test_npz_is_the_same_table_as_csv(tmp_path: Path) -> None:
    X = np.arange(12, dtype=np.uint8).reshape(6, 2) % 5
    y = np.array([1, 2, 1, 2, 1, 2])
    np.savez(tmp_path / "a.npz", X=X, y=y, feature_names=np.array(["p", "q"]))
    frame = pd.DataFrame(X, columns=["p", "q"]).assign(y=y)
    frame.to_csv(tmp_path / "a.csv", index=False)
    npz, csv = read_table(tmp_path / "a.npz"), read_table(tmp_path / "a.csv", "y")
    assert npz.labels.tolist() == csv.labels.tolist() == ["1", "2"] * 3
    assert npz.fingerprint == csv.fingerprint
    np.savez(tmp_path / "b.npz", X=X, y=y)
    assert list(read_table(tmp_path / "b.npz").features.columns) == ["x0", "x1"]


def test_labels_are_kept_as_written(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,01\n2,01\n3,1\n")
    assert read_table(tmp_path / "a.csv", "y").labels.tolist() == ["01", "01", "1"]


def test_missing_marks(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,a\n?,a\n,b\nNA,b\n")
    assert read_table(tmp_path / "a.csv", "y").features["x"].isna().tolist() == [False] + [True] * 3


def test_byte_order_mark_spaces_and_blank_lines(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("﻿x, y\n1, a\n\n2, b\n3, b\n".encode())
    table = read_table(tmp_path / "a.csv", "y")
    assert table.features["x"].tolist() == [1, 2, 3]
    assert table.labels.tolist() == ["a", "b", "b"]


@pytest.mark.filterwarnings("error")
def test_numbers_are_read_to_the_last_bit(tmp_path: Path) -> None:
    """Without a word: the option for it is needed before pandas 3.1 and deprecated since."""
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal(500) * 10.0 ** rng.integers(-300, 300, 500)
    lines = ["x,y", *(f"{number!r},a" for number in numbers.tolist())]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    np.testing.assert_array_equal(read_frame(tmp_path / "a.csv")["x"], numbers)


SEPARATORS = {
    "comma": ("a.csv", "x,y\n1,p\n2,q\n", ["x", "y"]),
    "semicolon": ("a.csv", "x;y\n1;p\n2;q\n", ["x", "y"]),
    "semicolon in a name": ("a.csv", "x;mm,y\n1,p\n2,q\n", ["x;mm", "y"]),
    "tab in a name": ("a.csv", "x\tmm,y\n1,p\n2,q\n", ["x\tmm", "y"]),
    "comma in a name": ("a.tsv", "x,mm\ty\n1\tp\n2\tq\n", ["x,mm", "y"]),
    "comma and semicolon in names": ("a.tsv", "x,mm\ty;z\n1\tp\n2\tq\n", ["x,mm", "y;z"]),
    "blank line, comma": ("a.csv", "\nx,y\n1,p\n2,q\n", ["x", "y"]),
    "blank lines, semicolon": ("a.csv", "\n\nx;y\n1;p\n2;q\n", ["x", "y"]),
    "blank line, tab": ("a.tsv", "\nx\ty\n1\tp\n2\tq\n", ["x", "y"]),
    "blank line, carriage returns": ("a.csv", "\r\nx;y\r\n1;p\r\n2;q\r\n", ["x", "y"]),
}


@pytest.mark.parametrize(("name", "text", "columns"), SEPARATORS.values(), ids=SEPARATORS)
def test_separators_and_blank_first_lines(
    tmp_path: Path, name: str, text: str, columns: list[str]
) -> None:
    (tmp_path / name).write_bytes(text.encode())
    frame = read_frame(tmp_path / name)
    assert list(frame.columns) == columns
    assert frame.iloc[:, 0].tolist() == [1, 2]
    assert frame.iloc[:, 1].tolist() == ["p", "q"]


BAD_TEXT = {
    "long row": ("x,y\n1,a\n2,b,c\n", "line 3: 3 fields, but the header has 2"),
    "short row": ("x,z,y\n1,2,a\n2,b\n", "line 3: 2 fields, but the header has 3"),
    "rows one longer than the header": ("x,y\n1,2,a\n3,4,b\n", "line 2: 3 fields"),
    "no header": ("1,2\n3,4\n", "first line holds numbers only"),
    "no rows": ("x,y\n", "no rows"),
    "blank": ("\n\n", "no header line"),
    "two columns of a name": ("x,x,y\n1,2,a\n", "more than one column named 'x'"),
    "open quote": ('x,y\n1,"a\n2,b\n', "quotation mark"),
}


@pytest.mark.parametrize(("text", "message"), BAD_TEXT.values(), ids=BAD_TEXT)
def test_bad_text(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_frame(path)
    assert "bad.csv" in str(caught.value)
    assert "\n" not in str(caught.value).strip()


def bad_bytes() -> dict[str, tuple[str, bytes, str]]:
    packed = gzip.compress(b"x,y\n" + b"1,a\n" * 1000)
    return {
        "empty": ("a.csv", b"", r"empty \(0 bytes\)"),
        "empty Parquet": ("a.parquet", b"", r"empty \(0 bytes\)"),
        "UTF-16 without its mark": ("a.csv", "x,y\n1,a\n".encode("utf-16-le"), "zero bytes"),
        "cut-off gzip": ("a.csv.gz", packed[:-20], "cannot be unpacked"),
        "no gzip": ("a.csv.gz", b"x,y\n1,a\n", "cannot be read"),
        "text as Parquet": ("a.parquet", b"x,y\n1,a\n" * 9, "not a Parquet file"),
        "text as NPZ": ("a.npz", b"x,y\n1,a\n", "not an NPZ file"),
        "text as ARFF": ("a.arff", b"x,y\n1,a\n", "as ARFF"),
        "bad nominal": (
            "a.arff",
            b"@relation r\n@attribute x {a,b}\n@data\nc\n",
            "as ARFF: .*line 4",
        ),
    }


@pytest.mark.parametrize(("name", "content", "message"), bad_bytes().values(), ids=bad_bytes())
def test_bad_bytes(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_frame(tmp_path / name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.99])
def test_truncated_parquet(tmp_path: Path, keep: float) -> None:
    path = tmp_path / "a.parquet"
    FRAME.to_parquet(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content))])
    with pytest.raises(InputError, match="cut off"):
        read_frame(path)


def test_npz_that_does_not_fit(tmp_path: Path) -> None:
    cases = {
        "has none": {"Z": np.zeros((2, 2))},
        "has shape": {"X": np.zeros(3)},
        "y has shape": {"X": np.zeros((3, 2)), "y": np.zeros(2)},
        "feature_names for": {"X": np.zeros((3, 2)), "feature_names": np.array(["a"])},
        "array X holds Python objects": {"X": np.array([[{}]], dtype=object)},
        "array y holds Python objects": {
            "X": np.zeros((1, 2)),
            "y": np.array(["a"], dtype=object),
        },
        "plain arrays": {"X": np.zeros((1, 2)), "y": np.array(["\ud800"])},
    }
    for message, arrays in cases.items():
        np.savez(tmp_path / "a.npz", **arrays)
        with pytest.raises(InputError, match=message):
            read_frame(tmp_path / "a.npz")


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.npz"])
def test_values_that_stand_for_missing_ones(tmp_path: Path, name: str) -> None:
    X = np.array([[1.0, -999.0], [2.5, 4.0], [-999.0, 5.0], [3.0, 6.5]], dtype=np.float32)
    frame = pd.DataFrame(X, columns=["p", "q"]).assign(y=["-999", "b", "-999", "b"])
    write_matrix(tmp_path / name, frame, "y")
    table = read_table(tmp_path / name, "y", reading=Reading(missing=("-999.0",)))
    expected = np.where(X == -999.0, np.nan, X)
    np.testing.assert_array_equal(table.features.to_numpy(), expected)
    assert table.labels.tolist() == ["-999", "b", "-999", "b"]
    assert table.missing == ("-999.0",)


def test_words_that_stand_for_missing_values(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("p,q,y\n1,red,a\nnot known,9,b\n3,blue,a\n4,blue,b\n")
    table = read_table(tmp_path / "a.csv", "y", reading=Reading(missing=("not known", "9")))
    assert table.features["p"].tolist()[::2] == [1.0, 3.0]
    assert table.features["p"].isna().tolist() == [False, True, False, False]
    assert table.features["q"].isna().tolist() == [False, True, False, False]


def test_sparse_arff(tmp_path: Path) -> None:
    lines = ["@relation r", "@attribute x real", "@attribute z {a,b}", "@data", "{0 1}", "{1 b}"]
    (tmp_path / "a.arff").write_text("\n".join(lines))
    frame = read_frame(tmp_path / "a.arff")
    assert frame["x"].tolist() == [1.0, 0.0]
    assert frame["z"].tolist() == ["a", "b"]


def test_missing_folder_and_unknown_extension(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_frame(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="folder"):
        read_frame(tmp_path / "folder.csv")
    for name in ("a.xls", "a", "a.npz.gz", ".csv", "a.gz"):
        with pytest.raises(InputError, match="extension"):
            split_extension(name)
