"""2**(t + SHIFT) for arrays, in a form that compilers turn into vector instructions.

``t`` is split into the nearest integer and a rest of at most a half. A polynomial
gives 2**rest; the integer is added to the exponent bits of the result. Adding a
magic number to ``t`` leaves its nearest integer, plus SHIFT, in the lowest bits.
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from lnml.kernels.cpu.compiling import helper

# No reassociation: it would cancel the magic number.
EXACT_ORDER = {"contract", "nsz", "nnan"}
# Powers from 2**0 down to 2**LOWEST stay normal numbers when shifted, and sums of the
# largest do not overflow.
SHIFT = {"float64": 1000.0, "float32": 100.0}
LOWEST = {"float64": -2000.0, "float32": -220.0}


class PowerConstants(NamedTuple):
    """Constants of :func:`shifted_power` for one type.

    They are an argument because compilers keep arguments in registers.
    """

    magic: Any
    lowest: Any
    highest: Any
    polynomial: tuple[Any, ...]


def _constants(name: str, n_bits: int, degree: int) -> PowerConstants:
    """Return the constants of a type with a fraction of ``n_bits`` bits.

    The polynomial interpolates 2**t at Chebyshev nodes of [-1/2, 1/2].
    """
    kind = np.dtype(name).type
    nodes = np.polynomial.chebyshev.chebpts1(degree + 1) / 2
    coefficients = np.linalg.solve(np.vander(nodes), 2.0**nodes)
    magic = kind(1.5 * 2.0**n_bits + SHIFT[name])
    return PowerConstants(magic, kind(LOWEST[name]), kind(0.0), tuple(map(kind, coefficients)))


# Relative errors of 2e-14 and 7e-8.
CONSTANTS = {"float64": _constants("float64", 52, 9), "float32": _constants("float32", 23, 6)}


@helper(fastmath=EXACT_ORDER)
def shifted_power(t, constants):
    """2**(t + SHIFT), t being clipped to LOWEST..0 first; with the CONSTANTS of its type."""
    t = max(min(t, constants.highest), constants.lowest)
    shifted = t + constants.magic
    rest = t - (shifted - constants.magic)
    power = constants.polynomial[0]
    for coefficient in constants.polynomial[1:]:
        power = power * rest + coefficient
    return _add_to_exponent(power, shifted)


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
