"""Plots of trees, of partitions with their uncertainty, and of calibration.

They need Matplotlib (``pip install "boscage[plot]"``), which is imported when one is drawn. Each
takes ``ax=`` and gives back the axes it drew on.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from boscage._types import AnyArray, FloatArray, IntArray
from boscage.metrics import TENTHS, Prediction, calibration_table, reliability_bins
from boscage.trees._base import ArrayTree, class_name, feature_name
from boscage.trees.mondrian import MondrianTree
from boscage.trees.posterior import PosteriorTree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "plot_calibration",
    "plot_disagreement",
    "plot_effect",
    "plot_partition",
    "plot_posterior_tree",
    "plot_reliability",
    "plot_tree",
]


def plot_reliability(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    n_bins: int = 15,
    strategy: Literal["uniform", "quantile"] = "uniform",
    name: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Accuracy against confidence, for probabilities of classes.

    Points on the diagonal are calibrated, points below it too sure of themselves. A point's area
    grows with the number of predictions in its bin.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        True labels.
    y_prob : array-like of shape (n_rows, n_classes) or (n_rows,)
        Predicted probabilities; see `boscage.metrics.reliability_bins`.
    labels : array-like of shape (n_classes,), default=None
        The labels of the columns. By default those in ``y_true``.
    n_bins : int, default=15
    strategy : {"uniform", "quantile"}, default="uniform"
    name : str, default=None
        What the legend says.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; by default on new axes.

    Returns
    -------
    matplotlib.axes.Axes
    """
    bins = reliability_bins(y_true, y_prob, labels=labels, n_bins=n_bins, strategy=strategy)
    error = np.average(np.abs(bins.predicted - bins.observed), weights=bins.counts)
    ax = _axes(ax)
    _diagonal(ax)
    label = f"{name + ': ' if name else ''}expected calibration error {error:.3f}"
    (line,) = ax.plot(bins.predicted, bins.observed, label=label)
    area = 20.0 + 180.0 * bins.counts / bins.counts.max()
    ax.scatter(bins.predicted, bins.observed, s=area, color=line.get_color(), alpha=0.5)
    ax.set(xlabel="confidence", ylabel="accuracy")
    ax.legend(loc="upper left")
    return ax


def plot_calibration(
    y_true: ArrayLike,
    y_pred: Prediction,
    *,
    levels: ArrayLike = TENTHS,
    quantiles: Literal["gaussian", "exact"] = "exact",
    name: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Observed against claimed coverage of central prediction intervals, for regression.

    Points on the diagonal are calibrated, points below it too sure of themselves.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        What was observed.
    y_pred : GaussianMixture or (mean, std)
        What was predicted.
    levels : array-like of float, default=0.1, 0.2, ..., 0.9
        Coverages of the intervals.
    quantiles : {"gaussian", "exact"}, default="exact"
        See `boscage.metrics.calibration_table`.
    name : str, default=None
        What the legend says.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; by default on new axes.

    Returns
    -------
    matplotlib.axes.Axes
    """
    table = calibration_table(y_true, y_pred, levels=levels, quantiles=quantiles)
    ax = _axes(ax)
    _diagonal(ax)
    ax.plot(table.level, table.observed, marker="o", label=name)
    ax.set(xlabel="coverage claimed", ylabel="coverage observed")
    if name is not None:
        ax.legend(loc="upper left")
    return ax


def plot_tree(
    tree: MondrianTree,
    *,
    max_depth: int | None = None,
    feature_names: Sequence[str] | AnyArray | None = None,
    class_names: Sequence[object] | AnyArray | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a tree with time running downwards, as Figure 5.1 of the thesis.

    A node stands at the time of its split, a leaf at the bottom. Cuts are written beside their
    nodes as long as the tree is small.

    Parameters
    ----------
    tree : MondrianTree
        For example ``forest.trees_[0]``.
    max_depth : int, default=None
        Draw only so many levels of cuts; what is below is drawn as a triangle.
    feature_names : sequence of str, default=None
        For example ``forest.feature_names_in_``.
    class_names : sequence, default=None
        For example ``forest.classes_``.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; by default on new axes.

    Returns
    -------
    matplotlib.axes.Axes
    """
    inner, ends, x = _layout(tree, max_depth)
    last = tree.time[inner].max() if inner.size else 0.0
    bottom = 1.1 * last if last > 0.0 else 1.0
    y = np.where(ends, bottom, tree.time)

    ax = _axes(ax)
    lines = []
    for node in inner:
        left, right = tree.children_left[node], tree.children_right[node]
        lines.append([(x[left], y[left]), (x[left], y[node]), (x[right], y[node])])
        lines.append([(x[right], y[node]), (x[right], y[right])])
    lines.append([(x[0], 0.0), (x[0], y[0])])
    from matplotlib.collections import LineCollection

    ax.add_collection(LineCollection(lines, colors="0.4", linewidths=1.0))

    leaves = np.flatnonzero(ends & tree.is_leaf)
    cut_off = np.flatnonzero(ends & ~tree.is_leaf)
    ax.scatter(x[leaves], y[leaves], s=20, color="tab:blue", zorder=3)
    ax.scatter(x[cut_off], y[cut_off], s=40, color="tab:blue", marker="^", zorder=3)
    ax.scatter(x[inner], y[inner], s=12, color="0.2", zorder=3)
    if len(inner) <= 15:
        for node in inner:
            name = feature_name(feature_names, int(tree.feature[node]))
            text = f"{name} ≤ {tree.threshold[node]:.4g}"
            ax.annotate(
                text,
                (x[node], y[node]),
                (0, 4),
                textcoords="offset points",
                ha="center",
                size=7,
                bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"},
            )
        for node in np.flatnonzero(ends):
            ax.annotate(
                _describe(tree, int(node), class_names),
                (x[node], y[node]),
                (0, -6),
                textcoords="offset points",
                ha="center",
                va="top",
                size=7,
            )
    ax.set_ylim(1.15 * bottom, -0.03 * bottom)
    ax.set_xlim(-0.7, np.count_nonzero(ends) - 0.3)
    ax.set_xticks([])
    ax.set_ylabel("time")
    for side in ("top", "right", "bottom"):
        ax.spines[side].set_visible(False)
    return ax


def plot_partition(
    forest: Any,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    tree: int | None = 0,
    features: tuple[int, int] = (0, 1),
    at: ArrayLike | None = None,
    margin: float = 0.1,
    resolution: int = 150,
    ax: Axes | None = None,
) -> Axes:
    """A forest's uncertainty over two features, with the cuts of one of its trees.

    The shade is the standard deviation of the predictive distribution, or the entropy of the
    predicted classes as a fraction of the greatest possible one. The cuts of a Mondrian tree
    reach only as far as the box of the rows that they separate.

    Parameters
    ----------
    forest : MondrianForestClassifier or MondrianForestRegressor
        A fitted forest.
    X, y : array-like of shape (n_samples, n_features) and (n_samples,), default=None
        Rows to draw as points, and their targets.
    tree : int or None, default=0
        Whose cuts to draw. Only of a forest on two features: cuts of more do not show in a plane.
    features : tuple of two int, default=(0, 1)
        The features on the axes.
    at : array-like of shape (n_features,), default=None
        Values of the other features. By default the middle of the training rows' range.
    margin : float, default=0.1
        How far to go beyond the training rows, as a fraction of their range.
    resolution : int, default=150
        Points of the grid in each direction.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; by default on new axes.

    Returns
    -------
    matplotlib.axes.Axes
    """
    first = forest.trees_[0 if tree is None else tree]
    n_features = first.lower.shape[1]
    a, b = _pair(features, n_features)
    low, high = first.lower[0], first.upper[0]
    span = np.where(high > low, high - low, 1.0)
    across, up = (
        np.linspace(low[d] - margin * span[d], high[d] + margin * span[d], resolution)
        for d in (a, b)
    )
    base = 0.5 * (low + high) if at is None else np.asarray(at, dtype=np.float64)
    if base.shape != (n_features,):
        raise ValueError(f"at has shape {base.shape}, expected ({n_features},)")
    grid = np.tile(base, (resolution * resolution, 1))
    grid[:, a], grid[:, b] = (part.ravel() for part in np.meshgrid(across, up))
    names = getattr(forest, "feature_names_in_", None)
    shade, label = _uncertainty(forest, grid)

    ax = _axes(ax)
    mesh = ax.pcolormesh(
        across, up, shade.reshape(resolution, resolution), cmap="viridis", shading="nearest"
    )
    ax.figure.colorbar(mesh, ax=ax, label=label)
    if tree is not None and n_features == 2:
        from matplotlib.collections import LineCollection

        lines = _cuts(first, a, b)
        ax.add_collection(LineCollection(lines, colors="white", linewidths=0.6, alpha=0.8))
    if X is not None:
        rows = np.asarray(X)
        marks: dict[str, Any] = {"s": 24, "edgecolors": "white", "linewidths": 0.4}
        targets = None if y is None else np.asarray(y)
        if targets is not None and is_classifier(forest):
            for i, value in enumerate(forest.classes_):
                of = targets == value
                colour = f"C{(i + 1) % 10}"  # the first is too near to the shade
                ax.scatter(rows[of, a], rows[of, b], color=colour, label=value, **marks)
            ax.legend(loc="best", fontsize="small")
        else:
            colours = "tab:red" if targets is None else targets
            cmap = None if targets is None else "coolwarm"
            ax.scatter(rows[:, a], rows[:, b], c=colours, cmap=cmap, **marks)
    ax.set(
        xlabel=feature_name(names, a),
        ylabel=feature_name(names, b),
        xlim=(across[0], across[-1]),
        ylim=(up[0], up[-1]),
    )
    return ax


def plot_posterior_tree(
    tree: PosteriorTree,
    *,
    max_depth: int | None = None,
    feature_names: Sequence[str] | AnyArray | None = None,
    class_names: Sequence[object] | AnyArray | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a tree of a posterior, level by level.

    The lines are as thick as the share of the training rows that goes along them. Cuts and leaves
    are described as long as the tree is small, with thresholds to four digits;
    `PosteriorTree.rules` has them in full.

    Parameters
    ----------
    tree : PosteriorTree
        For example ``model.best_tree_``.
    max_depth : int, default=None
        Draw only so many levels of cuts; what is below is drawn as a triangle.
    feature_names : sequence of str, default=None
        For example ``model.feature_names_in_``.
    class_names : sequence, default=None
        For example ``model.classes_``.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; by default on new axes.

    Returns
    -------
    matplotlib.axes.Axes
    """
    inner, ends, x = _layout(tree, max_depth)
    depth = tree.depth

    ax = _axes(ax)
    share = tree.n_rows / tree.n_rows[0]
    for parent in inner:
        for node in (tree.children_left[parent], tree.children_right[parent]):
            width = 0.5 + 4.0 * float(share[node])
            line = ([x[parent], x[node]], [depth[parent], depth[node]])
            ax.plot(*line, color="0.7", linewidth=width, zorder=1)
    cut_off = ends & ~tree.is_leaf
    for which, marker in ((ends & tree.is_leaf, "o"), (cut_off, "^")):
        ax.scatter(x[which], depth[which], s=24, color="tab:blue", marker=marker, zorder=3)
    if len(inner) <= 15:
        features = [feature_name(feature_names, int(feature)) for feature in tree.feature[inner]]
        texts = [
            (node, f"{name} ≤ {tree.threshold[node]:.4g}")
            for node, name in zip(inner, features, strict=True)
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
    for side in ("top", "right", "bottom"):
        ax.spines[side].set_visible(False)
    return ax


def plot_disagreement(
    model: Any,
    X: Any,
    *,
    features: tuple[int, int] = (0, 1),
    margin: float = 0.1,
    resolution: int = 100,
    ax: Axes | None = None,
) -> Axes:
    """How far the trees of a posterior disagree, over two features.

    The shade is the standard deviation, over the trees by weight, of what they predict: of the
    mean for numbers, of the probability of the class that is then the likeliest for classes. It
    shows what the posterior does not know about the tree; noise within leaves is left out. The
    root cuts of the trees are drawn across, the heavier the plainer.

    Parameters
    ----------
    model : BayesianTreeClassifier or BayesianTreeRegressor
        A fitted posterior.
    X : array-like of shape (n_samples, n_features)
        Rows to draw as points; their ranges are the plot's, and their medians stand for the
        features that are not on the axes.
    features : tuple of two int, default=(0, 1)
        The features on the axes.
    margin : float, default=0.1
        How far to go beyond the rows, as a fraction of their range.
    resolution : int, default=100
        Points of the grid in each direction.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; by default on new axes.

    Returns
    -------
    matplotlib.axes.Axes
    """
    rows = np.asarray(X, dtype=np.float64)
    a, b = _pair(features, model.n_features_in_)
    low, high = rows.min(axis=0), rows.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    across, up = (
        np.linspace(low[d] - margin * span[d], high[d] + margin * span[d], resolution)
        for d in (a, b)
    )
    grid = np.tile(np.median(rows, axis=0), (resolution * resolution, 1))
    grid[:, a], grid[:, b] = (part.ravel() for part in np.meshgrid(across, up))
    trees, weights = model.trees_, model.weights_
    shade = _disagreement(trees, weights, grid, getattr(model._require_model(), "alpha", 0.0))

    ax = _axes(ax)
    mesh = ax.pcolormesh(
        across, up, shade.reshape(resolution, resolution), cmap="magma", shading="nearest"
    )
    ax.figure.colorbar(mesh, ax=ax, label="disagreement of trees")
    for tree, weight in zip(trees, weights, strict=True):
        # Many trees have faint lines: they add up where trees agree, and hide no shade elsewhere.
        alpha = float(min(1.0, 25.0 * weight))
        if tree.feature[0] == a:
            ax.axvline(tree.threshold[0], color="white", linewidth=0.6, alpha=alpha)
        elif tree.feature[0] == b:
            ax.axhline(tree.threshold[0], color="white", linewidth=0.6, alpha=alpha)
    ax.scatter(rows[:, a], rows[:, b], s=6, color="tab:cyan", linewidths=0)
    names = getattr(model, "feature_names_in_", None)
    ax.set(
        xlabel=feature_name(names, a),
        ylabel=feature_name(names, b),
        xlim=(across[0], across[-1]),
        ylim=(up[0], up[-1]),
    )
    return ax


def plot_effect(
    model: Any,
    X: Any,
    feature: int | str,
    *,
    level: float = 0.9,
    n_curves: int = 5,
    target: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Partial dependence of BART on a feature with its credible band, over curves of single rows.

    The thick line is the posterior mean of the partial dependence, its band holds the share
    ``level`` of the draws. Thin lines are rows (ICE), each with a band of its own.

    Parameters
    ----------
    model : BARTRegressor or BARTClassifier
        Fitted.
    X : array-like or table of shape (n_samples, n_features)
        Rows to average over; some 100 are enough.
    feature : int or str
        Place or name.
    level : float, default=0.9
        Between 0 and 1.
    n_curves : int, default=5
        Rows that get a curve of their own: the first ones. 0 for none.
    target : label, default=None
        Of more than two classes, the one whose probability is shown; by default the last.
    ax : matplotlib axes, default=None

    Returns
    -------
    matplotlib axes
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be between 0 and 1, found {level}")
    grid, draws = model.effect(X, feature)
    what = "prediction"
    if is_classifier(model):
        labels = list(model.classes_)
        place = len(labels) - 1 if target is None else labels.index(target)
        what = f"probability of {labels[place]}"
        draws = draws[..., place] if draws.ndim == 4 else draws if place else 1.0 - draws
    ax = _axes(ax)
    ends = [0.5 - 0.5 * level, 0.5 + 0.5 * level]
    for curve in np.moveaxis(draws, 2, 0)[:n_curves]:
        ax.plot(grid, curve.mean(axis=0), color="0.6", linewidth=0.8)
        ax.fill_between(
            grid, *np.quantile(curve, ends, axis=0), color="0.6", alpha=0.08, linewidth=0
        )
    mean = draws.mean(axis=2)
    ax.fill_between(grid, *np.quantile(mean, ends, axis=0), color="C0", alpha=0.3, linewidth=0)
    ax.plot(grid, mean.mean(axis=0), color="C0", linewidth=2.0)
    names = getattr(model, "feature_names_in_", None)
    ax.set_xlabel(feature if isinstance(feature, str) else feature_name(names, feature))
    ax.set_ylabel(what)
    return ax


def _pair(features: tuple[int, int], n_features: int) -> tuple[int, int]:
    """The numbers of two features, checked."""
    try:
        a, b = (operator.index(feature) for feature in features)
        if a != b and min(a, b) >= 0 and max(a, b) < n_features:
            return a, b
    except (TypeError, ValueError):
        pass
    raise ValueError(
        f"features must be two different numbers below {n_features}, found {features!r}"
    )


def _disagreement(
    trees: Sequence[PosteriorTree], weights: FloatArray, grid: FloatArray, alpha: float
) -> FloatArray:
    """The standard deviation over trees of the likeliest class's probability, or of the mean."""
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
        # Squares of differences: those of numbers far from zero would have no digits left.
        centre = own if centre is None else centre
        first = first + weight * (own - centre)
        second = second + weight * (own - centre) ** 2
    likeliest = (centre + first).argmax(axis=1)[:, None]
    spread = np.maximum(second - first**2, 0.0)
    chosen: FloatArray = np.sqrt(np.take_along_axis(spread, likeliest, axis=1)[:, 0])
    return chosen


def _uncertainty(forest: Any, grid: FloatArray) -> tuple[FloatArray, str]:
    # Not through the forest's own predict, which would miss the names of the columns.
    model, n_threads = forest._require_rows(), forest._n_threads()
    if is_classifier(forest):
        proba = model.predict_proba(grid, n_threads=n_threads)
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(proba > 0.0, -proba * np.log(proba), 0.0)
        return each.sum(axis=1) / np.log(max(proba.shape[1], 2)), "relative entropy"
    _, variance = model.predict(grid, n_threads=n_threads)
    return np.sqrt(variance), "standard deviation"


def _cuts(tree: MondrianTree, a: int, b: int) -> list[list[tuple[float, float]]]:
    """Each cut as a segment across the box of the rows it separates."""
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


def _layout(tree: ArrayTree, max_depth: int | None) -> tuple[IntArray, AnyArray, FloatArray]:
    """Nodes drawn as cuts, whether a node is drawn as an end, and how far right each stands."""
    if max_depth is not None and max_depth < 0:
        raise ValueError(f"max_depth must be >= 0, found {max_depth}")
    depth = tree.depth
    lowest = depth.max() if max_depth is None else max_depth
    ends = (depth <= lowest) & (tree.is_leaf | (depth == lowest))
    inner = np.flatnonzero((depth <= lowest) & ~ends)
    x = np.full(tree.n_nodes, np.nan)
    x[ends] = np.arange(np.count_nonzero(ends))  # preorder: from left to right
    for node in inner[::-1]:
        x[node] = 0.5 * (x[tree.children_left[node]] + x[tree.children_right[node]])
    return inner, ends, x


def _describe(
    tree: MondrianTree, node: int, class_names: Sequence[object] | AnyArray | None
) -> str:
    text = f"n = {tree.n_rows[node]}"
    if tree.counts is not None and tree.counts.shape[1]:
        most = int(tree.counts[node].argmax())
        name = class_name(class_names, most)
        return f"{text}\n{name}"
    if tree.mean is not None:
        return f"{text}\n{tree.mean[node]:.3g}"
    return text


def _diagonal(ax: Axes) -> None:
    ax.axline((0.0, 0.0), slope=1.0, color="0.6", linestyle="--", linewidth=1.0)
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal")


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'plots need Matplotlib, which is not installed: pip install "boscage[plot]"'
        ) from error
    return plt.subplots()[1]
