"""The nouns of the library: points, pairs, neighbourhoods, solutions. Imports no other layer."""
