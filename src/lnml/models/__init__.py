"""Fitted metrics that can be stored, sent to others and used on new rows."""

from lnml.models.model import Model, fit_model
from lnml.models.store import load_model, load_table_model, save_model

__all__ = ["Model", "fit_model", "load_model", "load_table_model", "save_model"]
