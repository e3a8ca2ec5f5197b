"""Users' files as tables, and tables as matrices."""

from lnml.tables.preparation import Preparation
from lnml.tables.table import Table, make_table, read_table

__all__ = ["Preparation", "Table", "make_table", "read_table"]
