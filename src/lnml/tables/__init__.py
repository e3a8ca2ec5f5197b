"""Users' files as tables, and tables as matrices."""

from lnml.tables.preparation import Preparation
from lnml.tables.table import Table, check_folds, make_table, read_table

__all__ = ["Preparation", "Table", "check_folds", "make_table", "read_table"]
