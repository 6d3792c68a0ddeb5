"""Plots of what a Mondrian forest does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from boscage._names import feature_name
from boscage.plots._shared import new_axes, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_uncertainty(
    forest: Any,
    *,
    feature: int = 0,
    at: ArrayLike | None = None,
    margin: float = 1.0,
    resolution: int = 200,
    novelty: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Plot both parts of a forest's uncertainty along one feature, one upon the other.

    The lower area is the aleatoric part, which more rows would not lessen, the upper one the
    epistemic part, and their sum the total; see ``predict_uncertainty``. The line, on an axis of
    its own, is the score of the rows (``score_samples``): 1 where rows are usual.

    Parameters
    ----------
    forest : MondrianForestClassifier or MondrianForestRegressor
        A fitted Mondrian forest.
    feature : int, default=0
        Number of the feature on the axis.
    at : array-like of shape (n_features,), default=None
        Values of the other features. None takes the middle of the reference ranges.
    margin : float, default=1.0
        Margin around the feature's reference range, in units of the range.
    resolution : int, default=200
        Number of rows to predict.
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
        If `forest` is not a Mondrian forest.
    ValueError
        If there is no such `feature`, or `at` has a wrong shape.
    sklearn.exceptions.NotFittedError
        If `forest` is not fitted.
    ImportError
        If Matplotlib is not installed.
    """
    require("plot_uncertainty", forest, "MondrianForestClassifier", "MondrianForestRegressor")
    low, high = forest.feature_range_
    if not 0 <= feature < len(low):
        raise ValueError(f"feature must be a number below {len(low)}, found {feature}")
    base = 0.5 * (low + high) if at is None else np.asarray(at, dtype=np.float64)
    if base.shape != low.shape:
        raise ValueError(f"at has shape {base.shape}, expected {low.shape}")
    span = high[feature] - low[feature] or 1.0
    across = np.linspace(low[feature] - margin * span, high[feature] + margin * span, resolution)
    rows = np.tile(base, (resolution, 1))
    rows[:, feature] = across
    # The forest's own methods would warn that the rows have no column names.
    model, n_threads = forest._require_rows(), forest._n_threads()
    total, aleatoric = model.predict_uncertainty(rows, n_threads=n_threads)

    ax = new_axes(ax)
    ax.stackplot(
        across,
        aleatoric,
        total - aleatoric,
        labels=["aleatoric", "epistemic"],
        colors=["C0", "C1"],
        alpha=0.7,
    )
    ax.set(
        xlabel=feature_name(getattr(forest, "feature_names_in_", None), feature),
        ylabel="entropy in nats" if is_classifier(forest) else "variance",
        xlim=(across[0], across[-1]),
    )
    ax.set_ylim(bottom=0.0)
    lines, names = ax.get_legend_handles_labels()
    if novelty:
        beside = ax.twinx()
        score = model.score_samples(rows, n_threads=n_threads)
        lines += beside.plot(across, score, color="0.2", linewidth=1.2)
        names.append("score")
        beside.set(ylabel="score", ylim=(0.0, 1.05))
    ax.legend(lines, names, loc="best", fontsize="small")
    return ax
