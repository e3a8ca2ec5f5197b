"""Model files: the same bits after a reload, and nothing but what was written is loaded."""

import dataclasses
import json
import resource
import signal
import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model_files import CHECKSUM, HEADER, checksum_of, metadata_of, rewritten
from safetensors.numpy import load, save, save_file

import lnml
from lnml import LMNN
from lnml.cli.methods import NAMES, make_estimator
from lnml.errors import InputError
from lnml.evaluation.peak import peak_memory
from lnml.learning.votes import cross_validated_votes
from lnml.models import Model, fit_model, load_model, save_model
from lnml.tables import Preparation, make_table

RNG = np.random.default_rng(0)
N = 48
FRAME = pd.DataFrame(
    {
        "x": RNG.normal(size=N) + np.arange(N) % 3,
        "z": np.where(np.arange(N) % 7 == 0, np.nan, RNG.normal(size=N)),
        "color": np.where(RNG.random(N) < 0.5, "red", "blue"),
        "y": np.array(["a", "b", "ü"])[np.arange(N) % 3],
    }
)
TABLE = make_table(FRAME, "y", name="toy.csv")
NEW = pd.DataFrame(
    {"color": ["red", None, "green"], "z": [0.5, np.nan, -1.0], "x": [1.0, 2.0, np.nan]}
)


def fitted(method: str = "euclidean", **preparation) -> Model:
    return fit_model(TABLE, method, make_estimator(method, {}, 0), Preparation(**preparation))


@pytest.mark.parametrize("method", NAMES)
def test_same_bits_after_reload(tmp_path: Path, method: str) -> None:
    model = fitted(method, scale="standard")
    save_model(tmp_path / "a.model", model)
    loaded = load_model(tmp_path / "a.model")
    for frame in (NEW, FRAME):
        assert loaded.transform(frame).tobytes() == model.transform(frame).tobytes()
    for mine, theirs in zip(model.neighbors(NEW, 3), loaded.neighbors(NEW, 3), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    for name in ("method", "estimator", "classes", "label", "data", "fit", "created"):
        assert getattr(loaded, name) == getattr(model, name)
    assert loaded.labels.tolist() == FRAME["y"].tolist()
    assert loaded.lnml_version == lnml.__version__
    assert loaded.data["fingerprint"] == TABLE.fingerprint


@pytest.mark.parametrize("preparation", [{"pca": 2}, {"pca": 0.8, "scale": "minmax"}])
def test_same_bits_with_principal_components(tmp_path: Path, preparation: dict) -> None:
    model = fitted("lmnn", **preparation)
    save_model(tmp_path / "a.model", model)
    assert (
        load_model(tmp_path / "a.model").transform(NEW).tobytes() == model.transform(NEW).tobytes()
    )


def test_transform_is_the_estimators() -> None:
    estimator = make_estimator("lmnn", {}, 0)
    model = fit_model(TABLE, "lmnn", estimator, Preparation())
    X = model.preparation.transform(NEW)
    np.testing.assert_allclose(model.transform(NEW), estimator.transform(X), rtol=1e-12)
    assert model.fit["gap"] == estimator.duality_gap_


def test_neighbors_against_all_distances() -> None:
    model = fitted("lmnn")
    Z, rows = model.transform(NEW), model.transform(FRAME)
    everything = np.sqrt(((Z[:, None] - rows[None]) ** 2).sum(axis=2))
    distances, nearest = model.neighbors(NEW, 4)
    np.testing.assert_allclose(distances, np.sort(everything, axis=1)[:, :4], rtol=1e-9)
    np.testing.assert_allclose(np.take_along_axis(everything, nearest, 1), distances, rtol=1e-9)
    for k in (0, N + 1):
        with pytest.raises(InputError, match=f"from 1 to {N}"):
            model.neighbors(NEW, k)


def test_vote() -> None:
    model = fitted()  # classes a, b, ü of the rows 0, 1, 2, 0, ...
    votes = model.vote(np.array([[0, 1, 3], [1, 0, 3], [2, 1, 0], [1, 0, 2], [4, 7, 0]]))
    assert votes.tolist() == ["a", "a", "ü", "b", "b"]


def test_older_file_survives_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.model"
    save_model(path, fitted())
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(InputError, match="No space left"):
        save_model(path, fitted("lmnn"))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="needs a limit of file sizes")
def test_a_disk_that_fills_up_while_it_is_written(tmp_path: Path) -> None:
    """A limit of the size of files stands for the disk; the older file stays."""
    path = tmp_path / "a.model"
    save_model(path, fitted())
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
    try:
        with pytest.raises(InputError, match=r"a\.model cannot be written: .*File too large"):
            save_model(path, fitted("lmnn"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs /proc")
def test_storing_copies_a_metric_once_at_most(tmp_path: Path) -> None:
    """Thousands of columns make a metric of hundreds of megabytes."""
    save_model(tmp_path / "a.model", fitted())
    model = dataclasses.replace(fitted(), components=np.eye(2000) + 0.0)
    with peak_memory() as peak:
        save_model(tmp_path / "wide.model", model)
    assert peak.megabytes is not None
    assert peak.megabytes * 1e6 < 1.5 * model.components.nbytes


def test_a_row_is_left_out_once() -> None:
    """Of three equal rows the others stay, in the table itself and among single rows."""
    frame = pd.DataFrame({"x": [0.0, 0.0, 0.0, 5.0, 6.0], "kind": ["a", "b", "a", "b", "b"]})
    model = fit_model(make_table(frame, "kind"), "euclidean", None, Preparation())
    assert model.neighbors(frame, 1, without_self=True)[1].ravel().tolist() == [1, 0, 0, 4, 3]
    single = frame.iloc[[1]]
    assert model.neighbors(single, 2, without_self=True)[1].tolist() == [[0, 2]]
    assert model.neighbors(single[["x"]], 2, without_self=True)[1].tolist() == [[1, 2]]


@pytest.mark.parametrize("method", ["lmnn", "euclidean"])
def test_rounding_does_not_hide_a_row(method: str) -> None:
    model = fitted(method)
    distances, _ = model.neighbors(TABLE.features.iloc[:7], 1)
    assert model.is_same(distances).all()


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("models") / "a.model"
    save_model(path, fitted(pca=2))
    return path.read_bytes()


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_byte_can_be_changed(tmp_path: Path, content: bytes, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(content) - 1))
    changed = bytearray(content)
    changed[place] ^= data.draw(st.integers(1, 255))
    path = tmp_path / "changed.model"
    path.write_bytes(changed)
    try:
        model = load_model(path)
    except InputError as error:
        assert "\n" not in str(error)
    else:  # white space and the order of entries in the file's own header mean nothing
        assert place < 8 + struct.unpack("<Q", content[:8])[0]
        original = tmp_path / "original.model"
        original.write_bytes(content)
        assert model.transform(NEW).tobytes() == load_model(original).transform(NEW).tobytes()


@given(length=st.integers(0, 100_000))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_cut_off_files_are_refused(tmp_path: Path, content: bytes, length: int) -> None:
    path = tmp_path / "cut.model"
    path.write_bytes(content[: length % len(content)])
    with pytest.raises(InputError):
        load_model(path)


def test_checksum_is_that_of_text_names_types_shapes_and_bytes(content: bytes) -> None:
    assert metadata_of(content)[CHECKSUM] == checksum_of(content)


OTHER_VIEWS = {
    "another shape": lambda codes: codes.reshape(N // 2, 2),
    "another type": lambda codes: codes.view(np.uint64),
}


@pytest.mark.parametrize("view", OTHER_VIEWS.values(), ids=OTHER_VIEWS)
def test_the_same_bytes_as_another_array_are_another_file(
    tmp_path: Path, content: bytes, view
) -> None:
    arrays = dict(load(content))
    changed = {**arrays, "codes": view(arrays["codes"])}
    assert changed["codes"].tobytes() == arrays["codes"].tobytes()
    path = tmp_path / "changed.model"
    path.write_bytes(save(changed, metadata_of(content)))
    with pytest.raises(InputError, match="its checksum is wrong"):
        load_model(path)


def put(part: str, **values):
    def change(header: dict, arrays: dict) -> None:
        {"header": header, "arrays": arrays}.get(part, header.get(part)).update(values)

    return change


HOSTILE = {
    "infinite components": put("arrays", components=np.full((2, 2), np.inf)),
    "rows that overflow": put("arrays", rows=np.full((N, 2), -1e200)),
    "components of another shape": put("arrays", components=np.eye(3)),
    "float32 components": put("arrays", components=np.eye(2, dtype=np.float32)),
    "rows of another shape": put("arrays", rows=np.zeros((N, 3))),
    "rows missing": lambda header, arrays: arrays.pop("rows"),
    "codes out of range": put("arrays", codes=np.full(N, 3)),
    "negative codes": put("arrays", codes=np.full(N, -1)),
    "codes as floats": put("arrays", codes=np.zeros(N)),
    "no rows": put("arrays", rows=np.zeros((0, 2)), codes=np.zeros(0, dtype=np.int64)),
    "classes twice": put("header", classes=["a", "a", "b"]),
    "classes without end": put("header", classes=["a" * 200_000, "b", "c"]),
    "classes as numbers": put("header", classes=[1, 2, 3]),
    "no preparation": put("header", preparation=None),
    "unknown scale": put("preparation", scale="log"),
    "columns as text": put("preparation", columns="xz"),
    "a column without a name": put("preparation", columns=[{}]),
    "fewer columns": put("preparation", columns=[{"name": "x"}]),
    "zero spread": put("arrays", **{"preparation.spreads": np.zeros(2)}),
    "fit as text": put("header", fit="good"),
    "gap as text": put("fit", gap="small"),
    "k as text": put("header", k="auto"),
    "k as a truth value": put("header", k=True),
    "k of no row": put("header", k=0),
    "k of more rows than there are": put("header", k=N + 1),
    "a number for missing values": put("header", missing=[-999]),
    "label as number": put("header", label=3),
    "certificate as text": put("header", certificate="proved"),
    "certificate without arrays": put("header", certificate={"method": "lmnn", "limit": None}),
    "parameters as text": lambda header, arrays: header["estimator"].update(parameters="k=3"),
    "half a character": put("header", label="\ud800"),
    "half a character in a name": put("fit", **{"\udfff": 1}),
    "lists without end": put("fit", chosen={"a": json.loads("[" * 400 + "]" * 400)}),
    "empty header": lambda header, arrays: header.clear(),
}


@pytest.mark.parametrize("dtype", ["BF16", "F8_E4M3", "F8_E5M2"])
def test_types_that_numpy_lacks_are_refused(tmp_path: Path, content: bytes, dtype: str) -> None:
    size = struct.unpack("<Q", content[:8])[0]
    entries = json.loads(content[8 : 8 + size])
    start, end = entries["components"]["data_offsets"]
    width = 2 if dtype == "BF16" else 1
    entries["components"].update(dtype=dtype, shape=[(end - start) // width])
    text = json.dumps(entries).encode()
    path = tmp_path / "a.model"
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + size :])
    # Where ml_dtypes is installed NumPy has some of them, and the checksum tells.
    with pytest.raises(InputError, match=r"damaged model|was changed after it was written"):
        load_model(path)


def test_k_is_stored_and_older_files_have_none(tmp_path: Path) -> None:
    path = tmp_path / "a.model"
    model = fit_model(TABLE, "euclidean", None, Preparation(), k=7)
    save_model(path, model)
    loaded = load_model(path)
    assert loaded.k == 7
    assert loaded.neighbors(NEW)[1].shape == (3, 7)
    path.write_bytes(rewritten(path.read_bytes(), lambda header, arrays: header.pop("k")))
    older = load_model(path)
    assert older.k is None
    assert older.neighbors(NEW)[1].shape == (3, 5)


def test_k_of_a_fit() -> None:
    class Knows(LMNN):
        def fit(self, X, y):
            fits.append(len(y))
            self.n_neighbors_ = 9
            return super().fit(X, y)

    fits: list[int] = []
    given = {k: fit_model(TABLE, "lmnn", Knows(), Preparation(), k=k).k for k in (None, "auto", 3)}
    assert given == {None: 9, "auto": 9, 3: 3}
    assert fits == [N] * 3
    model = fit_model(TABLE, "lmnn", LMNN(), Preparation(), k="auto", seed=2)
    X = Preparation().fit_transform(TABLE.features)
    expected = cross_validated_votes(lambda X, y: LMNN().fit(X, y), X, TABLE.labels, seed=2)
    assert model.k == expected
    for k in (0, N + 1):
        with pytest.raises(ValueError, match=f"from 1 to {N}"):
            fit_model(TABLE, "euclidean", None, Preparation(), k=k)


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_what_does_not_hang_together_is_refused(tmp_path: Path, content: bytes, change) -> None:
    path = tmp_path / "hostile.model"
    path.write_bytes(rewritten(content, lambda header, arrays: None))
    load_model(path)
    path.write_bytes(rewritten(content, change))
    with pytest.raises(InputError, match="damaged"):
        load_model(path)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "arrays",
    [{"components": 1e145 * np.eye(2)}, {"preparation.spreads": np.full(2, 1e-300)}],
    ids=["components", "spreads"],
)
def test_rows_that_overflow_are_refused(tmp_path: Path, content: bytes, arrays: dict) -> None:
    path = tmp_path / "hostile.model"
    path.write_bytes(rewritten(content, put("arrays", **arrays)))
    model = load_model(path)
    frame = pd.DataFrame({"x": [0.0, 1e12], "z": 0.0, "color": "red"})
    for ask in (model.transform, model.neighbors):
        with pytest.raises(InputError, match=r"row 1, counted from 0.*overflow"):
            ask(frame)


def test_a_metric_that_overflows_is_no_model() -> None:
    class Wild(LMNN):
        def fit(self, X, y):
            self.components_ = np.full((1, X.shape[1]), np.nan)
            return self

    with pytest.raises(InputError, match=r"row 0, counted from 0.*overflow"):
        fit_model(TABLE, "wild", Wild(), Preparation())


def test_later_format_names_the_version_to_install(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "later.model"
    path.write_bytes(rewritten(content, put("header", format=2, lnml="7.5.0")))
    with pytest.raises(InputError, match=r"written by lnml 7\.5\.0"):
        load_model(path)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "foreign.model"
    save_file({"weight": np.zeros(3)}, path)
    with pytest.raises(InputError, match="is not an lnml model"):
        load_model(path)
    for text in ("[" * 100_000, "{}", "not JSON", '{"format": NaN}'):
        save_file({"weight": np.zeros(3)}, path, {HEADER: text})
        with pytest.raises(InputError):
            load_model(path)
    pd.to_pickle({"a": 1}, path)
    with pytest.raises(InputError):
        load_model(path)
    with pytest.raises(InputError, match="folder"):
        load_model(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        load_model(tmp_path / "none.model")
