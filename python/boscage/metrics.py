"""Scores of probabilistic predictions that scikit-learn lacks.

The functions for regression take what was observed and a prediction, which is a `GaussianMixture`
(``forest.predict_dist(X)``) or a pair ``(mean, std)`` of Gaussians, such as
``forest.predict(X, return_std=True)``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from boscage import _validation
from boscage._types import AnyArray, FloatArray, IntArray
from boscage.distributions.gaussian import GaussianMixture

__all__ = [
    "CalibrationTable",
    "ReliabilityBins",
    "calibration_table",
    "crps",
    "expected_calibration_error",
    "interval_coverage",
    "nlpd",
    "reliability_bins",
]

Prediction: TypeAlias = GaussianMixture | tuple[ArrayLike, ArrayLike]

TENTHS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def nlpd(y_true: ArrayLike, y_pred: Prediction) -> float:
    """Negative log predictive density, averaged over rows; smaller is better.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        What was observed.
    y_pred : GaussianMixture or (mean, std)
        What was predicted.

    Returns
    -------
    float
        In natural logarithms.

    Examples
    --------
    >>> round(nlpd([0.0], ([0.0], [1.0])), 6)
    0.918939
    """
    observed, mixture = _pair(y_true, y_pred)
    return float(-np.mean(mixture.logpdf(observed)))


def crps(y_true: ArrayLike, y_pred: Prediction) -> float:
    """Continuous ranked probability score, averaged over rows; smaller is better.

    It is in the units of ``y`` and equals the absolute error for a prediction without spread.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        What was observed.
    y_pred : GaussianMixture or (mean, std)
        What was predicted.

    Returns
    -------
    float

    Examples
    --------
    >>> round(crps([0.0], ([0.0], [1.0])), 6)
    0.233695
    """
    observed, mixture = _pair(y_true, y_pred)
    return float(np.mean(mixture.crps(observed)))


def interval_coverage(y_true: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> float:
    """Fraction of observations inside their prediction intervals, ends included.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        What was observed.
    lower, upper : array-like of shape (n_rows,) or float
        The intervals, for example ``*dist.interval(0.9)``.

    Returns
    -------
    float

    Examples
    --------
    >>> interval_coverage([0.0, 2.0], [-1.0, -1.0], [1.0, 1.0])
    0.5
    """
    observed = _observed(y_true)
    low = np.broadcast_to(np.asarray(lower, dtype=np.float64), observed.shape)
    high = np.broadcast_to(np.asarray(upper, dtype=np.float64), observed.shape)
    crossed = np.flatnonzero(~(low <= high))
    if crossed.size:
        i = crossed[0]
        raise ValueError(f"lower must not exceed upper: row {i} has {low[i]} and {high[i]}")
    return float(np.mean((low <= observed) & (observed <= high)))


@dataclass(frozen=True, eq=False)
class CalibrationTable:
    """How often intervals of given coverage hold what they promise.

    Attributes
    ----------
    level : ndarray
        The coverage that each interval claims.
    observed : ndarray
        The fraction of observations inside.
    difference : ndarray
        Observed less claimed, as Table 6.2 of the thesis prints it: negative for a prediction that
        is too sure of itself, positive for one that is not sure enough.
    """

    level: FloatArray
    observed: FloatArray

    @property
    def difference(self) -> FloatArray:
        """Observed less claimed."""
        return self.observed - self.level

    def __str__(self) -> str:
        head = " ".join(f"{100 * level:6.4g}%" for level in self.level)
        line = " ".join(f"{value:+7.3f}" for value in self.difference)
        return f"{'interval':<19} {head}\n{'observed - interval':<19} {line}"


def calibration_table(
    y_true: ArrayLike,
    y_pred: Prediction,
    *,
    levels: ArrayLike = TENTHS,
    quantiles: Literal["gaussian", "exact"] = "gaussian",
) -> CalibrationTable:
    """The calibration of central prediction intervals, as in Table 6.2 of the thesis.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        What was observed.
    y_pred : GaussianMixture or (mean, std)
        What was predicted.
    levels : array-like of float, default=0.1, 0.2, ..., 0.9
        Coverages of the intervals, in (0, 1).
    quantiles : {"gaussian", "exact"}, default="gaussian"
        Whether an interval is that of the Gaussian with the predictive mean and variance, as in
        the thesis, or that of the mixture itself.

    Returns
    -------
    CalibrationTable

    Examples
    --------
    >>> y = [-2.0, -0.5, 0.0, 0.5, 2.0]
    >>> table = calibration_table(y, (np.zeros(5), np.ones(5)), levels=[0.5, 0.9])
    >>> table.observed.tolist()
    [0.6, 0.6]
    """
    _validation.check_choice("quantiles", quantiles, ("gaussian", "exact"))
    observed, mixture = _pair(y_true, y_pred)
    claimed = np.asarray(levels, dtype=np.float64)
    if claimed.ndim != 1 or not ((claimed > 0.0) & (claimed < 1.0)).all():
        raise ValueError(f"levels must be a list of numbers in (0, 1), found {levels!r}")
    if quantiles == "gaussian":
        away = np.abs(observed - mixture.mean) / mixture.std
        inside = away <= ndtri(0.5 * (1.0 + claimed))[:, None]
    else:
        # y lies in the central interval of coverage c exactly if |2 F(y) - 1| <= c.
        inside = np.abs(2.0 * mixture.cdf(observed) - 1.0) <= claimed[:, None]
    return CalibrationTable(claimed, inside.mean(axis=1))


class ReliabilityBins(NamedTuple):
    """Predicted probabilities beside what came true, bin by bin; empty bins are left out.

    Attributes
    ----------
    predicted : ndarray
        Mean predicted probability in the bin.
    observed : ndarray
        Fraction that came true.
    counts : ndarray
        Predictions in the bin.
    """

    predicted: FloatArray
    observed: FloatArray
    counts: IntArray


def reliability_bins(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    n_bins: int = 15,
    strategy: Literal["uniform", "quantile"] = "uniform",
) -> ReliabilityBins:
    """Group predictions by their confidence and compare it with the accuracy in each group.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        True labels.
    y_prob : array-like of shape (n_rows, n_classes) or (n_rows,)
        Predicted probabilities. Of a matrix the largest entry of each row counts, against whether
        its class is the true one; a vector holds the probabilities of the second of two labels.
    labels : array-like of shape (n_classes,), default=None
        The labels of the columns, such as ``forest.classes_``. By default those in ``y_true``.
    n_bins : int, default=15
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width over [0, 1], or of about equally many predictions.

    Returns
    -------
    ReliabilityBins
    """
    _validation.check_choice("strategy", strategy, ("uniform", "quantile"))
    confidence, correct = _confidence(y_true, y_prob, labels)
    if isinstance(n_bins, bool) or not isinstance(n_bins, (int, np.integer)) or n_bins < 1:
        raise ValueError(f"n_bins must be an integer >= 1, found {n_bins!r}")
    inner = np.arange(1, n_bins) / n_bins
    if strategy == "quantile":
        inner = np.quantile(confidence, inner)
    # A bin holds its upper end, as in the papers on the subject.
    index = np.searchsorted(inner, confidence, side="left")
    counts = np.bincount(index, minlength=n_bins)
    used = counts > 0
    predicted = np.bincount(index, confidence, n_bins)[used] / counts[used]
    observed = np.bincount(index, correct, n_bins)[used] / counts[used]
    return ReliabilityBins(predicted, observed, counts[used])


def expected_calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    n_bins: int = 15,
    strategy: Literal["uniform", "quantile"] = "uniform",
) -> float:
    """Expected calibration error: the mean distance between confidence and accuracy.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        True labels.
    y_prob : array-like of shape (n_rows, n_classes) or (n_rows,)
        Predicted probabilities; see `reliability_bins`.
    labels : array-like of shape (n_classes,), default=None
        The labels of the columns. By default those in ``y_true``.
    n_bins : int, default=15
    strategy : {"uniform", "quantile"}, default="uniform"

    Returns
    -------
    float
        In [0, 1]; smaller is better.

    Examples
    --------
    >>> round(expected_calibration_error([0, 1, 1, 1], [[0.25, 0.75]] * 4), 12)
    0.0
    """
    bins = reliability_bins(y_true, y_prob, labels=labels, n_bins=n_bins, strategy=strategy)
    return float(np.average(np.abs(bins.predicted - bins.observed), weights=bins.counts))


def _confidence(
    y_true: ArrayLike, y_prob: ArrayLike, labels: ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    """The probability of the predicted class, and whether it is the true one."""
    truth = np.asarray(y_true)
    prob = np.asarray(y_prob, dtype=np.float64)
    if truth.ndim != 1 or prob.ndim not in (1, 2) or len(prob) != len(truth) or not len(truth):
        raise ValueError(
            f"y_true has shape {truth.shape} and y_prob {prob.shape}; "
            "expected (n_rows,) and (n_rows, n_classes) or (n_rows,)"
        )
    outside = np.argwhere(~((prob >= 0.0) & (prob <= 1.0 + 1e-9)))
    if len(outside):
        raise ValueError(f"y_prob holds {prob[tuple(outside[0])]} in row {outside[0][0]}")
    classes: AnyArray = np.unique(truth) if labels is None else np.asarray(labels)
    if prob.ndim == 1:
        if len(classes) != 2:
            raise ValueError(
                f"y_prob is one-dimensional, which takes two labels; found {_listed(classes)}"
            )
        return prob, (truth == classes[1]).astype(np.float64)
    if len(classes) != prob.shape[1]:
        raise ValueError(
            f"y_prob has {prob.shape[1]} columns but there are {len(classes)} labels "
            f"({_listed(classes)}); pass labels=forest.classes_"
        )
    sums = prob.sum(axis=1)
    off = np.flatnonzero(np.abs(sums - 1.0) > 1e-4)
    if off.size:
        raise ValueError(f"row {off[0]} of y_prob sums to {sums[off[0]]:.6g}, expected 1")
    best = prob.argmax(axis=1)
    return prob[np.arange(len(prob)), best], (classes[best] == truth).astype(np.float64)


def _listed(values: Iterable[object]) -> str:
    shown = [str(value) for value in values]
    return ", ".join(shown[:8] + ["..."] * (len(shown) > 8))


def _observed(y_true: ArrayLike) -> FloatArray:
    observed = np.asarray(y_true, dtype=np.float64)
    if observed.ndim != 1 or not observed.size:
        raise ValueError(f"y_true has shape {observed.shape}, expected (n_rows,)")
    bad = np.flatnonzero(~np.isfinite(observed))
    if bad.size:
        raise ValueError(f"y_true contains {observed[bad[0]]} in row {bad[0]}")
    return observed


def _pair(y_true: ArrayLike, y_pred: Prediction) -> tuple[FloatArray, GaussianMixture]:
    observed = _observed(y_true)
    if isinstance(y_pred, GaussianMixture):
        mixture = y_pred
    elif isinstance(y_pred, tuple) and len(y_pred) == 2:
        mixture = GaussianMixture.from_normal(*y_pred)
    else:
        raise TypeError(
            f"y_pred must be a GaussianMixture or a pair (mean, std), found {type(y_pred).__name__}"
        )
    if len(mixture) != len(observed):
        raise ValueError(f"y_true has {len(observed)} rows, y_pred has {len(mixture)}")
    return observed, mixture
