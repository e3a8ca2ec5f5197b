"""Neighbourhoods and metric in turn: assignment, Algorithm 1, and what neighbourhoods tell."""
