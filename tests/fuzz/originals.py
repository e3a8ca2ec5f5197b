"""Good files of every format that lnml reads, to be damaged."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tempfile
import warnings
import zipfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lnml import LMNN
from lnml.datasets import load_dataset
from lnml.models import fit_model, save_model
from lnml.tables import Preparation, make_table

ROWS = 45


class Original(NamedTuple):
    """A good file.

    Attributes
    ----------
    kind : str
        Its format, as the report counts it.
    extension : str
        What its name ends with.
    label : str
        Column of its labels; empty for a model.
    content : bytes
        The file.
    """

    kind: str
    extension: str
    label: str
    content: bytes


def flowers() -> pd.DataFrame:
    """Rows of Iris, with missing numbers and a column of text."""
    iris = load_dataset("iris")
    rows = np.arange(ROWS) * 3
    frame = pd.DataFrame(iris.data[rows, :3], columns=["length", "width", "petal"])
    frame.loc[::9, "width"] = np.nan
    frame["color"] = np.where(iris.data[rows, 3] > 1.0, "red", "blü")
    frame["species"] = [f"kind {kind}" for kind in iris.target[rows]]
    return frame


def numbers() -> tuple[np.ndarray, np.ndarray]:
    """Rows of Wine and their classes."""
    wine = load_dataset("wine")
    return np.ascontiguousarray(wine.data[::4, :4]), np.unique(wine.target, return_inverse=True)[1][
        ::4
    ]


def zipped(files: dict[str, bytes]) -> bytes:
    """An archive of files."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue()


def unzipped(content: bytes) -> dict[str, bytes]:
    """The files of an archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zstandard(content: bytes) -> bytes:
    """What the command zstd makes of it."""
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as file:
        file.write(content)
    return sink.getvalue().to_pybytes()


PACKERS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard,
    ".zip": lambda content: zipped({"a.csv": content}),
}


def arff_text(frame: pd.DataFrame, *, sparse: bool = False) -> str:
    """A frame as ARFF."""
    kinds = ", ".join(map(repr, sorted(set(frame["species"]))))
    lines = ["@relation flowers", *(f"@attribute {name} numeric" for name in frame.columns[:3])]
    lines += ["@attribute color {red, 'blü'}", f"@attribute species {{{kinds}}}", "@data"]
    for row in frame.itertuples(index=False):
        fields = ["?" if value != value else repr(value) for value in row]
        if sparse:
            lines.append("{" + ", ".join(f"{i} {field}" for i, field in enumerate(fields)) + "}")
        else:
            lines.append(",".join(fields))
    return "\n".join(lines) + "\n"


def saved(write, *arguments, **named) -> bytes:
    """What a function writes to a file."""
    target = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write(target, *arguments, **named)
    return target.getvalue()


def _tables() -> list[Original]:
    frame, (X, y) = flowers(), numbers()
    text = frame.to_csv(index=False)
    found = [
        Original("delimited", ".csv", "species", text.encode()),
        Original("delimited", ".csv", "species", text.replace(",", ";").encode("utf-16")),
        Original("delimited", ".csv", "species", text.encode("latin-1")),
        Original("delimited", ".tsv", "species", frame.to_csv(index=False, sep="\t").encode()),
        Original("arff", ".arff", "species", arff_text(frame).encode()),
        Original("arff", ".arff", "species", arff_text(frame, sparse=True).encode()),
    ]
    found += [
        Original("packed", f".csv{ending}", "species", pack(text.encode()))
        for ending, pack in PACKERS.items()
    ]
    categories = frame.assign(color=frame["color"].astype("category"))
    found += [
        Original("parquet", ".parquet", "species", saved(lambda f: categories.to_parquet(f))),
        Original(
            "parquet",
            ".pq",
            "species",
            saved(lambda f: frame.to_parquet(f, compression=None, row_group_size=10)),
        ),
    ]
    names = np.array(["a", "b", "c", "d"])
    fields = np.array(
        [(*row, f"k{kind}") for row, kind in zip(X, y, strict=True)],
        dtype=[("a", "f8"), ("b", "f4"), ("c", "f8"), ("d", "f8"), ("y", "U3")],
    )
    svm = "".join(
        f"{kind} " + " ".join(f"{i + 1}:{value:g}" for i, value in enumerate(row)) + "\n"
        for row, kind in zip(X, y, strict=True)
    )
    found += [
        Original("npz", ".npz", "y", saved(np.savez, X=X, y=y)),
        Original(
            "npz",
            ".npz",
            "y",
            saved(np.savez_compressed, X=X, y=y.astype(str), feature_names=names),
        ),
        Original("npy", ".npy", "x3", saved(np.save, np.column_stack([X[:, :3], y]))),
        Original("npy", ".npy", "y", saved(np.save, fields)),
        Original("svmlight", ".svmlight", "y", svm.encode()),
        Original("xlsx", ".xlsx", "species", saved(lambda f: frame.to_excel(f, index=False))),
    ]
    return found


def _models() -> list[Original]:
    table = make_table(flowers(), "species", name="flowers.csv")
    X, y = numbers()
    models = [
        fit_model(table, "euclidean", None, Preparation()),
        fit_model(table, "lmnn", LMNN(), Preparation(scale="standard"), k=3),
        fit_model(table, "lmnn", LMNN(), Preparation(scale="minmax", pca=2)),
        LMNN().fit(X, y),
        make_pipeline(StandardScaler(), LMNN()).fit(X, y),
    ]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            path = Path(folder) / "a.model"
            save_model(path, model)
            found.append(Original("model", ".model", "", path.read_bytes()))
    return found


@cache
def originals() -> tuple[Original, ...]:
    """All of them."""
    return (*_tables(), *_models())
