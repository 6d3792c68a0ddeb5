"""Plots of calibration, for classes and for numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from boscage.metrics import calibration_table, reliability_bins
from boscage.metrics._regression import TENTHS, Prediction
from boscage.plots._shared import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    """Plot accuracy against confidence, for predicted probabilities of classes.

    Points on the diagonal are calibrated; points below it are overconfident. The area of a point
    grows with the number of predictions in its bin.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        True labels.
    y_prob : array-like of shape (n_rows, n_classes) or (n_rows,)
        Predicted probabilities; see `boscage.metrics.reliability_bins`.
    labels : array-like of shape (n_classes,), default=None
        Labels of the columns. None takes those in `y_true`.
    n_bins : int, default=15
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Whether bins have equal widths, or about equal numbers of predictions.
    name : str, default=None
        Label for the legend.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None makes new ones.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If an argument is not valid; see `boscage.metrics.reliability_bins`.
    ImportError
        If Matplotlib is not installed.
    """
    bins = reliability_bins(y_true, y_prob, labels=labels, n_bins=n_bins, strategy=strategy)
    error = np.average(np.abs(bins.predicted - bins.observed), weights=bins.counts)
    ax = new_axes(ax)
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
    """Plot observed against nominal coverage of central prediction intervals, for regression.

    Points on the diagonal are calibrated; points below it are overconfident.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        What was observed.
    y_pred : PredictiveDistribution or (mean, std)
        What was predicted: what ``predict_dist`` returns, your own distribution, or the means and
        standard deviations of Gaussians.
    levels : array-like of float, default=0.1, 0.2, ..., 0.9
        Nominal coverages, in (0, 1).
    quantiles : {"gaussian", "exact"}, default="exact"
        Which intervals; see `boscage.metrics.calibration_table`.
    name : str, default=None
        Label for the legend.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on; None makes new ones.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If an argument is not valid; see `boscage.metrics.calibration_table`.
    TypeError
        If `y_pred` is neither a distribution nor a pair.
    ImportError
        If Matplotlib is not installed.
    """
    table = calibration_table(y_true, y_pred, levels=levels, quantiles=quantiles)
    ax = new_axes(ax)
    _diagonal(ax)
    ax.plot(table.level, table.observed, marker="o", label=name)
    ax.set(xlabel="nominal coverage", ylabel="observed coverage")
    if name is not None:
        ax.legend(loc="upper left")
    return ax


def _diagonal(ax: Axes) -> None:
    ax.axline((0.0, 0.0), slope=1.0, color="0.6", linestyle="--", linewidth=1.0)
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal")
