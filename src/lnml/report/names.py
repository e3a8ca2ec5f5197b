"""Long names: shortened where they stand, written out once at the end of the page."""

from __future__ import annotations

import unicodedata

from markupsafe import Markup, escape

from lnml.core.text import shortened

# Characters that a name may have where it stands.
WIDTH = 28


class Names:
    """The long names of one page.

    Examples
    --------
    >>> names = Names()
    >>> print(names.show("short"), names.show("a label that goes on and on and on"))
    short <a class="long" href="#name-0">a label that goes on and on…</a>
    >>> names.written_out
    [('name-0', 'a label that goes on and on and on')]
    """

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def show(self, text: object, width: int = WIDTH) -> Markup:
        """Return a name, or its beginning with a link to the whole."""
        name = str(text)
        if len(name) <= width:
            return _isolated(name)
        place = self._places.setdefault(name, len(self._places))
        return Markup('<a class="long" href="#name-{}">{}</a>').format(
            place, _isolated(shortened(name, width))
        )

    @property
    def written_out(self) -> list[tuple[str, str]]:
        """The anchors and full texts of all names that were shortened."""
        return [(f"name-{place}", name) for name, place in self._places.items()]


def _isolated(name: str) -> Markup:
    """Return a name that does not turn the order of the numbers beside it."""
    if any(unicodedata.bidirectional(character) in {"R", "AL", "AN"} for character in name):
        return Markup("<bdi>{}</bdi>").format(name)
    return escape(name)
