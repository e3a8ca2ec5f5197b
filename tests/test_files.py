"""Output files are there completely or not at all."""

import stat
from pathlib import Path

import pytest

from lnml.errors import InputError
from lnml.files import atomic_output, check_output


@pytest.mark.parametrize("problem", [RuntimeError, KeyboardInterrupt])
def test_nothing_is_left_behind(tmp_path: Path, problem: type[BaseException]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")
    with pytest.raises(problem), atomic_output(path) as temporary:
        temporary.write_text("half")
        assert temporary.suffix == ".csv"
        raise problem
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_replaces_with_usual_permissions(tmp_path: Path) -> None:
    path, other = tmp_path / "a.csv", tmp_path / "b.csv"
    other.write_text("usual")
    with atomic_output(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)


def test_check_output(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    assert check_output(path, force=False) == path
    path.write_text("old")
    assert check_output(path, force=True) == path
    with pytest.raises(InputError, match="--force"):
        check_output(path, force=False)
    with pytest.raises(InputError, match="is a folder"):
        check_output(tmp_path, force=True)
    with pytest.raises(InputError, match="does not exist"):
        check_output(tmp_path / "none" / "a.csv", force=True)


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_what_appeared_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    def refuse(*names: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    if not links:
        monkeypatch.setattr("os.link", refuse)
    path = tmp_path / "a.csv"
    with atomic_output(path, replace=False) as temporary:
        temporary.write_text("first")
    assert path.read_text() == "first"
    with (
        pytest.raises(InputError, match="appeared while this command ran"),
        atomic_output(path, replace=False) as temporary,
    ):
        temporary.write_text("second")
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_devices_are_no_outputs() -> None:
    with pytest.raises(InputError, match="no ordinary file"):
        check_output("/dev/null", force=True)
