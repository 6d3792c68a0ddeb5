"""Plots of what a Mondrian forest does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from boscage._types import FloatArray, Label
from boscage._validation import check_feature
from boscage.plots._shared import check_grid, new_axes, other_values, require
from boscage.trees._names import feature_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = ("C0", "C1")


def plot_uncertainty(
    forest: Any,
    *,
    feature: int | str = 0,
    at: ArrayLike | None = None,
    margin: float = 1.0,
    resolution: int = 200,
    novelty: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Plot both parts of a forest's uncertainty along one feature, one upon the other.

    The lower area is the aleatoric part, which more rows would not lessen, the upper one the
    epistemic part, and their sum the total; see ``predict_uncertainty``. The line, on an axis of
    its own, is the score of the rows (``score_samples``): 1 where rows are usual. A categorical
    feature has bars and points instead, one for each category, in the order in which the forest
    has them.

    Parameters
    ----------
    forest : MondrianForestClassifier or MondrianForestRegressor
        A fitted Mondrian forest.
    feature : int or str, default=0
        Number of the feature on the axis, or its name if the forest was fitted on named columns.
    at : array-like of shape (n_features,), default=None
        Values of the other features, NaN where one is missing; categories by name. None takes the
        middle of the reference ranges, and a missing value of each categorical feature.
    margin : float, default=1.0
        Margin around the reference range of a numeric feature, in units of the range; at least 0.
    resolution : int, default=200
        Number of rows to predict along a numeric feature, at least 2.
    novelty : bool, default=True
        Whether to draw the scores.
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
        If there is no such `feature`, `at` has a wrong shape or holds what is no number, or
        `margin` or `resolution` is out of range.
    sklearn.exceptions.NotFittedError
        If `forest` is not fitted.
    ImportError
        If Matplotlib is not installed.
    """
    require("plot_uncertainty", forest, "MondrianForestClassifier", "MondrianForestRegressor")
    low, high = forest.feature_range_
    names = forest._names()
    number = check_feature("feature", feature, names, len(low))
    check_grid(margin, resolution)
    base = other_values(forest, at, 0.5 * (low + high))
    table = forest._tables.get(number)
    if table is None:
        span = margin * (high[number] - low[number] or 1.0)
        values = np.linspace(low[number] - span, high[number] + span, resolution)
    else:
        values = np.array(sorted(table.values()))
    rows = np.tile(base, (len(values), 1))
    rows[:, number] = values
    # The forest's own methods would warn that the rows have no column names.
    model, n_threads = forest._require_rows(), forest._n_threads()
    forest._prepare(model, rows)
    found = forest._uncertainty(model, rows, n_threads)

    ax = new_axes(ax)
    parts = {"aleatoric": found.aleatoric, "epistemic": found.epistemic}
    if table is None:
        across, marks = values, "-"
        ax.stackplot(across, *parts.values(), labels=list(parts), colors=_COLOURS, alpha=0.7)
        ax.set_xlim(across[0], across[-1])
    else:
        across, marks = np.arange(len(values)), "o"
        _draw_bars(ax, parts, sorted(table, key=lambda label: table[label]))
    ax.set(
        xlabel=feature_name(names, number),
        ylabel="entropy in nats" if is_classifier(forest) else "variance",
    )
    ax.set_ylim(bottom=0.0)
    handles, names = ax.get_legend_handles_labels()
    if novelty:
        beside = ax.twinx()
        score = model.score_samples(rows, n_threads=n_threads)
        handles += beside.plot(across, score, marks, color="0.2", linewidth=1.2)
        names.append("score")
        beside.set(ylabel="score", ylim=(0.0, 1.05))
    ax.legend(handles, names, loc="best", fontsize="small")
    return ax


def _draw_bars(ax: Axes, parts: dict[str, FloatArray], labels: list[Label | None]) -> None:
    """Draw the parts of each category upon each other."""
    across, below = np.arange(len(labels)), np.zeros(len(labels))
    for (name, part), colour in zip(parts.items(), _COLOURS, strict=True):
        ax.bar(across, part, bottom=below, label=name, color=colour, alpha=0.7)
        below = below + part
    ax.set_xticks(across, ["missing" if label is None else str(label) for label in labels])
