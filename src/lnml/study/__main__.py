"""``python -m lnml.study`` is ``lnml study``: it hands over to the command line."""

import runpy
import sys

sys.argv.insert(1, "study")
runpy.run_module("lnml", run_name="__main__")
