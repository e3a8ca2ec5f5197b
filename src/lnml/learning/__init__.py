"""Neighbourhoods and metric in turn (Algorithm 1), and functions that use neighbourhoods."""
