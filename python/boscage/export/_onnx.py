"""Ensembles as ONNX graphs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from scipy.linalg import solve_triangular

from boscage._core import __version__
from boscage._types import AnyArray, FloatArray
from boscage.explain._link import FARTHEST, ClassTrend, Link
from boscage.export._ensemble import AddedTree, Ensemble, MeanOfDraws

# The oldest versions that have all that is needed, which most runtimes know.
_OPSETS = {"": 17, "ai.onnx.ml": 3}
_IR_VERSION = 8


class _Graph:
    """A graph to which nodes are added, each with one output, named by number."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        output = output or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype=dtype), name))
        return name

    def to_double(self, name: str) -> str:
        return self.add("Cast", name, to=TensorProto.DOUBLE)


def graph_of(ensemble: Ensemble, dtype: str) -> onnx.ModelProto:
    """The graph of an ensemble for rows of a type."""
    element = TensorProto.DOUBLE if dtype == "float64" else TensorProto.FLOAT
    graph = _Graph()
    attributes = _attributes(ensemble, np.dtype(dtype))
    trees = graph.add("TreeEnsembleRegressor", "X", domain="ai.onnx.ml", **attributes)
    # What follows is computed in double precision.
    sums = graph.add("Add", graph.to_double(trees), graph.constant(ensemble.constants))
    if ensemble.classes is None:
        total = _add_trend(
            graph, ensemble, graph.add("Squeeze", sums, graph.constant([1], np.int64))
        )
        graph.add("Cast", total, to=element, output="prediction")
        outputs = [helper.make_tensor_value_info("prediction", element, ["n_samples"])]
    else:
        outputs = _add_classes(graph, ensemble, sums, element)
    rows = helper.make_tensor_value_info("X", element, ["n_samples", ensemble.n_features])
    model = helper.make_model(
        helper.make_graph(graph.nodes, "boscage", [rows], outputs, graph.constants),
        opset_imports=[helper.make_opsetid(*opset) for opset in _OPSETS.items()],
        ir_version=_IR_VERSION,
        producer_name="boscage",
        producer_version=__version__,
    )
    onnx.checker.check_model(model)
    return model


# -- trees -----------------------------------------------------------------------------------------


def _attributes(ensemble: Ensemble, dtype: Any) -> dict[str, Any]:
    """The attributes of TreeEnsembleRegressor."""
    trees = ensemble.trees or [_no_tree()]
    sizes = [len(tree.feature) for tree in trees]
    thresholds = np.concatenate([np.where(tree.is_leaf, 0.0, tree.threshold) for tree in trees])
    numbers = {
        "nodes_treeids": np.repeat(np.arange(len(trees)), sizes),
        "nodes_nodeids": np.concatenate([np.arange(size) for size in sizes]),
        "nodes_featureids": np.concatenate([np.maximum(tree.feature, 0) for tree in trees]),
        "nodes_truenodeids": np.concatenate([np.maximum(tree.children_left, 0) for tree in trees]),
        "nodes_falsenodeids": np.concatenate(
            [np.maximum(tree.children_right, 0) for tree in trees]
        ),
        "nodes_missing_value_tracks_true": np.concatenate([tree.missing_left for tree in trees]),
    }
    target_ids, weights = _leaf_weights(trees)
    numbers |= target_ids
    is_leaf = np.concatenate([tree.is_leaf for tree in trees])
    return {
        "n_targets": len(ensemble.constants),
        "aggregate_function": "SUM",
        "post_transform": "NONE",
        "nodes_modes": np.where(is_leaf, "LEAF", "BRANCH_LEQ").tolist(),
        **{name: array.astype(np.int64).tolist() for name, array in numbers.items()},
        **_real_numbers(thresholds, weights, dtype),
    }


def _real_numbers(thresholds: FloatArray, weights: FloatArray, dtype: Any) -> dict[str, Any]:
    """Attributes of real numbers, which are tensors in double precision."""
    if dtype == np.float64:
        numbers = {"nodes_values_as_tensor": thresholds, "target_weights_as_tensor": weights}
        return {name: numpy_helper.from_array(array, name) for name, array in numbers.items()}
    narrow = weights.astype(np.float32)
    return {"nodes_values": not_above(thresholds).tolist(), "target_weights": narrow.tolist()}


def not_above(values: FloatArray) -> AnyArray:
    """The largest numbers in single precision that are not above others.

    A value in single precision is below one of them if and only if it is below the other.
    """
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    rounded_up = narrow > values
    narrow[rounded_up] = np.nextafter(narrow[rounded_up], np.float32(-np.inf))
    return narrow


def _leaf_weights(trees: list[AddedTree]) -> tuple[dict[str, AnyArray], FloatArray]:
    """What leaves add: tree, node and output of each number that is not 0, and the numbers."""
    of_trees, of_nodes, of_outputs, weights = [], [], [], []
    for number, tree in enumerate(trees):
        counts = (tree.values != 0.0) & tree.is_leaf[:, np.newaxis]
        # Each leaf needs an entry.
        counts[:, 0] |= tree.is_leaf
        nodes, columns = np.nonzero(counts)
        of_trees.append(np.full(len(nodes), number))
        of_nodes.append(nodes)
        of_outputs.append(tree.outputs[columns])
        weights.append(tree.values[nodes, columns])
    places = {"treeids": of_trees, "nodeids": of_nodes, "ids": of_outputs}
    ids = {f"target_{name}": np.concatenate(parts) for name, parts in places.items()}
    return ids, np.concatenate(weights)


def _no_tree() -> AddedTree:
    """A tree that adds 0 everywhere: an ensemble must have one."""
    left, right, feature = np.array([[1, -1, -1], [2, -1, -1], [0, -1, -1]], dtype=np.int32)
    nowhere, output = np.zeros(3, np.bool_), np.zeros(1, np.int64)
    return AddedTree(left, right, feature, np.zeros(3), nowhere, output, np.zeros((3, 1)))


# -- predictions -----------------------------------------------------------------------------------


def _add_trend(graph: _Graph, ensemble: Ensemble, sums: str) -> str:
    """Adds a function of each feature of the trend, piecewise linear."""
    if not ensemble.trend:
        return sums
    x = _features(graph, ensemble, [part.feature for part in ensemble.trend])

    def column(name: str) -> str:
        return graph.constant([getattr(part, name) for part in ensemble.trend])

    z = graph.add("Div", graph.add("Sub", x, column("middle")), column("width"))
    half = graph.constant(0.5)
    above = graph.add("Relu", graph.add("Sub", z, half))
    below = graph.add("Relu", graph.add("Sub", graph.add("Neg", z), half))
    parts = [
        graph.add("Mul", values, column(name))
        for values, name in ((z, "slope"), (above, "above"), (below, "below"))
    ]
    by_feature = graph.add("Sum", *parts)
    axes = graph.constant([1], np.int64)
    return graph.add("Add", sums, graph.add("ReduceSum", by_feature, axes, keepdims=0))


def _features(graph: _Graph, ensemble: Ensemble, features: list[int]) -> str:
    """Some columns of the rows in double precision, without missing values."""
    x = graph.to_double(graph.add("Gather", "X", graph.constant(features, np.int64), axis=1))
    if ensemble.missing is None:
        return x
    numbers = graph.constant(ensemble.missing[features])
    return graph.add("Where", graph.add("IsNaN", x), numbers, x)


def _add_classes(
    graph: _Graph, ensemble: Ensemble, sums: str, element: int
) -> list[onnx.ValueInfoProto]:
    """Adds probabilities and labels; returns these outputs."""
    assert ensemble.classes is not None
    n_classes = len(ensemble.classes)
    match ensemble.link:
        case None:
            proba = sums
        case Link():
            proba = _calibrated(graph, ensemble, ensemble.link, sums)
        case MeanOfDraws():
            proba = _mean_of_draws(graph, ensemble.link, sums, n_classes)
    graph.add("Cast", proba, to=element, output="probabilities")
    classes = np.asarray(ensemble.classes)
    if classes.dtype.kind in "iu":
        classes = classes.astype(np.int64)
    elif classes.dtype.kind not in "bf":
        classes = classes.astype(str).astype(object)
    best = graph.add("ArgMax", "probabilities", axis=1, keepdims=0)
    labels = graph.constant(classes, classes.dtype)
    graph.add("Gather", labels, best, axis=0, output="label")
    kind = helper.np_dtype_to_tensor_dtype(classes.dtype)
    return [
        helper.make_tensor_value_info("label", kind, ["n_samples"]),
        helper.make_tensor_value_info("probabilities", element, ["n_samples", n_classes]),
    ]


def _calibrated(graph: _Graph, ensemble: Ensemble, link: Link, sums: str) -> str:
    assert ensemble.classes is not None
    n_classes = len(ensemble.classes)
    parts = {"means": n_classes}
    if link.weight > 0.0:
        parts["function"] = n_classes
    if link.has_of_all:
        parts["of_all"] = 1
    names = {name: f"{sums}_{name}" for name in parts} if len(parts) > 1 else {"means": sums}
    if len(parts) > 1:
        sizes = graph.constant(list(parts.values()), np.int64)
        graph.nodes.append(helper.make_node("Split", [sums, sizes], [*names.values()], axis=1))
    logs = graph.add("Mul", graph.add("Log", names["means"]), graph.constant(link.power))
    if "function" in names:
        added = graph.add("Mul", names["function"], graph.constant(link.weight))
        logs = graph.add("Add", logs, added)
    if "of_all" in names:
        near = graph.add("Sub", graph.constant(1.0), names["of_all"])
        added = graph.constant(np.broadcast_to(link.to_shares, n_classes))
        if link.trend is not None:
            added = graph.add("Add", added, _class_trend(graph, ensemble, link.trend))
        square = graph.add("Mul", near, near)
        added = graph.add("Mul", graph.add("Mul", square, square), added)
        logs = graph.add("Add", logs, added)
    proba = graph.add("Softmax", logs, axis=1)
    kept = graph.add("Mul", proba, graph.constant(1.0 - link.noise))
    return graph.add("Add", kept, graph.constant(link.noise / n_classes))


def _class_trend(graph: _Graph, ensemble: Ensemble, trend: ClassTrend) -> str:
    """The weighted values of a trend."""
    x = _features(graph, ensemble, trend.features)
    apart = graph.add("Sub", x, graph.constant(trend.low))
    places = graph.add("Div", apart, graph.constant(trend.width))
    near = graph.add("Clip", places, graph.constant(-FARTHEST), graph.constant(FARTHEST))
    z = graph.add("Sub", near, graph.constant(trend.means))
    inverse = solve_triangular(trend.factor, np.eye(len(trend.features)), lower=True)
    half = graph.add("MatMul", z, graph.constant(inverse.T))
    axes = graph.constant([1], np.int64)
    square = graph.add("ReduceSum", graph.add("Mul", half, half), axes, keepdims=1)
    variance = graph.add("Add", square, graph.constant(trend.variances[0]))
    ratio = graph.add("Div", graph.constant(trend.variances[1]), variance)
    left = graph.add("Min", ratio, graph.constant(1.0))
    values = graph.add("MatMul", z, graph.constant(trend.weight * trend.slopes))
    return graph.add("Mul", graph.add("Mul", left, left), values)


def _mean_of_draws(graph: _Graph, link: MeanOfDraws, sums: str, n_classes: int) -> str:
    if link.function == "softmax":
        shape = graph.constant([-1, link.n_draws, n_classes], np.int64)
        of_draws = graph.add("Softmax", graph.add("Reshape", sums, shape), axis=2)
        return graph.add("ReduceMean", of_draws, axes=[1], keepdims=0)
    # The normal distribution function; runtimes have Erf in single precision only.
    scaled = graph.add("Mul", sums, graph.constant(math.sqrt(0.5)))
    erf = graph.to_double(graph.add("Erf", graph.add("Cast", scaled, to=TensorProto.FLOAT)))
    mean = graph.add("ReduceMean", erf, axes=[1], keepdims=1)
    signed = graph.add("Mul", mean, graph.constant([[-0.5, 0.5]]))
    return graph.add("Add", signed, graph.constant(0.5))
