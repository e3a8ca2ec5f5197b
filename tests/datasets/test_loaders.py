import hashlib
import io
import re
from importlib.resources import files

import numpy as np
import pytest

from lnml.datasets import list_datasets, load_dataset
from lnml.datasets._loaders import _read_bunch

DATA = files("lnml.datasets") / "data"

# name: (n_samples, n_features, samples per class)
FACTS = {
    "balance_scale": (625, 4, {"B": 49, "L": 288, "R": 288}),
    "ionosphere": (351, 34, {"b": 126, "g": 225}),
    "iris": (150, 4, {"setosa": 50, "versicolor": 50, "virginica": 50}),
    "letter": (
        20000,
        16,
        dict(A=789, B=766, C=736, D=805, E=768, F=775, G=773, H=734, I=755, J=747, K=739, L=761)
        | dict(M=792, N=783, O=753, P=803, Q=783, R=758, S=748, T=796, U=813, V=764, W=752, X=787)
        | dict(Y=786, Z=734),
    ),
    "sonar": (208, 60, {"M": 111, "R": 97}),
    "wine": (178, 13, {1: 59, 2: 71, 3: 48}),
}


def test_list_is_complete_and_sorted():
    assert list_datasets() == sorted(FACTS)


@pytest.mark.parametrize("name", FACTS)
def test_shapes_types_and_class_counts(name):
    n_samples, n_features, class_counts = FACTS[name]
    bunch = load_dataset(name)

    assert set(bunch) == {"data", "target", "feature_names", "name"}
    assert bunch.name == name
    assert bunch.data.shape == (n_samples, n_features)
    assert bunch.data.dtype == np.float64
    assert np.isfinite(bunch.data).all()
    assert bunch.target.shape == (n_samples,)
    assert bunch.target.dtype.kind in "Ui"
    assert isinstance(bunch.feature_names, list)
    assert all(type(feature) is str for feature in bunch.feature_names)
    assert len(set(bunch.feature_names)) == n_features
    classes, counts = np.unique(bunch.target, return_counts=True)
    assert dict(zip(classes.tolist(), counts.tolist(), strict=True)) == class_counts


def test_balance_scale_labels_follow_the_torque_rule():
    bunch = load_dataset("balance_scale")
    left_weight, left_distance, right_weight, right_distance = bunch.data.T
    tilt = np.sign(left_weight * left_distance - right_weight * right_distance).astype(int)
    assert np.array_equal(bunch.target, np.array(["R", "B", "L"])[tilt + 1])


def test_files_match_the_checksums_in_the_readme():
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    documented = dict(re.findall(r"^\| (\w+)\.npz \| `([0-9a-f]{64})` \|$", readme, re.MULTILINE))
    actual = {
        name: hashlib.sha256((DATA / f"{name}.npz").read_bytes()).hexdigest()
        for name in list_datasets()
    }
    assert actual == documented


@pytest.mark.parametrize("name", ["mnist", "", "Iris", "iris.npz", "../data/iris"])
def test_unknown_name_lists_the_known_ones(name):
    with pytest.raises(ValueError, match="Unknown data set") as excinfo:
        load_dataset(name)
    assert all(known in str(excinfo.value) for known in FACTS)


@pytest.mark.parametrize("name", ["iris", "wine"])
def test_modifying_a_loaded_set_does_not_alter_the_next_load(name):
    first = load_dataset(name)
    data, target, feature_names = first.data.copy(), first.target.copy(), list(first.feature_names)
    first.data[:] = -1.0
    first.target[:] = first.target[-1]
    first.feature_names.clear()

    second = load_dataset(name)
    assert np.array_equal(second.data, data)
    assert np.array_equal(second.target, target)
    assert second.feature_names == feature_names


def test_missing_feature_names_are_made_up():
    file = io.BytesIO()
    np.savez(file, X=np.arange(6, dtype=np.uint8).reshape(2, 3), y=np.array([0, 1]))
    file.seek(0)
    assert _read_bunch(file, "toy").feature_names == ["x0", "x1", "x2"]


def test_pickled_content_is_refused():
    file = io.BytesIO()
    np.savez(file, X=np.zeros((2, 1)), y=np.array([{}, {}], dtype=object))
    file.seek(0)
    with pytest.raises(ValueError, match="allow_pickle"):
        _read_bunch(file, "toy")
