"""ONNX graphs of our own: an affine map, and the vote of the nearest rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from lnml.core.pairs import TIE_SPLIT
from lnml.exports.affine import AffineMap
from lnml.models import Model

INPUT, OUTPUT = "X", "embedding"
# Of the operators below; all runtimes of the last years know it.
OPSET = 18


class GraphBuilder:
    """Nodes, constants, inputs and outputs of a graph, in the order in which they are added."""

    def __init__(self, onnx: Any, dtype: str) -> None:
        self._onnx, self._helper = onnx, onnx.helper
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        # Of numbers that come in and go out.
        self.kind = self._helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.double = onnx.TensorProto.DOUBLE

    def constant(self, array: Any, name: str) -> str:
        """Add an array; returns its name."""
        self._constants.append(self._onnx.numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, operator: str, inputs: list[str], name: str, **options: Any) -> str:
        """Add an operator; returns the name of its output."""
        self._nodes.append(self._helper.make_node(operator, inputs, [name], **options))
        return name

    def nodes(self, operator: str, inputs: list[str], names: list[str], **options: Any) -> None:
        """Add an operator with several outputs."""
        self._nodes.append(self._helper.make_node(operator, inputs, names, **options))

    def takes(self, name: str, shape: list[Any], kind: int | None = None) -> None:
        """Add an input."""
        self._inputs.append(self._value(name, shape, kind))

    def gives(self, name: str, shape: list[Any], kind: int | None = None) -> None:
        """Add an output, which is the output of a node."""
        self._outputs.append(self._value(name, shape, kind))

    def _value(self, name: str, shape: list[Any], kind: int | None) -> Any:
        return self._helper.make_tensor_value_info(name, kind or self.kind, shape)

    def graph(self, name: str) -> Any:
        """Return what was added."""
        return self._helper.make_graph(
            self._nodes, name, self._inputs, self._outputs, self._constants
        )

    def model(self) -> Any:
        """Return what was added, as a model."""
        versions = [self._helper.make_opsetid("", OPSET)]
        return self._helper.make_model(self.graph("lnml"), opset_imports=versions, ir_version=9)


def affine_arrays(found: AffineMap, dtype: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the centre (d,), the matrix (d, r) and the offset (r,) of a map, in a shorter type.

    What the centre loses by rounding becomes part of the offset. Then x - c has all digits that x
    has, although c may be far from 0.
    """
    center = found.center.astype(dtype)
    offset = found.offset + found.matrix @ (center - found.center)
    return center, np.ascontiguousarray(found.matrix.T, dtype=dtype), offset.astype(dtype)


def embedding_graph(onnx: Any, found: AffineMap, dtype: str) -> Any:
    """Return a model from ``X`` (n, d) to ``embedding`` (n, r)."""
    r, d = found.matrix.shape
    build = GraphBuilder(onnx, dtype)
    build.takes(INPUT, [None, d])
    _add_map(build, found, dtype, INPUT, OUTPUT)
    build.gives(OUTPUT, [None, r])
    return build.model()


def _add_map(build: GraphBuilder, found: AffineMap, dtype: Any, rows: str, mapped: str) -> None:
    arrays = zip(("center", "matrix", "offset"), affine_arrays(found, dtype), strict=True)
    center, matrix, offset = (build.constant(array, name) for name, array in arrays)
    centered = build.node("Sub", [rows, center], "centered")
    product = build.node("MatMul", [centered, matrix], "product")
    build.node("Add", [product, offset], mapped)


def label_graph(onnx: Any, model: Model, found: AffineMap, k: int, dtype: str) -> Any:
    """Return a model that also finds the k nearest training rows, and their vote.

    All arithmetic is in float64, with the ties of :meth:`Model.neighbors` and :meth:`Model.vote`:
    in float32 rounding would decide between rows that are equally far.
    """
    r, d = found.matrix.shape
    build = GraphBuilder(onnx, dtype)
    build.takes(INPUT, [None, d])
    rows = build.node("Cast", [INPUT], "rows", to=build.double)
    _add_map(build, found, np.float64, rows, "mapped")
    build.node("Cast", ["mapped"], OUTPUT, to=build.kind)
    _add_search(onnx, build, model.rows, k)
    _add_vote(onnx, build, model)
    build.gives(OUTPUT, [None, r])
    build.gives("distances", [None, k])
    build.gives("neighbors", [None, k], onnx.TensorProto.INT64)
    build.gives("label", [None], onnx.TensorProto.STRING)
    return build.model()


def _add_search(onnx: Any, build: GraphBuilder, references: np.ndarray, k: int) -> None:
    """From ``mapped`` (m, r) to ``neighbors`` and ``distances``, both (m, k)."""
    n = len(references)
    # The operator takes a stretch of the shape: here its first number, m.
    count = build.node("Shape", ["mapped"], "count", start=0, end=1)
    shape = build.node("Concat", [count, build.constant([n], "n")], "pairs", axis=0)
    nothing = onnx.numpy_helper.from_array(np.zeros(1))
    start = build.node("ConstantOfShape", [shape], "no_squares", value=nothing)
    columns = build.node("Transpose", ["mapped"], "columns", perm=[1, 0])
    others = build.constant(np.ascontiguousarray(references.T), "references")
    # Column by column: m x n x r differences at a time would need too much memory.
    body = _one_column(onnx)
    build.node("Scan", [start, columns, others], "squares", body=body, num_scan_inputs=2)
    # Rounded to 37 bits, so that distances equal but for rounding compare equal
    # (docs/neighborhoods.md).
    scaled = build.node("Mul", ["squares", build.constant(np.float64(TIE_SPLIT), "split")], "high")
    low = build.node("Sub", [scaled, "squares"], "low")
    rounded = build.node("Sub", [scaled, low], "rounded")
    voters = build.constant([k], "k")
    # Of equal values the operator takes the first.
    build.nodes("TopK", [rounded, voters], ["nearest", "neighbors"], axis=1, largest=0)
    roots = build.node("Sqrt", ["nearest"], "roots")
    build.node("Cast", [roots], "distances", to=build.kind)


def _one_column(onnx: Any) -> Any:
    """Add the squared differences of one column to sums (m, n)."""
    body = GraphBuilder(onnx, "float64")
    body.takes("sums", [None, None])
    body.takes("column", [None])
    body.takes("other", [None])
    axis = body.constant([1], "axis")
    tall = body.node("Unsqueeze", ["column", axis], "tall")
    difference = body.node("Sub", [tall, "other"], "difference")
    square = body.node("Mul", [difference, difference], "square")
    body.node("Add", ["sums", square], "new_sums")
    body.gives("new_sums", [None, None])
    return body.graph("one_column")


def _add_vote(onnx: Any, build: GraphBuilder, model: Model) -> None:
    """From ``neighbors`` (m, k) to ``label`` (m,): of equal counts the nearest row decides."""
    codes = build.constant(model.codes.astype(np.int64), "codes")
    votes = build.node("Gather", [codes, "neighbors"], "votes")
    first_axis, last_axis = build.constant([1], "axis_1"), build.constant([2], "axis_2")
    deep = build.node("Unsqueeze", [votes, last_axis], "deep")
    numbers = build.constant(np.arange(len(model.classes)), "classes")
    same = build.node("Equal", [deep, numbers], "same")
    # Operators for float32 are what every runtime has; counts are exact in it.
    ones = build.node("Cast", [same], "ones", to=onnx.TensorProto.FLOAT)
    counts = build.node("ReduceSum", [ones, first_axis], "counts", keepdims=0)
    support = build.node("GatherElements", [counts, votes], "support", axis=1)
    first = build.node("ArgMax", [support], "first", axis=1)
    chosen = build.node("GatherElements", [votes, first], "chosen", axis=1)
    flat = build.node("Squeeze", [chosen, first_axis], "code")
    names = build.constant(np.array(model.classes, dtype=object), "labels")
    build.node("Gather", [names, flat], "label")
