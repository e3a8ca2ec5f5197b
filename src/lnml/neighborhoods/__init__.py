"""Who should be near whom: the neighbourhood object and its exact assignment."""

from lnml.neighborhoods.assignment import assign_neighborhoods
from lnml.neighborhoods.graph import Neighborhoods

__all__ = ["Neighborhoods", "assign_neighborhoods"]
