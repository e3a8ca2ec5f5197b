"""``lnml export`` as a user runs it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lnml import LMNN
from lnml.cli import main
from lnml.datasets import load_dataset
from lnml.models import load_model, save_model

IRIS = load_dataset("iris")


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(IRIS.data, columns=IRIS.feature_names).assign(species=IRIS.target)
    frame.to_csv("iris.csv", index=False)
    command = ["fit", "iris.csv", "-l", "species", "--scale", "standard", "-m", "lmnn"]
    assert main([*command, "-o", "iris.model", "-q"]) == 0
    return load_model("iris.model").transform(frame)


@pytest.mark.extras
def test_onnx(model, capsys):
    onnxruntime = pytest.importorskip("onnxruntime")
    assert main(["export", "iris.model", "--to", "onnx", "-o", "iris.onnx"]) == 0
    names = ", ".join(IRIS.feature_names)
    assert f"iris.onnx takes 4 columns: {names}" in capsys.readouterr().err
    session = onnxruntime.InferenceSession("iris.onnx", providers=["CPUExecutionProvider"])
    found = session.run(None, {"X": IRIS.data.astype(np.float32)})[0]
    np.testing.assert_allclose(found, model, atol=1e-5 * np.abs(model).max())


@pytest.mark.extras
def test_onnx_with_labels(model):
    """The graph votes as ``lnml neighbors`` does."""
    onnxruntime = pytest.importorskip("onnxruntime")
    command = ["export", "iris.model", "--to", "onnx", "--labels", "--dtype", "float64"]
    assert main([*command, "-o", "iris.onnx", "-q"]) == 0
    assert main(["neighbors", "iris.model", "iris.csv", "-o", "found.csv", "-q"]) == 0
    wanted = pd.read_csv("found.csv")
    session = onnxruntime.InferenceSession("iris.onnx", providers=["CPUExecutionProvider"])
    found = session.run(["neighbors", "label", "distances"], {"X": IRIS.data})
    np.testing.assert_array_equal(found[0].ravel(), wanted["row"])
    np.testing.assert_array_equal(found[1], wanted["predicted"][wanted["rank"] == 1])
    np.testing.assert_allclose(found[2].ravel(), wanted["distance"], atol=1e-9)


@pytest.mark.extras
def test_columns_far_from_zero(tmp_path, monkeypatch, capsys):
    pytest.importorskip("onnx")
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(IRIS.data + 1e7, columns=IRIS.feature_names).assign(kind=IRIS.target)
    frame.to_csv("far.csv", index=False)
    fit = ["fit", "far.csv", "-l", "kind", "--scale", "standard", "-m", "euclidean"]
    assert main([*fit, "-o", "far.model", "-q"]) == 0
    assert main(["export", "far.model", "--to", "onnx", "-o", "a.onnx", "-q"]) == 0
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "warning: float32 has seven digits" in told
    command = ["export", "far.model", "--to", "onnx", "--dtype", "float64"]
    assert main([*command, "-o", "b.onnx", "-q"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.extras
def test_faiss(model):
    faiss = pytest.importorskip("faiss")
    assert main(["export", "iris.model", "--to", "faiss", "-o", "iris.faiss", "-q"]) == 0
    squares, _ = faiss.read_index("iris.faiss").search(IRIS.data.astype(np.float32), 3)
    exact = np.sort(((model[:, None] - model) ** 2).sum(axis=2), axis=1)[:, :3]
    np.testing.assert_allclose(squares, exact, atol=1e-5 * model.var(axis=0).sum())


@pytest.mark.extras
def test_faiss_without_rows(tmp_path, capsys):
    faiss = pytest.importorskip("faiss")
    save_model(tmp_path / "a.model", LMNN().fit(IRIS.data, IRIS.target))
    out = tmp_path / "a.faiss"
    assert main(["export", str(tmp_path / "a.model"), "--to", "faiss", "-o", str(out)]) == 0
    assert "a.faiss is empty, since" in capsys.readouterr().err
    assert faiss.read_index(str(out)).ntotal == 0


@pytest.mark.extras
def test_torch(model):
    torch = pytest.importorskip("torch")
    assert main(["export", "iris.model", "--to", "torch", "-o", "iris.pt", "-q"]) == 0
    stored = torch.load("iris.pt", weights_only=True)
    layer = torch.nn.Linear(4, 4)
    layer.load_state_dict(stored)
    found = layer(torch.as_tensor(IRIS.data, dtype=torch.float32)).detach().numpy()
    np.testing.assert_allclose(found, model, atol=2e-5 * np.abs(model).max())


@pytest.mark.extras
def test_sentence_transformers(model, tmp_path, capsys):
    pytest.importorskip("sentence_transformers")
    from sentence_transformers.sentence_transformer.modules import Dense

    command = ["export", "iris.model", "--to", "sentence-transformers", "-o", "dense"]
    assert main(command) == 0
    weight = Dense.load("dense").linear.weight.detach().numpy()
    differences = (IRIS.data - IRIS.data[0]) @ weight.T
    np.testing.assert_allclose(differences, model - model[0], atol=1e-5 * np.abs(model).max())
    assert main(command) == 2
    assert "the folder dense is not empty" in capsys.readouterr().err
    (tmp_path / "dense" / "mine.txt").write_text("stays")
    assert main([*command, "-f", "-q"]) == 0
    assert (tmp_path / "dense" / "mine.txt").read_text() == "stays"
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"iris.csv", "iris.model", "dense"}


@pytest.mark.extras
def test_pipelines_from_python(tmp_path, capsys):
    torch = pytest.importorskip("torch")
    pipeline = make_pipeline(StandardScaler(), LMNN()).fit(IRIS.data, IRIS.target)
    save_model(tmp_path / "a.model", pipeline)
    out = tmp_path / "a.pt"
    assert main(["export", str(tmp_path / "a.model"), "--to", "torch", "-o", str(out)]) == 0
    assert "takes 4 columns: as the metric was fitted" in capsys.readouterr().err
    assert set(torch.load(out, weights_only=True)) == {"weight", "bias"}


@pytest.mark.extras
def test_names_with_commas(tmp_path, capsys):
    pytest.importorskip("torch")
    frame = pd.DataFrame(IRIS.data, columns=["a,b", 'say "c"', "d e", "f"])
    save_model(tmp_path / "a.model", LMNN(n_components=1).fit(frame, IRIS.target))
    command = ["export", str(tmp_path / "a.model"), "--to", "torch"]
    assert main([*command, "-o", str(tmp_path / "a.pt")]) == 0
    assert r'takes 4 columns: "a,b", "say \"c\"", d e, f' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--to", "onxx", "-o", "a.onnx"], "no format 'onxx' (did you mean 'onnx'?)"),
        (["--to", "onnx", "-o", "iris.model", "-f"], "iris.model is read, and would be lost"),
        (["--to", "onnx", "-o", "iris.csv"], "iris.csv exists already"),
        (["--to", "onnx", "-o", "no/a.onnx"], "the folder no does not exist"),
        (["--to", "onnx", "-o", "a", "--dtype", "float16"], "no type of numbers 'float16'"),
        (["--to", "faiss", "-o", "a", "--dtype", "float64"], "faiss has float32 only"),
        (["--to", "torch", "-o", "a.pt", "--labels"], "--labels needs --to onnx"),
        (["--to", "sentence-transformers", "-o", "iris.csv"], "needs a folder"),
        (["--to", "sentence-transformers", "-o", "no/a"], "the folder no does not exist"),
    ],
)
def test_mistakes(model, options, message, capsys):
    assert main(["export", "iris.model", *options]) == 2
    assert message in capsys.readouterr().err
