"""Plain-text tables."""

from __future__ import annotations

from collections.abc import Sequence


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with aligned columns, which is also Markdown.

    The first column is left-aligned, the others are right-aligned.

    Examples
    --------
    >>> print(text_table(["data", "accuracy"], [["iris", "96.0"], ["wine", "7.1"]]))
    | data | accuracy |
    |------|---------:|
    | iris |     96.0 |
    | wine |      7.1 |
    """
    widths = [max(len(row[c]) for row in [header, *rows]) for c in range(len(header))]

    def line(row: Sequence[str]) -> str:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        return "| " + " | ".join(cells) + " |"

    rule = ["-" * (widths[0] + 2)] + ["-" * (width + 1) + ":" for width in widths[1:]]
    return "\n".join([line(header), "|" + "|".join(rule) + "|", *(line(row) for row in rows)])
