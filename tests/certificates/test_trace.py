"""Certificates of penalised fits: they hold, forged ones do not, and files keep the penalty."""

import json
import warnings
from dataclasses import replace

import numpy as np
import oracles
import pandas as pd
import pytest
from adversary import problem
from sklearn.base import clone
from toy_data import blobs

from lnml import LMNN, MCML, MMC
from lnml.certificates import Certificate, verify
from lnml.datasets import load_dataset
from lnml.models import fit_model, load_model, save_model
from lnml.tables import Preparation, make_table

LEARNERS = [LMNN(), MCML(), MMC(), MMC(diagonal=True)]
names = pytest.mark.parametrize("learner", LEARNERS, ids=repr)
# Constant columns, near copies, codes up to 1e12, mixed scales, and more.
NASTY = (1, 2, 3, 5, 6, 8, 11, 13, 14, 18)
PENALTIES = (1e-8, 1e-3, 0.1, 1.0)


def fitted(learner, X, y, penalty=0.05):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(learner).set_params(trace_penalty=penalty).fit(X, y)


def check(learner, X, y, penalty):
    model = fitted(learner, X, y, penalty)
    found = verify(model.certificate(X, y), X, y)
    assert found.holds, found.reason
    assert found.objective == pytest.approx(model.objective_, rel=1e-9)
    return found


@pytest.mark.extras
@names
@pytest.mark.parametrize("name", ["iris", "wine", "sonar"])
def test_bundled_data(name, learner):
    data = load_dataset(name)
    X = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    found = check(learner, X, data.target, 0.1)
    assert found.bound > 0 and found.gap <= 1.001e-3
    assert check(learner, X.astype(np.float32), data.target, 0.1).gap <= 1.001e-3


@names
def test_nasty_data(learner):
    """Refusals are answers: there may be no metric that is better than none."""
    held = 0
    for turn, number in enumerate(NASTY):
        data = problem(number + 19 * 3 * (turn % 2))
        try:
            check(learner, data.X, data.y, PENALTIES[turn % len(PENALTIES)])
        except ValueError as error:
            assert "zero metric" in str(error)
            continue
        except AssertionError as error:
            raise AssertionError(f"{data.name}: {error}") from error
        held += 1
    assert held >= 0.6 * len(NASTY)


@names
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_columns_of_all_scales(learner, dtype):
    X, y = blobs(0, [12, 13], 5)
    X = np.c_[X * 10.0 ** np.array([-6, -3, 0, 3, 6]), np.full(25, 0.1)]
    X = np.c_[X, X[:, 4] * (1.0 + 1e-6 * X[:, 2])].astype(dtype)
    assert check(learner, X, y, 1e-8).gap <= 2e-3


@names
@pytest.mark.parametrize("factor", [1.0 - 1e-9, 1.0 + 1e-9, 0.5, 2.0, 1e6])
def test_another_weight_is_refused(learner, factor):
    X, y = blobs(1, [12, 13], 3)
    certificate = fitted(learner, X, y).certificate_
    weight = factor * certificate.parameters["trace_weight"]
    forged = {**certificate.parameters, "trace_weight": weight}
    assert not verify(replace(certificate, parameters=forged), X, y).holds
    without = {name: value for name, value in forged.items() if name != "trace_weight"}
    assert not verify(replace(certificate, parameters=without), X, y).holds


@names
def test_a_larger_weight_proves_the_same_or_more_about_itself(learner):
    """A bound for a weight is one for larger weights, but not the other way round."""
    X, y = blobs(1, [12, 13], 3)
    certificate = fitted(learner, X, y).certificate_
    L, t = certificate.components, certificate.parameters["trace_weight"]
    for factor, holds in ((2.0, True), (0.5, False)):
        forged = {**certificate.parameters, "trace_weight": factor * t}
        more = (factor - 1.0) * t * (L**2).sum()
        if certificate.method == "lmnn":
            more *= 1.0 - forged["push_weight"]
        if certificate.method == "mmc":
            more /= oracles.root_sum(oracles.squared_distances(X, L), y) ** 2
        changed = replace(
            certificate,
            parameters=forged,
            objective=certificate.objective + more,
            objective_error=1e-9 * certificate.objective,
            gap=1.0,
        )
        assert verify(changed, X, y).holds == holds


def test_shares_of_mcml():
    X, y = blobs(2, [10, 11], 3)
    certificate = fitted(MCML(), X, y).certificate_
    duals = certificate.duals

    def with_shares(*shares):
        metrics = np.repeat(duals["dual_components"][:1], len(shares), axis=0)
        changed = {**duals, "dual_shares": np.array(shares), "dual_components": metrics}
        return verify(replace(certificate, duals=changed), X, y)

    best = with_shares(1.0)
    assert best.holds, best.reason
    for wrong in ((1.0 + 1e-9,), (1.5,), (0.7, 0.5), (1.5, -0.5), (np.nextafter(-0.0, -1.0),)):
        assert with_shares(*wrong).reason == "the dual shares are not a mixture"
    # What is lacking is that of the ideal distribution: feasible, and of less use.
    bounds = [with_shares(share).bound for share in (1.0, 0.9, 0.5, 0.0)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[1] < certificate.bound and bounds[-1] == pytest.approx(0.0, abs=1e-12)
    # Beyond one by rounding, shares prove no more than they would if they summed to one.
    assert with_shares(1.0 + 1e-13).bound <= best.bound * (1 + 1e-16)
    assert with_shares(0.5, 0.5 + 1e-13).bound <= best.bound * (1 + 1e-16)


def test_the_ideal_distribution_mends_a_dual_point():
    """A softmax that is not feasible proves nothing; mixed with the ideal one it does."""
    X, y = blobs(3, [10, 11], 3)
    certificate = fitted(MCML(), X, y, 0.1).certificate_
    duals = {**certificate.duals, "dual_components": 0.8 * certificate.duals["dual_components"]}
    lower = replace(certificate, bound=1e-3 * certificate.bound, gap=1.0)
    assert "positive" in verify(replace(lower, duals=duals), X, y).reason
    duals["dual_shares"] = 0.2 * certificate.duals["dual_shares"]
    found = verify(replace(lower, duals=duals), X, y)
    assert found.holds, found.reason
    assert 0.0 < found.bound < certificate.bound


def test_only_columns_are_left_out():
    """Coordinates almost along a direction in which rows agree: all of their trace is rounding.

    Projected on what is left, they once proved a bound above the optimum.
    """
    x, y = blobs(0, [10, 10], 1)
    x = np.round(x, 3)
    X = np.c_[x, 2 * x, 4 * x]
    certificate = LMNN(trace_penalty=0.5, tol=1e-6).fit(X, y).certificate_
    slopes = np.minimum(1.3 * certificate.duals["slopes"], 1.0)
    forged = replace(
        certificate,
        components=np.zeros((1, 3)),
        objective=0.5 * 60 * 10,
        bound=0.5 * slopes.sum() * (1 - 1e-12),
        gap=1.0,
        coordinates=np.array([[1.0], [2.0**-56], [-0.25]]),
        left_out=2,
        duals={**certificate.duals, "slopes": slopes},
    )
    assert forged.bound > certificate.objective
    for coordinates in (forged.coordinates, X[:1].T):
        found = verify(replace(forged, coordinates=coordinates), X, y)
        assert not found.holds
        assert "leave out nothing but columns" in found.reason
    assert verify(certificate, X, y).holds


@names
def test_constant_columns_are_left_out(learner):
    X, y = blobs(4, [10, 11], 3)
    X = np.insert(X, 1, 0.1, axis=1)
    certificate = fitted(learner, X, y).certificate_
    assert certificate.left_out == 1
    assert verify(certificate, X, y).holds
    # In such a column a metric costs its trace, and changes no distance.
    wide = certificate.components.copy()
    wide[0, 1] = 1.0
    found = verify(replace(certificate, components=wide), X, y)
    assert found.objective > certificate.objective and not found.holds


@names
def test_files_keep_the_penalty(learner, tmp_path):
    X, y = blobs(5, [10, 11], 3)
    certificate = fitted(learner, X, y).certificate_
    certificate.save(tmp_path / "proof.npz")
    read = Certificate.load(tmp_path / "proof.npz")
    assert read.parameters == certificate.parameters
    assert verify(read, X, y).holds
    assert "a smaller penalised " in read.about


@names
def test_files_without_a_penalty_are_read(learner, tmp_path):
    """As those of versions that had none."""
    X, y = blobs(5, [10, 11], 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        certificate = clone(learner).fit(X, y).certificate_
    certificate.save(tmp_path / "proof.npz")
    with np.load(tmp_path / "proof.npz") as file:
        text = str(file["certificate"])
    assert "trace_weight" not in json.loads(text)["parameters"]
    read = Certificate.load(tmp_path / "proof.npz")
    assert verify(read, X, y).holds and "penalised" not in read.about


@pytest.mark.parametrize("penalty", [0.0, 0.05])
def test_models_keep_the_penalty(penalty, tmp_path):
    X, y = blobs(5, [10, 11], 3)
    table = make_table(pd.DataFrame(X).add_prefix("x").assign(y=y.astype(str)), "y", name="toy")
    model = fit_model(table, "lmnn", LMNN(trace_penalty=penalty), Preparation())
    save_model(tmp_path / "a.model", model)
    read = load_model(tmp_path / "a.model")
    assert read.certificate.parameters == model.certificate.parameters
    assert ("trace_weight" in read.certificate.parameters) == (penalty > 0)
    assert verify(read.certificate, X, y).holds


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, np.inf])
def test_weights_that_are_none(weight):
    X, y = blobs(5, [10, 11], 3)
    certificate = fitted(MCML(), X, y).certificate_
    with pytest.raises(ValueError, match="trace_weight must be above 0"):
        replace(certificate, parameters={"trace_weight": weight})


def test_methods_without_a_penalty_refuse_one():
    X, y = blobs(5, [10, 11], 3)
    certificate = fitted(LMNN(), X, y).certificate_
    dominator = {**certificate.duals, "dominator": np.eye(3)}
    with pytest.raises(ValueError, match="the parameters of frobenius"):
        replace(
            certificate,
            method="frobenius",
            duals=dominator,
            parameters={"C": 1.0, "trace_weight": 1.0},
        )
