"""The command ``lnml``. Each subcommand has its own file; ``app.py`` holds the shared parts."""

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
        The arguments after ``lnml``; by default those of the shell.
    """
    if find_spec("typer") is None or find_spec("rich") is None:
        print('lnml: the command line is an extra: pip install "lnml[cli]"', file=sys.stderr)
        return 2
    from lnml.cli.app import run

    return run(sys.argv[1:] if arguments is None else list(arguments))
