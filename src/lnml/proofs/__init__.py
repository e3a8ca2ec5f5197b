"""Objectives and bounds of a finished fit, with the rounding of their own computation."""
