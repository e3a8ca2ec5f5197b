"""Which worker has which cell: work is even, and each worker needs few blocks (docs/cluster.md)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lnml.kernels.cluster.layout import Cell, Layout

# Most work of a worker for each of its threads, as a share of the mean.
EVEN = 1.1

Deal = dict[Cell, str]


def dealt_out(layout: Layout, workers: dict[str, int]) -> Deal:
    """Return the worker of each cell; ``workers`` have numbers of threads.

    Of the ways to deal them out that leave work about even, or as even as any does, the one is
    taken that leaves the fewest rows to the worker with most.
    """
    deals = list(_squares(layout, workers))
    if len(set(workers.values())) == 1:
        deals.append(_in_turn(layout, list(workers)))
    work = [_most_work(layout, workers, deal) for deal in deals]
    most = max(EVEN, min(work))
    even = [deal for deal, own in zip(deals, work, strict=True) if own <= most]
    return min(even, key=most_blocks)


def most_blocks(deal: Deal) -> int:
    """Return the number of blocks that the worker with most needs."""
    blocks: dict[str, set[int]] = {}
    for cell, name in deal.items():
        blocks.setdefault(name, set()).update(cell)
    return max(map(len, blocks.values()))


def _most_work(layout: Layout, workers: dict[str, int], deal: Deal) -> float:
    """Return the most pairs that a thread has, as a share of the mean."""
    work = dict.fromkeys(workers, 0.0)
    for cell, name in deal.items():
        work[name] += layout.n_pairs(cell)
    most = max(work[name] / threads for name, threads in workers.items())
    return most / (sum(work.values()) / sum(workers.values()))


def _squares(layout: Layout, workers: dict[str, int]) -> Iterator[Deal]:
    """List the cells by squares of m x m, for each m, and cut the list into pieces of work."""
    names, ends = list(workers), np.cumsum(list(workers.values())) / sum(workers.values())
    for side in range(1, layout.n_blocks + 1):

        def place(cell: Cell, side: int = side) -> tuple[int, int, int, int]:
            row, column = cell[0] // side, cell[1] // side
            return row, -column if row % 2 else column, *cell

        cells = sorted(layout.cells, key=place)
        sizes = np.array([layout.n_pairs(cell) for cell in cells])
        middle = (np.cumsum(sizes) - 0.5 * sizes) / sizes.sum()
        pieces = np.searchsorted(ends, middle)
        yield {cell: names[i] for cell, i in zip(cells, pieces, strict=True)}


def _in_turn(layout: Layout, names: list[str]) -> Deal:
    """Deal cells out in turn, for workers of equal strength.

    Blocks are put into as many groups as there are workers, p. Worker w has groups w + s (mod p),
    s in a set in which every difference modulo p occurs. So any two groups meet on a worker, and
    each worker meets one pair of groups for each difference.
    """
    p = len(names)
    at = _meeting_places(p)
    deal = {}
    for cell in layout.cells:
        a, b = (block * p // layout.n_blocks for block in cell)
        difference = (b - a) % p
        if 2 * difference == p and sum(cell) % 2:
            # These two groups meet on two workers; each has half of their cells.
            a, difference = b, (a - b) % p
        deal[cell] = names[(a - at[difference]) % p]
    return deal


def _meeting_places(p: int) -> dict[int, int]:
    """Return for each difference modulo p an s such that s and s + difference are in one set.

    The set is built up with the number that brings most new differences.
    """
    chosen, at = [0], {0: 0}

    def new(number: int) -> dict[int, int]:
        ways = {(number - each) % p: each for each in chosen}
        ways |= {(each - number) % p: number for each in chosen}
        return {difference: s for difference, s in ways.items() if difference not in at}

    while len(at) < p:
        best = max(range(1, p), key=lambda number: len(new(number)))
        at |= new(best)
        chosen.append(best)
    return at
