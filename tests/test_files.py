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
