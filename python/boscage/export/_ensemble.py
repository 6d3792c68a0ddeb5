"""What every export starts from: trees that add to outputs, and a function of the sums."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from boscage._bases.estimator import Estimator
from boscage._types import AnyArray, BoolArray, FloatArray, IntArray
from boscage.bart import BARTClassifier, BARTRegressor
from boscage.bayes import BayesianTreeClassifier, BayesianTreeRegressor
from boscage.explain._link import Link
from boscage.mondrian import MondrianForestClassifier, MondrianForestRegressor
from boscage.mondrian._missing import fill


@dataclass(frozen=True)
class AddedTree:
    """A tree that adds numbers to some outputs. Rows with ``x <= threshold`` go left."""

    children_left: NDArray[np.int32]
    children_right: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: FloatArray
    missing_left: BoolArray
    """Whether missing values go left."""
    outputs: IntArray
    values: FloatArray
    """Of shape (n_nodes, n_outputs of the tree); those of splits do not count."""

    @property
    def is_leaf(self) -> BoolArray:
        return self.children_left < 0


@dataclass(frozen=True)
class MeanOfDraws:
    """The mean over draws of a function of their sums; the outputs are those of draw after draw."""

    function: Literal["probit", "softmax"]
    n_draws: int


@dataclass(frozen=True)
class TrendPart:
    """What one feature adds to a trend, in units of the width of its range."""

    feature: int
    middle: float
    width: float
    slope: float
    below: float
    above: float


@dataclass(frozen=True)
class Ensemble:
    """Sums of trees, and what makes predictions of them."""

    n_features: int
    trees: list[AddedTree]
    """Each has a split."""
    constants: FloatArray
    """What is added to the sums, of shape (n_outputs,)."""
    classes: AnyArray | None = None
    link: Link | MeanOfDraws | None = None
    """None where the sums are the predictions. Before a `Link` they are the probabilities ``p`` of
    each class, then ``f`` if its weight is positive, and then ``r`` if it counts."""
    trend: list[TrendPart] = field(default_factory=list)
    missing: FloatArray | None = None
    """The numbers that stand for missing values of each feature."""


def ensemble_of(model: Any, *, approximate: bool) -> Ensemble:
    """The ensemble of a fitted estimator."""
    if not isinstance(model, Estimator):
        raise TypeError(f"expected a fitted estimator of Boscage, found {type(model).__name__}")
    check_is_fitted(model)
    if getattr(model, "categories_", None) is not None:
        raise ValueError(
            f"{_what(model)} with categories cannot be exported, since an exported model takes "
            "numbers; encode the categories before fit"
        )
    if getattr(model, "class_weight", None) is not None:
        raise ValueError(
            "class_weight is no part of an export; set it to None, and weight the probabilities "
            "that the exported model predicts"
        )
    if isinstance(model, BARTRegressor):
        return _of_bart_regressor(model)
    if isinstance(model, BARTClassifier):
        return _of_bart_classifier(model)
    if isinstance(model, (BayesianTreeRegressor, BayesianTreeClassifier)):
        return _of_bayesian_tree(model)
    if isinstance(model, (MondrianForestRegressor, MondrianForestClassifier)):
        if not approximate:
            raise ValueError(
                "the predictions of a Mondrian forest change smoothly with the distance between a "
                "row and the training rows of its leaf, which trees with constant leaves cannot "
                "represent; approximate=True exports what each leaf predicts for its training rows"
            )
        with model._lock.reading:
            return _of_forest(model)
    raise TypeError(f"{type(model).__name__} cannot be exported")


def _what(model: Any) -> str:
    is_forest = isinstance(model, (MondrianForestRegressor, MondrianForestClassifier))
    return "a forest" if is_forest else "a model"


def _of_bart_regressor(model: BARTRegressor) -> Ensemble:
    compiled = model._model
    trees = [
        _tree(tree, np.zeros(1, np.int64), tree["value"].sum(axis=0)[:, np.newaxis])
        for tree in compiled.shared_trees()
    ]
    for tree in trees:
        tree.values[:] /= compiled.n_draws
    return _ensemble(model, _centred(trees, compiled.centres[0]))


def _of_bart_classifier(model: BARTClassifier) -> Ensemble:
    compiled = model._model
    trees = [
        _tree(tree, tree["sums"].astype(np.int64), tree["value"].T)
        for tree in compiled.shared_trees()
    ]
    constants = np.tile(compiled.centres, compiled.n_draws)
    function: Literal["probit", "softmax"] = "probit" if compiled.centres.size == 1 else "softmax"
    link = MeanOfDraws(function, compiled.n_draws)
    return _ensemble(model, (trees, constants), classes=model.classes_, link=link)


def _of_bayesian_tree(model: BayesianTreeRegressor | BayesianTreeClassifier) -> Ensemble:
    trees = _leaf_trees(model._model.leaf_trees())
    if isinstance(model, BayesianTreeClassifier):
        constants = np.zeros(len(model.classes_))
        return _ensemble(model, (trees, constants), classes=model.classes_)
    return _ensemble(model, _centred(trees))


def _of_forest(model: MondrianForestRegressor | MondrianForestClassifier) -> Ensemble:
    compiled: Any = model._as_sum(model._model)
    n_threads = model._n_threads()
    if compiled.n_rows == 0:
        raise ValueError("the forest has no rows; expected a forest that can predict")
    missing = _missing(compiled)
    trees = _leaf_trees(compiled.leaf_trees(n_threads=n_threads))
    if missing is not None:
        # At a leaf the threshold is NaN, and nothing goes anywhere.
        sides = [missing[tree.feature] <= tree.threshold for tree in trees]
        trees = [replace(tree, missing_left=left) for tree, left in zip(trees, sides, strict=True)]
    if isinstance(model, MondrianForestClassifier):
        # Not centred: a sum of numbers that are not negative keeps its relative precision.
        sums = trees, np.zeros(trees[0].values.shape[1])
        link = Link.of(compiled.calibration_link(n_threads=n_threads))
        of_link = None if link.changes_nothing else link
        return _ensemble(model, sums, classes=model.classes_, link=of_link, missing=missing)
    constant, parts = compiled.trend_parts(n_threads=n_threads) or (0.0, [])
    trend = [TrendPart(*part) for part in parts]
    return _ensemble(model, _centred(trees, constant), trend=trend, missing=missing)


def _missing(compiled: Any) -> FloatArray | None:
    """The numbers that stand for missing values, if there are any."""
    if compiled.substitutes is None:
        return None
    for feature, (_, terms) in enumerate(compiled.substitutes):
        if terms:
            raise ValueError(
                f"the forest fills missing values of feature {feature} with a linear function of "
                "other features, which trees cannot represent; give numbers as substitutes, or "
                "fit rows that are filled"
            )
    nothing = np.full((1, compiled.n_features), np.nan)
    filled = fill(nothing, compiled.substitutes, compiled.low, compiled.high)
    return np.asarray(filled[0], dtype=np.float64)


def _leaf_trees(trees: Iterable[dict[str, AnyArray]]) -> list[AddedTree]:
    return [_tree(tree, np.arange(tree["value"].shape[1]), tree["value"]) for tree in trees]


def _tree(arrays: dict[str, AnyArray], outputs: IntArray, values: FloatArray) -> AddedTree:
    names = ("children_left", "children_right", "feature", "threshold", "missing_go_to_left")
    left, right, feature, threshold, missing_left = (arrays[name] for name in names)
    return AddedTree(left, right, feature, threshold, missing_left, outputs, values)


def _centred(trees: list[AddedTree], constant: float = 0.0) -> tuple[list[AddedTree], FloatArray]:
    """Trees of one output whose leaves have mean 0, so that sums in single precision round less."""
    for tree in trees:
        mean = tree.values[tree.is_leaf].mean()
        constant += mean
        tree.values[tree.is_leaf] -= mean
    return trees, np.array([constant])


def _ensemble(model: Any, sums: tuple[list[AddedTree], FloatArray], **further: Any) -> Ensemble:
    """An ensemble in which the leaves of trees without a split are part of the constants."""
    trees, constants = sums
    for tree in trees:
        if len(tree.feature) == 1:
            constants[tree.outputs] += tree.values[0]
    kept = [tree for tree in trees if len(tree.feature) > 1]
    return Ensemble(model.n_features_in_, kept, constants, **further)
