"""``python -m lnml.study`` is ``lnml study``."""

import sys

from lnml.cli import main

sys.exit(main(["study", *sys.argv[1:]]))
