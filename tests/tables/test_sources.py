"""Packings, encodings, delimiters, standard input, and files without names of columns."""

import bz2
import datetime
import gzip
import io
import lzma
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow
import pytest

from lnml.errors import InputError
from lnml.tables import read_table
from lnml.tables.formats import read_frame
from lnml.tables.reading import Reading

TEXT = "size,color,kind\n1.5,red,ä\n2.5,blue,b\n3.25,red,ä\n4,blue,b\n"


def zipped(content: bytes, *names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, content)
    return file.getvalue()


def zstandard(content: bytes) -> bytes:
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as file:
        file.write(content)
    return sink.getvalue().to_pybytes()


PACKED = {
    "a.csv": lambda content: content,
    "a.csv.gz": gzip.compress,
    "a.csv.bz2": bz2.compress,
    "a.csv.xz": lzma.compress,
    "a.csv.zst": zstandard,
    "a.csv.zip": lambda content: zipped(content, "whatever.txt"),
    "a.zip": lambda content: zipped(content, "folder/a.csv"),
}


def check(frame: pd.DataFrame) -> None:
    assert frame["size"].tolist() == [1.5, 2.5, 3.25, 4.0]
    assert frame["color"].tolist() == ["red", "blue", "red", "blue"]
    assert frame["kind"].tolist() == ["ä", "b", "ä", "b"]


@pytest.mark.parametrize("name", PACKED)
def test_packed_files_are_the_same_table(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(PACKED[name](TEXT.encode()))
    check(read_frame(tmp_path / name))


@pytest.mark.parametrize("name", PACKED)
def test_standard_input_is_the_same_table(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    # Standard input has no name: an archive must name its table.
    content = PACKED["a.zip" if name.endswith("zip") else name](TEXT.encode())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    check(read_frame("-"))


BINARY = {
    "parquet": lambda file, frame: frame.to_parquet(file),
    "npz": lambda file, frame: np.savez(file, X=frame[["size"]], y=frame["kind"].to_numpy(str)),
    "npy": lambda file, frame: np.save(file, frame[["size"]].to_numpy()),
    "arff": lambda file, frame: file.write(
        b"% sizes\n@RELATION r\n@attribute size real\n@data\n1.5\n2.5\n3.25\n4\n"
    ),
}


@pytest.mark.parametrize("name", BINARY)
def test_standard_input_tells_its_format(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    file = io.BytesIO()
    BINARY[name](file, pd.read_csv(io.StringIO(TEXT)))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(file.getvalue())))
    assert read_frame("-").iloc[:, 0].tolist() == [1.5, 2.5, 3.25, 4.0]


@pytest.mark.parametrize(
    ("stdin", "message"),
    [
        (None, "standard input is closed"),
        (SimpleNamespace(buffer=io.BytesIO(b"")), "standard input is empty"),
        (SimpleNamespace(buffer=io.BytesIO(b"a,b\n1\n")), "standard input, line 2: 1 fields"),
    ],
)
def test_bad_standard_input(monkeypatch: pytest.MonkeyPatch, stdin, message: str) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(InputError, match=message):
        read_frame("-")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_marks_tell_the_encoding(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.csv").write_bytes(TEXT.encode(encoding))
    notes: list[str] = []
    check(read_frame(tmp_path / "a.csv", notes=notes))
    assert notes == []


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_other_text_is_read_with_a_note(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.csv").write_bytes(TEXT.encode(encoding))
    table = read_table(tmp_path / "a.csv", "kind")
    assert table.labels.tolist() == ["ä", "b", "ä", "b"]
    assert "is not UTF-8 text (byte 24): read as Windows-1252" in table.notes[0]
    table = read_table(tmp_path / "a.csv", "kind", reading=Reading(encoding=encoding))
    assert table.notes == ()


def test_a_named_encoding_is_used(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(TEXT.encode("utf-16-le"))
    check(read_frame(tmp_path / "a.csv", reading=Reading(encoding="utf-16-le")))
    (tmp_path / "b.csv").write_bytes(TEXT.encode("utf-8-sig"))
    check(read_frame(tmp_path / "b.csv", reading=Reading(encoding="UTF8")))


NO_TEXT = {
    "damaged UTF-8": TEXT.encode() + "5,re\xff,ä\n".encode("latin-1"),
    "what Windows-1252 lacks": TEXT.encode("latin-1") + b"5,\x81,b\n",
    "another format": b"\x89PNG\r\n\x1a\n\x00\x00\xff",
}


@pytest.mark.parametrize("content", NO_TEXT.values(), ids=NO_TEXT)
def test_what_is_no_text_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(InputError, match=r"not UTF-8 text .*--encoding"):
        read_frame(tmp_path / "a.csv")


def test_a_wrong_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(TEXT.encode("latin-1"))
    for encoding in ("utf-8", "ascii", "utf-16"):
        with pytest.raises(InputError, match=r"is not .*text"):
            read_frame(tmp_path / "a.csv", reading=Reading(encoding=encoding))


DELIMITED = {
    "semicolons": ("a.csv", ";", {}),
    "tabs": ("a.csv", "\t", {}),
    "bars": ("a.csv", "|", {}),
    "a tab in TSV": ("a.tsv", "\t", {}),
    "as said": ("a.csv", ":", {"delimiter": ":"}),
    "as said in words": ("a.csv", "\t", {"delimiter": "tab"}),
    "spaces": ("a.csv", "   ", {"delimiter": "space"}),
}


@pytest.mark.parametrize(("name", "character", "said"), DELIMITED.values(), ids=DELIMITED)
def test_delimiters(tmp_path: Path, name: str, character: str, said: dict) -> None:
    (tmp_path / name).write_text(TEXT.replace(",", character), encoding="utf-8")
    check(read_frame(tmp_path / name, reading=Reading(**said)))


def test_decimal_commas(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TEXT.replace(",", ";").replace(".", ","), encoding="utf-8")
    check(read_frame(tmp_path / "a.csv", reading=Reading(decimal=",")))
    quoted = 'size,color,kind\n"1,5",red,ä\n"2,5",blue,b\n"3,25",red,ä\n4,blue,b\n'
    (tmp_path / "a.csv").write_text(quoted, encoding="utf-8")
    check(read_frame(tmp_path / "a.csv", reading=Reading(decimal=",")))


BAD_READINGS = {
    "two characters": ({"delimiter": ";;"}, "one character, or one of comma"),
    "a quote": ({"delimiter": '"'}, "one character"),
    "a letter for a point": ({"decimal": "x"}, "a point or a comma; got 'x'"),
    "no encoding": ({"encoding": "utf-99"}, "no encoding 'utf-99'"),
    "a codec of bytes": ({"encoding": "hex"}, "no encoding 'hex'"),
}


@pytest.mark.parametrize(("said", "message"), BAD_READINGS.values(), ids=BAD_READINGS)
def test_bad_readings(said: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Reading(**said)


def test_options_must_fit_the_file(tmp_path: Path) -> None:
    for said in ({"delimiter": ";"}, {"decimal": ","}, {"encoding": "utf-8"}):
        with pytest.raises(InputError, match=r"is for .*: leave it out"):
            read_frame(tmp_path / "a.parquet", reading=Reading(**said))


def test_archives_hold_one_table(tmp_path: Path) -> None:
    cases = {
        "holds 2 files": zipped(b"x", "a.csv", "b.csv"),
        "holds 0 files": zipped(b"x"),
        "cannot be read from an archive": zipped(b"x", "a.parquet"),
        "the extension tells the format": zipped(b"x", "a.doc"),
        "cut off or damaged": zipped(b"x" * 1000, "a.csv")[:-30],
    }
    for message, content in cases.items():
        (tmp_path / "a.zip").write_bytes(content)
        with pytest.raises(InputError, match=message):
            read_frame(tmp_path / "a.zip")
    (tmp_path / "a.zip").write_bytes(zipped(TEXT.encode(), "a.csv", "__MACOSX/._a.csv"))
    check(read_frame(tmp_path / "a.zip"))


def test_npy(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.array([[1.5, 0.0], [2.5, 1.0], [3.5, 0.0], [4.5, 1.0]]))
    table = read_table(path, "x1")
    assert table.labels.tolist() == ["0", "1", "0", "1"]
    assert table.features["x0"].tolist() == [1.5, 2.5, 3.5, 4.5]
    rows = [(1.5, b"a"), (2.5, "ü".encode()), (3.5, b"a")]
    np.save(path, np.array(rows, dtype=[("size", "f4"), ("kind", "S2")]))
    assert read_table(path, "kind").labels.tolist() == ["a", "ü", "a"]
    cases = {
        r"has shape \(3,\)": np.zeros(3),
        r"has shape \(\)": np.float64(3),
        "the array holds Python objects": np.array([[{}]], dtype=object),
        "plain array": np.array([["\ud800"]]),
    }
    for message, array in cases.items():
        np.save(path, array)
        with pytest.raises(InputError, match=message):
            read_frame(path)
    path.write_bytes(path.read_bytes()[:90])
    with pytest.raises(InputError, match="not an NPY file"):
        read_frame(path)


@pytest.mark.parametrize("name", ["a.svmlight", "a.libsvm", "a.svm.gz"])
def test_svmlight(tmp_path: Path, name: str) -> None:
    content = b"# two columns\n1 1:0.5 2:3\n-1 2:4\n1 1:1.5 # a note\n"
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    table = read_table(tmp_path / name)
    assert table.labels.tolist() == ["1", "-1", "1"]
    np.testing.assert_array_equal(table.features.to_numpy(), [[0.5, 3.0], [0.0, 4.0], [1.5, 0.0]])
    assert list(table.features.columns) == ["x1", "x2"]


def test_a_column_of_svmlight_has_its_number_in_every_file(tmp_path: Path) -> None:
    """Files that leave zeros out may lack the first columns and the last."""
    path = tmp_path / "a.svmlight"
    path.write_bytes(b"1 0:7 1:8 4:9\n-1 1:2\n")
    assert list(read_frame(path).columns) == ["x0", "x1", "x2", "x3", "x4", "y"]
    path.write_bytes(b"1 1:5 2:6\n-1 2:3\n")
    frame = read_frame(path, wanted=["x0", "x1", "x4", "size"])
    assert frame[["x0", "x1", "x4"]].to_numpy().tolist() == [[0.0, 5.0, 0.0], [0.0, 0.0, 0.0]]
    assert "size" not in frame.columns
    path.write_bytes(b"1\n-1\n")
    assert read_frame(path, wanted=["x3"])["x3"].tolist() == [0.0, 0.0]


def test_bad_svmlight(tmp_path: Path) -> None:
    path = tmp_path / "a.svmlight"
    cases = {
        "cannot be read as svmlight": b"1 a:b\n",
        "2000000001 columns, zeros included": b"1 2000000000:1\n-1 1:1\n",
    }
    for message, content in cases.items():
        path.write_bytes(content)
        with pytest.raises(InputError, match=message):
            read_frame(path)


def test_xlsx(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl", reason="an extra")
    path = tmp_path / "a.xlsx"
    frame = pd.DataFrame(
        {"size": [1.5, None, 3, 4], "color": ["red", "?", "red", "blue"], "kind": ["01", "1"] * 2}
    )
    with pd.ExcelWriter(path) as writer:
        frame.to_excel(writer, sheet_name="first", index=False, startrow=2)
        frame.to_excel(writer, sheet_name="second")
    table = read_table(path, "kind")
    assert table.labels.tolist() == ["01", "1", "01", "1"]
    np.testing.assert_array_equal(table.features["size"], [1.5, np.nan, 3.0, 4.0])
    assert table.features["color"].isna().tolist() == [False, True, False, False]
    assert table.notes == (f"{path} has 2 sheets: only 'first' is read",)
    cases = {
        "dates or times": frame.assign(day=datetime.date(2020, 1, 1)),
        "no rows": frame.head(0),
        "is empty": pd.DataFrame(),
        "numbers only": pd.DataFrame([[1, 2]], columns=[3, 4]),
    }
    for message, wrong in cases.items():
        wrong.to_excel(path, index=False)
        with pytest.raises(InputError, match=message):
            read_table(path, "kind")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="not an XLSX file"):
        read_table(path, "kind")


def test_xlsx_is_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    with pytest.raises(InputError, match=r'openpyxl.*pip install "lnml\[xlsx\]"'):
        read_frame(tmp_path / "a.xlsx")
