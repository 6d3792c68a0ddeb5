"""Plots of the posterior over single trees."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from boscage._input.columns import dense
from boscage._types import FloatArray
from boscage.plots._shared import (
    draw_shade,
    grid_over,
    require,
    require_numeric,
    two_features,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from boscage.trees import PosteriorTree


def plot_disagreement(
    model: Any,
    X: Any,
    *,
    features: tuple[int | str, int | str] = (0, 1),
    margin: float = 0.1,
    resolution: int = 100,
    ax: Axes | None = None,
) -> Axes:
    """Plot how much the trees of a posterior disagree, over two features.

    The shade is the weighted standard deviation over the trees of what they predict: for
    regression the mean, for classification the probability of the class that is most probable on
    average. It shows the uncertainty about the tree, without the noise within leaves. Lines mark
    the splits of the trees' roots; the greater the weight of a tree, the more visible its line.

    Parameters
    ----------
    model : BayesianTreeClassifier or BayesianTreeRegressor
        A fitted Bayesian decision tree.
    X : array-like of shape (n_samples, n_features)
        Rows to draw as points. They give the range of the plot; features that are not on the axes
        take their medians, and those of categories the most frequent one.
    features : tuple of two int or str, default=(0, 1)
        Numeric features on the axes: their numbers, or their names if the model was fitted on named
        columns.
    margin : float, default=0.1
        Margin around the rows, as a share of their range.
    resolution : int, default=100
        Number of grid points along each axis.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None makes new ones.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError
        If `model` is not a Bayesian decision tree, or `margin` or `resolution` not a number.
    ValueError
        If `features` are not two different numeric features, `margin` or `resolution` is out of
        range, or `X` is refused; see the `predict` of `model`.
    sklearn.exceptions.NotFittedError
        If `model` is not fitted.
    ImportError
        If Matplotlib is not installed.
    """
    require("plot_disagreement", model, "BayesianTreeClassifier", "BayesianTreeRegressor")
    trees, weights = model.trees_, model.weights_
    names = model._names()
    a, b = two_features(features, names, model.n_features_in_)
    require_numeric((a, b), model._labels, names)
    rows = np.asarray(dense(model._check_rows(X)), dtype=np.float64)
    with warnings.catch_warnings():
        # Of a feature without any value the middle is missing, too.
        warnings.simplefilter("ignore", RuntimeWarning)
        low, high, middle = (f(rows, axis=0) for f in (np.nanmin, np.nanmax, np.nanmedian))
    for feature in model._labels:
        codes = rows[~np.isnan(rows[:, feature]), feature].astype(np.int64)
        middle[feature] = np.bincount(codes).argmax() if codes.size else np.nan
    across, up, grid = grid_over((a, b), low, high, middle, margin, resolution)
    shade = _disagreement(trees, weights, grid, getattr(model._require_model(), "alpha", 0.0))

    label = "disagreement of trees"
    ax = draw_shade(ax, shade, (across, up), (a, b), names=names, label=label, cmap="magma")
    for tree, weight in zip(trees, weights, strict=True):
        # Lines of many trees are faint. They add up where trees agree, and do not hide the shade.
        alpha = float(min(1.0, 25.0 * weight))
        if not np.isfinite(tree.threshold[0]):
            continue  # a leaf, or a split of categories, or of missing from present values
        if tree.feature[0] == a:
            ax.axvline(tree.threshold[0], color="white", linewidth=0.6, alpha=alpha)
        elif tree.feature[0] == b:
            ax.axhline(tree.threshold[0], color="white", linewidth=0.6, alpha=alpha)
    ax.scatter(rows[:, a], rows[:, b], s=6, color="tab:cyan", linewidths=0)
    return ax


def _disagreement(
    trees: Sequence[PosteriorTree], weights: FloatArray, grid: FloatArray, alpha: float
) -> FloatArray:
    """Standard deviation over trees of the most probable class's probability, or of the mean."""
    first: Any = 0.0
    second: Any = 0.0
    centre: Any = None
    for tree, weight in zip(trees, weights, strict=True):
        if tree.counts is not None:
            smooth = tree.counts + alpha / tree.counts.shape[1]
            values = smooth / smooth.sum(axis=1, keepdims=True)
        else:
            assert tree.location is not None
            values = tree.location[:, None]
        own = values[tree.apply(grid)]
        # Differences to the first tree, because squares of large numbers would lose all digits.
        centre = own if centre is None else centre
        first = first + weight * (own - centre)
        second = second + weight * (own - centre) ** 2
    most_probable = (centre + first).argmax(axis=1)[:, None]
    spread = np.maximum(second - first**2, 0.0)
    chosen: FloatArray = np.sqrt(np.take_along_axis(spread, most_probable, axis=1)[:, 0])
    return chosen
