"""Real data sets for examples, tests and the study."""

from lnml.datasets._large import MissingDataError, list_large_datasets, load_large_dataset
from lnml.datasets._loaders import list_datasets, load_dataset

__all__ = [
    "MissingDataError",
    "list_datasets",
    "list_large_datasets",
    "load_dataset",
    "load_large_dataset",
]
