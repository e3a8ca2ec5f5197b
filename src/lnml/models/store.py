"""Model files: arrays and one JSON text in a safetensors file; nothing in it can be run.

docs/cli.md describes the format and why a file from a stranger is safe to load.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from lnml.certificates import Certificate
from lnml.errors import InputError, require
from lnml.files import atomic_output
from lnml.models.fitted import check_storable, from_state
from lnml.models.model import Model, rows_that_overflow
from lnml.tables import Preparation
from lnml.tables.limits import labels_fit
from lnml.version import __version__

FORMAT = 1
HEADER, CHECKSUM = "lnml_model", "lnml_sha256"
# Parameters of estimators within estimators; ours need five.
DEEPEST = 50
_PREPARATION, _CERTIFICATE = "preparation.", "certificate."


def save_model(path: str | Path, model: Any, *, replace: bool = True) -> None:
    """Write a model to one file, completely or not at all.

    Parameters
    ----------
    path : str or Path
        Name of the file.
    model : Model, fitted estimator or pipeline
        What to write: what :func:`fit_model` returns, a fitted estimator of lnml, or a pipeline of
        scalers, PCA and such an estimator. Of an estimator, all is kept that ``transform`` needs,
        and its certificate; not what tells how the fit went, such as ``history_``, nor parameters
        that are functions.
    replace : bool, default=True
        Whether an older file is replaced, or this one refused.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from lnml import LMNN
    >>> from lnml.datasets import load_dataset
    >>> from lnml.models import load_model, save_model
    >>> wine = load_dataset("wine")
    >>> pipeline = make_pipeline(StandardScaler(), LMNN()).fit(wine.data, wine.target)
    >>> with TemporaryDirectory() as folder:
    ...     save_model(Path(folder) / "wine.model", pipeline)
    ...     loaded = load_model(Path(folder) / "wine.model")
    >>> bool((loaded.transform(wine.data) == pipeline.transform(wine.data)).all())
    True
    """
    if isinstance(model, Model):
        header, arrays = _model_state(model)
    else:
        header, arrays = check_storable(model)
        header |= {"format": FORMAT, "lnml": __version__}
    require("safetensors")
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    text = json.dumps(header, allow_nan=False)
    metadata = {HEADER: text, CHECKSUM: _checksum(text, arrays)}
    with atomic_output(path, replace=replace) as temporary:
        try:
            save_file(arrays, temporary, metadata)
        except SafetensorError as error:
            # It has its own name for a full disk.
            raise OSError(str(error)) from error


def _model_state(model: Model) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return what is stored of a model of a table: a dict that JSON can hold, and arrays."""
    state, prepared = model.preparation.get_state()
    header = {
        "format": FORMAT,
        "lnml": model.lnml_version,
        "created": model.created,
        "method": model.method,
        "estimator": model.estimator,
        "preparation": state,
        "classes": list(model.classes),
        "label": model.label,
        "data": dict(model.data),
        "fit": dict(model.fit),
        "k": model.k,
        "missing": list(model.missing),
        "class_rows": list(model.class_rows),
    }
    arrays = {
        "components": model.components,
        "rows": model.rows,
        "codes": model.codes,
        **{_PREPARATION + name: array for name, array in prepared.items()},
    }
    if model.numbers is not None:
        arrays["numbers"] = model.numbers
    if model.certificate is not None:
        header["certificate"], proof = model.certificate.get_state()
        arrays |= {_CERTIFICATE + name: array for name, array in proof.items()}
    return header, arrays


def load_model(path: str | Path) -> Any:
    """Read a model, and refuse a file that is not exactly what was written.

    Parameters
    ----------
    path : str or Path
        A file written by :func:`save_model`. It may come from a stranger: nothing in it is run.

    Returns
    -------
    model : Model, fitted estimator or pipeline
        As it was given to :func:`save_model`.

    Raises
    ------
    InputError
        If the file is not a model, was damaged, or needs another version of lnml.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from lnml import LMNN
    >>> from lnml.datasets import load_dataset
    >>> from lnml.models import load_model, save_model
    >>> iris = load_dataset("iris")
    >>> with TemporaryDirectory() as folder:
    ...     save_model(Path(folder) / "iris.model", LMNN().fit(iris.data, iris.target))
    ...     loaded = load_model(Path(folder) / "iris.model")
    >>> loaded.transform(iris.data).shape
    (150, 4)
    """
    header, arrays = _read_verified(Path(path))
    try:
        return from_state(header, arrays) if "kind" in header else _build(header, arrays)
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        _refuse_damaged(path, error)


def load_table_model(path: str | Path) -> Model:
    """Read a model of a table, as ``lnml fit`` writes it; see :func:`load_model`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from lnml.models import fit_model, load_table_model, save_model
    >>> from lnml.tables import Preparation, make_table
    >>> frame = pd.DataFrame({"size": [1, 2, 8, 9], "kind": list("aabb")})
    >>> model = fit_model(make_table(frame, "kind"), "euclidean", None, Preparation())
    >>> with TemporaryDirectory() as folder:
    ...     save_model(Path(folder) / "kinds.model", model)
    ...     loaded = load_table_model(Path(folder) / "kinds.model")
    >>> loaded.method, loaded.class_sizes
    ('euclidean', {'a': 2, 'b': 2})
    """
    model = load_model(path)
    if not isinstance(model, Model):
        raise InputError(
            f"{path} holds a {type(model).__name__} that was stored from Python, without the "
            f"columns of a table: use it there (lnml.models.load_model), or write a model with "
            f"lnml fit"
        )
    return model


def _read_verified(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return header and arrays of a file whose format is known and whose checksum is right."""
    text, checksum, arrays = _read_raw(path)
    try:
        header = json.loads(text, parse_constant=_no_constant)
        _demand_shallow_text(header)
        version = header["format"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        _refuse_damaged(path, error)
    if version != FORMAT:
        raise InputError(
            f"{path} has model format {version!r}, written by lnml {header.get('lnml', '?')}; "
            f"lnml {__version__} reads format {FORMAT}: install that version, or fit again"
        )
    if checksum != _checksum(text, arrays):
        raise InputError(
            f"{path} was changed after it was written (its checksum is wrong): get a new copy, or "
            f"fit again"
        )
    return header, arrays


def _read_raw(path: Path) -> tuple[str, str, dict[str, np.ndarray]]:
    require("safetensors")
    from safetensors import SafetensorError, safe_open

    try:
        if not path.is_file():
            raise InputError(
                f"{path} is a folder: name a model file"
                if path.is_dir()
                else f"{path} does not exist: check the name, or fit a model first"
            )
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if HEADER not in metadata:
                raise InputError(f"{path} is not an lnml model: write one with lnml fit")
            arrays = {name: _array(path, file, name) for name in file.keys()}
    except SafetensorError as error:
        raise InputError(
            f"{path} is not an lnml model, or was cut off or damaged: get a new copy, or fit again"
        ) from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    return metadata[HEADER], metadata.get(CHECKSUM, ""), arrays


def _array(path: Path, file: Any, name: str) -> np.ndarray:
    try:
        return file.get_tensor(name)
    except (TypeError, AttributeError) as error:
        # NumPy has no bfloat16 and no numbers of 8 bits; models hold neither.
        _refuse_damaged(path, error)


def _checksum(text: str, arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"\0{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        # Its bytes as they lie: a copy of a metric of thousands of columns takes much memory.
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _build(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Model:
    prepared = {name: _numbers(name, array) for name, array in _part(_PREPARATION, arrays).items()}
    preparation = Preparation.from_state(header["preparation"], prepared)
    components = _numbers("components", arrays["components"])
    rows = _numbers("rows", arrays["rows"])
    codes, classes = arrays["codes"], tuple(_texts("classes", header["classes"]))
    _demand(components.ndim == 2 and components.size > 0, "components")
    _demand(components.shape[1] == preparation.n_features_out, "components")
    _demand(rows.ndim == 2 and rows.shape[1] == components.shape[0] and len(rows) > 0, "rows")
    if rows_that_overflow(rows).size:
        raise ValueError("distances between its rows overflow")
    _demand(codes.dtype == np.int64 and codes.shape == (len(rows),), "codes")
    _demand(len(classes) > 0 and len(set(classes)) == len(classes), "classes")
    _demand(labels_fit(max(map(len, classes)), len(rows)), "classes")
    _demand(bool(codes.min() >= 0) and bool(codes.max() < len(classes)), "codes")
    data, fit = header["data"], header["fit"]
    _demand(isinstance(header["estimator"]["parameters"], dict), "estimator")
    _texts("names", [header["method"], header["label"], data["name"], data["fingerprint"]])
    _texts("estimator", [header["estimator"]["class"], header["created"], header["lnml"]])
    _demand(isinstance(fit["converged"], bool) and isinstance(fit["chosen"], dict), "fit")
    for name in ("objective", "gap", "n_iter", "seconds"):
        _demand(fit[name] is None or isinstance(fit[name], int | float), "fit")
    # Older files have no k, and no values that stand for missing ones.
    k = header.get("k")
    _demand(k is None or (type(k) is int and 1 <= k <= len(rows)), "k")
    return Model(
        method=header["method"],
        estimator=header["estimator"],
        preparation=preparation,
        components=components,
        rows=rows,
        classes=classes,
        codes=codes,
        label=header["label"],
        data=data,
        fit=fit,
        lnml_version=header["lnml"],
        created=header["created"],
        certificate=_certificate(header, arrays, components),
        k=k,
        missing=tuple(_texts("missing", header.get("missing", []))),
        **_sample(header, arrays, codes, len(classes)),
    )


def _sample(
    header: dict[str, Any], arrays: dict[str, np.ndarray], codes: np.ndarray, n_classes: int
) -> dict[str, Any]:
    """Return what a model says of the rows that its own are a sample of; most have all rows."""
    sizes, numbers = header.get("class_rows", []), arrays.get("numbers")
    _demand(isinstance(sizes, list) and bool(sizes) == (numbers is not None), "class_rows")
    if numbers is not None:
        _demand(all(type(size) is int for size in sizes), "class_rows")
        _demand(len(sizes) == n_classes, "class_rows")
        _demand(bool((np.bincount(codes, minlength=n_classes) <= sizes).all()), "class_rows")
        _demand(numbers.dtype == np.int64 and numbers.shape == codes.shape, "numbers")
        _demand(bool(0 <= numbers[0] and numbers[-1] < sum(sizes)), "numbers")
        _demand(bool((np.diff(numbers) > 0).all()), "numbers")
    return {"numbers": numbers, "class_rows": tuple(sizes)}


def _certificate(
    header: dict[str, Any], arrays: dict[str, np.ndarray], components: np.ndarray
) -> Certificate | None:
    """Return the proof; older files have none."""
    if "certificate" not in header:
        return None
    certificate = Certificate.from_state(header["certificate"], _part(_CERTIFICATE, arrays))
    _demand(np.array_equal(certificate.components, components), "certificate")
    return certificate


def _part(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays whose names begin with a prefix, without it."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def _numbers(name: str, array: np.ndarray) -> np.ndarray:
    _demand(array.dtype == np.float64 and bool(np.isfinite(array).all()), name)
    return array


def _texts(name: str, values: Any) -> list[str]:
    _demand(isinstance(values, list) and all(isinstance(value, str) for value in values), name)
    return values


def _demand_shallow_text(value: Any, depth: int = 0) -> None:
    """Refuse what could not be shown: halves of characters, and lists within lists without end."""
    _demand(depth <= DEEPEST, "nesting")
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, list | dict):
        for part in value:
            _demand_shallow_text(part, depth + 1)
        if isinstance(value, dict):
            _demand_shallow_text(list(value.values()), depth)


def _demand(condition: bool, name: str) -> None:
    if not condition:
        raise ValueError(f"{name} does not fit the rest")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _refuse_damaged(path: str | Path, error: Exception) -> NoReturn:
    raise InputError(
        f"{path} holds a damaged model ({error}): get a new copy, or fit again"
    ) from error
