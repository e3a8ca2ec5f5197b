"""Learned metrics as ONNX graphs, and in pipelines that skl2onnx converts."""

from __future__ import annotations

import json
from copy import copy
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from lnml.errors import require
from lnml.estimators.metric import MahalanobisMetric
from lnml.exports.affine import AffineMap, affine_map
from lnml.kernels.tensors import host_array
from lnml.models import Model
from lnml.models.fitted import METRIC_CLASSES
from lnml.version import __version__

INPUT, OUTPUT = "X", "embedding"
DTYPES = {"float32": "FloatTensorType", "float64": "DoubleTensorType"}
# Of the operators that a graph of our own uses; all runtimes of the last years know it.
OPSET = 18


def to_onnx(model: Any, *, dtype: str = "float32") -> Any:
    """Return a metric, or a pipeline with one, as an ONNX model.

    Parameters
    ----------
    model : fitted estimator, pipeline or Model
        An estimator of lnml; a pipeline with such an estimator, of any steps that skl2onnx
        converts, such as StandardScaler, PCA and, at its end, KNeighborsClassifier; or what
        :func:`lnml.models.load_model` returns.
    dtype : {'float32', 'float64'}, default='float32'
        Type of the input and of all arithmetic.

    Returns
    -------
    graph : onnx.ModelProto
        Its input is ``X``, of shape (n, d). Its output is ``embedding``, of shape (n, r), or
        ``label`` and ``probabilities`` if the pipeline ends with a classifier. For a
        :class:`lnml.models.Model` X has its columns of numbers, then its 0/1 columns of
        categories; the graph's metadata ``columns`` names them.

    Raises
    ------
    ImportError
        Without skl2onnx: ``pip install "lnml[onnx]"``.

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
    if isinstance(model, Model):
        found = affine_map(model)
        graph, names = _graph(onnx, found, dtype), found.names
    else:
        graph = _converted(model, dtype)
        names = tuple(map(str, getattr(model, "feature_names_in_", ())))
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


def _converted(model: Any, dtype: str) -> Any:
    """Let skl2onnx convert an estimator or pipeline."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    metrics = [step for step in steps if isinstance(step, MahalanobisMetric)]
    if not metrics:
        # This says what an export takes.
        affine_map(model)
    for metric in metrics:
        check_is_fitted(metric)
    register_onnx_converters(*map(type, metrics))
    skl2onnx = require("skl2onnx", extra="onnx")
    kind = getattr(require("skl2onnx.common.data_types", extra="onnx"), DTYPES[dtype])
    given = [(INPUT, kind([None, model.n_features_in_]))]
    if hasattr(steps[-1], "predict"):
        plain = _with_wide_labels(model)
        return skl2onnx.convert_sklearn(plain, initial_types=given, options={"zipmap": False})
    made = [(OUTPUT, kind([None, None]))]
    return skl2onnx.convert_sklearn(model, initial_types=given, final_types=made)


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
    """Tell skl2onnx the shape of the embedding."""
    given = operator.inputs[0].type
    types = require("skl2onnx.common.data_types", extra="onnx")
    # Whole numbers become float32.
    kind = type(given) if type(given).__name__ in DTYPES.values() else types.FloatTensorType
    operator.outputs[0].type = kind([given.shape[0], operator.raw_operator.components_.shape[0]])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the product with the components to a graph."""
    operators = require("skl2onnx.algebra.onnx_ops", extra="onnx")
    types = require("skl2onnx.common.data_types", extra="onnx")
    version, made = container.target_opset, operator.outputs[0]
    double = isinstance(made.type, types.DoubleTensorType)
    components = np.asarray(host_array(operator.raw_operator.components_))
    matrix = components.T.astype(np.float64 if double else np.float32)
    rows = operator.inputs[0]
    if type(rows.type) is not type(made.type):
        rows = operators.OnnxCast(rows, to=1, op_version=version)
    product = operators.OnnxMatMul(rows, matrix, op_version=version, output_names=[made])
    product.add_to(scope, container)


def _graph(onnx: Any, found: AffineMap, dtype: str) -> Any:
    """Return a graph of an affine map."""
    helper, r, d = onnx.helper, *found.matrix.shape
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    arrays = {"center": found.center, "matrix": found.matrix.T, "offset": found.offset}
    return helper.make_model(
        helper.make_graph(
            [
                helper.make_node("Sub", [INPUT, "center"], ["centered"]),
                helper.make_node("MatMul", ["centered", "matrix"], ["mapped"]),
                helper.make_node("Add", ["mapped", "offset"], [OUTPUT]),
            ],
            "lnml",
            [helper.make_tensor_value_info(INPUT, kind, [None, d])],
            [helper.make_tensor_value_info(OUTPUT, kind, [None, r])],
            [
                onnx.numpy_helper.from_array(np.ascontiguousarray(array, dtype=dtype), name)
                for name, array in arrays.items()
            ],
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=9,
    )
