"""Plots of Mondrian forests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from boscage._input.columns import as_table
from boscage._types import FloatArray
from boscage._validation import check_integer
from boscage.plots._shared import (
    draw_shade,
    grid_over,
    other_values,
    require,
    require_numeric,
    two_features,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from boscage.trees import MondrianTree


def plot_partition(
    forest: Any,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    tree: int | None = 0,
    features: tuple[int | str, int | str] = (0, 1),
    at: ArrayLike | None = None,
    margin: float = 0.1,
    resolution: int = 150,
    ax: Axes | None = None,
) -> Axes:
    """Plot a Mondrian forest's uncertainty over two features, with the splits of one of its trees.

    The shade is the standard deviation of the predictive distribution, or the entropy of the
    predicted classes relative to its maximum. A split of a Mondrian tree extends only over the
    bounding box of the rows that it separates.

    Parameters
    ----------
    forest : MondrianForestClassifier or MondrianForestRegressor
        A fitted Mondrian forest.
    X, y : array-like of shape (n_samples, n_features) and (n_samples,), default=None
        Rows to draw as points, and their targets.
    tree : int or None, default=0
        Number of the tree whose splits to draw, for forests on two features; None for no splits.
    features : tuple of two int or str, default=(0, 1)
        Features on the axes: their numbers, or their names if the forest was fitted on named
        columns.
    at : array-like of shape (n_features,), default=None
        Values of the other features, NaN where one is missing; categories by name. None takes the
        middle of the training rows' range, and a missing value of each categorical feature.
    margin : float, default=0.1
        Margin around the training rows, as a share of their range.
    resolution : int, default=150
        Number of grid points along each axis.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None makes new ones.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError
        If `forest` is not a Mondrian forest, or another argument is of a wrong type.
    ValueError
        If `features` are not two different numeric features, `at` has a wrong shape or holds what
        is no number, there is no such `tree`, `X` or `y` has a wrong shape, or `margin` or
        `resolution` is out of range.
    sklearn.exceptions.NotFittedError
        If `forest` is not fitted.
    ImportError
        If Matplotlib is not installed.
    """
    require("plot_partition", forest, "MondrianForestClassifier", "MondrianForestRegressor")
    trees = forest.trees_
    number = 0 if tree is None else check_integer("tree", tree)
    if not -len(trees) <= number < len(trees):
        raise ValueError(f"tree must be a number below {len(trees)}, found {tree}")
    shown = trees[number]
    n_features = shown.lower.shape[1]
    names = forest._names()
    a, b = two_features(features, names, n_features)
    low, high = shown.lower[0], shown.upper[0]
    require_numeric((a, b), forest._tables, names)
    base = other_values(forest, at, 0.5 * (low + high))
    across, up, grid = grid_over((a, b), low, high, base, margin, resolution)
    points = None if X is None else _points(X, y, (a, b), n_features)
    shade, label = _uncertainty(forest, grid)

    ax = draw_shade(ax, shade, (across, up), (a, b), names=names, label=label, cmap="viridis")
    if tree is not None and n_features == 2:
        from matplotlib.collections import LineCollection

        lines = _split_lines(shown, a, b)
        ax.add_collection(LineCollection(lines, colors="white", linewidths=0.6, alpha=0.8))
    if points is not None:
        _scatter(ax, forest, points, y)
    return ax


def _points(X: Any, y: ArrayLike | None, features: tuple[int, int], n_features: int) -> FloatArray:
    """Two features of rows, after their shape was checked."""
    rows = np.asarray(as_table(X))
    if rows.ndim != 2 or rows.shape[1] != n_features:
        raise ValueError(f"X has shape {rows.shape}, expected {n_features} features")
    if y is not None and np.shape(y) != (len(rows),):
        raise ValueError(f"y has shape {np.shape(y)}, expected ({len(rows)},)")
    return rows[:, features].astype(np.float64)


def _scatter(ax: Axes, forest: Any, points: FloatArray, y: ArrayLike | None) -> None:
    """Draw rows as points, in the colours of their targets if these are given."""
    x, height = points.T
    marks: dict[str, Any] = {"s": 24, "edgecolors": "white", "linewidths": 0.4}
    targets = None if y is None else np.asarray(y)
    if targets is None:
        ax.scatter(x, height, c="tab:red", **marks)
    elif is_classifier(forest):
        for i, value in enumerate(forest.classes_):
            own = targets == value
            colour = f"C{(i + 1) % 10}"  # C0 is too similar to the shade
            ax.scatter(x[own], height[own], color=colour, label=value, **marks)
        ax.legend(loc="best", fontsize="small")
    else:
        ax.scatter(x, height, c=targets, cmap="coolwarm", **marks)


def _uncertainty(forest: Any, grid: FloatArray) -> tuple[FloatArray, str]:
    """The uncertainty at each row of the grid, and what it is called."""
    # The forest's own predict would warn that the grid has no column names.
    model, n_threads = forest._require_rows(), forest._n_threads()
    forest._prepare(model, grid)
    if is_classifier(forest):
        proba = forest._weighted(model.predict_proba(grid, n_threads=n_threads))
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(proba > 0.0, -proba * np.log(proba), 0.0)
        return each.sum(axis=1) / np.log(max(proba.shape[1], 2)), "relative entropy"
    _, variance = model.predict(grid, n_threads=n_threads)
    return np.sqrt(variance), "standard deviation"


def _split_lines(tree: MondrianTree, a: int, b: int) -> list[list[tuple[float, float]]]:
    """Each split as a line across the bounding box of the rows that it separates."""
    lines = []
    for node in np.flatnonzero(~tree.is_leaf):
        at = tree.threshold[node]
        other = b if tree.feature[node] == a else a
        low, high = tree.lower[node, other], tree.upper[node, other]
        if tree.feature[node] == a:
            lines.append([(at, low), (at, high)])
        else:
            lines.append([(low, at), (high, at)])
    return lines
