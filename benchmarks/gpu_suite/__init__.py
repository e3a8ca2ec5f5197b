"""The parts of ``benchmarks/gpu.py``: one module per group, and what they share."""
