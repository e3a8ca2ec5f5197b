"""Examples of the gallery: the quick ones run; `make docs` runs all of them."""

import runpy
from pathlib import Path

import pytest

pyplot = pytest.importorskip("matplotlib.pyplot")
GALLERY = Path(__file__).parents[2] / "docs" / "gallery"


@pytest.mark.extras
@pytest.mark.parametrize("name", ["02_rounds", "05_suspicious_labels", "12_certificate"])
def test_quick_examples_run(name, monkeypatch, capsys):
    shown = []
    monkeypatch.setattr(pyplot, "show", lambda: shown.append(pyplot.get_fignums()))
    runpy.run_path(str(GALLERY / f"plot_{name}.py"))
    pyplot.close("all")
    assert all(shown) and shown, "every picture is shown"
    assert capsys.readouterr().out


def test_examples_begin_with_a_title_and_a_sentence():
    paths = sorted(GALLERY.glob("*.py"))
    assert len(paths) >= 13
    for path in paths:
        head = path.read_text(encoding="utf-8").split('"""')[1].strip().split("\n")
        assert set(head[1]) == {"="} and len(head[1]) == len(head[0]), path
        assert head[3], path


def test_readme_is_short():
    readme = (GALLERY.parents[1] / "README.md").read_text(encoding="utf-8")
    assert readme.count("\n") <= 120
