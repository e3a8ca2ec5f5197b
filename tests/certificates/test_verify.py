"""Certificates made by hand: valid ones are accepted, and no changed one is."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import oracles
import proofs
import pytest
import sdp
from hypothesis import given, settings
from hypothesis import strategies as st

from lnml.certificates import verify

X, Y = proofs.data()
MADE = {name: make(X, Y) for name, make in proofs.MAKERS.items()}
methods = pytest.mark.parametrize("name", MADE)
# The array of each method that a small change must spoil.
DUAL = {
    "lmnn": "slopes",
    "frobenius": "slopes",
    "weighted_basis": "slopes",
    "mcml": "dual_components",
    "mmc": "dual_components",
    "mmc_diagonal": "dual_components",
    "itml": "tightness",
}


def with_duals(certificate, **changed):
    return replace(certificate, duals={**certificate.duals, **changed})


@methods
def test_valid_certificates_hold(name):
    found = verify(MADE[name], X, Y)
    assert found.holds, found.reason
    assert found.reason == ""
    assert found.objective == pytest.approx(MADE[name].objective, rel=1e-13)
    assert found.bound == pytest.approx(MADE[name].bound, rel=1e-9)
    assert found.gap == pytest.approx(MADE[name].gap, rel=1e-8)
    assert found.objective_error <= 1e-14 * found.objective


@methods
def test_other_names_of_classes_and_data_in_float32_change_nothing(name):
    assert verify(MADE[name], X, np.array(["b", "a", "c"])[Y]).holds
    rounded = X.astype(np.float32)
    assert verify(proofs.MAKERS[name](rounded.astype(float), Y), rounded, Y).holds


def optimum(name):
    certificate = MADE[name]
    duals, P = certificate.duals, oracles.nearest_targets(oracles.squared_distances(X), Y, 2)
    i, j, l = oracles.triplets(P, Y)
    if name == "lmnn":
        return sdp.lmnn_optimum(X, Y, P, certificate.parameters["push_weight"])
    if name in ("frobenius", "weighted_basis"):
        C = certificate.parameters["C"]
        return sdp.frobenius_optimum(X[i] - X[j], X[i] - X[l], C, duals.get("basis"))
    if name == "mcml":
        return sdp.mcml_optimum(X, P)
    if name == "itml":
        first, second = duals["pairs"].T
        gamma = certificate.parameters["gamma"]
        return sdp.itml_optimum(X[first] - X[second], duals["similar"], duals["bounds"], gamma)
    # Each pair once, at twice its length, instead of both orders.
    differences = 2 * (X[:, None] - X)[np.triu(oracles.other_class(Y))]
    S = oracles.pull_scatter(X, oracles.same_class(Y).astype(float))
    scale = np.trace(S)
    return scale * sdp.mmc_optimum(S / scale, differences, name == "mmc_diagonal")


@methods
def test_what_is_proved_is_true(name):
    assert verify(MADE[name], X, Y).bound <= optimum(name) * (1 + 1e-6)


@methods
def test_a_raised_bound_is_refused(name):
    certificate = MADE[name]
    best = verify(certificate, X, Y).bound
    found = verify(replace(certificate, bound=best * (1 + 1e-6)), X, Y)
    assert not found.holds
    assert "only the bound" in found.reason
    assert found.bound == best


@methods
def test_a_smaller_gap_is_refused(name):
    found = verify(replace(MADE[name], gap=0.9 * MADE[name].gap), X, Y)
    assert not found.holds
    assert "gap" in found.reason


@methods
def test_changed_components_are_refused(name):
    components = MADE[name].components.copy()
    components[0, 0] *= 1 + 1e-6
    found = verify(replace(MADE[name], components=components), X, Y)
    assert not found.holds
    assert "the components have the objective" in found.reason


@methods
def test_changed_duals_are_refused(name):
    array = MADE[name].duals[DUAL[name]]
    if DUAL[name] == "slopes":
        worse = np.clip(array * 1.5, 0.0, 1.0)
    elif DUAL[name] == "tightness":
        worse = np.where(MADE[name].duals["similar"], array * 0.9, array)
    else:
        worse = array * [1.0, 1.0, 1.3]
    found = verify(with_duals(MADE[name], **{DUAL[name]: worse}), X, Y)
    assert not found.holds
    assert "dual" in found.reason or "only the bound" in found.reason


@methods
def test_one_changed_row_is_refused(name):
    used = MADE[name].duals.get("pairs", np.zeros((1, 2), dtype=int))[0, 0]
    changed = X.copy()
    changed[used, 1] += 1e-6
    assert not verify(MADE[name], changed, Y).holds


@methods
def test_swapped_labels_are_refused(name):
    labels = Y.copy()
    first, second = np.argmax(Y == 0), np.argmax(Y == 1)
    labels[[first, second]] = labels[[second, first]]
    found = verify(MADE[name], X, labels)
    assert not found.holds
    assert "labels" in found.reason or "objective" in found.reason


@pytest.mark.parametrize("name", ["lmnn", "frobenius", "weighted_basis"])
@pytest.mark.parametrize("slope", [1.0 + 1e-9, -1e-9])
def test_slopes_outside_of_zero_and_one_are_refused(name, slope):
    slopes = MADE[name].duals["slopes"].copy()
    slopes[3] = slope
    assert "slope" in verify(with_duals(MADE[name], slopes=slopes), X, Y).reason


def test_a_triplet_counts_once():
    """Named twice, its slopes could add up to more than one."""
    triplets = MADE["lmnn"].duals["triplets"].copy()
    triplets[1] = triplets[0]
    assert "twice" in verify(with_duals(MADE["lmnn"], triplets=triplets), X, Y).reason


def test_tightness_on_the_wrong_side_is_refused():
    duals = MADE["itml"].duals
    wrong = np.where(duals["similar"], 1.1, duals["tightness"])
    assert "wrong side" in verify(with_duals(MADE["itml"], tightness=wrong), X, Y).reason


def test_negative_weights_and_a_dominator_without_symmetry_are_refused():
    weights = MADE["weighted_basis"].duals["weights"] - 1.0
    found = verify(with_duals(MADE["weighted_basis"], weights=weights), X, Y)
    assert "negative" in found.reason
    dominator = MADE["frobenius"].duals["dominator"] + np.triu(np.ones((3, 3)), 1)
    found = verify(with_duals(MADE["frobenius"], dominator=dominator), X, Y)
    assert "symmetric" in found.reason


@pytest.mark.parametrize("name", ["lmnn", "frobenius", "mcml"])
def test_a_slack_lowers_the_bound(name):
    certificate = MADE[name]
    lowered = replace(certificate, slack=1e-10, limit=1e5, bound=certificate.bound - 1e-5, gap=2)
    found = verify(lowered, X, Y)
    assert found.holds, found.reason
    assert found.bound == pytest.approx(certificate.bound - 1e-5, rel=1e-9)
    assert not verify(replace(lowered, bound=certificate.bound), X, Y).holds


def test_a_slack_accepts_what_is_almost_positive():
    certificate = MADE["lmnn"]
    slopes = certificate.duals["slopes"] * (1 + 1e-9)
    bound = certificate.parameters["push_weight"] * slopes.sum() - 1e-3
    changed = replace(with_duals(certificate, slopes=slopes), bound=bound, gap=1.0)
    assert "positive" in verify(changed, X, Y).reason
    assert verify(replace(changed, slack=1e-8, limit=1e5), X, Y).holds


def with_all_slopes(certificate):
    """Return duals with slope one for every triplet: what the zero metric would ask for."""
    targets = certificate.duals["targets"]
    triplets = [(k, l) for k, (i, _) in enumerate(targets) for l in np.flatnonzero(Y != Y[i])]
    return {**certificate.duals, "triplets": np.array(triplets), "slopes": np.ones(len(triplets))}


@pytest.mark.parametrize("scale", [0.0, 1.0])
def test_a_limit_must_not_shut_out_ordinary_metrics(scale):
    """A huge slack and a tiny limit would "prove" that the zero metric is the best."""
    certificate = MADE["lmnn"]
    duals = with_all_slopes(certificate)
    mu = certificate.parameters["push_weight"]
    found = verify(replace(certificate, components=scale * certificate.components, gap=1e9), X, Y)
    forged = replace(
        certificate,
        components=scale * certificate.components,
        objective=found.objective,
        bound=min(found.objective, mu * len(duals["slopes"])) * (1 - 1e-9),
        gap=1e-8,
        slack=1e6,
        limit=1e-15,
        duals=duals,
    )
    assert "limit" in verify(forged, X, Y).reason


@methods
def test_a_large_error_does_not_excuse_another_objective(name):
    """The error is part of the gap: a small gap leaves no room for it."""
    certificate = MADE[name]
    forged = replace(certificate, objective=0.0, objective_error=1e9, bound=0.0, gap=0.51)
    found = verify(forged, X, Y)
    assert not found.holds and "error" in found.reason


@methods
def test_a_stated_error_does_not_excuse_a_small_gap(name):
    certificate = MADE[name]
    forged = replace(certificate, bound=certificate.bound / 2, gap=0.0)
    for objective in (certificate.bound / 2, certificate.objective * 1e9):
        error = abs(objective - certificate.objective) * 1.01
        changed = replace(forged, objective=objective, objective_error=error, gap=1e-6)
        assert "gap" in verify(changed, X, Y).reason


@pytest.mark.parametrize("name", ["lmnn", "frobenius", "weighted_basis", "mcml"])
def test_huge_components_do_not_excuse_a_raised_bound(name):
    """A rounding of their objective may be more than the objective of the best metric."""
    huge = replace(MADE[name], components=1e12 * MADE[name].components)
    objective = verify(huge, X, Y).objective
    forged = replace(huge, objective=objective, bound=0.9e-12 * objective, gap=1.0)
    assert "only the bound" in verify(forged, X, Y).reason


def test_a_bound_above_the_objective_is_refused():
    """Components outside of the basis, or not diagonal, may be below the bound."""
    certificate = MADE["weighted_basis"]
    duals = with_all_slopes(certificate) | {"basis": np.zeros((3, 0)), "weights": np.zeros(0)}
    bound = 0.999 * certificate.parameters["C"] * len(duals["slopes"])
    assert bound > certificate.objective
    forged = replace(certificate, bound=bound, gap=0.0, duals=duals)
    assert "above the objective" in verify(forged, X, Y).reason


@pytest.mark.parametrize("name", ["mmc", "itml", "weighted_basis"])
def test_other_methods_have_no_slack(name):
    with pytest.raises(ValueError, match="no slack"):
        verify(replace(MADE[name], slack=1e-9, limit=1.0), X, Y)


@methods
def test_a_bound_of_zero_needs_no_proof(name):
    kept = {"targets", "pairs", "similar", "bounds"}
    duals = {key: value for key, value in MADE[name].duals.items() if key in kept}
    found = verify(replace(MADE[name], bound=0.0, gap=1.0 + 1e-9, duals=duals), X, Y)
    assert found.holds, found.reason
    assert found.bound == 0.0


def copied_column(name):
    """The data with a copy of a column, and a certificate that leaves out what it adds."""
    certificate = MADE[name]
    duals = dict(certificate.duals)
    lift = np.vstack([np.eye(3), [1 / 3, 0.0, 0.0]])
    if "dual_components" in duals:
        shape = duals["dual_components"].shape[:-1]
        duals["dual_components"] = np.concatenate(
            [duals["dual_components"], np.zeros((*shape, 1))], axis=-1
        )
    changed = {"coordinates": np.pad(certificate.coordinates, ((0, 1), (0, 0))), "left_out": 1}
    changed["components"] = np.pad(certificate.components, ((0, 0), (0, 1)))
    if name == "frobenius":
        before, duals["dominator"] = duals["dominator"], lift @ duals["dominator"] @ lift.T
        duals["dominator"] = (duals["dominator"] + duals["dominator"].T) / 2
        more = ((duals["dominator"] ** 2).sum() - (before**2).sum()) / 2
        changed |= {"bound": certificate.bound - more, "gap": 10.0}
    return replace(certificate, **changed, duals=duals), np.column_stack([X, X[:, 0] / 3])


@pytest.mark.parametrize("name", ["lmnn", "frobenius", "mcml", "mmc"])
def test_left_out_directions_are_checked(name):
    """A copied column adds a direction in which rows do not differ; another column does not."""
    changed, copied = copied_column(name)
    found = verify(changed, copied, Y)
    assert found.holds, found.reason
    assert found.bound > 0
    assert "1 of 4 directions" in changed.about
    for size in (1e-13, 1e-5):
        moved = copied + size * np.arange(len(X))[:, None] * [0, 0, 0, 1]
        assert "leave out" in verify(changed, moved, Y).reason


def test_a_dominator_must_not_use_what_is_left_out():
    """Else the norm of a metric that makes use of both columns would be overestimated."""
    changed, copied = copied_column("frobenius")
    dominator = np.pad(MADE["frobenius"].duals["dominator"], ((0, 1), (0, 1)))
    found = verify(with_duals(changed, dominator=dominator), copied, Y)
    assert "positive" in found.reason


def test_a_diagonal_metric_needs_every_column_that_is_not_constant():
    certificate = MADE["mmc_diagonal"]
    wide = np.pad(proofs.COMPONENTS, ((0, 0), (0, 1)))
    changed = replace(
        certificate,
        components=wide,
        coordinates=np.pad(certificate.coordinates, ((0, 1), (0, 0))),
        left_out=1,
        duals={"dual_components": wide},
    )
    assert verify(changed, np.column_stack([X, np.full(len(X), 0.1)]), Y).holds
    found = verify(changed, np.column_stack([X, X[:, 0] + X[:, 1]]), Y)
    assert "leave out" in found.reason


def test_wrong_shapes():
    certificate = MADE["lmnn"]
    for message, arguments in {
        "columns": (X[:, :2], Y),
        "one label for each": (X, Y[:-1]),
        "finite": (np.full_like(X, np.nan), Y),
        "rows that X does not have": (X[:10], Y[:10]),
    }.items():
        with pytest.raises(ValueError, match=message):
            verify(certificate, *arguments)


def test_the_objective_is_within_its_error():
    """LMNN in rational numbers, where the rows are far from zero."""
    certificate, mu = MADE["lmnn"], Fraction(MADE["lmnn"].parameters["push_weight"])
    far = X + 1e6
    found = verify(replace(certificate, objective_error=1e3), far, Y)
    rows = [[Fraction(value) for value in row] for row in far]
    L = [[Fraction(value) for value in row] for row in certificate.components]

    def distance(i, j):
        v = [a - b for a, b in zip(rows[i], rows[j], strict=True)]
        return sum(sum(a * b for a, b in zip(row, v, strict=True)) ** 2 for row in L)

    total = Fraction(0)
    for i, j in certificate.duals["targets"]:
        near = distance(i, j)
        impostors = np.flatnonzero(Y != Y[i])
        total += (1 - mu) * near
        total += mu * sum(max(Fraction(0), 1 + near - distance(i, l)) for l in impostors)
    assert abs(Fraction(found.objective) - total) <= Fraction(found.objective_error)


@pytest.mark.parametrize("name", ["lmnn", "frobenius", "mcml", "mmc", "mmc_diagonal"])
@given(powers=st.lists(st.integers(-6, 6), min_size=3, max_size=3))
@settings(max_examples=20, deadline=None)
def test_units_of_the_coordinates_do_not_matter(name, powers):
    certificate = MADE[name]
    coordinates = certificate.coordinates * 10.0 ** np.array(powers)
    found = verify(replace(certificate, coordinates=coordinates), X, Y)
    assert found.holds, found.reason
    assert found.bound == pytest.approx(certificate.bound, rel=1e-9)


def test_dependent_coordinates_are_refused():
    """They would leave out a direction in which rows differ."""
    certificate = MADE["lmnn"]
    coordinates = certificate.coordinates.copy()
    coordinates[:, 2] = 2.0 * coordinates[:, 0]
    found = verify(replace(certificate, coordinates=coordinates), X, Y)
    assert "independent" in found.reason


def test_a_bad_factor_is_refused():
    F = MADE["itml"].duals["factor"]
    assert verify(with_duals(MADE["itml"], factor=1e3 * F), X, Y).holds
    F = F.copy()
    F[2] = F[0] + F[1]
    found = verify(with_duals(MADE["itml"], factor=F), X, Y)
    assert not found.holds
