"""Plots of sums of trees (BART)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier

from boscage._types import AnyArray, FloatArray
from boscage._validation import check_count, check_real
from boscage.plots._shared import new_axes, require
from boscage.trees._names import feature_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    """Plot the partial dependence of BART on a feature, with its credible band and ICE curves.

    The thick line is the posterior mean of the partial dependence; its band contains the share
    ``level`` of the draws. Thin lines are single rows (ICE curves), each with its own band. For
    a feature of categories there are points with bars for each, and the rows' means are grey.

    Parameters
    ----------
    model : BARTRegressor or BARTClassifier
        A fitted BART model.
    X : array-like, sparse matrix or table of shape (n_samples, n_features)
        Rows to average over; about 100 are enough.
    feature : int or str
        Number or name of the feature.
    level : float, default=0.9
        Probability of the bands, between 0 and 1.
    n_curves : int, default=5
        Number of rows, the first ones, with curves of their own.
    target : label, default=None
        For a classifier, the class whose probability is shown; None takes the last.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None makes new ones.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError
        If `model` is not BART, or another argument is of a wrong type.
    ValueError
        If `level` is not between 0 and 1, `n_curves` is negative, or there is no such feature or
        class.
    sklearn.exceptions.NotFittedError
        If `model` is not fitted.
    ImportError
        If Matplotlib is not installed.
    """
    require("plot_effect", model, "BARTRegressor", "BARTClassifier")
    if not 0.0 < check_real("level", level) < 1.0:
        raise ValueError(f"level must be between 0 and 1, found {level}")
    check_count("n_curves", n_curves, 0)
    grid, draws = model.effect(X, feature)
    what = "prediction"
    if is_classifier(model):
        labels = list(model.classes_)
        if target is not None and target not in labels:
            raise ValueError(f"target must be one of {labels}, found {target!r}")
        number = len(labels) - 1 if target is None else labels.index(target)
        what = f"probability of {labels[number]}"
        draws = draws[..., number] if draws.ndim == 4 else draws if number else 1.0 - draws
    ax = new_axes(ax)
    ends = [0.5 - 0.5 * level, 0.5 + 0.5 * level]
    column = model._column(feature)
    ax.set_xlabel(feature_name(model._names(), column))
    ax.set_ylabel(what)
    draw = _draw_points if column in model._labels else _draw_curves
    draw(ax, grid, draws, ends, n_curves)
    return ax


def _draw_points(
    ax: Axes, grid: AnyArray, draws: FloatArray, ends: list[float], n_curves: int
) -> None:
    at = np.arange(len(grid))
    for curve in np.moveaxis(draws, 2, 0)[:n_curves]:
        ax.plot(at, curve.mean(axis=0), "_", color="0.6")
    of_draws = draws.mean(axis=2)
    mean, (low, high) = of_draws.mean(axis=0), np.quantile(of_draws, ends, axis=0)
    ax.vlines(at, low, high, color="C0", alpha=0.5, linewidth=3.0)
    ax.plot(at, mean, "o", color="C0")
    ax.set_xticks(at, [str(category) for category in grid])
    ax.set_xlim(-0.5, len(grid) - 0.5)


def _draw_curves(
    ax: Axes, grid: AnyArray, draws: FloatArray, ends: list[float], n_curves: int
) -> None:
    for curve in np.moveaxis(draws, 2, 0)[:n_curves]:
        ax.plot(grid, curve.mean(axis=0), color="0.6", linewidth=0.8)
        ax.fill_between(
            grid, *np.quantile(curve, ends, axis=0), color="0.6", alpha=0.08, linewidth=0
        )
    mean = draws.mean(axis=2)
    ax.fill_between(grid, *np.quantile(mean, ends, axis=0), color="C0", alpha=0.3, linewidth=0)
    ax.plot(grid, mean.mean(axis=0), color="C0", linewidth=2.0)
