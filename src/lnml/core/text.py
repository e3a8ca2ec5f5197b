"""Text to show: that of strangers, of which no character commands a terminal, and sizes."""

from __future__ import annotations

import re

# Control characters, with those that begin the commands of terminals, separators of lines and
# paragraphs, marks that turn the direction of writing, and halves of characters.
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str, *, lines: bool = False) -> str:
    r"""Return a text with escapes, such as ``\x1b``, for characters that are not to be seen.

    Parameters
    ----------
    text : str
        Any text.
    lines : bool, default=False
        Whether ends of lines and tabs stay as they are.

    Examples
    --------
    >>> print(visible("\x1b[31mred\n"))
    \x1b[31mred\n
    """

    def escape(found: re.Match[str]) -> str:
        character = found[0]
        kept = lines and character in "\n\t"
        return character if kept else character.encode("unicode_escape").decode()

    return _HIDDEN.sub(escape, text)


def shortened(text: str, width: int) -> str:
    """Return a text on one line, cut to a width.

    Examples
    --------
    >>> shortened("a long label", 6)
    'a lon…'
    """
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"


def rows_text(count: int) -> str:
    """Return a number of rows in words.

    Examples
    --------
    >>> rows_text(1), rows_text(12)
    ('1 row', '12 rows')
    """
    return f"{count} row{'' if count == 1 else 's'}"


def memory_text(n_bytes: float) -> str:
    """Return bytes in GiB, or in MiB where that would be a small fraction.

    Examples
    --------
    >>> memory_text(3 * 2**30), memory_text(5 * 2**20)
    ('3.0 GiB', '5.0 MiB')
    """
    if n_bytes >= 2**30:
        return f"{n_bytes / 2**30:.1f} GiB"
    return f"{n_bytes / 2**20:.{1 if n_bytes < 10 * 2**20 else 0}f} MiB"


def format_seconds(seconds: float) -> str:
    """Time with two digits or so, in a unit that suits it.

    Examples
    --------
    >>> format_seconds(0.0042), format_seconds(12.3), format_seconds(754.0)
    ('4 ms', '12.3 s', '12 min 34 s')
    """
    if seconds < 0.1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def format_megabytes(megabytes: float | None) -> str:
    """Memory in whole megabytes; a dash if it is not known.

    Examples
    --------
    >>> format_megabytes(1234.5), format_megabytes(0.2), format_megabytes(None)
    ('1,234 MB', '< 1 MB', '–')
    """
    if megabytes is None:
        return "–"
    return f"{megabytes:,.0f} MB" if megabytes >= 1 else "< 1 MB"
