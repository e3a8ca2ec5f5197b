"""Small files that would become huge are refused before memory is taken; so is damaged text."""

import gzip
import io
import lzma
import struct
import subprocess
import sys
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest

from lnml.errors import InputError
from lnml.tables import read_table
from lnml.tables.formats import read_frame
from lnml.tables.limits import ALWAYS, bounded, labels_fit
from lnml.tables.table import label_texts

FORTY = b"a,1\nb,2\n" * 5_000_000
# A line that refuses needs next to nothing; reading one of these files takes a multiple.
LITTLE = 100e6


def refusal(path: Path, label: str = "species") -> str:
    """Read a table that is refused, with little memory; return the message."""
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            read_table(path, label)
        assert tracemalloc.get_traced_memory()[1] < LITTLE
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def zipped(name: str, content: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return target.getvalue()


def zstandard(content: bytes) -> bytes:
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as file:
        file.write(content)
    return sink.getvalue().to_pybytes()


PACKERS = {
    ".csv.gz": gzip.compress,
    ".csv.xz": lambda content: lzma.compress(content, preset=0),
    ".csv.zst": zstandard,
    ".csv.zip": lambda content: zipped("a.csv", content),
}


@pytest.mark.parametrize("name", PACKERS)
def test_packed_bombs(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"a{name}"
    path.write_bytes(PACKERS[name](b"species,x\n" + FORTY))
    assert "would become more than 32 MiB in memory" in refusal(path)


def test_what_the_limit_leaves_alone(tmp_path: Path) -> None:
    """A large file may become a hundred times as large."""
    content = b"x" * (ALWAYS + 5)
    path = tmp_path / "a.csv.gz"
    path.write_bytes(bytes(len(content) // 100 + 1))
    with bounded(io.BytesIO(content), path, "a") as file:
        assert file.read() == content
    path.write_bytes(bytes(len(content) // 100))
    with bounded(io.BytesIO(content), path, "a") as file, pytest.raises(InputError):
        file.read()


def npy(shape: str, kind: str = "'<f8'") -> bytes:
    header = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"\0" * 64


LYING = {
    "many rows": npy("(1000000000000, 2)"),
    "a column without end": npy("(0, 1000000000)"),
    "rows of nothing": npy("(1000000000, 0)"),
    "items of nothing": npy("(1000000000, 4)", "'|V0'"),
    "words without end": npy("(4, 4)", "'<U500000000'"),
}


@pytest.mark.parametrize("content", LYING.values(), ids=LYING)
def test_arrays_that_lie_about_their_size(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    assert "bytes, but the file holds" in refusal(tmp_path / "a.npy", "x1")
    (tmp_path / "a.npz").write_bytes(zipped("X.npy", content))
    assert "bytes, but the file holds" in refusal(tmp_path / "a.npz", "y")


def test_packed_arrays(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", X=np.zeros((2_500_000, 2)))
    assert "numpy.savez, which does not compress" in refusal(tmp_path / "a.npz", "y")


@pytest.mark.parametrize("code", [0xD800, 0x110000, 0x7FFFFFFF])
@pytest.mark.parametrize("order", "<>")
def test_numbers_that_are_no_characters(tmp_path: Path, code: int, order: str) -> None:
    words = np.array([["ab", "cd"], ["ef", "gh"]]).view("u4").copy()
    words[1, 0] = code
    np.save(tmp_path / "a.npy", words.astype(f"{order}u4").view(f"{order}U2"))
    assert "not an NPY file of a plain array" in refusal(tmp_path / "a.npy", "x0")


@pytest.mark.parametrize("X", [np.zeros((4, 2), dtype="V3"), np.zeros((4, 2), dtype=[("a", "f8")])])
def test_arrays_of_neither_numbers_nor_text(tmp_path: Path, X: np.ndarray) -> None:
    np.save(tmp_path / "a.npy", X)
    assert "not an NPY file of a plain array" in refusal(tmp_path / "a.npy", "x0")
    np.savez(tmp_path / "a.npz", X=X, y=np.arange(4) % 2)
    assert "not an NPZ file of plain arrays" in refusal(tmp_path / "a.npz", "y")


def test_the_other_order_of_bytes(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[1, 0], [2, 1], [4, 0]], dtype=">i4"))
    table = read_table(tmp_path / "a.npy", "x1")
    assert table.labels.tolist() == ["0", "1", "0"]
    assert table.features["x0"].tolist() == [1, 2, 4]
    fields = np.array([(1.5, "a"), (2.5, "b"), (3.5, "a")], dtype=[("x", ">f4"), ("y", ">U1")])
    np.save(tmp_path / "a.npy", fields)
    assert read_table(tmp_path / "a.npy", "y").features["x"].tolist() == [1.5, 2.5, 3.5]


def test_sparse_rows(tmp_path: Path) -> None:
    (tmp_path / "a.svmlight").write_bytes(b"1 30000:1\n-1 1:1\n" * 100)
    assert "200 rows with 30001 columns, zeros included" in refusal(tmp_path / "a.svmlight", "y")
    head = "@relation r\n@attribute species {a, b}\n"
    names = "".join(f"@attribute x{i} numeric\n" for i in range(3_000))
    (tmp_path / "a.arff").write_text(f"{head}{names}@data\n" + "{0 a}\n{0 b}\n" * 1_000)
    assert "leave attributes out" in refusal(tmp_path / "a.arff")


ODD_ARFF = {
    "an empty name": "@attribute {a} numeric\n@attribute species {a, b}\n@data\n1,a\n",
    "no type": '@attribute "" \n@attribute species {a, b}\n@data\n1,a\n',
    "a percent sign": "@attribute x {a}\n@attribute species {a, b}\n@data\nz%n,a\n",
    "braces": "@attribute x {\n@attribute species {a, b}\n@data\n{}\n",
}


@pytest.mark.parametrize("text", ODD_ARFF.values(), ids=ODD_ARFF)
def test_arff_that_its_reader_does_not_expect(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.arff").write_text(f"@relation r\n{text}")
    assert "a.arff" in refusal(tmp_path / "a.arff")


def parquet(path: Path, **columns) -> None:
    """Write values that are stored once, with types that say nothing of this."""
    table = pyarrow.table(
        {
            name: pyarrow.DictionaryArray.from_arrays(
                pyarrow.array(np.zeros(n, dtype=np.int8)), pyarrow.array([value])
            )
            for name, (value, n) in columns.items()
        }
    )
    with pyarrow.parquet.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.write_table(table)


def test_parquet_bombs(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet(path, species=("a" * 10_000, 50_000))
    assert "would become more than 128 MiB" in refusal(path)
    parquet(path, species=("a" * 10, 50_000), text=("b" * 100, 50_000))
    assert len(read_frame(path)) == 50_000
    parquet(path, **{f"x{i}": (1.0, 200_000) for i in range(90)})
    assert "would become more than 128 MiB" in refusal(path)


def test_columns_of_lists_are_not_read(tmp_path: Path) -> None:
    """A million of equal numbers in a list take a few bytes in the file."""
    path = tmp_path / "a.parquet"
    lists = pyarrow.array([np.zeros(2_000_000)] * 4)
    table = pyarrow.table({"x": [1.0, 2.0, 3.0, 5.0], "many": lists, "species": list("abab")})
    pyarrow.parquet.write_table(table, path)
    assert path.stat().st_size < 100_000
    assert "column 'many' holds mixed values, neither numbers nor text" in refusal(path)
    tracemalloc.start()
    assert read_table(path, "species", ["many"]).features["x"].tolist() == [1.0, 2.0, 3.0, 5.0]
    assert tracemalloc.get_traced_memory()[1] < 10e6
    tracemalloc.stop()


def test_a_footer_that_ends_the_process_if_asked(tmp_path: Path) -> None:
    """Pyarrow calls std::terminate for a column chunk with a wrong histogram of its levels."""
    path = tmp_path / "a.parquet"
    table = pyarrow.table({"x": pyarrow.array([1.0, None, 3.0]), "species": list("aba")})
    pyarrow.parquet.write_table(table, path, compression=None)
    size = struct.unpack("<I", path.read_bytes()[-8:-4])[0]
    script = (
        "import sys; from lnml.tables.formats import read_frame\n"
        "from lnml.errors import InputError\n"
        "from pathlib import Path\n"
        "content, path = Path(sys.argv[1]).read_bytes(), sys.argv[1]\n"
        "for place in range(len(content) - 8 - int(sys.argv[2]), len(content) - 8):\n"
        "    changed = bytearray(content)\n"
        "    changed[place] ^= 2\n"
        "    Path(path).write_bytes(changed)\n"
        "    try:\n"
        "        read_frame(path)\n"
        "    except InputError:\n"
        "        pass\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(path), str(size)], check=False)
    assert ended.returncode == 0


def test_parquet_text_that_is_none(tmp_path: Path) -> None:
    bad = pyarrow.StringArray.from_buffers(
        2, pyarrow.array([0, 2, 4], pyarrow.int32()).buffers()[1], pyarrow.py_buffer(b"\xff\xfeab")
    )
    for values in (bad, bad.dictionary_encode()):
        table = pyarrow.table({"x": [1.0, 2.0], "species": values})
        pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
        assert "not a Parquet file, or was cut off" in refusal(tmp_path / "a.parquet")


def test_what_pandas_says_in_a_footer_may_be_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pd.DataFrame({"x": [1.0, 2.0], "species": ["a", "b"]}).to_parquet(path, compression=None)
    table = pyarrow.parquet.read_table(path)
    for said in (b"{", b"[]", b'{"index_columns": 3}', table.schema.metadata[b"pandas"][:-5]):
        pyarrow.parquet.write_table(table.replace_schema_metadata({b"pandas": said}), path)
        assert "not a Parquet file, or was cut off" in refusal(path)


def sheet(rows: str) -> bytes:
    """A workbook with one sheet of these rows."""
    target = io.BytesIO()
    pd.DataFrame({"x": [1]}).to_excel(target, index=False)
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    text = f'<worksheet xmlns="{space}"><sheetData>{rows}</sheetData></worksheet>'
    changed = io.BytesIO()
    with zipfile.ZipFile(target) as old, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            is_sheet = name == "xl/worksheets/sheet1.xml"
            new.writestr(name, text if is_sheet else old.read(name))
    return changed.getvalue()


WORKBOOKS = {
    "far cell": (
        "<row r='1'><c r='A1' t='str'><v>x</v></c></row>"
        "<row r='1048576'><c r='XFD1048576'><v>1</v></c></row>",
        "remove cells far outside",
    ),
    "beyond the end": (
        "<row r='1'><c><v>1</v></c></row><row r='9000000000'><c><v>1</v></c></row>",
        "more than 1048576 rows",
    ),
    "spaces": (" " * 40_000_000, "would become more than 32 MiB"),
}


@pytest.mark.parametrize(("rows", "message"), WORKBOOKS.values(), ids=WORKBOOKS)
def test_workbooks(tmp_path: Path, rows: str, message: str) -> None:
    pytest.importorskip("openpyxl", reason="an extra")
    path = tmp_path / "a.xlsx"
    path.write_bytes(sheet(rows))
    with pytest.raises(InputError, match=message):
        read_frame(path)


@pytest.mark.filterwarnings("error")
def test_what_openpyxl_has_to_say_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="an extra")
    load = openpyxl.load_workbook

    def load_loudly(*given, **named):
        warnings.warn("an invalid name was removed", stacklevel=1)
        return load(*given, **named)

    pd.DataFrame({"x": [1]}).to_excel(tmp_path / "a.xlsx", index=False)
    monkeypatch.setattr(openpyxl, "load_workbook", load_loudly)
    assert read_frame(tmp_path / "a.xlsx")["x"].tolist() == [1]


def test_names_of_columns(tmp_path: Path) -> None:
    """Many names, also equal ones, are looked at once."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"x" + b",x" * 60_000 + b"\n1" + b",1" * 60_000)
    assert "more than one column named 'x': rename" in refusal(path)
    path.write_bytes(b"x" + b"," * 70_000)
    assert "70001 columns, more than the 65536 that are read" in refusal(path)
    path.write_bytes(",".join(f"x{i // 2}" for i in range(60_000)).encode() + b"\n")
    assert refusal(path).endswith(", ...: rename them")


def test_long_labels(tmp_path: Path) -> None:
    """NumPy gives each label the room of the longest: 10,000 x 130,000 letters of 4 bytes."""
    path = tmp_path / "a.csv"
    path.write_text("species,x\n" + "s" * 130_000 + ",1\n" + "a,1\nb,2\n" * 5_000)
    assert "a text of 130000 characters ('ssssssssssssssssssss'...), too long" in refusal(path)
    assert labels_fit(1000, 1000) and labels_fit(16, 10**9)
    assert not labels_fit(1001, 3) and not labels_fit(1000, 100_000)


def test_true_and_1_are_different_labels() -> None:
    mixed = pd.Series([True, 1, "true", 1.0], dtype=object)
    assert label_texts(mixed).tolist() == ["true", "1", "true", "1"]
    assert label_texts(pd.Series([0.0, 1.5, 0.0])).tolist() == ["0", "1.5", "0"]
