"""Working sets: results depend on values alone; what is derived from them is made once."""

import numpy as np
import oracles
import pytest
from oracles import nearest_targets, other_class, squared_distances
from toy_data import embedded, neighborhoods, sorted_blobs

from lnml.core.pairs import Multipliers, Pattern, WorkingSet
from lnml.kernels import get_kernels

SIZES = [30, 1, 45]


def toy(seed=0):
    """Kernels, an embedding, and a working set with multipliers, all in NumPy arrays."""
    Z, y = sorted_blobs(seed, SIZES, 3)
    kernels, embedding = embedded(0.7 * Z, y)
    targets = neighborhoods(nearest_targets(squared_distances(Z), y, 3))
    chosen = np.random.default_rng(seed).random((y.size, y.size)) < 0.6
    candidates = neighborhoods(other_class(y) & chosen)
    working = kernels.working_set(targets, candidates)
    return kernels, embedding, working.with_multipliers(kernels.slopes(embedding, working, 0.5))


def copied(working):
    """Equal values in other objects."""
    patterns = (working.targets, working.candidates)
    given = working.multipliers
    parts = (given.indptr, given.impostor, given.slot, given.value)
    return WorkingSet(
        *(Pattern(p.indptr.copy(), p.indices.copy()) for p in patterns),
        Multipliers(*(part.copy() for part in parts)),
    )


@pytest.fixture
def on_torch():
    """Working set of tensors, and the kernels for it; counts joins and alignments."""
    pytest.importorskip("torch")
    _, embedding, working = toy()
    kernels = get_kernels("torch:cpu")
    points = kernels.points(embedding.points.data, embedding.points.class_start)
    made = kernels.working_set(working.targets, working.candidates, working.multipliers)
    return kernels, kernels.embed(points, np.eye(3)), made


@pytest.fixture
def calls(monkeypatch):
    """Names of what was derived from a working set, one for each time."""
    working_set = pytest.importorskip("lnml.kernels.torch.working_set")
    made, join, align = [], working_set.join, working_set.align

    def counted_join(patterns):
        made.append("join")
        return join(patterns)

    def counted_align(*args):
        made.append("align")
        return align(*args)

    monkeypatch.setattr(working_set, "join", counted_join)
    monkeypatch.setattr(working_set, "align", counted_align)
    return made


def evaluate(kernels, embedding, working):
    """What one evaluation inside of a solver computes."""
    return kernels.hinge(embedding, working, 0.3, moment="coordinates")


@pytest.mark.usefixtures("device")
def test_the_moment_is_that_of_the_slopes():
    """Slopes at triplets, summed here, against the moment of the same evaluation."""
    kernels, embedding, working = toy(1)
    slopes = kernels.slopes(embedding, working, 0.3)
    n = embedding.coordinates.shape[0]
    row = np.repeat(np.arange(n), np.diff(slopes.indptr))
    target = working.targets.indices[working.targets.indptr[row] + slopes.slot]
    W = np.zeros((n, n))
    np.add.at(W, (row, target), slopes.value)
    np.subtract.at(W, (row, slopes.impostor), slopes.value)
    z, data = embedding.coordinates, embedding.points.data
    found = evaluate(kernels, embedding, working).moment
    np.testing.assert_allclose(found, z.T @ oracles.laplacian(W) @ data, rtol=1e-10, atol=1e-10)


@pytest.mark.usefixtures("device")
def test_copies_give_the_same_result():
    kernels, embedding, working = toy(2)
    terms = evaluate(kernels, embedding, working)
    for other in (copied(working), copied(copied(working))):
        for mine, theirs in zip(terms, evaluate(kernels, embedding, other), strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.usefixtures("device")
def test_without_candidates_there_are_no_triplets():
    """Also where multipliers are given: they are of triplets that are not looked at."""
    kernels, embedding, working = toy(2)
    made = kernels.working_set(working.targets, None, working.multipliers)
    assert made.candidates.size == 0
    assert made.multipliers.value.size == working.multipliers.value.size
    terms = evaluate(kernels, embedding, made)
    assert (terms.smoothed, terms.exact, terms.slope_sum, terms.n_active) == (0.0, 0.0, 0.0, 0)
    assert not terms.moment.any()


@pytest.mark.usefixtures("device")
def test_multipliers_are_carried_over_by_value():
    """All of them to equal targets, whatever object these are; none to no targets."""
    kernels, _, working = toy(3)
    given, targets = working.multipliers, working.targets
    for other in (targets, copied(working).targets):
        kept = kernels.carry_over(given, targets, other)
        for name in ("indptr", "impostor", "slot", "value"):
            np.testing.assert_array_equal(getattr(kept, name), getattr(given, name))
    nobody = Pattern(np.zeros_like(targets.indptr), targets.indices[:0])
    kept = kernels.carry_over(given, targets, nobody)
    assert kept.value.shape == (0,)
    np.testing.assert_array_equal(kept.indptr, np.zeros_like(targets.indptr))


@pytest.mark.usefixtures("device")
def test_multipliers_follow_their_targets():
    """Where half of the targets go, the triplets of the others keep their multipliers."""
    kernels, _, working = toy(4)
    given, targets = working.multipliers, working.targets
    rows, columns = targets.pairs()
    n = targets.n_rows
    stays = np.random.default_rng(4).random(rows.size) < 0.5
    fewer = type(targets).from_pairs(rows[stays], columns[stays], n)
    kept = kernels.carry_over(given, targets, fewer)

    def triplets(multipliers, pattern):
        row = np.repeat(np.arange(n), np.diff(multipliers.indptr))
        target = pattern.indices[pattern.indptr[row] + multipliers.slot]
        return dict(
            zip(
                zip(row.tolist(), target.tolist(), multipliers.impostor.tolist(), strict=True),
                multipliers.value.tolist(),
                strict=True,
            )
        )

    left = set(zip(rows[stays].tolist(), columns[stays].tolist(), strict=True))
    expected = {t: a for t, a in triplets(given, targets).items() if t[:2] in left}
    assert 0 < len(expected) < given.value.size
    assert triplets(kept, fewer) == expected


def test_pairs_are_joined_once_however_often_multipliers_change(on_torch, calls):
    kernels, embedding, working = on_torch
    for _ in range(3):
        evaluate(kernels, embedding, working)
    assert sorted(calls) == ["align", "join"]
    calls.clear()
    other = working.with_multipliers(kernels.slopes(embedding, working, 0.3))
    for _ in range(3):
        evaluate(kernels, embedding, other)
        evaluate(kernels, embedding, working)
    assert calls == ["align"]
    calls.clear()
    evaluate(kernels, embedding, working.with_multipliers(None))
    assert calls == []


def test_the_join_is_shared_before_it_is_made(on_torch, calls):
    kernels, embedding, working = on_torch
    evaluate(kernels, embedding, working.with_multipliers(None))
    evaluate(kernels, embedding, working)
    assert calls.count("join") == 1


def test_multipliers_are_aligned_for_each_type(on_torch):
    torch = pytest.importorskip("torch")
    working = on_torch[2]
    for dtype in (torch.float32, torch.float64, torch.float32):
        assert working.aligned_multipliers(dtype).dtype == dtype
    wide, narrow = (working.aligned_multipliers(d) for d in (torch.float64, torch.float32))
    assert torch.equal(wide.float(), narrow)
    assert wide.sum() == pytest.approx(float(working.multipliers.value.sum()))


def test_without_a_moment_nothing_is_joined(on_torch, calls):
    kernels, embedding, working = on_torch
    assert kernels.hinge(embedding, working, 0.3).moment is None
    assert calls == ["align"]
