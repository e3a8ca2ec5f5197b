"""The sample of triplets that chooses the scale of a start."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from lnml import LMNN
from lnml.kernels import get_kernels
from lnml.kernels.training import TrainingSet
from lnml.objectives.margins import _spread, sample_margins


@pytest.mark.parametrize(
    "sizes", [[5000, 3], [1] * 300, [40, 0, 7], [256], [10] * 25, [100_000, 50_000, 1]]
)
def test_rows_of_a_sample_stand_for_all_rows_of_their_range(sizes):
    start = np.concatenate([[0], np.cumsum(sizes)])
    rows, stand_for = _spread(start, 256, np.random.default_rng(0))
    of_range = np.searchsorted(start, rows, side="right") - 1
    counts = np.bincount(of_range, stand_for, len(sizes))
    seen = np.bincount(of_range, minlength=len(sizes)) > 0
    np.testing.assert_allclose(counts[seen], np.array(sizes)[seen])
    assert rows.size <= 2 * 256
    if len(sizes) <= 256:
        assert seen.tolist() == [size > 0 for size in sizes]


@pytest.mark.parametrize("sizes", [[30, 30, 30], [400, 300], [3000, 300], [3] * 300])
def test_sums_over_a_sample_are_near_those_over_all_triplets(sizes):
    X, y = make_blobs(sizes, 4, cluster_std=4.0, random_state=0)
    training = TrainingSet.from_labels(X, np.sort(y), get_kernels())
    model = LMNN(n_neighbors=2)
    targets = model.default_targets(training, np.arange(len(sizes)))
    task = model.penalised_objective(training).task(targets)
    found = sample_margins(task, np.eye(4))
    rows, partners = targets.pairs()
    Z = np.asarray(task.points.data)
    own = np.square(Z[rows] - Z[partners]).sum(axis=1)
    codes = task.points.row_class
    total = size = count = 0.0
    for row, near in zip(rows, own, strict=True):
        others = np.square(Z[row] - Z[codes != codes[row]]).sum(axis=1)
        total, size = total + (near - others).sum(), size + np.abs(near - others).sum()
        count += others.size
    assert (np.diff(found.margins) <= 0.0).all()
    np.testing.assert_allclose(found.all_rows * found.weights.sum(), count, rtol=0.3)
    estimate = found.all_rows * (found.weights @ found.margins)
    np.testing.assert_allclose(estimate, total, atol=0.3 * size, rtol=0.0)
    assert 0.0 < task.best_scale(np.eye(4)) < np.inf
