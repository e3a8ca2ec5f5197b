"""The live line is for terminals only."""

import sys
from types import SimpleNamespace

import pytest

from lnml.cli.progress import live_line


def test_nothing_off_a_terminal(capsys: pytest.CaptureFixture) -> None:
    with live_line("fitting") as update:
        assert update is None
    assert capsys.readouterr() == ("", "")


def test_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    record = {"round": 2, "objective": 12.5, "gap": 4e-3, "seconds": 1.25}
    with live_line("fitting") as update:
        assert update is not None
        update(SimpleNamespace(record=record))
    out, err = capsys.readouterr()
    assert out == ""
    assert "fitting · round 2 · objective 12.5 · gap 4.0e-03 · 1.2 s" in err
    with live_line("fitting", quiet=True) as update:
        assert update is None
