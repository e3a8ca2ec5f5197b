"""Inputs from strangers: damaged, lying and odd files, and a judge of what becomes of them.

``make fuzz`` tries thousands of them in processes of their own; ``test_fuzz.py`` some hundred.
docs/reliability.md says what was found.
"""
