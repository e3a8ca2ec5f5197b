"""The registry: one entry a learner, and learners of other packages by an entry point."""

import os
import subprocess
import sys
import zipfile
from importlib.metadata import EntryPoint

import pytest
from learners import METHODS
from toy_data import blobs

import lnml
from lnml import registry
from lnml.errors import InputError
from lnml.estimators.metric import MahalanobisMetric

MODULE = """
import numpy as np
from lnml.contract import MetricLearner, Solution, nearest_neighborhoods
from lnml.registry import Method


class ScaleProblem:
    fixed_row_sizes, cost_grows_with_distance = False, True

    def __init__(self, training):
        self.kernels, self.points = training.kernels, training.points

    def pair_costs(self, components, pairs):
        return self.kernels.distances(self.kernels.embed(self.points, components), pairs)

    def free_term(self, components):
        return 0.0

    def solve(self, targets, components, *, tol, state=None, monitor=None):
        found = components / self.points.data.std(axis=0)
        return Solution(found, float(self.pair_costs(found, targets).sum()))


class Scaled(MetricLearner):
    def metric_problem(self, training):
        return ScaleProblem(training)

    def default_targets(self, training, classes):
        return nearest_neighborhoods(training, np.eye(self.n_features_in_), 3)


METHOD = Method("outside", "Outside", "columns of unit variance", lambda seed: Scaled())
"""


@pytest.fixture
def package(tmp_path):
    """A package with a metric learner, installed by pip; the folder it is in."""
    info = "outside_learner-1.0.dist-info"
    wheel = tmp_path / "outside_learner-1.0-py3-none-any.whl"
    files = {
        "outside_learner.py": MODULE,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: outside-learner\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[lnml.methods]\noutside = outside_learner:METHOD\n",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in files))
    folder = tmp_path / "site"
    install = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target"]
    subprocess.run([sys.executable, *install, str(folder), str(wheel)], check=True)
    return folder


def run_lnml(package, *arguments, cwd):
    """Run the command where the package is installed."""
    path = os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "lnml", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "300"},
        capture_output=True,
        text=True,
    )


@pytest.mark.extras
def test_a_learner_from_outside_is_compared_in_worker_processes(package, tmp_path):
    pytest.importorskip("typer")
    X, y = blobs(0, [30, 30], 3)
    rows = "\n".join(f"{a},{1000 * b},{c},k{label}" for (a, b, c), label in zip(X, y, strict=True))
    (tmp_path / "data.csv").write_text(f"a,b,c,kind\n{rows}\n")
    shown = run_lnml(package, "compare", "--help", cwd=tmp_path)
    assert "outside" in shown.stdout
    found = run_lnml(
        package, "compare", "data.csv", "-l", "kind", "-m", "euclidean,outside", "--folds", "3",
        "-j", "2", cwd=tmp_path,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert "Outside" in found.stdout
    fitted = run_lnml(
        package, "fit", "data.csv", "-l", "kind", "-m", "outside", "-o", "m", cwd=tmp_path
    )
    assert fitted.returncode == 0, fitted.stderr


def test_a_name_that_nobody_has(package, tmp_path):
    pytest.importorskip("typer")
    found = run_lnml(package, "compare", "data.csv", "-l", "k", "-m", "outsider", cwd=tmp_path)
    assert found.returncode == 2
    assert "did you mean 'outside'?" in found.stderr


@pytest.fixture
def entry_points(monkeypatch):
    """Set the entry points of other packages."""

    def install(**values):
        points = [EntryPoint(name, value, registry.GROUP) for name, value in values.items()]
        monkeypatch.setattr(registry, "entry_points", lambda group: points)
        registry._from_outside.cache_clear()

    yield install
    monkeypatch.undo()
    registry._from_outside.cache_clear()


def test_a_package_that_cannot_be_loaded(entry_points):
    entry_points(broken="no_such_package:METHOD")
    assert registry.method_names()[-1] == "broken"
    with pytest.raises(InputError, match=r"'broken' cannot be loaded.*no_such_package"):
        registry.find_method("broken")


def test_an_entry_point_that_is_no_method(entry_points):
    entry_points(wrong="lnml.version:__version__")
    with pytest.raises(InputError, match=r"must be a lnml.registry.Method"):
        registry.find_method("wrong")


def test_names_of_the_library_stay_its_own(entry_points):
    entry_points(lmnn="outside_learner:METHOD")
    with pytest.warns(UserWarning, match=r"'lmnn' of outside_learner:METHOD is ignored"):
        assert registry.method_names().count("lmnn") == 1
    assert registry.find_method("lmnn").name == "LMNN"


def test_every_learner_is_exported_documented_and_tested():
    for entry in registry.LEARNERS:
        assert getattr(lnml, entry.class_name) is entry.estimator_class
        assert entry.class_name in lnml.__all__
        assert any(type(estimator) is entry.estimator_class for estimator in METHODS)
        assert registry.find_method(entry.key).summary


def test_every_estimator_class_has_an_entry():
    """Also the other way round: no learner is forgotten."""
    others = {"AutoMetric", "AveragedMetric", "LNML", "LNMLCV"}
    public = {name for name in lnml.__all__ if isinstance(getattr(lnml, name), type)}
    learners = {name for name in public if issubclass(getattr(lnml, name), MahalanobisMetric)}
    assert learners - others == {entry.class_name for entry in registry.LEARNERS}


def test_methods_of_the_paper_come_first():
    assert registry.method_names()[:8] == registry.PAPER_METHODS


def test_classifiers_come_last_and_are_not_compared_by_default():
    keys = tuple(method.key for method in registry.CLASSIFIERS)
    assert tuple(registry.built_in())[-3:] == keys
    for scale in ("none", "standard", "minmax"):
        assert not set(keys) & set(registry.compared_by_default(scale))


def test_what_is_fitted_by_default_gives_a_distance():
    assert not registry.find_method(registry.DEFAULT_METHOD).classifier


def test_two_methods_of_one_name_are_refused(monkeypatch):
    twin = registry.Method("twin", "LMNN", "another one", lambda seed: None)
    known = {**registry.built_in(), "twin": twin}
    monkeypatch.setattr(registry, "built_in", lambda: known)
    with pytest.raises(InputError, match=r"'lmnn' and 'twin' are both called 'LMNN'"):
        registry.methods_by_name(["lmnn", "twin"], 0)
