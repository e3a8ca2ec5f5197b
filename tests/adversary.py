"""Small labelled data sets that real tables look like on a bad day, each named by its pattern.

Nothing here imports the library. Every pattern is a function of a random generator; what it
returns is a problem that has an answer. Data are 8 to 60 rows, 1 to 6 columns, 2 to 4 classes.
"""

from dataclasses import dataclass

import numpy as np

CODES = (1e4, 1e6, 1e8, 1e10, 1e12, -9999.0, 99999999.0)
YEAR = 365.25 * 86400
NOW = 1.7e9
# Of so many visits to a pattern, the last is in float32.
FLOAT32_EVERY = 4


@dataclass(frozen=True, eq=False)
class Problem:
    """A data set: the name of its pattern, its number, rows and classes."""

    pattern: str
    number: int
    X: np.ndarray
    y: np.ndarray

    @property
    def name(self):
        """Pattern, number and type, for test ids and tables."""
        return f"{self.pattern}, {self.X.dtype}, number {self.number}"


def _labels(rng, *, least=8, most=60, classes=None, per_class=3):
    """Classes in random order, with at least ``per_class`` rows each."""
    n = int(rng.integers(least, most + 1) if rng.random() < 0.3 else rng.integers(least, 25))
    c = classes or int(rng.integers(2, 5))
    c = min(c, n // per_class)
    return rng.permutation(
        np.concatenate([np.repeat(np.arange(c), per_class), rng.integers(0, c, n - c * per_class)])
    )


def _blobs(rng, y, d, separation=None):
    """Gaussian classes, from hopeless to far apart."""
    separation = rng.choice([0.3, 1.5, 4.0]) if separation is None else separation
    centres = separation * rng.standard_normal((y.max() + 1, d))
    return centres[y] + rng.standard_normal((y.size, d))


def _ordinary(rng):
    y = _labels(rng)
    return _blobs(rng, y, rng.integers(1, 7)), y


def _coded(rng, n_columns):
    y = _labels(rng, least=12)
    X = _blobs(rng, y, rng.integers(n_columns + 1, 7))
    for column in range(n_columns):
        missing = rng.random(y.size) < rng.uniform(0.05, 0.4)
        missing[rng.integers(y.size)] = True
        X[missing, column] = rng.choice(CODES)
    return X, y


def _missing_code(rng):
    return _coded(rng, 1)


def _missing_codes(rng):
    return _coded(rng, 2)


def _outlier(rng):
    X, y = _ordinary(rng)
    X[rng.integers(y.size), rng.integers(X.shape[1])] = 10.0 ** rng.uniform(6, 10)
    return X, y


def _outlier_class(rng):
    """Outliers that are a class of their own, with one row or two."""
    y = _labels(rng, classes=int(rng.integers(2, 4)))
    X = _blobs(rng, y, rng.integers(1, 7))
    rows = rng.choice(y.size, rng.integers(1, 3), replace=False)
    if min(np.bincount(np.delete(y, rows), minlength=y.max() + 1)) >= 2:
        y = y.copy()
        y[rows] = y.max() + 1
    X[rows, rng.integers(X.shape[1])] = 10.0 ** rng.uniform(6, 10) * rng.uniform(1, 1.1, rows.size)
    return X, y


def _collinear_columns(rng, y):
    """A column, and the same with the class in a residual of 1e-3 to 1e-7."""
    z = rng.standard_normal(y.size)
    a = 10.0 ** rng.uniform(-7, -3)
    b = a * 10.0 ** rng.uniform(-3, -1)
    return np.column_stack([z, z + a * (2.0 * (y % 2) - 1.0) + b * rng.standard_normal(y.size)])


def _collinear(rng):
    y = _labels(rng, classes=int(rng.integers(2, 4)))
    X = _collinear_columns(rng, y)
    if rng.random() < 0.3:
        X = np.column_stack([X, rng.standard_normal((y.size, rng.integers(1, 4)))])
    return X, y


def _stamps(rng):
    """Begin and end of visits, in seconds: the class is in how long they last."""
    y = _labels(rng, classes=2)
    begin = np.floor(NOW + YEAR * rng.random(y.size))
    X = np.column_stack(
        [begin, begin + np.floor(np.where(y == 1, 300, 60) * rng.uniform(0.5, 1.5, y.size))]
    )
    if rng.random() < 0.3:
        X = np.column_stack([X, rng.standard_normal(y.size)])
    return X, y


def _years(rng):
    """A year and its powers; the class is a stretch of years, or a parabola in them."""
    y = _labels(rng, classes=int(rng.integers(2, 4)))
    year = 1990.0 + 10.0 * y + rng.integers(0, 12, y.size)
    if rng.random() < 0.5:
        year = 2000.0 + rng.choice([-1.0, 1.0], y.size) * (8.0 * y + rng.integers(0, 9, y.size))
    return year[:, None] ** np.arange(1, rng.integers(3, 5)), y


def _mixed_scales(rng):
    X, y = _ordinary(rng)
    return X * 10.0 ** rng.uniform(-9, 9, X.shape[1]), y


def _large_columns(rng):
    X, y = _ordinary(rng)
    return X * 10.0 ** rng.uniform(3, 9, X.shape[1]), y


def _repeated_rows(rng):
    X, y = _ordinary(rng)
    for _ in range(rng.integers(2, 6)):
        a = rng.integers(y.size)
        same = np.flatnonzero(y == y[a])
        X[rng.choice(same)] = X[a]
    return X, y


def _contradictions(rng):
    """Equal rows of different class."""
    X, y = _ordinary(rng)
    for _ in range(rng.integers(1, 5)):
        a = rng.integers(y.size)
        X[rng.choice(np.flatnonzero(y != y[a]))] = X[a]
    return X, y


def _repeated_columns(rng):
    y = _labels(rng)
    X = _blobs(rng, y, rng.integers(1, 4))
    return np.hstack([X, X[:, rng.permutation(X.shape[1])]]), y


def _sum_column(rng):
    """A total beside its parts, as rounded by floating point."""
    y = _labels(rng)
    X = _blobs(rng, y, rng.integers(2, 5)) * 10.0 ** rng.choice([-3, 0, 4])
    return np.column_stack([X, X[:, 0] + X[:, 1]]), y


def _constant_column(rng):
    y = _labels(rng)
    X = _blobs(rng, y, rng.integers(1, 5))
    return np.column_stack([np.full(y.size, rng.choice([0.0, 1.0, 0.1, 1e8, -1e-8])), X]), y


def _constant_within(rng):
    """A column that is the class, or says which of two groups of classes it is."""
    y = _labels(rng)
    X = _blobs(rng, y, rng.integers(1, 5))
    return np.column_stack(
        [X, rng.choice([1e-3, 1.0, 1e5]) * (y if rng.random() < 0.5 else y % 2)]
    ), y


def _whole_numbers(rng):
    y = _labels(rng)
    X = rng.integers(0, rng.integers(2, 6), (y.size, rng.integers(1, 5))).astype(float)
    X[:, 0] += y * rng.integers(0, 2)
    return X, y


def _tiny_classes(rng):
    y = _labels(rng, least=8, most=14, per_class=2, classes=int(rng.integers(3, 5)))
    return _blobs(rng, y, rng.integers(1, 7)), y


def _code_beside_collinear(rng):
    y = _labels(rng, least=12, classes=2)
    X = np.column_stack([_blobs(rng, y, 1), _collinear_columns(rng, y)])
    X[rng.random(y.size) < 0.2, 0] = rng.choice(CODES)
    return X, y


PATTERNS = {
    "ordinary": _ordinary,
    "missing code": _missing_code,
    "missing codes": _missing_codes,
    "outlier": _outlier,
    "outlier class": _outlier_class,
    "collinear": _collinear,
    "time stamps": _stamps,
    "powers of years": _years,
    "mixed scales": _mixed_scales,
    "large columns": _large_columns,
    "repeated rows": _repeated_rows,
    "contradictions": _contradictions,
    "repeated columns": _repeated_columns,
    "sum column": _sum_column,
    "constant column": _constant_column,
    "constant within classes": _constant_within,
    "whole numbers": _whole_numbers,
    "tiny classes": _tiny_classes,
    "code beside collinear": _code_beside_collinear,
}


def problem(number, seed=0):
    """The problem with a number: patterns take turns, and every fourth turn is in float32."""
    turn, which = divmod(number, len(PATTERNS))
    name = list(PATTERNS)[which]
    rng = np.random.default_rng([seed, number])
    X, y = PATTERNS[name](rng)
    dtype = np.float32 if turn % FLOAT32_EVERY == FLOAT32_EVERY - 1 else np.float64
    return Problem(name, number, np.ascontiguousarray(X, dtype=dtype), y)


def problems(n, seed=0):
    """The first n problems of a seed."""
    return (problem(number, seed) for number in range(n))


def missing_values(seed=0):
    """40 rows of two classes; 30 % of the informative column hold a code for missing values."""
    rng = np.random.default_rng(seed)
    y = np.arange(40) % 2
    X = rng.standard_normal((40, 3))
    X[:, 0] += 1.5 * y
    X[rng.random(40) < 0.3, 0] = 99999999
    return X, y


def residual(seed, size=1e-5, noise=1e-7):
    """20 rows of two columns that are equal but for a small residual, which is the class."""
    y = np.arange(20) % 2
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(20)
    return np.c_[z, z + size * (2 * y - 1) + noise * rng.standard_normal(20)], y


def large_columns(seed):
    """40 rows of ordinary classes in columns of 1e3 to 1e9."""
    rng = np.random.default_rng(seed)
    y = np.arange(40) % 2
    X = rng.standard_normal((40, 4))
    X[:, 0] += 1.5 * y
    return X * 10.0 ** rng.uniform(3, 9, 4), y


def visits(seed):
    """40 visits of about a minute or five in one year: begin and end in seconds."""
    rng = np.random.default_rng(seed)
    y = np.arange(40) % 2
    begin = np.floor(NOW + YEAR * rng.random(40))
    return np.c_[begin, begin + np.floor(np.where(y == 1, 300, 60) * rng.uniform(0.5, 1.5, 40))], y
