"""``--cluster``: the commands on the workers of a Dask cluster."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from interruptions import interrupt_after

from lnml.cli import cluster, main
from lnml.datasets import load_dataset
from lnml.models import clustered, load_model

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def address():
    """Two workers in this process, which are reached as those of other machines are."""
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        protocol="tcp://",
        dashboard_address=":0",
    ) as running:
        yield running.scheduler_address


def flowers():
    """Some rows of iris in random order, with a column of categories."""
    data = load_dataset("iris")
    frame = pd.DataFrame(data.data, columns=[str(name) for name in data.feature_names])
    rng = np.random.default_rng(0)
    frame["colour"] = rng.choice(["red", "blue"], len(frame))
    frame["species"] = data.target
    return frame.sample(60, random_state=0).reset_index(drop=True)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The rows in three files, and in one."""
    monkeypatch.chdir(tmp_path)
    write("rows", [flowers()[:17], flowers()[17:40], flowers()[40:]])
    flowers().to_parquet("all.parquet")
    return tmp_path


def write(name, frames):
    """Write frames to the files of a folder."""
    Path(name).mkdir()
    for number, frame in enumerate(frames):
        frame.to_parquet(f"{name}/part-{number}.parquet")


def fit(data, *more, label="species", method="euclidean", output="a.model"):
    """Run a quick fit; return its exit code."""
    return main(["fit", data, "-l", label, "-m", method, "-o", output, *more])


def fails(capsys, *arguments, **options):
    """Run a fit that must fail; return its one line, beside a note about the cluster."""
    capsys.readouterr()
    assert fit(*arguments, **options) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("lnml: ")
    assert len(lines) == 1, lines
    assert not Path("a.model").exists()
    return lines[0]


def same_metric(there, here):
    """Components may have other signs."""
    for first, second in (
        (there.components.T @ there.components, here.components.T @ here.components),
        (there.rows @ there.rows.T, here.rows @ here.rows.T),
    ):
        np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-4 * np.abs(second).max())


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("euclidean", ["--scale", "minmax"]),
        ("euclidean", ["--pca", "3", "--drop-class", "setosa", "--drop", "colour"]),
        ("euclidean-scaled", ["--pca", "0.9", "--drop", "colour"]),
        pytest.param("ln-lmnn", ["--k-max", "4", "--drop", "colour"], marks=pytest.mark.extras),
        pytest.param("nca", ["--drop", "colour"], marks=pytest.mark.extras),
        pytest.param("mcml", ["--scale", "standard"], marks=pytest.mark.extras),
    ],
)
def test_a_fit_is_the_one_of_one_machine(folder, address, method, more):
    assert fit("all.parquet", *more, method=method, output="here.model") == 0
    assert fit("rows", *more, "--cluster", address, method=method, output="there.model") == 0
    here, there = load_model("here.model"), load_model("there.model")
    same_metric(there, here)
    assert (there.classes, there.codes.tolist()) == (here.classes, here.codes.tolist())
    assert there.preparation.columns_ == here.preparation.columns_
    for name in ("medians_", "centers_", "spreads_"):
        learned = getattr(there.preparation, name)
        np.testing.assert_allclose(learned, getattr(here.preparation, name), rtol=1e-12)
    assert there.data["name"] == "rows" and there.data["files"] == "3"


def test_the_model_is_used_like_any_other(folder, address, capsys):
    scaled = ["--scale", "standard", "--drop", "colour"]
    assert fit("all.parquet", *scaled, "-q", method="lmnn", output="here.model") == 0
    assert fit("rows", *scaled, "--cluster", address, method="lmnn") == 0
    out, err = capsys.readouterr()
    same_metric(load_model("a.model"), load_model("here.model"))
    assert "a.model: lmnn, 60 rows, 3 classes, objective" in out
    assert f"note: {address}, 2 workers with 1 thread each; " in err
    flowers()[:5].to_csv("new.csv", index=False)
    assert main("neighbors a.model new.csv -k 2 -o n.csv -q".split()) == 0
    nearest = pd.read_csv("n.csv")
    assert nearest.loc[nearest["rank"] == 1, "row"].tolist() == list(range(5))
    assert main("transform a.model new.csv -o z.csv".split()) == 0
    assert main("info a.model --json".split()) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["training_rows"] == facts["kept_rows"] == 60
    assert main("info a.model --verify rows".split()) == 0
    assert "The proof holds" in capsys.readouterr().out
    for other in ("rows/part-0.parquet", "all.parquet"):
        assert main(["info", "a.model", "--verify", other]) == 2
        assert "is not the table that a.model was fitted on" in capsys.readouterr().err


def test_a_model_of_many_rows_keeps_a_sample(folder, address, capsys, monkeypatch):
    monkeypatch.setattr(clustered, "KEPT_ROWS", 24)
    assert fit("rows", "--cluster", address, "--k", "3") == 0
    assert "the model keeps 24 of the 60 rows" in capsys.readouterr().err
    model = load_model("a.model")
    assert model.class_sizes == flowers()["species"].value_counts().sort_index().to_dict()
    assert model.labels.tolist() == flowers()["species"][model.numbers].tolist()
    expected = model.transform(flowers().iloc[model.numbers])
    np.testing.assert_allclose(model.rows, expected)
    assert main("neighbors a.model all.parquet -o n.csv".split()) == 0
    assert "keeps 24 of its 60 training rows" in capsys.readouterr().err
    nearest = pd.read_csv("n.csv")
    found = nearest[nearest["distance"] == 0.0]
    assert found["row"].tolist() == found["query"].tolist() == model.numbers.tolist()
    assert fit("rows", "--cluster", address, "--k", "25", "-f") == 2
    assert "k must be from 1 to 24" in capsys.readouterr().err


def changed(**columns):
    """The second file of three with other columns."""
    return [flowers()[:20], flowers()[20:40].assign(**columns), flowers()[40:]]


BAD = {
    "other columns": (
        [flowers()[:20], flowers()[20:].rename(columns={"petal_width": "width"})],
        "part-1.parquet has other columns than rows2/part-0.parquet: it lacks 'petal_width' and "
        "it has 'width' beside",
    ),
    "missing": (
        changed(petal_width=[np.nan, *range(19)]),
        "'petal_width' has no value in 1 of 60 rows (the first is in rows2/part-1.parquet), and "
        "a cluster does not fill them in: fill them in, remove these rows, or leave the column "
        "out (--drop 'petal_width')",
    ),
    "infinite": (changed(petal_width=np.inf), "infinite, or whose square overflows, in 20 of 60"),
    "no value": ([flowers().assign(petal_width=None)], "'petal_width' has no value in any row"),
    "another type": (
        changed(petal_width="wide"),
        "part-1.parquet: column 'petal_width' holds text, but numbers in rows2/part-0.parquet",
    ),
    "labels of another type": (changed(species=True), "'species' holds booleans, but text"),
    "no label": (
        changed(species=["setosa", None] * 10),
        "part-1.parquet: 10 of 20 rows have no label in column 'species' (the first is row 1",
    ),
    "one class": ([flowers().assign(species="rose")], "one class only ('rose')"),
    "dates": (changed(day=pd.Timestamp(0)), "part-1.parquet has other columns"),
    "a date": ([flowers().assign(day=pd.Timestamp(0))], "'day' holds dates or times"),
    "a list": ([flowers().assign(a=[[1]] * 60)], "holds list<element: int64> values"),
    "numbers as text": ([flowers().assign(a=["1", "2"] * 30)], "--categories 'a'"),
    "many texts": (
        [pd.concat([flowers()] * 3).assign(a=[f"t{i % 120}" for i in range(180)])],
        "'a' holds more than 100 different texts",
    ),
    "no rows": ([flowers()[:0]], "rows2: no file has any row"),
    "no features": ([flowers()[["species"]]], "no feature column beside the labels"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_get_one_line(folder, address, capsys, case):
    frames, said = BAD[case]
    write("rows2", frames)
    assert said in fails(capsys, "rows2", "--cluster", address, "-q")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("empty", "the folder empty: there is no Parquet file"),
        ("rows/*.csv", "rows/*.csv matches no file"),
        ("nowhere", "nowhere does not exist"),
        ("all.csv", "all.csv: there is no Parquet file"),
        ("-", "standard input cannot be read by a cluster"),
        ("cut.parquet", "cut.parquet is not a Parquet file, or was cut off"),
    ],
)
def test_bad_files_get_one_line(folder, address, capsys, data, said):
    Path("empty").mkdir()
    Path("all.csv").write_text("a,species\n")
    content = Path("all.parquet").read_bytes()
    Path("cut.parquet").write_bytes(content[: len(content) // 2])
    assert said in fails(capsys, data, "--cluster", address, "-q")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--label", "kind"], "there is no column 'kind'"),
        (["--drop-class", "rose"], "there is no class 'rose'"),
        (["--method", "itml"], "itml cannot be fitted on a cluster"),
        (["--k", "auto"], "--k auto needs fits by inner folds"),
        (["--device", "cuda"], "--device is for fits in this process"),
        (["--delimiter", ";"], "--delimiter is for files of text"),
        (["--scale", "log"], "scale must be one of"),
        (["--cluster", "local:none"], "local:N needs a number"),
        (["--cluster", "somewhere"], "'somewhere' is no address"),
    ],
)
def test_bad_options_get_one_line(folder, address, capsys, more, said):
    assert said in fails(capsys, "rows", "--cluster", address, "-q", *more)


def test_a_folder_without_a_cluster(folder, capsys):
    assert "lnml fit --cluster reads folders of Parquet files" in fails(capsys, "rows")


def test_no_scheduler(folder, capsys, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1)
    said = fails(capsys, "rows", "--cluster", "tcp://127.0.0.1:9")
    assert said.startswith("lnml: no Dask scheduler answers at tcp://127.0.0.1:9 within 1 seconds")


def test_the_extra_is_missing(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert 'pip install "lnml[dask]"' in fails(capsys, "rows", "--cluster", "local:2")


def test_an_output_is_refused_before_any_work(folder, capsys, monkeypatch):
    monkeypatch.setattr(cluster, "_connect", None)
    Path("old.model").write_text("old")
    for output, said in (
        (["old.model"], "old.model exists already"),
        (["rows/part-0.parquet", "-f"], "rows/part-0.parquet is read, and would be lost"),
    ):
        assert fit("rows", "--cluster", "tcp://127.0.0.1:9", "-o", *output) == 2
        assert said in capsys.readouterr().err


def test_what_other_programs_leave_in_a_folder(folder, address, capsys):
    whole = flowers()
    Path("rows/_SUCCESS").touch()
    Path("rows/.part-9.parquet.crc").touch()
    Path("rows/notes.txt").touch()
    whole[:0].to_parquet("rows/part-3.parquet")
    # An index becomes a column of the file; whole numbers and categories may differ in type.
    shuffled = whole[40:].sample(frac=1, random_state=0)
    shuffled.assign(species=shuffled["species"].astype("category")).to_parquet(
        "rows/part-2.parquet"
    )
    whole[17:40].assign(petal_width=np.arange(23)).to_parquet("rows/part-1.parquet")
    Path("rows").rename("my [rows] 1")
    assert fit("my [rows] 1", "--cluster", address) == 0
    err = capsys.readouterr().err
    assert "the folder my [rows] 1: not read, because they are no Parquet files: notes.txt" in err
    assert "files without rows: my [rows] 1/part-3.parquet" in err
    model = load_model("a.model")
    assert [column.name for column in model.preparation.columns_] == list(whole.columns[:-1])
    assert len(model.rows) == 60 and model.data["files"] == "3"


def test_columns_that_number_rows_are_left_out(folder, address, capsys):
    whole = flowers().assign(number=range(60), name=[f"name {i}" for i in range(60)])
    write("rows2", [whole[:30], whole[30:].assign(restarts=range(30))])
    whole[:30].assign(restarts=range(30)).to_parquet("rows2/part-0.parquet")
    assert fit("rows2", "--cluster", address) == 0
    err = capsys.readouterr().err
    for name in ("number", "restarts"):
        assert f"column '{name}' counts the rows: left out" in err
    assert "column 'name' has a different text in every row" in err


QUICK = ["all.parquet", "-l", "species", "-m", "euclidean,lmnn", "--folds", "3", "--no-pictures"]


def judged(path):
    """What a comparison found, without times and memory."""
    found = json.loads(Path(path).read_text())["comparison"]["results"]
    return [{k: v for k, v in each.items() if k not in ("seconds", "peak_mb")} for each in found]


def test_a_comparison_is_the_one_of_one_machine(folder, address, capsys):
    assert main(["compare", *QUICK, "-j", "1", "-o", "here.html", "-q"]) == 0
    assert main(["compare", *QUICK, "--cluster", address, "-o", "there.html"]) == 0
    assert judged("here.json") == judged("there.json")
    assert f"note: {address}, 2 workers" in capsys.readouterr().err
    settings = json.loads(Path("there.json").read_text())["provenance"]["settings"]
    assert settings["cluster"] == f"{address}, 2 workers with 1 thread each"


def test_an_interrupted_comparison_goes_on(folder, address, capsys, monkeypatch):
    """Also on one machine, where the rest is done."""
    arguments = ["compare", *QUICK, "--resume", "work"]
    with monkeypatch.context() as patch:
        interrupt_after(patch, 2)
        assert main([*arguments, "--cluster", address, "-q"]) == 130
    assert "2 finished fits are kept in work" in capsys.readouterr().err
    kept = {path: path.stat().st_mtime_ns for path in Path("work").glob("fold*.json")}
    assert len(kept) == 2
    # The cluster works on, with this command and with others.
    assert main([*arguments, "--cluster", address, "-q"]) == 0
    now = {path: path.stat().st_mtime_ns for path in Path("work").glob("fold*.json")}
    assert len(now) == 6 and kept.items() <= now.items()
    assert main([*arguments, "-j", "1", "-f", "-q"]) == 0
    assert now == {path: path.stat().st_mtime_ns for path in Path("work").glob("fold*.json")}


def test_a_study_on_a_cluster(tmp_path, address, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lnml.study.problems.PAPER_METHODS", ("euclidean",))
    assert main("study --data iris -o here -j 1 -q".split()) == 0
    assert main(["study", "--data", "iris", "-o", "there", "--cluster", address]) == 0
    assert "2 workers" in capsys.readouterr().err
    found = [json.loads((tmp_path / name / "study.json").read_text()) for name in ("here", "there")]
    correct = [[r["correct"] for r in each["comparisons"][0]["results"]] for each in found]
    assert correct[0] == correct[1]
    assert main(["study", "--cluster", address, "-j", "2", "-o", "other"]) == 2
    assert "--jobs is for processes of this machine" in capsys.readouterr().err
