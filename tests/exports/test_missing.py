"""Exports without the packages they need; these tests need none of them."""

import sys

import pytest

from lnml import LMNN, exports
from lnml.cli import main
from lnml.datasets import load_dataset
from lnml.errors import InputError
from lnml.models import save_model

MISSING = {
    "to_onnx": ("onnx", "onnx"),
    "register_onnx_converters": ("skl2onnx", "onnx"),
    "to_faiss": ("faiss", "faiss"),
    "to_torch": ("torch", "torch"),
    "to_sentence_transformers": ("sentence_transformers", "sentence-transformers"),
}


@pytest.mark.parametrize("name", MISSING)
def test_import_error_names_the_extra(name, monkeypatch):
    module, extra = MISSING[name]
    if name == "to_sentence_transformers":
        pytest.importorskip("torch", reason="it is asked for first")
    monkeypatch.setitem(sys.modules, module, None)
    for loaded in [each for each in sys.modules if each.startswith(f"{module}.")]:
        monkeypatch.delitem(sys.modules, loaded)
    iris = load_dataset("iris")
    model = () if name.startswith("register") else (LMNN().fit(iris.data, iris.target),)
    with pytest.raises(ImportError, match=rf'pip install "lnml\[{extra}\]"') as caught:
        getattr(exports, name)(*model)
    assert isinstance(caught.value, InputError)


def test_command_names_the_extra(tmp_path, monkeypatch, capsys):
    iris = load_dataset("iris")
    save_model(tmp_path / "iris.model", LMNN().fit(iris.data, iris.target))
    monkeypatch.setitem(sys.modules, "faiss", None)
    command = ["export", str(tmp_path / "iris.model"), "--to", "faiss"]
    assert main([*command, "-o", str(tmp_path / "iris.faiss")]) == 2
    assert 'pip install "lnml[faiss]"' in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["iris.model"]
