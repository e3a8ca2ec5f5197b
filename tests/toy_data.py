"""Small seeded data sets, and the library's view of them."""

import numpy as np
from devices import host_kernels

from lnml.core.neighborhoods import Neighborhoods
from lnml.core.solution import DualPoint
from lnml.datasets import load_dataset
from lnml.kernels import get_kernels
from lnml.kernels.training import TrainingSet


def blobs(seed, class_sizes, n_features, separation=1.0):
    """Overlapping Gaussian classes without ties, rows in random order."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(class_sizes)), class_sizes))
    centres = separation * rng.standard_normal((len(class_sizes), n_features))
    return centres[y] + rng.standard_normal((y.size, n_features)), y


def sorted_blobs(seed, class_sizes, n_features, separation=1.0):
    """The same with rows sorted by class, as kernels see them."""
    X, y = blobs(seed, class_sizes, n_features, separation)
    order = np.argsort(y, kind="stable")
    return X[order], y[order]


def lattice(seed, n_rows, n_features, levels=4):
    """Points of a small integer lattice: exact ties and duplicates everywhere."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, levels, (n_rows, n_features)).astype(float)


def class_start(y):
    """First row of each class, and n."""
    return np.concatenate([[0], np.cumsum(np.bincount(y))])


def embedded(Z, y, dtype=np.float64):
    """Class-sorted rows ``Z`` under the identity metric, and the kernels, all in NumPy arrays."""
    assert (np.diff(y) >= 0).all()
    kernels = host_kernels()
    points = kernels.points(np.asarray(Z, dtype=dtype), class_start(y))
    return kernels, kernels.embed(points, np.eye(points.data.shape[1]))


def training_set(X, y):
    """Training set of class codes ``y`` in any order."""
    return TrainingSet.from_labels(np.asarray(X), np.asarray(y), get_kernels())


def neighborhoods(P):
    """The library's form of a dense target matrix."""
    return Neighborhoods.from_graph(P)


def device_targets(P):
    """A dense target matrix as target neighbours on the device under test."""
    return get_kernels().pattern(neighborhoods(P))


def in_class_order(P, y):
    """A dense target matrix with rows and columns sorted by class."""
    order = np.argsort(y, kind="stable")
    return P[np.ix_(order, order)]


def pattern_matrix(pattern, values, n_columns, n_rows=None):
    """Dense matrix with ``values`` at the pairs of a pattern."""
    n_rows = pattern.indptr.size - 1 if n_rows is None else n_rows
    dense = np.zeros((n_rows, n_columns))
    rows = np.repeat(np.arange(pattern.indptr.size - 1), np.diff(pattern.indptr))
    dense[rows, pattern.indices] = values
    return dense


def small_dataset(name, n_rows=150):
    """Every m-th row of a bundled data set, so that all classes are there."""
    bunch = load_dataset(name)
    step = -(-bunch.target.size // n_rows)
    return bunch.data[::step], bunch.target[::step]


class FlatSoftmax:
    """A softmax objective that no step lowers, with a dual point that proves nothing."""

    objective_at_zero, precision, ceiling, ideal = 10.0, 1e-16, np.zeros((2, 2)), None
    n_evaluations = 0

    def value_and_gradient(self, components):
        return 5.0, np.zeros((2, 2))

    def dual_point(self, components):
        return DualPoint(1.0, np.diag([-1.0, 1.0]))

    def keep_dual(self, components, share):
        raise AssertionError("there is nothing to keep")


def walk(Z, step, rng, length=24):
    """Coordinates on a walk: small steps, a turn, a leap, the start again, far away, and back."""
    turn, leap, start, away, back = (number * length // 24 for number in (7, 11, 15, 18, 20))
    here = Z
    for number in range(length):
        here = here + step * rng.standard_normal(Z.shape) * rng.random((len(Z), 1))
        if number == turn:
            here = here @ np.linalg.qr(rng.standard_normal((Z.shape[1],) * 2))[0]
        if number == leap:
            here = 0.3 * here
        if number == start:
            here = Z
        if number in (away, back):
            here = here + (1e4 if number == away else -1e4)
        yield here
    yield 0.0 * Z
