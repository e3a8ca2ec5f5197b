"""A table in Parquet files whose rows stay on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import MinMaxScaler

from lnml.errors import InputError, require
from lnml.evaluation.problem import stratified_sample
from lnml.kernels.cluster.crew import Crew
from lnml.tables import pieces as _pieces
from lnml.tables.parquet_files import DataFile, Footer, common_columns, read_footers
from lnml.tables.pieces import Facts, Piece, pieces_of, told
from lnml.tables.preparation import Column, Preparation, check_components
from lnml.tables.reading import Reading
from lnml.tables.summary import Summary, make_plan, summarize

# Row groups are read together up to so many numbers: 16 MB.
NUMBERS_AT_A_TIME = 2**21
# Footers that one task reads.
FILES_AT_A_TIME = 32
# Sums of squares that one task adds.
SETS_AT_A_TIME = 8

Part = list[Piece]


@dataclass(frozen=True)
class ClusterTable:
    """Labelled rows that the workers read.

    Attributes
    ----------
    name : str
        What the user called the data.
    n_files : int
        Files with rows.
    summary : Summary
        What is known of labels and columns.
    parts : list of list of Piece
        What a task reads.
    sizes : list of list of int
        Rows of each piece that are used.
    crew : Crew
        The workers.
    notes : tuple of str
        What a user should know.
    """

    name: str
    n_files: int
    summary: Summary
    parts: list[Part]
    sizes: list[list[int]]
    crew: Crew
    notes: tuple[str, ...]

    @property
    def label(self) -> str:
        """Column of the labels."""
        return self.summary.plan.label

    @property
    def labels(self) -> np.ndarray:
        """Label of each row (n,)."""
        return self.summary.classes[self.summary.codes]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.summary.codes.size

    def prepare(self, preparation: Preparation, kept: np.ndarray) -> Preparation:
        """Fit a preparation to these rows, where they are.

        Parameters
        ----------
        preparation : Preparation
            How columns become numbers; to be fitted.
        kept : ndarray of shape (m, columns)
            Rows that :meth:`sample` returned. Their medians stand for missing numbers of new rows.
        """
        preparation.check_parameters()
        d = self.summary.mean.size
        centers, spreads = self._scaling(preparation.scale)
        facts: Any = {
            "medians": np.median(kept[:, :d], axis=0),
            "centers": centers,
            "spreads": spreads,
        }
        projection = None
        if preparation.pca is not None:
            scaled = Preparation(scale=preparation.scale).learned(self._columns, **facts)
            projection = self._components(scaled, preparation.pca)
        return preparation.learned(self._columns, **facts, projection=projection)

    @property
    def _columns(self) -> tuple[Column, ...]:
        return (*map(Column, self.summary.plan.numbers), *self.summary.categories)

    def _scaling(self, scale: str) -> tuple[np.ndarray, np.ndarray]:
        """Return what is taken from each column of numbers, and what it is divided by."""
        facts, d = self.summary, self.summary.mean.size
        if not d or scale == "none":
            return np.zeros(d), np.ones(d)
        if scale == "minmax":
            scaler = MinMaxScaler().fit(np.stack([facts.lowest, facts.highest]))
            return scaler.data_min_, 1.0 / scaler.scale_
        # As in StandardScaler: what may be rounding alone is not blown up.
        n, eps = self.n_rows, np.finfo(np.float64).eps
        rounding = n * eps * facts.variance + (n * facts.mean * eps) ** 2
        constant = facts.variance <= rounding
        return facts.mean, np.where(constant, 1.0, np.sqrt(facts.variance))

    def _components(self, scaled: Preparation, pca: float) -> tuple[np.ndarray, np.ndarray]:
        """Return mean (d',) and principal components (d, d') of the scaled rows."""
        plan, submit = self.summary.plan, self.crew.submit
        found = [submit(_pieces.scatter, part, plan, scaled) for part in self.parts]
        while len(found) > 1:
            # Where they are: all of them could be too many for the client.
            groups = [found[i : i + SETS_AT_A_TIME] for i in range(0, len(found), SETS_AT_A_TIME)]
            found = [submit(_pieces.all_joined, group) for group in groups]
        n, mean, scatter = self.crew.results(found)[0]
        check_components(pca, (n, mean.size), varies=bool(scatter.any()))
        values, vectors = np.linalg.eigh(scatter)
        values, rows = np.clip(values[::-1], 0.0, None), vectors[:, ::-1].T
        share = np.cumsum(values) / values.sum()
        wanted = int(pca) if pca >= 1 else int(np.searchsorted(share, pca, side="right")) + 1
        # scikit-learn's signs: the largest entry of each component is positive.
        largest = rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)]
        return mean, np.ascontiguousarray((rows * np.sign(largest)[:, None])[:wanted])

    def rows(self, preparation: Preparation) -> Any:
        """Return the rows as a lazy Dask array of shape (n, d); workers read them when asked."""
        array, delayed = require("dask.array", extra="dask"), require("dask", extra="dask").delayed
        shared = delayed(preparation, traverse=False)
        width = preparation.n_features_out
        blocks = []
        for part, sizes in zip(self.parts, self.sizes, strict=True):
            if sum(sizes):
                read = partial(_pieces.matrix, part, self.summary.plan)
                block = delayed(read, name=None, pure=False)(preparation=shared)
                shape = sum(sizes), width
                blocks.append(array.from_delayed(block, shape=shape, dtype=np.float64))
        return array.concatenate(blocks)

    def sample(self, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Bring a stratified sample of the rows here.

        Parameters
        ----------
        size : int
            Most rows. If there are no more, all come.
        seed : int
            Seed of the choice.

        Returns
        -------
        numbers : ndarray of int, shape (m,)
            Numbers of these rows, in rising order.
        kept : ndarray of shape (m, columns)
            The rows, neither scaled nor projected.
        """
        numbers = stratified_sample(self.summary.codes, size, seed)
        none = np.zeros(self.summary.mean.size)
        raw = Preparation().learned(self._columns, medians=none, centers=none, spreads=none + 1.0)
        wanted, start = [], 0
        for sizes in self.sizes:
            mine = []
            for n in sizes:
                first, end = np.searchsorted(numbers, [start, start + n])
                mine.append(numbers[first:end] - start)
                start += n
            wanted.append(mine)
        chosen = [place for place, mine in enumerate(wanted) if any(map(len, mine))]
        futures = [
            self.crew.submit(
                told, _pieces.picked, self.parts[place], self.summary.plan, raw, wanted[place]
            )
            for place in chosen
        ]
        return numbers, np.concatenate(list(_checked(self.crew.results(futures))))


def read_cluster_table(
    client: Any,
    name: str | Path,
    files: Sequence[DataFile],
    label: str | None,
    drop: Collection[str] = (),
    *,
    reading: Reading,
    categories: Collection[str] = (),
    drop_classes: Collection[str] = (),
) -> ClusterTable:
    """Let workers look at all rows of Parquet files, and decide what their columns are.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    name : str or Path
        What the user called the data.
    files : sequence of DataFile
        The files, as :func:`lnml.tables.parquet_files.find_files` returns them. All workers must
        reach them.
    label, drop, reading, categories, drop_classes
        As in :func:`lnml.tables.read_table`.

    Returns
    -------
    table : ClusterTable

    Raises
    ------
    InputError
        If the files cannot be used. The rules are in docs/cli.md.
    """
    crew = Crew(client)
    groups = [files[i : i + FILES_AT_A_TIME] for i in range(0, len(files), FILES_AT_A_TIME)]
    footers = [each for part in run_groups(crew, read_footers, groups) for each in part]
    filled = [footer for footer in footers if footer.n_rows]
    if not filled:
        raise InputError(f"{name}: no file has any row")
    columns = common_columns(filled, label, drop, categories)
    assert label is not None
    plan = make_plan(columns, label, categories, reading.missing, tuple(drop_classes))
    parts = make_parts(filled, len(columns))
    facts: list[list[Facts]] = run_groups(crew, _pieces.look_at, parts, plan)
    summary = summarize([each for part in facts for each in part], plan, columns, categories)
    empty = [footer.file.name for footer in footers if not footer.n_rows]
    notes = [f"files without rows: {', '.join(empty[:5])}{', ...' if len(empty) > 5 else ''}"]
    return ClusterTable(
        name=Path(name).name or str(name),
        n_files=len(filled),
        summary=summary,
        parts=parts,
        sizes=[[each.n for each in part] for part in facts],
        crew=crew,
        notes=(*(notes if empty else ()), *summary.notes),
    )


def make_parts(footers: Sequence[Footer], n_columns: int) -> list[Part]:
    """Return row groups in the order of the rows, small ones together."""
    parts: list[Part] = []
    room = 0
    for piece in (piece for footer in footers for piece in pieces_of(footer)):
        size = piece.n_rows * n_columns
        if not parts or size > room:
            parts.append([])
            room = NUMBERS_AT_A_TIME
        parts[-1].append(piece)
        room -= size
    return parts


def run_groups(
    crew: Crew, task: Callable[..., Any], groups: Sequence[Any], *given: Any
) -> list[Any]:
    """Run a task for each group on the workers; return the results in the same order."""
    futures = [crew.submit(told, task, group, *given) for group in groups]
    return list(_checked(crew.results(futures)))


def _checked(found: Sequence[Any]) -> Iterator[Any]:
    """Return results one by one; raise the first error among them."""
    for each in found:
        if isinstance(each, InputError):
            raise each
        yield each
