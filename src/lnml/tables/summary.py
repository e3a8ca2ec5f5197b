"""Put together what workers saw in the pieces of a table, and decide what its columns are."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from lnml.errors import InputError, require
from lnml.tables.columns import LEAST_ROWS_COUNTED, MOST_CATEGORIES, counts_rows, is_identifier
from lnml.tables.parquet_files import NO_VALUES, ColumnType, DataFile, read_footers
from lnml.tables.pieces import Facts, Plan, all_joined, pieces_of, read_piece
from lnml.tables.preparation import Column
from lnml.tables.table import Table, check_classes, check_dropped, notes_about_dropped
from lnml.tables.texts import is_a_date, is_number, refuse_other_numbers

FAMILIES = ("numbers", "booleans", "text")


@dataclass(frozen=True)
class Summary:
    """What a table on a cluster holds.

    Attributes
    ----------
    plan : Plan
        How its rows are read, without columns that are left out.
    classes : ndarray of str, shape (c,)
        Labels in sorted order.
    codes : ndarray of int, shape (n,)
        Label of each row, as a position in ``classes``.
    mean, variance, lowest, highest : ndarray of shape (columns of numbers,)
        Of each column of numbers.
    categories : tuple of Column
        The other columns.
    fingerprint : str
        SHA-256 of all pieces; it depends on the row groups of the files.
    notes : tuple of str
        What a user should know.
    """

    plan: Plan
    classes: np.ndarray
    codes: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    categories: tuple[Column, ...]
    fingerprint: str
    notes: tuple[str, ...]


def make_plan(
    columns: Mapping[str, ColumnType],
    label: str,
    categories: Collection[str],
    missing: Sequence[str],
    drop_classes: Sequence[str],
) -> Plan:
    """Decide from their types what columns are; refuse those that no distance can use."""
    numbers: list[str] = []
    texts: list[str] = []
    for name, kind in columns.items():
        if name == label:
            continue
        if kind.family == NO_VALUES:
            raise _no_value(name)
        if kind.family == "dates":
            raise is_a_date(name)
        if kind.family not in FAMILIES:
            raise InputError(
                f"column {name!r} holds {kind.family} values, neither numbers nor text: convert "
                f"it, or leave it out (--drop {name!r})"
            )
        is_plain = kind.family == "numbers" and not kind.declared and name not in categories
        (numbers if is_plain else texts).append(name)
    if not numbers and not texts:
        raise InputError("there is no feature column beside the labels")
    return Plan(label, tuple(numbers), tuple(texts), tuple(missing), tuple(drop_classes))


def summarize(
    facts: Sequence[Facts],
    plan: Plan,
    columns: Mapping[str, ColumnType],
    categories: Collection[str] = (),
) -> Summary:
    """Put pieces together; refuse what cannot be learned from.

    Parameters
    ----------
    facts : sequence of Facts
        What the pieces hold, in the order of the rows.
    plan : Plan
        How they were read.
    columns : mapping of str to ColumnType
        What the files say of each column.
    categories : collection of str
        Columns that the user called categories.
    """
    classes, codes = _labels(facts)
    dropped = {name: sum(each.dropped.get(name, 0) for each in facts) for name in plan.drop_classes}
    absent = [name for name, count in dropped.items() if not count]
    check_dropped(absent, sorted({*classes.tolist(), *dropped} - {*absent}))
    check_classes(classes, codes, plan.label)
    said = notes_about_dropped(dropped)
    used = []
    for place, name in enumerate(plan.numbers):
        _refuse_numbers(facts, place, name)
        if _counts_rows(facts, place):
            said.append(f"column {name!r} counts the rows: left out")
        else:
            used.append(place)
    known = []
    for name in plan.categories:
        told = columns[name].declared or name in categories
        column = _categories(facts, name, told or columns[name].family != "text")
        if column is None:
            said.append(
                f"column {name!r} has a different text in every row, like an identifier: left out"
            )
        else:
            known.append(column)
    if not used and not known:
        raise InputError(f"there is no feature column beside the labels ({'; '.join(said)})")
    numbers = tuple(plan.numbers[place] for place in used)
    kept = replace(plan, numbers=numbers, categories=tuple(column.name for column in known))
    n, mean, squares = all_joined((each.n, each.mean, each.squares) for each in facts)
    return Summary(
        plan=kept,
        classes=classes,
        codes=codes,
        mean=mean[used],
        variance=squares[used] / n,
        lowest=np.min([each.lowest for each in facts], axis=0)[used],
        highest=np.max([each.highest for each in facts], axis=0)[used],
        categories=tuple(known),
        fingerprint=fingerprint([each.digests for each in facts if each.n], kept),
        notes=tuple(said),
    )


def fingerprint(digests: Sequence[Mapping[str, str]], plan: Plan) -> str:
    """SHA-256 of the columns that are used, and of the labels.

    Parameters
    ----------
    digests : sequence of dict
        Those of the pieces that have rows, by column.
    plan : Plan
        Which columns are used.
    """
    digest = hashlib.sha256(b"lnml pieces 1")
    for each in digests:
        for name in (*plan.numbers, *plan.categories, plan.label):
            digest.update(bytes.fromhex(each[name]))
    return digest.hexdigest()


def read_whole(
    files: Sequence[DataFile], plan: Plan, classes: Collection[str]
) -> tuple[Table, str]:
    """Read all rows of files here, as the workers of a cluster read them.

    Parameters
    ----------
    files : sequence of DataFile
        The files.
    plan : Plan
        Which columns are read, and how.
    classes : collection of str
        Labels whose rows are wanted. Rows of others are left out, if there are rows of all these.

    Returns
    -------
    table : Table
    fingerprint : str
        As in :class:`Summary`.
    """
    pieces = [piece for footer in read_footers(files) for piece in pieces_of(footer)]
    tables = [read_piece(piece, plan)[0] for piece in pieces]
    found = {label for table in tables for label in np.unique(table.labels).tolist()}
    if found > set(classes):
        chosen = replace(plan, drop_classes=tuple(found.difference(classes)))
        tables = [read_piece(piece, chosen)[0] for piece in pieces]
    tables = [table for table in tables if len(table.labels)]
    if not tables:
        raise InputError("these files have no rows of the classes that are wanted")
    whole = replace(
        tables[0],
        features=require("pandas").concat([each.features for each in tables], ignore_index=True),
        labels=np.concatenate([table.labels for table in tables]),
    )
    return whole, fingerprint([table.column_digests for table in tables], plan)


def _labels(facts: Sequence[Facts]) -> tuple[np.ndarray, np.ndarray]:
    """Return all labels that occur (c,), sorted, and the label of each row (n,) as a number."""
    classes = np.array(sorted({name for each in facts for name in each.classes}), dtype=str)
    place = {name: code for code, name in enumerate(classes.tolist())}
    codes = [
        np.array([place[name] for name in each.classes], dtype=np.int64)[each.codes]
        for each in facts
        if each.n
    ]
    return classes, np.concatenate(codes) if codes else np.zeros(0, dtype=np.int64)


def _no_value(name: str) -> InputError:
    return InputError(
        f"column {name!r} has no value in any row: remove it, or leave it out (--drop {name!r})"
    )


def _refuse_numbers(facts: Sequence[Facts], place: int, name: str) -> None:
    """Refuse a column of numbers with values that are missing, infinite or too large."""
    n, n_missing = sum(each.n for each in facts), sum(int(each.n_missing[place]) for each in facts)
    if n_missing == n:
        raise _no_value(name)
    if n_missing:
        first = next(each.piece.file.name for each in facts if each.n_missing[place])
        raise InputError(
            f"column {name!r} has no value in {n_missing} of {n} rows (the first is in {first}), "
            f"and a cluster does not fill them in: fill them in, remove these rows, or leave the "
            f"column out (--drop {name!r})"
        )
    n_wrong = sum(int(each.n_wrong[place]) for each in facts)
    if n_wrong:
        first = next(each.piece.file.name for each in facts if each.n_wrong[place])
        raise InputError(
            f"column {name!r} holds a value that is infinite, or whose square overflows, in "
            f"{n_wrong} of {n} rows (the first is in {first}): correct or rescale it"
        )


def _counts_rows(facts: Sequence[Facts], place: int) -> bool:
    """Whether whole numbers rise by one from row to row, in all rows or anew in every file."""
    filled = [each for each in facts if each.n]
    n, first = sum(each.n for each in filled), float(filled[0].first[place])
    if not all(each.rises[place] for each in filled) or not counts_rows(n, first):
        return False
    joints = [
        after.first[place] == before.last[place] + 1.0 or _begins_a_file(before, after)
        for before, after in pairwise(filled)
    ]
    anew = [
        after.first[place] != before.last[place] + 1.0 and _begins_a_file(before, after)
        for before, after in pairwise(filled)
    ]
    return all(joints) and (not any(anew) or min(_file_sizes(filled)) >= LEAST_ROWS_COUNTED)


def _begins_a_file(before: Facts, after: Facts) -> bool:
    return before.piece.file != after.piece.file


def _file_sizes(facts: Sequence[Facts]) -> list[int]:
    """Rows of each file."""
    sizes: dict[str, int] = {}
    for each in facts:
        sizes[each.piece.file.path] = sizes.get(each.piece.file.path, 0) + each.n
    return list(sizes.values())


def _categories(facts: Sequence[Facts], name: str, told: bool) -> Column | None:
    """Return a column of categories; None if it looks like an identifier.

    ``told`` says that these are categories, whatever the texts look like.
    """
    counts: dict[str, int] = {}
    too_many = any(each.texts[name] is None for each in facts)
    for each in facts:
        for text, count in (each.texts[name] or {}).items():
            counts[text] = counts.get(text, 0) + count
    if too_many or len(counts) > MOST_CATEGORIES:
        raise InputError(
            f"column {name!r} holds more than {MOST_CATEGORIES} different texts, which cannot "
            f"become 0/1 columns: group them, write numbers as numbers, or leave the column out "
            f"(--drop {name!r})"
        )
    n_present = sum(counts.values())
    if not n_present:
        raise _no_value(name)
    if is_identifier(len(counts), n_present):
        return None
    if not told:
        _refuse_numbers_as_text(name, counts)
    has_missing = any(each.n_empty[name] for each in facts)
    return Column(name, tuple(sorted(counts)), has_missing)


def _refuse_numbers_as_text(name: str, counts: Mapping[str, int]) -> None:
    """Refuse texts of which half or more are numbers: a piece alone cannot tell what they are."""
    refuse_other_numbers(name, list(counts))
    n_numbers = sum(count for text, count in counts.items() if is_number(text))
    if 2 * n_numbers > sum(counts.values()):
        word = next((text for text in counts if not is_number(text)), None)
        others = "" if word is None else f", and others such as {word!r}"
        raise InputError(
            f"column {name!r} holds numbers as text{others}: write them as numbers, or read all "
            f"values as categories (--categories {name!r})"
        )
