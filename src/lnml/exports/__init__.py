"""Learned metrics for the tools of others: ONNX, Faiss, torch and Sentence Transformers."""

from lnml.exports.layers import to_sentence_transformers, to_torch
from lnml.exports.onnx import register_onnx_converters, to_onnx
from lnml.exports.search import to_faiss

__all__ = [
    "register_onnx_converters",
    "to_faiss",
    "to_onnx",
    "to_sentence_transformers",
    "to_torch",
]
