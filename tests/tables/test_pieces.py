"""Parquet files, row group by row group; no cluster is needed for this."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from lnml.errors import InputError
from lnml.tables import read_table
from lnml.tables.cluster_table import make_parts
from lnml.tables.parquet_files import common_columns, find_files, read_footers
from lnml.tables.pieces import all_joined, look_at, pieces_of, read_piece
from lnml.tables.summary import make_plan, read_whole, summarize

RNG = np.random.default_rng(5)


def rows(n=40):
    """Rows of two classes, with a column far from zero and one of categories."""
    kind = np.arange(n) % 2
    return pd.DataFrame(
        {
            "far": 1e8 + RNG.normal(size=n),
            "near": (RNG.normal(size=n) + kind).astype("float32"),
            "colour": RNG.choice(["red", "blue"], n),
            "kind": np.array(["a", "b"])[kind],
        }
    )


def looked_at(pattern, label="kind", categories=()):
    """Return plan, facts and columns of files, as a cluster finds them."""
    footers = [each for each in read_footers(find_files(pattern)[0]) if each.n_rows]
    columns = common_columns(footers, label, (), categories)
    plan = make_plan(columns, label, categories, (), ())
    parts = make_parts(footers, len(columns))
    return plan, [fact for part in parts for fact in look_at(part, plan)], columns


def summary_of(pattern, **options):
    plan, facts, columns = looked_at(pattern, **options)
    return summarize(facts, plan, columns, options.get("categories", ()))


@pytest.fixture
def frame(tmp_path, monkeypatch):
    """Rows in files of one, two and many row groups."""
    monkeypatch.chdir(tmp_path)
    frame = rows()
    for number, (start, stop, size) in enumerate([(0, 7, 100), (7, 20, 8), (20, 40, 3)]):
        frame[start:stop].to_parquet(f"{number}.parquet", row_group_size=size)
    frame.to_parquet("all.pq")
    return frame


def test_pieces_hold_all_rows_in_order(frame):
    footers = read_footers(find_files("*.parquet")[0])
    pieces = [piece for footer in footers for piece in pieces_of(footer)]
    assert [piece.n_rows for piece in pieces] == [7, 8, 5, 3, 3, 3, 3, 3, 3, 2]
    assert [piece.start for piece in pieces][:6] == [0, 0, 8, 0, 3, 6]
    plan, _, _ = looked_at("*.parquet")
    tables = [read_piece(piece, plan)[0] for piece in pieces]
    found = np.concatenate([table.features["far"] for table in tables])
    assert found.tolist() == frame["far"].tolist()


def test_small_row_groups_are_read_together(frame, monkeypatch):
    monkeypatch.setattr("lnml.tables.cluster_table.NUMBERS_AT_A_TIME", 40)
    footers = read_footers(find_files("*.parquet")[0])
    parts = make_parts(footers, 4)
    assert [[piece.n_rows for piece in part] for part in parts] == [
        [7],
        [8],
        [5, 3],
        [3, 3, 3],
        [3, 3, 2],
    ]


def test_the_summary_is_that_of_all_rows(frame):
    found, table = summary_of("*.parquet"), read_table("all.pq", "kind")
    scaler = StandardScaler().fit(table.features[["far", "near"]].astype("float64"))
    np.testing.assert_allclose(found.mean, scaler.mean_, rtol=1e-14)
    np.testing.assert_allclose(found.variance, scaler.var_, rtol=1e-7)
    assert found.classes[found.codes].tolist() == table.labels.tolist()
    assert found.categories[0].categories == ("blue", "red")
    assert found.lowest.tolist() == table.features[["far", "near"]].min().tolist()


def test_squares_far_from_zero_keep_their_digits():
    """The mean of squares minus the square of the mean would have no digit left."""
    values = 1e8 + RNG.normal(size=1000)
    parts = [values[:1], values[1:400], values[400:]]
    moments = [
        (len(p), np.array([p.mean()]), np.array([np.square(p - p.mean()).sum()])) for p in parts
    ]
    n, mean, squares = all_joined(moments)
    assert n == 1000 and mean[0] == pytest.approx(values.mean(), rel=1e-15)
    assert squares[0] / n == pytest.approx(np.var(values - 1e8), rel=1e-8)


def test_fingerprints_tell_rows_and_order(frame):
    whole = summary_of("*.parquet").fingerprint
    plan, _, _ = looked_at("*.parquet")
    files = find_files("*.parquet")[0]
    table, found = read_whole(files, plan, ["a", "b"])
    assert found == whole and table.labels.tolist() == frame["kind"].tolist()
    assert read_whole(files[::-1], plan, ["a", "b"])[1] != whole
    assert len(read_whole(files, plan, ["a"])[0].labels) == 20
    frame[:7].assign(near=0.0).to_parquet("0.parquet")
    assert summary_of("*.parquet").fingerprint != whole


def test_types_that_may_differ(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = rows().assign(kind=np.arange(40) % 2, colour=pd.Categorical(["1", "2"] * 20))
    second = first.assign(near=range(40), kind=first["kind"].astype(float), colour=["2", "3"] * 20)
    first.to_parquet("0.parquet")
    second.to_parquet("1.parquet")
    found = summary_of("*.parquet")
    assert found.classes.tolist() == ["0", "1"]
    # Declared as categories in one file, so digits are no numbers.
    assert found.categories[0].categories == ("1", "2", "3")


@pytest.mark.parametrize(
    ("sizes", "restarts", "left_out"),
    [((20, 20), False, True), ((20, 20), True, True), ((35, 5), True, False), ((40,), True, True)],
)
def test_columns_that_count_rows(tmp_path, monkeypatch, sizes, restarts, left_out):
    monkeypatch.chdir(tmp_path)
    start = 0
    for number, size in enumerate(sizes):
        counted = range(size) if restarts else range(start, start + size)
        rows(size).assign(n=counted).to_parquet(f"{number}.parquet", row_group_size=7)
        start += size
    assert ("n" not in summary_of("*.parquet").plan.numbers) == left_out


def test_files_are_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b.parquet", "a.PQ", "_meta.parquet", ".c.parquet", "notes.csv"):
        (tmp_path / name).touch()
    (tmp_path / "d.parquet").mkdir()
    (tmp_path / "d.parquet" / "e [1].parquet").touch()
    files, notes = find_files(tmp_path)
    assert [file.path for file in files] == [str(tmp_path / name) for name in ("a.PQ", "b.parquet")]
    assert len(notes) == 1 and "notes.csv" in notes[0]
    assert [file.name for file in find_files("**/*.parquet")[0]] == [
        "b.parquet",
        "d.parquet/e [1].parquet",
    ]
    assert [file.name for file in find_files("d.parquet/e [1].parquet")[0]] == [
        "d.parquet/e [1].parquet"
    ]
    assert [file.name for file in find_files("_meta.parquet")[0]] == ["_meta.parquet"]
    with pytest.raises(InputError, match="matches no file"):
        find_files("*.orc")


def test_a_file_that_is_not_there_for_a_worker(frame):
    file = find_files("0.parquet")[0][0]
    with pytest.raises(InputError, match=r"all workers must reach it as /nowhere/0.parquet"):
        read_footers([file._replace(path="/nowhere/0.parquet")])


def test_a_file_that_changes_meanwhile(frame):
    plan, facts, _ = looked_at("0.parquet")
    frame[:5].to_parquet("0.parquet")
    with pytest.raises(InputError, match=r"0.parquet changed while it was read"):
        read_piece(facts[0].piece, plan)
