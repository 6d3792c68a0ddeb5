"""Drawings of single trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from boscage._types import AnyArray, FloatArray, IntArray
from boscage._validation import check_count
from boscage.plots._shared import new_axes, require
from boscage.trees._names import Names, class_name, feature_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from boscage.trees import MondrianTree, PosteriorTree
    from boscage.trees._base import ArrayTree

# Trees with more splits have no labels, which would overlap.
_MAX_LABELLED_SPLITS = 15


def plot_tree(
    tree: MondrianTree,
    *,
    max_depth: int | None = None,
    feature_names: Names | None = None,
    class_names: Names | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a tree of a Mondrian forest, as Figure 5.1 of the thesis does.

    The vertical axis is time, which increases downwards: a node stands at the time of its split, a
    leaf at the bottom. Labels describe the nodes if there are at most 15 splits.

    Parameters
    ----------
    tree : MondrianTree
        For example ``forest.trees_[0]``.
    max_depth : int, default=None
        Number of levels of splits to draw; a triangle stands for what is below. None draws all.
    feature_names : sequence of str, default=None
        Names of the features. None takes those of the columns that the model was fitted on.
    class_names : sequence, default=None
        Names of the classes. None takes the class labels.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None makes new ones.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError
        If `tree` is not a `MondrianTree`, or `max_depth` not an integer.
    ValueError
        If `max_depth` is negative, or there are fewer names than features or classes.
    ImportError
        If Matplotlib is not installed.
    """
    require("plot_tree", tree, "MondrianTree")
    feature_names = tree.feature_names if feature_names is None else feature_names
    class_names = tree.class_names if class_names is None else class_names
    inner, ends, x = _layout(tree, max_depth)
    last = tree.time[inner].max() if inner.size else 0.0
    bottom = 1.1 * last if last > 0.0 else 1.0
    y = np.where(ends, bottom, tree.time)

    ax = new_axes(ax)
    _draw_branches(ax, tree, inner, x, y)
    leaves = np.flatnonzero(ends & tree.is_leaf)
    cut_off = np.flatnonzero(ends & ~tree.is_leaf)
    ax.scatter(x[leaves], y[leaves], s=20, color="tab:blue", zorder=3)
    ax.scatter(x[cut_off], y[cut_off], s=40, color="tab:blue", marker="^", zorder=3)
    ax.scatter(x[inner], y[inner], s=12, color="0.2", zorder=3)
    if len(inner) <= _MAX_LABELLED_SPLITS:
        at: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "size": 7}
        box = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
        for node in inner:
            name = feature_name(feature_names, int(tree.feature[node]))
            ax.annotate(_left_of(tree, node, name), (x[node], y[node]), (0, 4), bbox=box, **at)
        for node in np.flatnonzero(ends):
            text = _describe(tree, int(node), class_names)
            ax.annotate(text, (x[node], y[node]), (0, -6), va="top", **at)
    ax.set(xlim=(-0.7, np.count_nonzero(ends) - 0.3), ylim=(1.15 * bottom, -0.03 * bottom))
    ax.set(xticks=[], ylabel="time")
    _hide_frame(ax)
    return ax


def _draw_branches(
    ax: Axes, tree: MondrianTree, inner: IntArray, x: FloatArray, y: FloatArray
) -> None:
    """Draw the lines from the root and from each split, across and down to its children."""
    from matplotlib.collections import LineCollection

    lines = []
    for node in inner:
        left, right = tree.children_left[node], tree.children_right[node]
        lines.append([(x[left], y[left]), (x[left], y[node]), (x[right], y[node])])
        lines.append([(x[right], y[node]), (x[right], y[right])])
    lines.append([(x[0], 0.0), (x[0], y[0])])
    ax.add_collection(LineCollection(lines, colors="0.4", linewidths=1.0))


def plot_posterior_tree(
    tree: PosteriorTree,
    *,
    max_depth: int | None = None,
    feature_names: Names | None = None,
    class_names: Names | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a Bayesian decision tree by levels.

    The width of a line shows the share of the training rows that follow it. Labels describe the
    nodes if there are at most 15 splits, with thresholds to four digits; `PosteriorTree.rules`
    writes them in full.

    Parameters
    ----------
    tree : PosteriorTree
        For example ``model.best_tree_``.
    max_depth : int, default=None
        Number of levels of splits to draw; a triangle stands for what is below. None draws all.
    feature_names : sequence of str, default=None
        Names of the features. None takes those of the columns that the model was fitted on.
    class_names : sequence, default=None
        Names of the classes. None takes the class labels.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None makes new ones.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError
        If `tree` is not a `PosteriorTree`, or `max_depth` not an integer.
    ValueError
        If `max_depth` is negative, or there are fewer names than features or classes.
    ImportError
        If Matplotlib is not installed.
    """
    require("plot_posterior_tree", tree, "PosteriorTree")
    feature_names = tree.feature_names if feature_names is None else feature_names
    inner, ends, x = _layout(tree, max_depth)
    depth = tree.depth

    ax = new_axes(ax)
    share = tree.n_rows / tree.n_rows[0]
    for parent in inner:
        for node in (tree.children_left[parent], tree.children_right[parent]):
            width = 0.5 + 4.0 * float(share[node])
            line = ([x[parent], x[node]], [depth[parent], depth[node]])
            ax.plot(*line, color="0.7", linewidth=width, zorder=1)
    cut_off = ends & ~tree.is_leaf
    for which, marker in ((ends & tree.is_leaf, "o"), (cut_off, "^")):
        ax.scatter(x[which], depth[which], s=24, color="tab:blue", marker=marker, zorder=3)
    if len(inner) <= _MAX_LABELLED_SPLITS:
        features = [feature_name(feature_names, int(feature)) for feature in tree.feature[inner]]
        texts = [
            (node, _left_of(tree, node, name)) for node, name in zip(inner, features, strict=True)
        ]
        texts += [
            (node, tree.describe(int(node), class_names).replace(" (", "\n("))
            for node in np.flatnonzero(ends)
        ]
        for node, text in texts:
            box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "0.7"}
            ax.text(x[node], depth[node], text, ha="center", va="center", size=7, bbox=box)
    lowest = int(depth[ends].max())
    ax.set(xlim=(-0.7, np.count_nonzero(ends) - 0.3), ylim=(lowest + 0.5, -0.5), xticks=[])
    ax.set(yticks=range(lowest + 1), ylabel="depth")
    _hide_frame(ax)
    return ax


def _hide_frame(ax: Axes) -> None:
    """Leave only the vertical axis."""
    for side in ("top", "right", "bottom"):
        ax.spines[side].set_visible(False)


def _layout(tree: ArrayTree, max_depth: int | None) -> tuple[IntArray, AnyArray, FloatArray]:
    """The nodes drawn as splits, whether each node is drawn as an end, and horizontal positions."""
    if max_depth is not None:
        check_count("max_depth", max_depth, 0)
    depth = tree.depth
    lowest = depth.max() if max_depth is None else max_depth
    ends = (depth <= lowest) & (tree.is_leaf | (depth == lowest))
    inner = np.flatnonzero((depth <= lowest) & ~ends)
    x = np.full(tree.n_nodes, np.nan)
    x[ends] = np.arange(np.count_nonzero(ends))  # preorder: from left to right
    for node in inner[::-1]:
        x[node] = 0.5 * (x[tree.children_left[node]] + x[tree.children_right[node]])
    return inner, ends, x


def _left_of(tree: ArrayTree, node: int, name: str) -> str:
    """The condition on which rows go left at a split."""
    child = int(tree.children_left[node])
    return tree.condition(child, name=name, shown=f"{tree.threshold[node]:.4g}", signs=("≤", ">"))


def _describe(tree: MondrianTree, node: int, class_names: Names | None) -> str:
    text = f"n = {tree.n_rows[node]}"
    if tree.counts is not None and tree.counts.shape[1]:
        most = int(tree.counts[node].argmax())
        name = class_name(class_names, most)
        return f"{text}\n{name}"
    if tree.mean is not None:
        return f"{text}\n{tree.mean[node]:.3g}"
    return text
