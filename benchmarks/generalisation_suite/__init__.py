"""Parts of ``benchmarks/generalisation.py``."""
