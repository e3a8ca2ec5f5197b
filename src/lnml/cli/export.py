"""``lnml export``: a learned metric for other tools."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from lnml.cli.app import show_notes, show_warnings
from lnml.cli.options import Force, ModelFile, Quiet
from lnml.errors import InputError, require, unknown_name
from lnml.files import atomic_output, check_output

EXAMPLES = (
    "lnml export iris.model --to onnx -o iris.onnx",
    "lnml export iris.model --to onnx --labels -o iris.onnx   (with the vote of training rows)",
    "lnml export iris.model --to faiss -o iris.faiss   (with the training rows)",
    "lnml export iris.model --to torch -o iris.pt   (weight and bias of a torch.nn.Linear)",
    "lnml export texts.model --to sentence-transformers -o dense   (a folder)",
)
FOLDER = "sentence-transformers"


def _write_onnx(model: Any, path: Path, dtype: str, labels: bool) -> None:
    from lnml.exports import to_onnx

    path.write_bytes(to_onnx(model, dtype=dtype, labels=labels).SerializeToString())


def _write_faiss(model: Any, path: Path, dtype: str, labels: bool) -> None:
    from lnml.exports import to_faiss

    require("faiss", "faiss-cpu", extra="faiss").write_index(to_faiss(model), str(path))


def _write_torch(model: Any, path: Path, dtype: str, labels: bool) -> None:
    from lnml.exports import to_torch

    torch = require("torch", extra="torch")
    torch.save(to_torch(model, dtype=getattr(torch, dtype)).state_dict(), path)


def _write_dense(model: Any, path: Path, dtype: str, labels: bool) -> None:
    from lnml.exports import to_sentence_transformers

    to_sentence_transformers(model).save(str(path))


WRITERS: dict[str, Callable[[Any, Path, str, bool], None]] = {
    "onnx": _write_onnx,
    "faiss": _write_faiss,
    "torch": _write_torch,
    FOLDER: _write_dense,
}
DTYPES = ("float32", "float64")
Dtype = Annotated[
    str,
    typer.Option(
        "--dtype",
        metavar="|".join(DTYPES),
        help="Type of the numbers; float64 is for onnx and torch alone.",
        autocompletion=lambda: list(DTYPES),
    ),
]
Labels = Annotated[
    bool,
    typer.Option(
        "--labels",
        help="Let the training rows vote inside the graph, which then holds them; onnx alone.",
    ),
]


def export(
    model: ModelFile,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="|".join(WRITERS),
            help="What to write; each needs the extra of its name, such as lnml\\[onnx].",
            autocompletion=lambda: list(WRITERS),
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help=f"File to write; a folder for {FOLDER}.",
            show_default=False,
        ),
    ],
    dtype: Dtype = DTYPES[0],
    labels: Labels = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write the metric of MODEL for ONNX, Faiss, torch or Sentence Transformers.

    What is written takes rows of numbers, in the order of the columns that a note names, and maps
    them so that their Euclidean distance is the learned distance. Missing values are not filled in.
    """
    _check_options(to, dtype, labels)
    if to == FOLDER:
        _check_folder(output, force)
    else:
        check_output(output, force=force, inputs=[model])
    from lnml.exports.affine import affine_map
    from lnml.models import Model, load_model

    fitted = load_model(model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        try:
            found = affine_map(fitted)
            if to == FOLDER:
                _write_folder(fitted, output)
            else:
                with atomic_output(output, replace=force) as temporary:
                    WRITERS[to](fitted, temporary, dtype, labels)
        except TypeError as error:
            raise InputError(f"{model} cannot be exported: {error}") from error
    show_warnings(caught)
    names = ", ".join(map(_shown, found.names)) or "as the metric was fitted"
    notes = [f"{output} takes {found.matrix.shape[1]} columns: {names}"]
    if to == "faiss" and not isinstance(fitted, Model):
        notes.append(f"{output} is empty, since {model} keeps no rows: add them with index.add")
    show_notes(notes, quiet=quiet)


def _shown(name: str) -> str:
    """Put a name into quotes if a reader of the list could mistake it."""
    return json.dumps(name, ensure_ascii=False) if set(name) & set(',"') else name


def _check_options(to: str, dtype: str, labels: bool) -> None:
    """Refuse options that do not go together."""
    if to not in WRITERS:
        raise unknown_name("format", to, WRITERS)
    if dtype not in DTYPES:
        raise unknown_name("type of numbers", dtype, DTYPES)
    if dtype != DTYPES[0] and to not in ("onnx", "torch"):
        raise InputError(f"{to} has float32 only: leave --dtype out")
    if labels and to != "onnx":
        raise InputError(f"--labels needs --to onnx: {to} has no votes")


def _check_folder(path: Path, force: bool) -> None:
    """Refuse a folder that could not be written, before any work is done for it."""
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file, and {FOLDER} needs a folder: choose another name")
    if path.is_dir() and any(path.iterdir()) and not force:
        raise InputError(
            f"the folder {path} is not empty: choose another name, or replace files with --force"
        )
    if not path.parent.is_dir():
        raise InputError(f"the folder {path.parent} does not exist: create it first")


def _write_folder(model: Any, path: Path) -> None:
    """Write a folder of files; other files in it stay."""
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".lnml-") as place:
            WRITERS[FOLDER](model, Path(place), DTYPES[0], False)
            path.mkdir(exist_ok=True)
            for file in Path(place).iterdir():
                os.replace(file, path / file.name)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error
