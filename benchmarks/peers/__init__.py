"""The tools lnml is compared with, run in an environment of their own."""
