"""Learned metrics as ONNX graphs, and in pipelines that skl2onnx converts."""

from __future__ import annotations

import json
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from lnml.core.checks import kind_of
from lnml.errors import InputError, require
from lnml.estimators.metric import MahalanobisMetric
from lnml.exports.affine import AffineMap, Steps, affine_map, affine_start, steps_of
from lnml.exports.digits import warn_of_lost_digits
from lnml.exports.graphs import INPUT, OUTPUT, affine_arrays, embedding_graph, label_graph
from lnml.kernels.tensors import host_array
from lnml.models import Model
from lnml.models.fitted import METRIC_CLASSES
from lnml.version import __version__

DTYPES = {"float32": "FloatTensorType", "float64": "DoubleTensorType"}


def to_onnx(model: Any, *, dtype: str = "float32", labels: bool = False) -> Any:
    """Return a metric, or a pipeline with one, as an ONNX model.

    Parameters
    ----------
    model : fitted estimator, pipeline or Model
        An estimator of lnml; a pipeline with such an estimator, of any steps that skl2onnx
        converts, such as StandardScaler, PCA and, at its end, KNeighborsClassifier; or what
        :func:`lnml.models.load_model` returns.
    dtype : {'float32', 'float64'}, default='float32'
        Type of the input, of numbers that come out, and of the arithmetic in between; neighbours
        are found in float64 in any case.
    labels : bool, default=False
        Whether a :class:`lnml.models.Model` also finds its nearest training rows and lets them
        vote, as its ``neighbors`` and ``vote`` do. The graph then holds the training rows.

    Returns
    -------
    graph : onnx.ModelProto
        Its input is ``X``, of shape (n, d). Its output is ``embedding``, of shape (n, r), or
        ``label`` and ``probabilities`` if the pipeline ends with a classifier. For a
        :class:`lnml.models.Model` X has its columns of numbers, then its 0/1 columns of
        categories; the graph's metadata ``columns`` names them. With ``labels`` there are also
        ``distances`` and ``neighbors``, of shape (n, k), and ``label``, of shape (n,).

    Raises
    ------
    ImportError
        Without skl2onnx: ``pip install "lnml[onnx]"``.

    Warns
    -----
    UserWarning
        If float32 loses digits because columns are far from 0.

    Examples
    --------
    >>> from lnml import LMNN
    >>> from lnml.datasets import load_dataset
    >>> from lnml.exports import to_onnx
    >>> iris = load_dataset("iris")
    >>> graph = to_onnx(LMNN().fit(iris.data, iris.target))
    >>> [output.name for output in graph.graph.output]
    ['embedding']
    """
    onnx = require("onnx", extra="onnx")
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}; got {dtype!r}")
    found, others = _split(model)
    if dtype == "float32" and found is not None:
        cure = "export float64 (dtype), or subtract a constant before the fit and before the graph"
        warn_of_lost_digits(found, model, cure=cure)
    if labels:
        graph = label_graph(onnx, *_voting(model), dtype)
    elif found is not None and not others:
        graph = embedding_graph(onnx, found, dtype)
    else:
        graph = _converted(model, found, others, dtype)
    columns = getattr(model, "feature_names_in_", ()) if found is None else found.names
    names = [str(name) for name in columns]
    graph.producer_name, graph.producer_version = "lnml", __version__
    onnx.helper.set_model_props(graph, {"columns": json.dumps(names)} if names else {})
    onnx.checker.check_model(graph)
    return graph


def register_onnx_converters(*classes: type) -> None:
    """Teach skl2onnx the metrics of lnml, for your own calls of ``convert_sklearn``.

    :func:`to_onnx` does that by itself.

    Parameters
    ----------
    *classes : type
        More classes to teach, such as your own metric learner; they must derive from
        ``lnml.contract.MetricLearner``.

    Examples
    --------
    >>> from skl2onnx import convert_sklearn
    >>> from skl2onnx.common.data_types import FloatTensorType
    >>> from lnml import LMNN
    >>> from lnml.datasets import load_dataset
    >>> from lnml.exports import register_onnx_converters
    >>> iris = load_dataset("iris")
    >>> register_onnx_converters()
    >>> model = LMNN().fit(iris.data, iris.target)
    >>> onnx = convert_sklearn(model, initial_types=[("X", FloatTensorType([None, 4]))])
    >>> [node.name for node in onnx.graph.input]
    ['X']
    """
    skl2onnx = require("skl2onnx", extra="onnx")
    for each in dict.fromkeys((*METRIC_CLASSES, *classes)):
        if not issubclass(each, MahalanobisMetric):
            raise TypeError(f"{each.__name__} is no metric learner of lnml")
        skl2onnx.update_registered_converter(
            each, f"Lnml{each.__name__}", _infer_shape, _convert, overwrite=True
        )


def _split(model: Any) -> tuple[AffineMap | None, Steps]:
    """Return the map that a model or pipeline begins with, and the steps after it."""
    if isinstance(model, Model):
        return affine_map(model), []
    return affine_start(steps_of(model))


def _voting(model: Any) -> tuple[Model, AffineMap, int]:
    """Return a model, its map, and how many of its rows vote."""
    if not isinstance(model, Model):
        raise TypeError(
            f"votes need a model of `lnml fit` or fit_model, which keeps its training rows; got "
            f"{kind_of(model)}: leave labels out, or end a pipeline with KNeighborsClassifier"
        )
    if model.n_voters > len(model.rows):
        raise InputError(
            f"{model.n_voters} rows cannot vote, since the model keeps {len(model.rows)}: fit it "
            f"with a smaller k"
        )
    return model, affine_map(model), model.n_voters


class AffineStep(TransformerMixin, BaseEstimator):
    """The affine steps at the beginning of a pipeline, as one step for skl2onnx.

    Parameters
    ----------
    found : AffineMap
        What they do to rows.
    """

    def __init__(self, found: AffineMap) -> None:
        self.found = found

    def fit(self, X: Any, y: Any = None) -> AffineStep:
        """Do nothing: the map is given."""
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Map rows (n, d) to (n, r)."""
        return self.found(X)


def _converted(model: Any, found: AffineMap | None, others: Steps, dtype: str) -> Any:
    """Let skl2onnx convert an estimator or pipeline."""
    metrics = [step for _, step in steps_of(model) if isinstance(step, MahalanobisMetric)]
    if not metrics:
        # This says what an export takes.
        affine_map(model)
    for metric in metrics:
        check_is_fitted(metric)
    register_onnx_converters(*map(type, metrics))
    skl2onnx = require("skl2onnx", extra="onnx")
    # Rows that are equally far are no longer so after rounding to float32.
    widened = dtype == "float32" and found is not None and _only_votes(others)
    name = DTYPES["float64" if widened else dtype]
    kind = getattr(require("skl2onnx.common.data_types", extra="onnx"), name)
    given = [(INPUT, kind([None, model.n_features_in_]))]
    if found is not None:
        skl2onnx.update_registered_converter(
            AffineStep, "LnmlAffineStep", _infer_shape, _convert_map, overwrite=True
        )
        others = [("", AffineStep(found)), *others]
    plain = Pipeline([(f"step{place}", step) for place, (_, step) in enumerate(others)])
    if not hasattr(others[-1][1], "predict"):
        made = [(OUTPUT, kind([None, None]))]
        return skl2onnx.convert_sklearn(plain, initial_types=given, final_types=made)
    plain = _with_wide_labels(plain)
    graph = skl2onnx.convert_sklearn(plain, initial_types=given, options={"zipmap": False})
    return _with_float32_outside(graph) if widened else graph


def _only_votes(steps: Steps) -> bool:
    """Whether nothing but a vote of neighbours is left."""
    return len(steps) == 1 and isinstance(steps[0][1], KNeighborsClassifier)


def _with_float32_outside(model: Any) -> Any:
    """Let a graph in float64 take and give float32."""
    onnx = require("onnx", extra="onnx")
    single, double = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE
    graph = model.graph
    numbers = [each for each in graph.output if each.type.tensor_type.elem_type == double]
    renamed = {value.name: f"{value.name}_in_float64" for value in (*graph.input, *numbers)}
    for node in graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
        node.output[:] = [renamed.get(name, name) for name in node.output]
    cast = onnx.helper.make_node
    graph.node.insert(0, cast("Cast", [INPUT], [renamed[INPUT]], to=double))
    graph.node.extend(
        cast("Cast", [renamed[each.name]], [each.name], to=single) for each in numbers
    )
    for value in (*graph.input, *numbers):
        value.type.tensor_type.elem_type = single
    return model


def _with_wide_labels(model: Pipeline) -> Pipeline:
    """Return a pipeline whose labels are text or int64: runtimes know no shorter numbers."""
    name, last = model.steps[-1]
    classes = getattr(last, "classes_", None)
    if classes is None or classes.dtype.kind not in "iu":
        return model
    last = copy(last)
    last.classes_ = classes.astype(np.int64)
    return Pipeline([*model.steps[:-1], (name, last)])


def _infer_shape(operator: Any) -> None:
    """Tell skl2onnx the type and shape of the embedding."""
    given, step = operator.inputs[0].type, operator.raw_operator
    types = require("skl2onnx.common.data_types", extra="onnx")
    # Whole numbers become float32.
    kind = type(given) if type(given).__name__ in DTYPES.values() else types.FloatTensorType
    matrix = step.found.matrix if isinstance(step, AffineStep) else step.components_
    operator.outputs[0].type = kind([given.shape[0], matrix.shape[0]])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the product with the components to a graph."""
    operators = require("skl2onnx.algebra.onnx_ops", extra="onnx")
    rows, dtype = _rows_as(operator, operators, container.target_opset)
    matrix = np.asarray(host_array(operator.raw_operator.components_), dtype=dtype).T
    options = {"op_version": container.target_opset}
    product = operators.OnnxMatMul(rows, matrix, output_names=operator.outputs[:1], **options)
    product.add_to(scope, container)


def _convert_map(scope: Any, operator: Any, container: Any) -> None:
    """Add an affine map to a graph."""
    operators = require("skl2onnx.algebra.onnx_ops", extra="onnx")
    rows, dtype = _rows_as(operator, operators, container.target_opset)
    center, matrix, offset = affine_arrays(operator.raw_operator.found, dtype)
    options = {"op_version": container.target_opset}
    centered = operators.OnnxSub(rows, center, **options)
    product = operators.OnnxMatMul(centered, matrix, **options)
    moved = operators.OnnxAdd(product, offset, output_names=operator.outputs[:1], **options)
    moved.add_to(scope, container)


def _rows_as(operator: Any, operators: Any, version: int) -> tuple[Any, str]:
    """Return the input of an operator in the type of its output, and that type for NumPy."""
    helper = require("onnx", extra="onnx").helper
    kind = type(operator.outputs[0].type)
    dtype = {name: each for each, name in DTYPES.items()}[kind.__name__]
    rows = operator.inputs[0]
    if type(rows.type) is not kind:
        number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        rows = operators.OnnxCast(rows, to=number, op_version=version)
    return rows, dtype
