"""The filter of the impostor search: one product in low precision bounds every distance.

The product is float16 on a GPU. Among many rows it has the leading principal coordinates
only, if that pays. docs/gpu.md shows that no pair inside its radius is lost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from lnml.kernels.torch.basics import squared_norms, to_numpy, to_tensor
from lnml.kernels.torch.fused import PRODUCT_DEPTH

# Longest row in the filter's units, so that half its square is a float16.
_LONGEST = 340.0
# Rounding of one addition inside a product: float32, with room for hardware that truncates.
_ADDITION = 2.0**-21
# Columns of the product that hold the norms.
_NORMS = 3
# Up to this many rows all coordinates are used: choosing some would take longer.
SMALL = 80_000
# Widths of products over leading coordinates.
WIDTHS = (32, 64, 128)
# Cost of a pair, of one in a wider product, and of a coordinate of a pair that passes, in units
# of one column of the product (measured, docs/gpu.md).
PAIR_COST = 190.0
WIDE_COST = 350.0
VERIFY_COST = 1500.0
_SAMPLE_ROWS, _SAMPLE_COLUMNS = 256, 4096
# What a rotation changes, relative to the length of a row: many times its rounding.
_ROTATION = 2.0**-38


class Filter(NamedTuple):
    """Operands of one product: row i keeps column j if left_i . right_j >= limits_i.

    For every pair with D_ij < radius_i that holds, rounding included.
    """

    left: torch.Tensor
    right: torch.Tensor
    limits: torch.Tensor


def filter_type(device: torch.device) -> torch.dtype:
    """Type of the filter's product: what the device multiplies fastest."""
    return torch.float16 if device.type == "cuda" else torch.float32


def make_filter(z: torch.Tensor, radius: torch.Tensor, left_out: torch.Tensor) -> Filter:
    """Round the centred coordinates to the filter's type, and bound what that changes.

    With a_i the rounded coordinates, s_ij = a_i . a_j - |a_j|^2 / 2 is the larger
    the closer a_i and a_j are: |a_i - a_j|^2 = |a_i|^2 - 2 s_ij.

    Parameters
    ----------
    z : tensor of shape (n, r)
        Coordinates.
    radius : tensor of shape (n,)
        Squared distances.
    left_out : tensor of shape (n, 2), int64
        Range of rows that is left out, for each row.
    """
    kind = filter_type(z.device)
    half_unit = torch.finfo(kind).eps / 2
    least = torch.finfo(kind).tiny * torch.finfo(kind).eps
    wide = z.double() - z.mean(dim=0, dtype=torch.float64)
    squares = squared_norms(wide)
    unit = torch.maximum((squares.mean() / z.shape[1]).sqrt(), squares.max().sqrt() / _LONGEST)
    unit = torch.where(unit > 0, unit, 1.0)
    wide /= unit
    # Verified distances are off by their own rounding, in the type of the data.
    inflated = radius.clamp(min=0.0) * (1.0 + (z.shape[1] + 4.0) * torch.finfo(z.dtype).eps)
    reach = inflated.sqrt() / unit
    axes = _leading_axes(wide, reach, left_out) if z.shape[0] > SMALL else None
    if axes is not None:
        turned = _ROTATION * (2.0 * squares.sqrt() / unit + reach)
        wide, reach = wide @ axes, reach + turned
    width = wide.shape[1]
    rounded = wide.to(kind)
    squares = squared_norms(rounded.double())
    # Columns of zeros: the width of products on a GPU is a multiple of PRODUCT_DEPTH.
    filling = torch.zeros_like(rounded[:, :1]).expand(-1, -(width + _NORMS) % PRODUCT_DEPTH)
    right = torch.cat([rounded, _pieces(-0.5 * squares, kind), filling], dim=1)
    left = torch.cat([rounded, torch.ones_like(right[:, width:])], dim=1)

    length = squared_norms(wide).sqrt()
    moved = squared_norms(wide - rounded.double()).sqrt()
    # A partner inside the radius is no longer than this, so rounding moved it by at most:
    partner = length + reach
    partner_moved = half_unit * partner + width**0.5 * least
    reach = reach + moved + partner_moved
    # Size of what is added up in the product, and its rounding on the way out.
    largest = partner + partner_moved
    size = (length + moved) * largest + largest * largest
    error = ((width + 8.0) * _ADDITION + 2.0 * half_unit) * size + 4.0 * least
    limits = (squares - reach * reach) / 2 - error
    return Filter(left, right, _rounded_down(torch.where(radius > 0, limits, torch.inf), kind))


def _leading_axes(
    wide: torch.Tensor, reach: torch.Tensor, left_out: torch.Tensor
) -> torch.Tensor | None:
    """Orthonormal axes (r, m) along which to look at rows (n, r), or None for all coordinates.

    A sample of pairs tells how many would pass.
    """
    n, r = wide.shape
    rows, columns = (
        (torch.arange(count, device=wide.device) * n) // count
        for count in (_SAMPLE_ROWS, _SAMPLE_COLUMNS)
    )
    some = wide[columns]
    _, vectors = np.linalg.eigh(to_numpy(some.T @ some))
    axes = to_tensor(vectors[:, ::-1], wide.device)
    begin, end = left_out[rows].unbind(dim=1)
    other = (columns < begin[:, None]) | (columns >= end[:, None])
    mine, others = wide[rows] @ axes, some @ axes
    kept = [width - _NORMS for width in WIDTHS if width - _NORMS < r] + [r]
    shares = []
    for m in kept:
        near = torch.cdist(mine[:, :m], others[:, :m]) < reach[rows, None]
        shares.append((near & other).double().mean())
    passing = torch.stack(shares).cpu().numpy()
    widths = -(-(np.array(kept) + _NORMS) // PRODUCT_DEPTH) * PRODUCT_DEPTH
    costs = np.where(np.isin(widths, WIDTHS), PAIR_COST, WIDE_COST) + widths
    best = int(np.argmin(costs + VERIFY_COST * r * passing))
    return None if kept[best] == r else axes[:, : kept[best]].contiguous()


def _pieces(values: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    """Columns of a low-precision type that add up to float64 values, almost exactly."""
    pieces = []
    for _ in range(_NORMS):
        piece = values.to(kind)
        pieces.append(piece)
        values = values - piece.double()
    return torch.stack(pieces, dim=1)


def _rounded_down(values: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    """Largest numbers of a type that are at most the values; -inf below its range."""
    rounded = values.to(kind)
    lower = torch.nextafter(rounded, torch.full_like(rounded, -torch.inf))
    largest = torch.finfo(kind).max
    rounded = torch.where(rounded.double() > values, lower, rounded)
    return torch.where(values < -0.5 * largest, -torch.inf, rounded)
