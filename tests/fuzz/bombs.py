"""Small files that claim, or become, far more than they hold; each made by hand."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

sys.path.append(str(Path(__file__).parents[1]))

from fuzz.originals import Original, flowers, originals, saved, unzipped, zipped, zstandard

MANY = 400_000_000
GOOD = "species,x\n" + "a,1\nb,2\n" * 4
SHEET = "xl/worksheets/sheet1.xml"


def packed(pack: Callable[[bytes], bytes], row: bytes = b"a,1\nb,2\n", size: int = MANY) -> bytes:
    """A table of one row over and over, packed in pieces."""
    piece = pack(row * (20_000_000 // len(row)))
    return pack(b"species,x\n") + piece * (size // 20_000_000)


def zip_bomb(name: str, row: bytes = b"a,1\nb,2\n", head: bytes = b"species,x\n") -> bytes:
    """An archive with one long file."""
    target = io.BytesIO()
    with (
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(name, "w") as file,
    ):
        file.write(head)
        for _ in range(MANY // 10_000_000):
            file.write(row * (10_000_000 // len(row)))
    return target.getvalue()


def array(shape: str, kind: str = "'<f8'", data: bytes = b"\0" * 64) -> bytes:
    """An array with a header of our choice."""
    header = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def archive_of(X: bytes, y: bytes | None = None) -> bytes:
    """An NPZ file."""
    return zipped({"X.npy": X} | ({} if y is None else {"y.npy": y}))


def workbook(change: Callable[[dict[str, bytes]], None]) -> bytes:
    """A workbook with other XML inside."""
    files = unzipped(saved(lambda f: flowers().to_excel(f, index=False)))
    change(files)
    return zipped(files)


def sheet(rows: str) -> bytes:
    """A workbook whose sheet has these rows."""
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    text = f'<worksheet xmlns="{space}"><sheetData>{rows}</sheetData></worksheet>'
    return workbook(lambda files: files.update({SHEET: text.encode()}))


def laughs(files: dict[str, bytes]) -> None:
    """XML whose entities grow tenfold, ten times."""
    names = [f"<!ENTITY a{i + 1} '{f'&a{i};' * 10}'>" for i in range(10)]
    head = f"<!DOCTYPE x [<!ENTITY a0 'aaaaaaaaaa'>{''.join(names)}]>"
    inner = "<row r='1'><c r='A1' t='str'><v>&a9;</v></c></row>"
    files[SHEET] = f"{head}<worksheet><sheetData>{inner}</sheetData></worksheet>".encode()


def parquet(columns: dict, rows: int) -> bytes:
    """Columns of one value each, for so many rows."""
    arrays = {
        name: pyarrow.DictionaryArray.from_arrays(
            pyarrow.array(np.zeros(rows, dtype=np.int8)), pyarrow.array([value])
        ).cast(pyarrow.array([value]).type)
        for name, value in columns.items()
    }
    return saved(lambda f: pyarrow.parquet.write_table(pyarrow.table(arrays), f))


def long_texts(rows: int, length: int) -> bytes:
    """A long text in every row, stored once."""
    values = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array(np.zeros(rows, dtype=np.int8)), pyarrow.array(["a" * length])
    )
    # The schema says text: a reader that does not ask for categories makes one of every row.
    plain = pyarrow.schema([("species", pyarrow.string())])
    target = io.BytesIO()
    with pyarrow.parquet.ParquetWriter(
        target, pyarrow.schema([("species", values.type)]), store_schema=False
    ) as writer:
        writer.write_table(pyarrow.table({"species": values}))
    assert pyarrow.parquet.read_schema(io.BytesIO(target.getvalue())) == plain
    return target.getvalue()


def entries(changes: dict, size: int | None = None) -> bytes:
    """A model whose list of arrays has other entries."""
    content = next(each.content for each in originals() if each.kind == "model")
    length = struct.unpack("<Q", content[:8])[0]
    listed = json.loads(content[8 : 8 + length])
    listed["rows"] |= changes
    text = json.dumps(listed).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text + content[8 + length :]


def wide(columns: int, rows: int, same: bool = False) -> bytes:
    """A table with many columns."""
    names = ["x"] * columns if same else [f"x{i}" for i in range(columns)]
    lines = [",".join(["species", *names])]
    lines += [",".join(["ab"[row % 2], *[str(row)] * columns]) for row in range(rows)]
    return "\n".join(lines).encode()


def sparse_arff(columns: int, rows: int) -> bytes:
    """Rows without an entry."""
    names = "".join(f"@attribute x{i} numeric\n" for i in range(columns))
    head = "@relation r\n@attribute species {a, b}\n" + names
    return (head + "@data\n" + "{0 a}\n{0 b}\n" * (rows // 2)).encode()


def _text() -> dict[str, Callable[[], bytes]]:
    return {
        ".csv.gz": lambda: packed(gzip.compress),
        ".csv.bz2": lambda: packed(bz2.compress),
        ".csv.xz": lambda: packed(lzma.compress),
        ".csv.zst": lambda: packed(zstandard),
        ".csv.zip": lambda: zip_bomb("a.csv"),
        ".zip": lambda: zip_bomb("a.csv"),
        ".csv.gz one line": lambda: packed(gzip.compress, b"aaaa"),
        ".csv.gz zeros": lambda: packed(gzip.compress, b"\0"),
        ".csv.gz not text": lambda: packed(gzip.compress, b"a\xe9\n"),
        ".svmlight.gz": lambda: packed(gzip.compress, b"1 1:1\n"),
        ".arff.gz": lambda: packed(gzip.compress, b"% a comment\n"),
        ".zip in itself": lambda: zipped({"a.zip": zipped({"a.csv": GOOD.encode()})}),
        ".zip of many": lambda: zipped({f"{i}.csv": b"" for i in range(20_000)}),
        ".csv": lambda: b"",
        ".csv one byte": lambda: b"\xff",
        ".csv nothing but lines": lambda: b"\n" * 1_000_000,
        ".csv one quote": lambda: b"species,x\n" + b'a,"' + b"1\nb,2\n" * 20_000,
        ".csv long field": lambda: f"species,x\na,{'1' * 10_000_000}\n".encode(),
        ".csv long label": lambda: (
            b"species,x\n" + b"s" * 130_000 + b",1\n" + b"a,1\nb,2\n" * 5_000
        ),
        ".csv long name": lambda: f"{'s' * 100_000},species\n1,a\n2,b\n3,a\n".encode(),
        ".csv the same name": lambda: wide(200_000, 2, same=True),
        ".csv columns": lambda: wide(5_000, 6),
        ".csv delimiters": lambda: b"species" + b"," * 300_000,
        ".csv surrogates": lambda: GOOD.encode() + b"\xed\xa0\x80,3\n",
        ".csv utf-32": lambda: GOOD.encode("utf-32"),
        ".csv utf-16 cut off": lambda: GOOD.encode("utf-16")[:-1],
        ".csv utf-7": lambda: b"+AGE-,+AGI-\n1,2\n",
        ".svmlight far": lambda: b"1 2000000000:1\n-1 1:1\n",
        ".svmlight farther": lambda: b"1 9223372036854775807:1\n-1 1:1\n",
        ".svmlight wide": lambda: b"1 30000:1\n-1 1:1\n" * 2_000,
        ".arff sparse": lambda: sparse_arff(10_000, 60_000),
        ".arff attributes": lambda: sparse_arff(20_000, 0),
        ".arff braces": lambda: b"@relation r\n@attribute a {" + b"a," * 200_000 + b"}\n@data\n",
    }


def _binary() -> dict[str, Callable[[], bytes]]:
    label = saved(np.save, np.array([0, 1] * 4))
    return {
        ".npy": lambda: array("(1000000000000, 2)"),
        ".npy a gigabyte": lambda: array("(200000000, 2)"),
        ".npy no rows": lambda: array("(0, 1000000000)"),
        ".npy no columns": lambda: array("(1000000000, 0)"),
        ".npy no bytes": lambda: array("(1000000000, 4)", "'|V0'"),
        ".npy no letters": lambda: array("(1000000000, 4)", "'<U0'"),
        ".npy long words": lambda: array("(4, 4)", "'<U500000000'"),
        ".npy deep": lambda: array("(4, 4)", "[('a', '<f8', (1000000000,))]"),
        ".npy brackets": lambda: array("(" * 3000),
        ".npy overflow": lambda: array("(4294967296, 4294967296, 16)"),
        ".npz": lambda: zip_bomb("X.npy", b"\0", array("(25000000, 2)", data=b"")),
        ".npz declared": lambda: archive_of(array("(1000000000000, 2)"), label),
        ".npz a gigabyte": lambda: archive_of(array("(200000000, 2)"), label),
        ".npz no rows": lambda: archive_of(array("(0, 1000000000)"), array("(0,)", data=b"")),
        ".npz no columns": lambda: archive_of(array("(1000000000, 0)")),
        ".npz no letters": lambda: archive_of(array("(8, 1)"), array("(1000000000,)", "'<U0'")),
        ".xlsx": lambda: workbook(lambda f: f.update({SHEET: b" " * 300_000_000})),
        ".xlsx far cell": lambda: sheet("<row r='1048576'><c r='XFD1048576'><v>1</v></c></row>"),
        ".xlsx farther": lambda: sheet("<row r='1'/><row r='900000000000'><c><v>1</v></c></row>"),
        ".xlsx column": lambda: sheet("<row r='1'><c r='ZZZ1'><v>1</v></c></row>"),
        ".xlsx diagonal": lambda: sheet(
            "".join(
                f"<row r='{i + 1}'>{'<c><v>1</v></c>' * (16_000 if i == 9 else 1)}</row>"
                for i in range(20_000)
            )
        ),
        ".xlsx entities": lambda: workbook(laughs),
        ".parquet rows": lambda: parquet({"x": 1.0, "species": "a"}, 30_000_000),
        ".parquet texts": lambda: long_texts(100_000, 100_000),
        ".parquet columns": lambda: parquet({f"x{i}": 1.0 for i in range(2_000)}, 20),
        ".model": lambda: entries({"shape": [10**12]}),
        ".model far": lambda: entries({"data_offsets": [0, 2**62]}),
        ".model both": lambda: entries({"shape": [10**12, 2], "data_offsets": [0, 16 * 10**12]}),
        ".model overflow": lambda: entries({"shape": [2**32, 2**32], "data_offsets": [0, 0]}),
        ".model header": lambda: entries({}, size=2**40),
        ".model no arrays": lambda: entries({"shape": [0, 10**12], "data_offsets": [0, 0]}),
    }


@cache
def bomb_names() -> tuple[str, ...]:
    """The extension of each bomb, and perhaps what is odd about it."""
    return (*_text(), *_binary())


def bomb(name: str, folder: Path) -> Original:
    """One of those that :func:`write_bombs` has written."""
    label = "y" if name.startswith((".np", ".svm")) else "species"
    if name.startswith(".model"):
        label = ""
    content = (folder / name).read_bytes()
    return Original("bomb", name.split()[0], label, content)


def write_bombs(folder: Path) -> None:
    """Write all of them, in a process of its own: what that takes must not be counted."""
    subprocess.run([sys.executable, "-m", "fuzz.bombs", folder], check=True)


if __name__ == "__main__":
    for _name, _make in (_text() | _binary()).items():
        (Path(sys.argv[1]) / _name).write_bytes(_make())
