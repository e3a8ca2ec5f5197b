"""The Triton programs behind :mod:`lnml.kernels.torch.fused`.

Names in capitals are fixed when a program is compiled.
"""

# Triton reads the source of these functions and knows neither annotations nor keywords of types.
import triton
import triton.language as tl

# Relative room for the rounding of a number to float32, and the least root of a squared distance
# that overflowed. Bounds above FARTHEST are no numbers in float32; a smaller one is a bound, too.
ROUNDING = tl.constexpr(2.0**-21)
FAR = tl.constexpr(1e19)
FARTHEST = tl.constexpr(1e38)


@triton.jit
def follow(z, last, drift, width, slack, COORDINATES: tl.constexpr):
    """Add the length that a row moved since ``last`` to its drift, rounded up; renew ``last``."""
    # In float64: added to one in float32, the slack of float64 rows would vanish.
    slack = tl.full((), 0.0, dtype=tl.float64) + slack
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((COORDINATES,), dtype=z.dtype.element_ty)
    for start in range(0, width, COORDINATES):
        k = start + tl.arange(0, COORDINATES)
        here = tl.load(z + row * width + k, mask=k < width, other=0.0)
        step = here - tl.load(last + row * width + k, mask=k < width, other=0.0)
        total += step * step
        tl.store(last + row * width + k, here, mask=k < width)
    moved = tl.sqrt(tl.sum(total, axis=0).to(tl.float64)) * (1.0 + slack)
    before = tl.load(drift + row)
    tl.store(drift + row, (before + moved) * (1.0 + ROUNDING) + 1e-18)


@triton.jit
def add_pieces(sums, offsets, out, width, COORDINATES: tl.constexpr):
    """Add up the pieces of a row, in their order."""
    row = tl.program_id(0).to(tl.int64)
    k = tl.program_id(1) * COORDINATES + tl.arange(0, COORDINATES)
    total = tl.zeros((COORDINATES,), dtype=tl.float64)
    first, last = tl.load(offsets + row), tl.load(offsets + row + 1)
    at = sums + first * width + k
    for _ in range(first, last):
        total += tl.load(at, mask=k < width, other=0.0)
        at += width
    tl.store(out + row * width + k, total, mask=k < width)


@triton.jit
def _squares(left, i, right, j, mask, width, PAIRS: tl.constexpr, COORDINATES: tl.constexpr):
    """Squared distances of rows i of left and j of right, both (PAIRS,)."""
    total = tl.zeros((PAIRS, COORDINATES), dtype=left.dtype.element_ty)
    for start in range(0, width, COORDINATES):
        k = start + tl.arange(0, COORDINATES)
        inside = mask[:, None] & (k < width)[None, :]
        a = tl.load(left + i.to(tl.int64)[:, None] * width + k[None, :], mask=inside, other=0.0)
        b = tl.load(right + j.to(tl.int64)[:, None] * width + k[None, :], mask=inside, other=0.0)
        total += (a - b) * (a - b)
    return tl.sum(total, axis=1)


@triton.jit
def distances(
    left, rows, right, columns, out, count, width, PAIRS: tl.constexpr, COORDINATES: tl.constexpr
):
    """Squared distances of PAIRS pairs."""
    pair = tl.program_id(0).to(tl.int64) * PAIRS + tl.arange(0, PAIRS)
    mask = pair < count
    i = tl.load(rows + pair, mask=mask, other=0)
    j = tl.load(columns + pair, mask=mask, other=0)
    found = _squares(left, i, right, j, mask, width, PAIRS, COORDINATES)
    tl.store(out + pair, found, mask=mask)


@triton.jit
def _list_near(
    indices, roots, drift, previous, near, first, count, limit, n_slots,
    HAS_PREVIOUS: tl.constexpr, SLOTS: tl.constexpr, PIECE: tl.constexpr,
):  # fmt: skip
    """List the places of the candidates of a piece that may act; return how many there are.

    Those are within the limit by their bounds, or have a multiplier.
    """
    place = tl.arange(0, PIECE)
    mask = place < count
    j = tl.load(indices + first + place, mask=mask, other=0)
    root = tl.load(roots + first + place, mask=mask, other=0.0).to(tl.float64)
    # A bound that is no number leaves nothing out.
    kept = ~(root - tl.load(drift + j, mask=mask, other=0.0) > limit)
    if HAS_PREVIOUS:
        slot = tl.arange(0, SLOTS)
        at = previous + (first + place)[:, None] * n_slots + slot[None, :]
        there = mask[:, None] & (slot < n_slots)[None, :]
        kept = kept | (tl.max(tl.load(at, mask=there, other=0.0), axis=1) > 0.0)
    kept = kept & mask
    ends = tl.cumsum(kept.to(tl.int32), axis=0)
    tl.store(near + first + ends - 1, place.to(tl.uint8), mask=kept)
    # All of it is written before any of it is read.
    tl.debug_barrier()
    return tl.sum(kept.to(tl.int32), axis=0)


@triton.jit
def _slope(margin, before, gamma, SMOOTH: tl.constexpr):
    """Return the slope of a smoothed hinge around a multiplier, and its value."""
    if SMOOTH:
        slope = tl.minimum(tl.maximum(before + margin / gamma, 0.0), 1.0)
    else:
        slope = tl.where(margin > 0.0, 1.0, 0.0).to(tl.float64)
    change = slope - before
    return slope, slope * margin - 0.5 * gamma * (change * change)


@triton.jit
def hinge(
    z, rows, starts, indptr, indices, table, previous, roots, drift, near, candidate_weights, sums,
    totals, first_row, width, n_slots, gamma_upper, gamma_lower, slack,
    HAS_PREVIOUS: tl.constexpr, SMOOTH: tl.constexpr, SCREENED: tl.constexpr,
    SLOTS: tl.constexpr, PIECE: tl.constexpr, PAIRS: tl.constexpr, COORDINATES: tl.constexpr,
):  # fmt: skip
    """Margins of a piece of a row: its candidates (axis 0) with all targets (axis 1).

    Candidates that are too far by the bounds of ``roots`` are left out (screen.py); ``near`` is
    room for the places of the others in the piece.
    """
    piece = tl.program_id(0).to(tl.int64)
    row = tl.load(rows + piece)
    gamma = tl.full((), 0.0, dtype=tl.float64) + gamma_upper + gamma_lower
    slot = tl.arange(0, SLOTS)
    target = tl.load(table + row * n_slots + slot, mask=slot < n_slots, other=-1e30)
    slope_sums = tl.zeros((PAIRS, SLOTS), dtype=tl.float64)
    hinge_sums = tl.zeros((PAIRS, SLOTS), dtype=tl.float64)
    smoothed = tl.zeros((PAIRS, SLOTS), dtype=tl.float64)
    active = tl.zeros((PAIRS, SLOTS), dtype=tl.float64)
    i = tl.zeros((PAIRS,), dtype=tl.int64) + first_row + row
    first = tl.load(starts + piece)
    count = tl.minimum(tl.load(indptr + row + 1) - first, PIECE).to(tl.int32)
    if SCREENED:
        slack = tl.full((), 0.0, dtype=tl.float64) + slack
        moved = tl.load(drift + first_row + row)
        reach = 1.0 + tl.maximum(tl.max(target, axis=0), -1.0)
        limit = tl.sqrt(reach) * (1.0 + slack) + moved
        count = _list_near(indices, roots, drift, previous, near, first, count, limit, n_slots,
                           HAS_PREVIOUS, SLOTS, PIECE)  # fmt: skip
    for start in range(0, count, PAIRS):
        place = start + tl.arange(0, PAIRS)
        mask = place < count
        if SCREENED:
            place = tl.load(near + first + place, mask=mask, other=0).to(tl.int32)
        pair = first + place
        j = tl.load(indices + pair, mask=mask, other=0)
        squares = _squares(z, i, z, j, mask, width, PAIRS, COORDINATES).to(tl.float64)
        there = mask[:, None] & (slot < n_slots)[None, :]
        margin = tl.where(there, 1.0 + target[None, :] - squares[:, None], -1e30)
        if SCREENED:
            other_moved = tl.load(drift + j, mask=mask, other=0.0)
            root = tl.minimum(tl.sqrt(squares), FAR) * (1.0 - slack) + moved + other_moved
            bound = (tl.minimum(root, FARTHEST) * (1.0 - ROUNDING)).to(tl.float32)
            tl.store(roots + pair, bound, mask=mask)
        before = tl.zeros((PAIRS, SLOTS), dtype=tl.float64)
        if HAS_PREVIOUS:
            at = previous + pair[:, None] * n_slots + slot[None, :]
            before = tl.load(at, mask=there, other=0.0).to(tl.float64)
        slope, value = _slope(margin, before, gamma, SMOOTH)
        smoothed += tl.where(there, value, 0.0)
        slope_sums += slope
        hinge_sums += tl.maximum(margin, 0.0)
        active += tl.where(margin > 0.0, 1.0, 0.0).to(tl.float64)
        tl.store(candidate_weights + pair, tl.sum(slope, axis=1), mask=mask)
    weight_by_slot, hinge_by_slot = tl.sum(slope_sums, axis=0), tl.sum(hinge_sums, axis=0)
    place = sums + 2 * (piece * n_slots + slot)
    tl.store(place, weight_by_slot, mask=slot < n_slots)
    tl.store(place + 1, hinge_by_slot, mask=slot < n_slots)
    tl.store(totals + piece * 4, tl.sum(tl.sum(smoothed, axis=0), axis=0))
    tl.store(totals + piece * 4 + 1, tl.sum(hinge_by_slot, axis=0))
    tl.store(totals + piece * 4 + 2, tl.sum(weight_by_slot, axis=0))
    tl.store(totals + piece * 4 + 3, tl.sum(tl.sum(active, axis=0), axis=0))


@triton.jit
def _weights_of(weights, places, pair, last):
    """Weights of some pairs; zero from the last on."""
    place = tl.load(places + pair, mask=pair < last, other=0).to(tl.int64)
    return tl.load(weights + place, mask=pair < last, other=0.0)


@triton.jit
def _lowest(bits):
    """Position of the lowest bit of an int64 below 2^32: the exponent of a power of two."""
    power = (bits & -bits).to(tl.float32)
    return (power.to(tl.int32, bitcast=True) >> 23) - 127


@triton.jit
def laplacian(
    values, rows, starts, indptr, indices, places, weights, sums, width,
    PIECE: tl.constexpr, WORD: tl.constexpr, PAIRS: tl.constexpr, COORDINATES: tl.constexpr,
):  # fmt: skip
    """Sum of weight * (value of the row - value of its partner), for a piece of a row.

    Pairs of weight zero, most of them, are not loaded: of WORD pairs, the others are looked for
    in a word of bits.
    """
    piece = tl.program_id(0).to(tl.int64)
    row = tl.load(rows + piece)
    k = tl.program_id(1) * COORDINATES + tl.arange(0, COORDINATES)
    here = tl.load(values + row * width + k, mask=k < width, other=0.0)
    found = tl.zeros((PAIRS, COORDINATES), dtype=tl.float64)
    first = tl.load(starts + piece)
    last = tl.minimum(tl.load(indptr + row + 1), first + PIECE)
    bit = tl.full((WORD,), 1, dtype=tl.int64) << tl.arange(0, WORD)
    for start in range(first, last, WORD):
        some = _weights_of(weights, places, start + tl.arange(0, WORD), last)
        used = tl.sum(tl.where(some != 0.0, bit, 0), axis=0)
        while used != 0:
            pair = tl.zeros((PAIRS,), dtype=tl.int64) + last
            for which in tl.static_range(PAIRS):
                at = tl.where(used != 0, start + _lowest(used), last)
                pair = tl.where(tl.arange(0, PAIRS) == which, at, pair)
                used = used & (used - 1)
            weight = _weights_of(weights, places, pair, last)
            j = tl.load(indices + pair, mask=pair < last, other=0).to(tl.int64)
            inside = (pair < last)[:, None] & (k < width)[None, :]
            there = tl.load(values + j[:, None] * width + k[None, :], mask=inside, other=0.0)
            found += weight[:, None] * (here[None, :] - there).to(tl.float64)
    tl.store(sums + piece * width + k, tl.sum(found, axis=0), mask=k < width)


@triton.jit
def _own_range(left_out, rows, n_rows):
    """Ranges of columns of some rows that are left out."""
    begin = tl.load(left_out + 2 * rows, mask=rows < n_rows, other=0)
    end = tl.load(left_out + 2 * rows + 1, mask=rows < n_rows, other=0)
    return begin.to(tl.int32), end.to(tl.int32)


@triton.jit
def _mark(
    score, limit, begin, end, marks, in_block, rows, block, n_rows, n, n_blocks,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Store a bit for every score (rows x BLOCK) that reaches its limit, and counts by row."""
    first = block * BLOCK
    j = first + tl.arange(0, BLOCK)
    # Few blocks hold columns that are left out, or end beyond the last column. Scores are changed
    # there, not truth values: those would be packed and unpacked in every block.
    if (first < tl.max(end)) & (first + BLOCK > tl.min(begin)) | (first + BLOCK > n):
        outside = (j[None, :] < begin[:, None]) | (j[None, :] >= end[:, None])
        score = tl.where(outside & (j < n)[None, :], score, -float("inf"))
    bit = (1 << (tl.arange(0, BLOCK) % 32)).to(tl.int32)
    bits = tl.where(score >= limit[:, None], bit[None, :], 0)
    words = tl.sum(tl.reshape(bits, (rows.shape[0], BLOCK // 32, 32)), axis=2)
    place = rows * n_blocks + block
    at = marks + place[:, None] * (BLOCK // 32) + tl.arange(0, BLOCK // 32)[None, :]
    tl.store(at, words, mask=(rows < n_rows)[:, None])
    words = words - ((words >> 1) & 0x55555555)
    words = (words & 0x33333333) + ((words >> 2) & 0x33333333)
    words = (words + (words >> 4)) & 0x0F0F0F0F
    count = tl.sum((words * 0x01010101 >> 24) & 0xFF, axis=1)
    tl.store(in_block + place, count.to(tl.uint8), mask=rows < n_rows)


@triton.jit
def mark_scores(
    scores, limits, left_out, marks, in_block, n_rows, n, n_blocks,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, SPAN: tl.constexpr,
):  # fmt: skip
    """Mark the scores that reach the limit of their row, in a span of blocks of some rows."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    limit = tl.load(limits + rows, mask=rows < n_rows, other=float("inf"))
    begin, end = _own_range(left_out, rows, n_rows)
    for step in range(0, SPAN):
        block = tl.program_id(1) * SPAN + step
        j = block * BLOCK + tl.arange(0, BLOCK)
        inside = (rows < n_rows)[:, None] & (j < n)[None, :]
        score = tl.load(scores + rows[:, None] * n + j[None, :], mask=inside, other=0.0)
        _mark(score, limit, begin, end, marks, in_block, rows, block, n_rows, n, n_blocks, BLOCK)


@triton.jit
def mark_product(
    left, right, limits, left_out, marks, in_block, n_rows, n, n_blocks,
    WIDTH: tl.constexpr, DEPTH: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, SPAN: tl.constexpr,
):  # fmt: skip
    """Mark the entries of left @ right^T that reach the limit of their row; do not store them.

    Rows of full DEPTH are loaded once for all columns of a span.
    """
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    limit = tl.load(limits + rows, mask=rows < n_rows, other=float("inf")).to(tl.float32)
    # Whatever is left out has a score below all limits.
    limit = tl.maximum(limit, -3.0e38)
    begin, end = _own_range(left_out, rows, n_rows)
    k = tl.arange(0, DEPTH)
    a_at = left + rows[:, None] * WIDTH + k[None, :]
    here = (rows < n_rows)[:, None]
    if DEPTH == WIDTH:
        a = tl.load(a_at, mask=here, other=0.0)
    for step in range(0, SPAN):
        block = tl.program_id(1) * SPAN + step
        j = block * BLOCK + tl.arange(0, BLOCK)
        b_at = right + j.to(tl.int64)[None, :] * WIDTH + k[:, None]
        there = (j < n)[None, :]
        if DEPTH == WIDTH:
            score = tl.dot(a, tl.load(b_at, mask=there, other=0.0))
        else:
            score = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
            for depth in range(0, WIDTH, DEPTH):
                part = tl.load(a_at + depth, mask=here, other=0.0)
                score = tl.dot(part, tl.load(b_at + depth, mask=there, other=0.0), score)
        _mark(score, limit, begin, end, marks, in_block, rows, block, n_rows, n, n_blocks, BLOCK)


@triton.jit
def list_marked(marks, blocks, starts, columns, first_row, n_blocks, BLOCK: tl.constexpr):
    """List the marked columns of one block of one row that has any."""
    which = tl.program_id(0)
    at = tl.load(blocks + which)
    j = tl.arange(0, BLOCK)
    word = tl.load(marks + (first_row * n_blocks + at) * (BLOCK // 32) + j // 32)
    kept = (word >> (j % 32)) & 1
    rank = tl.load(starts + which) + tl.cumsum(kept, axis=0) - 1
    tl.store(columns + rank, (at % n_blocks).to(tl.int32) * BLOCK + j, mask=kept != 0)


@triton.jit
def exponentiate(exponents, totals, largest, first_row, n, COLUMNS: tl.constexpr):
    """Weights of one row, their sum, and the largest exponent."""
    row = tl.program_id(0).to(tl.int64)
    highest = tl.full((COLUMNS,), -float("inf"), dtype=tl.float32)
    for start in range(0, n, COLUMNS):
        j = start + tl.arange(0, COLUMNS)
        other = (j < n) & (j != first_row + row)
        t = tl.load(exponents + row * n + j, mask=other, other=-float("inf"))
        highest = tl.maximum(highest, t)
    # A negative squared distance is rounding.
    top = tl.minimum(tl.max(highest, axis=0), 0.0)
    total = tl.zeros((COLUMNS,), dtype=tl.float64)
    for start in range(0, n, COLUMNS):
        j = start + tl.arange(0, COLUMNS)
        other = (j < n) & (j != first_row + row)
        t = tl.load(exponents + row * n + j, mask=other, other=-float("inf"))
        weight = tl.exp2(tl.minimum(t, 0.0) - top)
        tl.store(exponents + row * n + j, weight, mask=j < n)
        total += weight.to(tl.float64)
    tl.store(largest + row, top)
    tl.store(totals + row, tl.sum(total, axis=0))
