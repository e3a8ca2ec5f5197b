"""Long double, and what its rounding can do.

Every operation in floating point is exact up to a factor 1 + delta with
|delta| <= EPS / 2. A result of k operations in a row, none of which cancels, is exact up to a
factor 1 + delta with |delta| <= gamma(k). EPS is twice what is needed; the factor of two
covers products of such factors. Where the platform has no long double, EPS is that of double.
"""

from __future__ import annotations

import numpy as np

LONG = np.longdouble
EPS = LONG(np.finfo(LONG).eps)
# What underflow can do to one operation.
TINY = LONG(np.finfo(LONG).tiny)

# Rows or pairs that are summed up at a time: errors grow with the longest sum.
BLOCK = 128
# Cuts a number into two halves, of half its digits each.
_SPLITTER = LONG(2) ** ((np.finfo(LONG).nmant + 2) // 2) + 1


def gamma(k: float) -> LONG:
    """Largest relative error of k operations in a row."""
    return k * EPS / (1 - k * EPS)


def blocks(count: int) -> list[slice]:
    """Cut a range into blocks."""
    return [slice(low, min(low + BLOCK, count)) for low in range(0, count, BLOCK)]


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum and its rounding error: together they are exact (Knuth)."""
    total = a + b
    second = total - a
    return total, (a - (total - second)) + (b - second)


def two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the product and its rounding error: together they are exact (Dekker)."""
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    rest = ((a_high * b_high - product) + a_high * b_low) + a_low * b_high
    return product, rest + a_low * b_low


def _split(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    large = _SPLITTER * a
    high = large - (large - a)
    return high, a - high


def power_of_two(sizes: np.ndarray) -> np.ndarray:
    """Powers of two near some sizes >= 0, and one for zero: products with them are exact."""
    _, exponents = np.frexp(sizes.astype(LONG))
    return np.where(sizes > 0, np.ldexp(LONG(1), exponents), LONG(1))
