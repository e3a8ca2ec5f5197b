"""2**(t + SHIFT) for arrays, in a form that compilers turn into vector instructions.

``t`` is split into the nearest integer and a rest of at most a half. A polynomial
gives 2**rest; the integer is added to the exponent bits of the result. Adding
MAGIC to a number leaves its nearest integer, plus SHIFT, in the lowest bits. The
polynomials interpolate 2**t at Chebyshev nodes of [-1/2, 1/2]; their relative error
is 2e-14 (float64) and 7e-8 (float32).
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

# No reassociation: it would cancel MAGIC.
EXACT_ORDER = {"contract", "nsz", "nnan"}

# Powers from 2**0 down to 2**LOWEST do not leave the normal numbers when shifted, and sums
# of the largest do not overflow.
SHIFT = {"float64": 1000.0, "float32": 100.0}
LOWEST = {"float64": -2000.0, "float32": -220.0}

_MAGIC_64 = 1.5 * 2.0**52 + SHIFT["float64"]
_MAGIC_32 = np.float32(1.5 * 2.0**23 + SHIFT["float32"])


def _interpolate(degree: int) -> list[float]:
    """Coefficients of the polynomial through 2**t at the Chebyshev nodes."""
    nodes = np.polynomial.chebyshev.chebpts1(degree + 1) / 2
    return list(np.linalg.solve(np.vander(nodes, increasing=True), 2.0**nodes))


_A0, _A1, _A2, _A3, _A4, _A5, _A6, _A7, _A8, _A9 = _interpolate(9)
_B0, _B1, _B2, _B3, _B4, _B5, _B6 = (np.float32(value) for value in _interpolate(6))


@intrinsic
def _add_to_exponent(_context: Any, value: Any, shifted: Any) -> Any:
    """Multiply ``value`` by 2**k, k being the integer in the low bits of ``shifted``."""
    width, fraction = (64, 52) if value == types.float64 else (32, 23)

    def generate(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        integer = ir.IntType(width)
        bits, exponent = (builder.bitcast(argument, integer) for argument in arguments)
        exponent = builder.shl(exponent, ir.Constant(integer, fraction))
        return builder.bitcast(builder.add(bits, exponent), arguments[0].type)

    return value(value, shifted), generate


@njit(nogil=True, cache=True, fastmath=EXACT_ORDER)
def _shifted_float64(t):
    shifted = t + _MAGIC_64
    rest = t - (shifted - _MAGIC_64)
    p = _A9
    p = p * rest + _A8
    p = p * rest + _A7
    p = p * rest + _A6
    p = p * rest + _A5
    p = p * rest + _A4
    p = p * rest + _A3
    p = p * rest + _A2
    p = p * rest + _A1
    p = p * rest + _A0
    return _add_to_exponent(p, shifted)


@njit(nogil=True, cache=True, fastmath=EXACT_ORDER)
def _shifted_float32(t):
    shifted = t + _MAGIC_32
    rest = t - (shifted - _MAGIC_32)
    p = _B6
    p = p * rest + _B5
    p = p * rest + _B4
    p = p * rest + _B3
    p = p * rest + _B2
    p = p * rest + _B1
    p = p * rest + _B0
    return _add_to_exponent(p, shifted)


def shifted_power(t):
    """2**(t + SHIFT) of a scalar between LOWEST and 0, for compiled code."""


@overload(shifted_power)
def _by_type(t):
    kernel = _shifted_float32 if t == types.float32 else _shifted_float64
    return lambda t: kernel(t)
