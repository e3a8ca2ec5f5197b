"""The parts of ``benchmarks/bench.py``: one module per group of lines, and what they share."""
