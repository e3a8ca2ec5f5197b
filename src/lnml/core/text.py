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


def as_bytes(count: float) -> str:
    """Return a number of bytes in the unit that suits it.

    Examples
    --------
    >>> as_bytes(3 * 2**30), as_bytes(2**24), as_bytes(5000)
    ('3.0 GiB', '16.0 MiB', '4.9 KiB')
    """
    for unit, size in (("GiB", 2**30), ("MiB", 2**20)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count / 2**10:.1f} KiB"
