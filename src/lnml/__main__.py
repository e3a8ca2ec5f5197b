"""``python -m lnml`` is the command ``lnml``."""

import sys

from lnml.cli import main

if __name__ == "__main__":
    sys.exit(main())
