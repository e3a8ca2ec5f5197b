"""Who should be near whom: the neighbourhood object and its exact assignment."""

from lnml.neighborhoods.assignment import assign_neighborhoods
from lnml.neighborhoods.graph import Neighborhoods
from lnml.neighborhoods.similarity import similarity_graph

__all__ = ["Neighborhoods", "assign_neighborhoods", "similarity_graph"]
