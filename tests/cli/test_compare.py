"""``lnml compare`` as a user runs it."""

import json
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from command_line import finished_folds
from interruptions import interrupt_after

from lnml.cli import main
from lnml.learning.votes import CANDIDATES

QUICK = ["--methods", "euclidean,lmnn", "--folds", "3"]


def test_compare_writes_report_and_results(iris, capsys):
    assert main(["compare", "iris.csv", "--label", "species", *QUICK]) == 0
    shown = capsys.readouterr().out
    assert "Euclidean" in shown and "report: iris.html" in shown
    stored = json.loads((iris / "iris.json").read_text())
    assert stored["provenance"]["settings"]["folds"] == 3
    results = stored["comparison"]["results"]
    assert len(results) == 6
    page = (iris / "iris.html").read_text()
    assert "Which distance is best" in page and "<svg" in page
    assert sorted(path.name for path in iris.iterdir()) == ["iris.csv", "iris.html", "iris.json"]


def test_report_warns_of_a_column_that_knows_the_class(iris, capsys):
    frame = pd.read_csv("iris.csv")
    frame.assign(specimen=range(2000, 2300, 2)).to_csv("iris.csv", index=False)
    assert main(["compare", "iris.csv", "--label", "species", *QUICK]) == 0
    said = "column &#39;specimen&#39; alone predicts the class of 100 % of the rows"
    assert "lnml: note: column 'specimen' alone predicts" in capsys.readouterr().err
    page = (iris / "iris.html").read_text()
    assert page.index("verdict") < page.index(said) < page.index("</header>")
    frame.assign(specimen=range(1000, 1150)).to_csv("iris.csv", index=False)
    assert main(["compare", "iris.csv", "--label", "species", *QUICK, "-f"]) == 0
    assert "column 'specimen' counts the rows: left out" in capsys.readouterr().err


def test_small_classes_take_part(iris, capsys):
    """A class of three rows gives three folds, and one of a single row is only learned from."""
    frame = pd.read_csv("iris.csv")
    frame.loc[[0, 1, 2, 3], "species"] = ["one", "three", "three", "three"]
    frame.to_csv("iris.csv", index=False)
    command = ["compare", "iris.csv", "-l", "species", "-m", "euclidean,lmnn", "-f"]
    assert main(command) == 0
    err = capsys.readouterr().err
    notes = (
        "class 'one' of one row: used in training only, never tested",
        "3 folds instead of 10, because the smallest class ('three') has 3 rows",
    )
    page = (iris / "iris.html").read_text()
    assert all(note in err for note in notes)
    assert all(note.replace("'", "&#39;") in page for note in notes)
    stored = json.loads((iris / "iris.json").read_text())
    assert stored["provenance"]["settings"]["folds"] == 3
    tested = [row for r in stored["comparison"]["results"] for row in r["test"]]
    assert sorted(tested) == sorted([*range(1, 150)] * 2)
    assert main([*command, "--drop-class", "one", "--drop-class", "three"]) == 0
    assert "class 'three': 3 rows left out" in capsys.readouterr().err
    stored = json.loads((iris / "iris.json").read_text())
    assert stored["provenance"]["settings"]["folds"] == 10
    assert stored["provenance"]["settings"]["dropped classes"] == "one, three"
    assert sum(stored["comparison"]["data"]["class_sizes"].values()) == 146


def test_compare_resumes(iris, capsys):
    arguments = ["compare", "iris.csv", "-l", "species", *QUICK, "--resume", "work", "-q"]
    assert main(arguments) == 0
    folds = {path: path.stat().st_mtime_ns for path in (iris / "work").glob("fold*.json")}
    assert len(folds) == 6
    assert main([*arguments, "--force"]) == 0
    assert folds == {path: path.stat().st_mtime_ns for path in (iris / "work").glob("fold*.json")}
    assert main([*arguments, "--force", "--seed", "5"]) == 2
    assert "seed = 0, but you asked for 5" in capsys.readouterr().err
    assert main([*arguments, "--force", "--k", "auto"]) == 2
    assert "k = 1, but you asked for 'auto'" in capsys.readouterr().err


def test_pictures_can_be_left_out(iris, monkeypatch):
    def fail(*arguments, **options):
        raise AssertionError("no fit for pictures was wanted")

    arguments = ["compare", "iris.csv", "-l", "species", *QUICK, "-q", "-f", "--resume", "work"]
    with monkeypatch.context() as patch:
        patch.setattr("lnml.cli.work.portray", fail)
        assert main([*arguments, "--no-pictures"]) == 0
    without = (iris / "iris.html").read_text()
    assert main(arguments) == 0
    suspects = 'data-file="suspicious-rows"'
    assert suspects not in without
    assert suspects in (iris / "iris.html").read_text()


def test_pictures_take_no_longer_than_the_comparison(iris, monkeypatch):
    from lnml.cli import work

    limits = []
    portray = work.portray
    monkeypatch.setattr(
        work, "portray", lambda *a, seconds, **o: (limits.append(seconds), portray(*a, **o))[1]
    )
    arguments = ["compare", "iris.csv", "-l", "species", *QUICK, "-q", "-f"]
    for least in (0.0, 1e6):
        monkeypatch.setattr(work, "PICTURE_SECONDS", least)
        assert main(arguments) == 0
        results = json.loads((iris / "iris.json").read_text())["comparison"]["results"]
        assert limits[-1] == max(least, sum(result["seconds"] for result in results))


@pytest.mark.parametrize("content", ["{", '{"method": "LMNN"}'])
def test_a_damaged_fold_is_named_before_the_work(iris, capsys, content):
    arguments = ["compare", "iris.csv", "-l", "species", *QUICK, "--resume", "work", "-q", "-f"]
    assert main(arguments) == 0
    (iris / "work" / "fold01-lmnn.json").write_text(content)
    (iris / "work" / "fold02-lmnn.json").unlink()
    assert main(arguments) == 2
    assert "fold01-lmnn.json is damaged" in capsys.readouterr().err
    assert not (iris / "work" / "fold02-lmnn.json").exists()
    (iris / "work" / "fold01-lmnn.json").unlink()
    assert main(arguments) == 0


def test_folds_of_other_rows_are_refused(iris, capsys):
    arguments = ["compare", "iris.csv", "-l", "species", *QUICK, "--resume", "work", "-q", "-f"]
    assert main(arguments) == 0
    path = iris / "work" / "fold01-lmnn.json"
    stored = json.loads(path.read_text())
    path.write_text(json.dumps({**stored, "test": list(range(50))}))
    assert main(arguments) == 2
    assert "fold 1 of LMNN" in capsys.readouterr().err


def test_an_interrupted_comparison_says_what_is_kept(iris, monkeypatch, capsys):
    arguments = ["compare", "iris.csv", "-l", "species", *QUICK, "-j", "1"]
    interrupt_after(monkeypatch, 2)
    assert main([*arguments, "--resume", "work"]) == 130
    assert capsys.readouterr().err == (
        "lnml: interrupted, no result was written; 2 finished fits are kept in work: run the same "
        "command again to go on\n"
    )
    interrupt_after(monkeypatch, 2)
    assert main(arguments) == 130
    assert capsys.readouterr().err == "lnml: interrupted, no result was written\n"


def test_compare_chooses_k_and_resumes(iris, capsys):
    arguments = ["compare", "iris.csv", "-l", "species", *QUICK, "--k", "auto", "--resume", "work"]
    assert main(arguments) == 0
    assert "k of the votes: Euclidean " in capsys.readouterr().out
    stored = json.loads((iris / "iris.json").read_text())
    used = [result["k"] for result in stored["comparison"]["results"]]
    assert len(used) == 6 and set(used) <= set(CANDIDATES)
    assert stored["provenance"]["settings"]["k"] == "auto"
    folds = finished_folds()
    assert main([*arguments, "--force", "-q"]) == 0
    assert finished_folds() == folds
    again = json.loads((iris / "iris.json").read_text())
    assert again["comparison"] == stored["comparison"]


def test_references_have_a_table_of_their_own(iris, capsys, monkeypatch):
    monkeypatch.setattr("lnml.estimators.classifiers.TREES", 5)
    monkeypatch.setattr("lnml.estimators.classifiers.MOST_ITERATIONS", 5)
    arguments = ["compare", "iris.csv", "-l", "species", *QUICK, "--references", "-j", "1"]
    assert main(arguments) == 0
    first, second = capsys.readouterr().out.split("\n\n")[:2]
    names = ["SVM (RBF)", "Random forest", "Gradient boosting"]
    assert not any(name in first for name in names)
    assert all(name in second for name in ("for reference: no distance", *names))
    results = json.loads((iris / "iris.json").read_text())["comparison"]["results"]
    assert {r["method"] for r in results if r["classifier"]} == set(names)
    assert all((r["k"] is None) == r["classifier"] for r in results)
    page = (iris / "iris.html").read_text()
    assert page.count("For reference: no distance") == 2


@pytest.mark.parametrize("more", [[], ["--pca", "2"]], ids=["columns", "components"])
def test_euclid_is_compared_on_raw_and_on_standardised_columns(iris, monkeypatch, more):
    monkeypatch.setattr("lnml.registry.PAPER_METHODS", ("euclidean",))
    monkeypatch.setattr("lnml.registry.DEFAULT_METHOD", "euclidean")
    for scale, names in (
        ("none", ["Euclidean", "Euclidean (scaled)"]),
        ("standard", ["Euclidean"]),
    ):
        arguments = ["compare", "iris.csv", "-l", "species", "--folds", "3", "-f", "-q"]
        assert main([*arguments, "--scale", scale, *more]) == 0
        results = json.loads((iris / "iris.json").read_text())["comparison"]["results"]
        assert list(dict.fromkeys(r["method"] for r in results)) == names
        if scale == "none":
            scaled = [r["correct"] for r in results if r["method"] == names[1]]
            raw = [r["correct"] for r in results if r["method"] == names[0]]
    assert raw != scaled
    assert [r["correct"] for r in results] == scaled


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--methods", "lmn"], "lmnn"),
        (["--drop-class", "vesicolor"], "did you mean 'versicolor'?"),
        (["--drop-class", "virginica", "--drop-class", "setosa"], "one class only ('versicolor')"),
        (["--k", "140"], "--k 140 is more"),
        (["--k", "some"], "(1, 2, ...) or auto; got 'some'"),
        (["--methods", ""], "--methods '' names no method"),
        (["--methods", " , "], "names no method"),
        (["--methods", "svm,forest"], "svm, forest: no distance to compare"),
        (["--label", "kind"], "kind"),
        (["--scale", "log"], "log"),
        (["-o", "nowhere/x.html"], "nowhere"),
        (["-o", "iris.csv", "-f"], "iris.csv is read, and would be lost"),
        (["-o", "x.json"], "write -o x.html"),
        (["-o", "x.JSON", "-f"], "write -o x.html"),
        (["--resume", "iris.csv/work"], "cannot be made: Not a directory"),
        (["--device", "qpu"], "no device" if find_spec("torch") else "needs torch"),
    ],
)
def test_mistakes_get_one_line(iris, capsys, more, said):
    assert main(["compare", "iris.csv", "--label", "species", *QUICK, *more]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("lnml: ") and said in lines[0]
    assert sorted(path.name for path in iris.iterdir()) == ["iris.csv"]


def test_compare_on_a_device(iris, capsys):
    pytest.importorskip("torch")
    results = []
    for device in ("cpu", "torch:cpu"):
        arguments = ["compare", "iris.csv", "-l", "species", *QUICK, "-q", "--device", device, "-f"]
        assert main(arguments) == 0
        stored = json.loads((iris / "iris.json").read_text())
        assert stored["provenance"]["settings"]["device"] == (None if device == "cpu" else device)
        results.append([(r["method"], r["correct"]) for r in stored["comparison"]["results"]])
    assert results[0] == results[1]


def test_two_rows_are_too_few(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"a": [1.0, 2.0], "kind": ["x", "y"]}).to_csv("two.csv", index=False)
    assert main(["compare", "two.csv", "--label", "kind"]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_categories_and_missing_values(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    kind = np.repeat(["x", "y"], 30)
    frame = pd.DataFrame(
        {
            "size": rng.standard_normal(60) + 4 * (kind == "y"),
            "colour": rng.choice(["red", "blue"], 60),
            "kind": kind,
        }
    )
    frame.loc[::7, "size"] = np.nan
    frame.loc[::11, "colour"] = None
    frame.to_parquet("mixed.parquet")
    assert main(["compare", "mixed.parquet", "--label", "kind", *QUICK, "--scale", "standard"]) == 0
    assert "report: mixed.html" in capsys.readouterr().out


def test_an_output_that_appears_meanwhile_stays(iris, monkeypatch, capsys):
    from lnml.cli import work

    compare_table = work.compare_table

    def slow(*arguments, **options):
        (iris / "iris.html").write_text("of another run")
        return compare_table(*arguments, **options)

    monkeypatch.setattr(work, "compare_table", slow)
    arguments = ["compare", "iris.csv", "-l", "species", "-m", "euclidean", "-j", "1"]
    assert main(arguments) == 2
    assert "iris.html appeared while this command ran" in capsys.readouterr().err
    assert (iris / "iris.html").read_text() == "of another run"
    assert not (iris / "iris.json").exists()
    assert main([*arguments, "--force"]) == 0


def test_compare_by_a_score_of_retrieval(iris, capsys):
    command = ["compare", "iris.csv", "-l", "species", *QUICK, "--no-pictures"]
    assert main([*command, "--score", "MAP@R"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("| MAP@R ")
    assert "Differences of MAP@R are not tested" in shown and "Accuracy:" in shown
    stored = json.loads((iris / "iris.json").read_text())
    assert stored["provenance"]["settings"]["score"] == "map@r"
    means = {}
    for result in stored["comparison"]["results"]:
        means.setdefault(result["method"], []).extend(result["values"])
    page = (iris / "iris.html").read_text()
    for method, values in means.items():
        assert len(values) == 150
        text = f"{np.mean(values):.3f}"
        assert any(method in line and text in line for line in shown.splitlines())
        assert f'<th scope="row">{method}</th><td>{text}</td>' in page
    best = max(means, key=lambda method: np.mean(means[method]))
    assert f"{best} has the best MAP@R on iris" in page and "<h2>MAP@R</h2>" in page
    assert main([*command, "--score", "recall@5", "-f", "-q"]) == 0
    assert main([*command, "--score", "f1", "-f"]) == 2
    assert "--score: there is no score 'f1'" in capsys.readouterr().err
    assert main([*command, "--score", "recall@500", "-f"]) == 2
    assert "recall@500 looks at more than the 100 rows" in capsys.readouterr().err


def test_slow_methods_learn_from_a_sample_if_told(iris, capsys):
    """The plan is said before and in the report, stored with results, and never mixed."""
    command = ["compare", "iris.csv", "-l", "species", "-m", "euclidean,lmnn,nca", "--no-pictures"]
    command += ["--resume", "work", "-f", "-j", "1"]
    assert main([*command, "--learn-from", "100"]) == 0
    note = "NCA learns from 100 of the 135 training rows of a fold"
    assert f"lnml: note: {note}" in capsys.readouterr().err
    assert note in (iris / "iris.html").read_text()
    stored = json.loads((iris / "iris.json").read_text())
    plan = "slow methods learn from at most 100 rows"
    assert stored["provenance"]["settings"]["plan"] == plan
    learned = {r["method"]: r["n_learned"] for r in stored["comparison"]["results"]}
    assert learned == {"Euclidean": None, "LMNN": 135, "NCA": 100}
    assert main(command) == 2
    assert f"holds results for plan = {plan!r}, but you asked for None" in capsys.readouterr().err


def test_small_tables_have_no_plan(iris, capsys):
    assert main(["compare", "iris.csv", "-l", "species", *QUICK, "--no-pictures"]) == 0
    assert "learn" not in capsys.readouterr().err
    stored = json.loads((iris / "iris.json").read_text())
    assert stored["provenance"]["settings"]["plan"] is None
    for wrong in ("0", "99", "-5", "some", "1e4", ""):
        assert main(["compare", "iris.csv", "-l", "species", "-f", "--learn-from", wrong]) == 2
        assert "--learn-from must be auto, all, or a number" in capsys.readouterr().err


def test_large_tables_are_told_how_long_it_takes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lnml.cli.work.LARGE", 100)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    frame.assign(kind=np.arange(200) % 2).to_csv("t.csv", index=False)
    command = ["compare", "t.csv", "-l", "kind", *QUICK, "--no-pictures"]
    assert main([*command, "-q"]) == 0
    assert "this will take" not in capsys.readouterr().err
    command += ["-f", "--resume", "work"]
    assert main(command) == 0
    shown = capsys.readouterr().err
    assert "lnml: note: this will take about" in shown and "LMNN" in shown
    # Nothing is left to do.
    assert main(command) == 0
    assert "this will take" not in capsys.readouterr().err
