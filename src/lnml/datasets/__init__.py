"""Small real data sets for examples, tests and the study."""

from lnml.datasets._loaders import list_datasets, load_dataset

__all__ = ["list_datasets", "load_dataset"]
