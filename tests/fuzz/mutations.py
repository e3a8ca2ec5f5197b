"""Damage to good files: blind, and with knowledge of the format."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow

sys.path.append(str(Path(__file__).parents[1]))

from model_files import rewritten

from fuzz.originals import Original, originals, unzipped, zipped, zstandard

# Ends of ranges, where sizes and counts overflow.
NUMBERS = [b"\x00", b"\xff", b"\x7f", b"\x80", b"\xff\xff\xff\x7f", b"\xff" * 8, b"\x00" * 8]
WORDS = [
    "NaN",
    "inf",
    "-inf",
    "1e999",
    "1e-320",
    "1e200",
    "-0",
    "0x10",
    "1_000",
    "1,5",
    "12 %",
    "2020-01-01",
    "12:30",
    "?",
    "NA",
    "true",
    "[/red]",
    "[bold]",
    "\x1b[31m",
    "\u202e",
    "\u2028",
    "\0",
    "\r",
    "\n",
    "\t",
    '"',
    "'",
    "{",
    "}",
    "%",
    "#",
    ":",
    "@data",
    "@attribute x {",
    "-1:1",
    "99999999999:1",
    "qid:3",
    "é",
    "\U0001f600",
    "9" * 400,
    "a" * 5000,
    "=1+1",
    "__class__",
    "",
    " ",
]
VALUES = [
    None,
    True,
    -1,
    0,
    10**18,
    10**30,
    1e308,
    0.5,
    "",
    "a",
    "nan",
    [],
    {},
    [[]],
    {"class": 1, "parameters": {}},
    {"class": "a", "parameters": 3},
    {"estimator": "LMNN", "parameters": {"tol": "x"}},
    {"array": [[1], [2, 3]]},
    {"tuple": 3},
    ["a"] * 50,
]


def flipped(content: bytes, chance: random.Random) -> bytes:
    """Some bits are others."""
    damaged = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 8, 40])):
        if damaged:
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def truncated(content: bytes, chance: random.Random) -> bytes:
    """The end is missing, or the beginning."""
    place = chance.randrange(len(content) + 1)
    return content[:place] if chance.random() < 0.8 else content[place:]


def rearranged(content: bytes, chance: random.Random) -> bytes:
    """A piece is missing, there twice, or somewhere else."""
    start = chance.randrange(len(content) + 1)
    end = min(len(content), start + chance.choice([1, 4, 16, 200]))
    piece, rest = content[start:end], content[:start] + content[end:]
    place = chance.randrange(len(rest) + 1)
    again = chance.choice([b"", piece, piece * chance.choice([2, 50])])
    return rest[:place] + again + rest[place:]


def overwritten(content: bytes, chance: random.Random) -> bytes:
    """Bytes are replaced by ends of ranges, more often near the ends of the file."""
    damaged = bytearray(content)
    for _ in range(chance.choice([1, 1, 3])):
        ends = [(0, 200), (len(content) - 600, len(content)), (0, len(content))]
        start, end = chance.choice(ends)
        place = chance.randrange(max(start, 0), max(end, 1))
        piece = chance.choice(NUMBERS)
        damaged[place : place + len(piece)] = piece
    return bytes(damaged)


def spliced(content: bytes, chance: random.Random) -> bytes:
    """The beginning of one file, and the end of another."""
    other = chance.choice(originals()).content
    return content[: chance.randrange(len(content))] + other[chance.randrange(len(other)) :]


def reworded(content: bytes, chance: random.Random) -> bytes:
    """Words are put into text, or take the place of fields."""
    text = content.decode("latin-1")
    for _ in range(chance.choice([1, 1, 2, 10])):
        word = chance.choice(WORDS).encode().decode("latin-1")
        place = chance.randrange(len(text) + 1)
        end = place
        if chance.random() < 0.6:
            while end < len(text) and text[end] not in ",;\t\n \"'":
                end += 1
        text = text[:place] + word + text[end:]
    return text.encode("latin-1")


def relined(content: bytes, chance: random.Random) -> bytes:
    """Lines are missing, there twice, or in another order."""
    lines = content.splitlines(keepends=True)
    for _ in range(chance.choice([1, 3])):
        if lines:
            line = lines.pop(chance.randrange(len(lines)))
            for _ in range(chance.choice([0, 1, 2, 100])):
                lines.insert(chance.randrange(len(lines) + 1), line)
    return b"".join(lines)


BLIND = (flipped, truncated, rearranged, overwritten, spliced)
TEXTUAL = (*BLIND, reworded, reworded, relined)


def blind(content: bytes, chance: random.Random) -> bytes:
    """Some damage that needs no knowledge."""
    return chance.choice(BLIND)(content, chance)


def textual(content: bytes, chance: random.Random) -> bytes:
    """Some damage of text."""
    return chance.choice(TEXTUAL)(content, chance)


UNPACK = {
    ".gz": (gzip.decompress, gzip.compress),
    ".bz2": (bz2.decompress, bz2.compress),
    ".xz": (lzma.decompress, lzma.compress),
    ".zst": (
        lambda content: pyarrow.CompressedInputStream(pyarrow.BufferReader(content), "zstd").read(),
        zstandard,
    ),
}


def repacked(original: Original, chance: random.Random) -> bytes:
    """What is packed is damaged, and the packing is right."""
    ending = Path(original.extension).suffix
    if ending in UNPACK:
        unpack, pack = UNPACK[ending]
        return pack(textual(unpack(original.content), chance))
    files = unzipped(original.content)
    name = chance.choice(sorted(files))
    if original.kind == "xlsx" and chance.random() < 0.7:
        name = chance.choice(["xl/worksheets/sheet1.xml", "xl/workbook.xml", "xl/styles.xml"])
    damage = numpy_header if name.endswith(".npy") and chance.random() < 0.5 else textual
    files[name] = damage(files[name], chance)
    if chance.random() < 0.1:
        files[chance.choice(["b.csv", "../a.csv", "y.npy", name + "/"])] = files[name]
    return zipped(files)


def numpy_header(content: bytes, chance: random.Random) -> bytes:
    """An array that claims another shape or type."""
    start = content.index(b"{")
    end = content.index(b"\n", start)
    shapes = ["(10**12,)", "(1000000000000,)", "(1000000000, 0)", "(0, 1000000000)", "(-1, 2)"]
    shapes += ["(3,)", "()", "(2, 2, 2)", "(4294967296, 4294967296)", "(True, 2)", "(1, 45)"]
    kinds = ["'<f8'", "'|O'", "'<U0'", "'|S0'", "'|V0'", "'<c16'", "'<M8[ns]'", "'|b1'", "'>f2'"]
    kinds += ["'<U1000000000'", "[('a', '<f8', (1000000000,))]", "[('a', '<f8'), ('a', '<f8')]"]
    kinds += ["[('\\ud800', '<f8')]", "[('', '<f8'), ('y', '|S4')]", "'<m8[7D]'", "'|S8'"]
    header = (
        f"{{'descr': {chance.choice(kinds)}, 'fortran_order': {chance.choice([True, False])}, "
        f"'shape': {chance.choice(shapes)}, }}"
    ).encode()
    header = header.ljust(max(len(header), end - start))
    version = chance.choice([1, 1, 2, 3])
    length = struct.pack("<H" if version == 1 else "<I", len(header) + 1)
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + b"\n" + content[end + 1 :]


def footer(content: bytes, chance: random.Random) -> bytes:
    """Damage in the footer of a Parquet file, whose length stays right."""
    size = struct.unpack("<I", content[-8:-4])[0]
    start = len(content) - 8 - size
    inner = chance.choice([flipped, flipped, overwritten, rearranged])(content[start:-8], chance)
    return content[:start] + inner + struct.pack("<I", len(inner)) + b"PAR1"


def _changed(value: object, chance: random.Random, depth: int = 0) -> object:
    """Return JSON in which one value is another, or missing."""
    if isinstance(value, dict) and value and (depth == 0 or chance.random() < 0.8):
        name = chance.choice(sorted(value))
        kept = dict(value)
        if chance.random() < 0.15:
            del kept[name]
        elif chance.random() < 0.1:
            kept[chance.choice(WORDS)] = kept.pop(name)
        else:
            kept[name] = _changed(value[name], chance, depth + 1)
        return kept
    if isinstance(value, list) and value and chance.random() < 0.7:
        place = chance.randrange(len(value))
        return [*value[:place], _changed(value[place], chance, depth + 1), *value[place + 1 :]]
    return chance.choice([*VALUES, *WORDS])


def signed(content: bytes, chance: random.Random) -> bytes:
    """A model with another header or other arrays, and a right checksum."""

    def change(header: dict, arrays: dict) -> None:
        if chance.random() < 0.6:
            changed = _changed(dict(header), chance)
            header.clear()
            header.update(changed)
            return
        name = chance.choice(sorted(arrays))
        array = arrays[name].copy()
        ways = ["value", "shape", "type", "gone", "other"]
        way = chance.choice(ways)
        if way == "value" and array.size:
            array.flat[chance.randrange(array.size)] = chance.choice([0, -1, 99, 10**9, 10**15])
        elif way == "shape":
            array = chance.choice([array[:0], array.ravel(), array[None], array[..., :1]])
        elif way == "type":
            array = array.astype(chance.choice(["<f4", "<i8", "<u8", "<f8"]))
        elif way == "other":
            array = arrays[chance.choice(sorted(arrays))].copy()
        arrays[name] = array
        if way == "gone":
            del arrays[name]

    return rewritten(content, change)


def lying_entries(content: bytes, chance: random.Random) -> bytes:
    """A model whose list of arrays claims other places, shapes and types."""
    size = struct.unpack("<Q", content[:8])[0]
    entries = json.loads(content[8 : 8 + size])
    name = chance.choice(sorted(set(entries) - {"__metadata__"}))
    entries[name] = _changed(entries[name], chance)
    if chance.random() < 0.4:
        entries[name] = {
            "dtype": chance.choice(["F64", "F16", "BF16", "BOOL", "F8_E4M3", "I8", "U64", "X"]),
            "shape": chance.choice([[10**12], [2**62, 4], [], [0, 10**12], [3, 3]]),
            "data_offsets": chance.choice([[0, 8], [0, 10**15], [-1, 5], [9, 3], [0, 2**63]]),
        }
    text = json.dumps(entries).encode()
    claimed = chance.choice([len(text)] * 6 + [0, 2**63, 10**8, len(text) + 9])
    return struct.pack("<Q", claimed) + text + content[8 + size :]


AWARE: dict[str, tuple[Callable[[Original, random.Random], bytes], ...]] = {
    "delimited": (lambda original, chance: textual(original.content, chance),),
    "arff": (lambda original, chance: textual(original.content, chance),),
    "svmlight": (lambda original, chance: textual(original.content, chance),),
    "packed": (repacked,),
    "xlsx": (repacked,),
    "npz": (repacked,),
    "npy": (lambda original, chance: numpy_header(original.content, chance),),
    "parquet": (lambda original, chance: footer(original.content, chance),),
    "model": (
        lambda original, chance: signed(original.content, chance),
        lambda original, chance: signed(original.content, chance),
        lambda original, chance: lying_entries(original.content, chance),
    ),
}


def mutated(original: Original, chance: random.Random) -> Original:
    """A damaged copy: one in four without knowledge of the format, one in ten damaged twice."""
    if chance.random() < 0.25:
        content = blind(original.content, chance)
    else:
        content = chance.choice(AWARE[original.kind])(original, chance)
    if chance.random() < 0.1:
        content = blind(content, chance)
    return original._replace(content=content)
