"""
First fit
=========

Text.
"""

print(1)
