"""The command ``lnml``; each command has its file, shared parts are in ``app.py``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows ``lnml``; by default what the shell gave.
    """
    if find_spec("typer") is None or find_spec("rich") is None:
        print('lnml: the command line is an extra: pip install "lnml[cli]"', file=sys.stderr)
        return 2
    from lnml.cli.app import run

    return run(sys.argv[1:] if arguments is None else list(arguments))
