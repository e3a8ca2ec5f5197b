"""The nouns of the library: points, pairs, neighbourhoods, solutions. Imports nothing of ours."""
