"""Scores of predictive distributions of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from boscage import _validation
from boscage._input.row_weights import check_sample_weight
from boscage._types import BoolArray, FloatArray
from boscage.distributions import GaussianMixture, PredictiveDistribution

Prediction: TypeAlias = PredictiveDistribution | tuple[ArrayLike, ArrayLike]
"""What the functions for regression take as a prediction."""

TENTHS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def nlpd(y_true: ArrayLike, y_pred: Prediction, *, sample_weight: ArrayLike | None = None) -> float:
    """Negative log predictive density, averaged over rows; smaller is better.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        What was observed.
    y_pred : PredictiveDistribution or (mean, std)
        What was predicted: what ``predict_dist`` returns, your own distribution, or the means and
        standard deviations of Gaussians.
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows in the average; None for equal ones.

    Returns
    -------
    float
        In natural logarithms.

    Raises
    ------
    ValueError
        If `y_true` holds values that are not finite numbers, or has another length than `y_pred`
        or `sample_weight`, or weights are negative or all zero.
    TypeError
        If `y_pred` is neither a distribution nor a pair.

    Examples
    --------
    >>> round(nlpd([0.0], ([0.0], [1.0])), 6)
    0.918939
    """
    observed, dist = _pair(y_true, y_pred)
    return _average(-dist.logpdf(observed), sample_weight)


def crps(y_true: ArrayLike, y_pred: Prediction, *, sample_weight: ArrayLike | None = None) -> float:
    """Continuous ranked probability score, averaged over rows; smaller is better.

    It is in units of the targets. For a prediction without spread, ``(mean, 0.0)``, it is the mean
    absolute error.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        What was observed.
    y_pred : PredictiveDistribution or (mean, std)
        What was predicted: what ``predict_dist`` returns, your own distribution, or the means and
        standard deviations of Gaussians, which may be 0.
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows in the average; None for equal ones.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If `y_true` holds values that are not finite numbers, or has another length than `y_pred`
        or `sample_weight`, a standard deviation is negative, or weights are negative or all zero.
    TypeError
        If `y_pred` is neither a distribution nor a pair.

    Examples
    --------
    >>> round(crps([0.0], ([0.0], [1.0])), 6)
    0.233695
    """
    observed, dist, is_point = _pair_or_points(y_true, y_pred)
    scores = np.where(is_point, np.abs(observed - dist.mean), dist.crps(observed))
    return _average(scores, sample_weight)


def interval_coverage(y_true: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> float:
    """Share of observations that lie inside their prediction intervals, ends included.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        What was observed.
    lower, upper : array-like of shape (n_rows,) or float
        Ends of the intervals, for example ``*dist.interval(0.9)``.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError
        If `y_true` holds values that are not finite numbers, the ends are of another length, or a
        lower end exceeds its upper end.

    Examples
    --------
    >>> interval_coverage([0.0, 2.0], [-1.0, -1.0], [1.0, 1.0])
    0.5
    """
    observed = _observed(y_true)
    low, high = _ends("lower", lower, observed), _ends("upper", upper, observed)
    crossed = np.flatnonzero(~(low <= high))
    if crossed.size:
        i = crossed[0]
        raise ValueError(f"lower must not exceed upper: row {i} has {low[i]} and {high[i]}")
    return float(np.mean((low <= observed) & (observed <= high)))


@dataclass(frozen=True, eq=False)
class CalibrationTable:
    """Nominal and observed coverage of prediction intervals.

    Attributes
    ----------
    level : ndarray
        Nominal coverage of each interval.
    observed : ndarray
        Share of observations inside the interval.
    difference : ndarray
        Observed minus nominal coverage, as in Table 6.2 of the thesis. Negative values mean that
        the prediction is overconfident, positive ones that it is underconfident.
    """

    level: FloatArray
    observed: FloatArray

    @property
    def difference(self) -> FloatArray:
        """Observed minus nominal coverage."""
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
    """Calibration of central prediction intervals, as in Table 6.2 of the thesis.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        What was observed.
    y_pred : PredictiveDistribution or (mean, std)
        What was predicted: what ``predict_dist`` returns, your own distribution, or the means and
        standard deviations of Gaussians, which may be 0: such an interval holds its mean alone.
    levels : array-like of float, default=0.1, 0.2, ..., 0.9
        Nominal coverages, in (0, 1).
    quantiles : {"gaussian", "exact"}, default="gaussian"
        Whether the intervals are those of a Gaussian with the predictive mean and variance, as in
        the thesis, or those of the predictive distribution itself.

    Returns
    -------
    CalibrationTable

    Raises
    ------
    ValueError
        If `levels` are not in (0, 1), `quantiles` is another word, `y_true` holds values that are
        not finite numbers, `y_true` has another length than `y_pred`, or a standard deviation is
        negative.
    TypeError
        If `y_pred` is neither a distribution nor a pair.

    Examples
    --------
    >>> y = [-2.0, -0.5, 0.0, 0.5, 2.0]
    >>> table = calibration_table(y, (np.zeros(5), np.ones(5)), levels=[0.5, 0.9])
    >>> table.observed.tolist()
    [0.6, 0.6]
    """
    _validation.check_choice("quantiles", quantiles, ("gaussian", "exact"))
    observed, dist, is_point = _pair_or_points(y_true, y_pred)
    claimed = np.asarray(levels, dtype=np.float64)
    if claimed.ndim != 1 or not ((claimed > 0.0) & (claimed < 1.0)).all():
        raise ValueError(f"levels must be a list of numbers in (0, 1), found {levels!r}")
    if quantiles == "gaussian":
        away = np.abs(observed - dist.mean) / dist.std
        inside = away <= ndtri(0.5 * (1.0 + claimed))[:, None]
    else:
        # y lies in the central interval of coverage c if and only if |2 F(y) - 1| <= c.
        inside = np.abs(2.0 * dist.cdf(observed) - 1.0) <= claimed[:, None]
    inside = np.where(is_point, observed == dist.mean, inside)
    return CalibrationTable(claimed, inside.mean(axis=1))


def _observed(y_true: ArrayLike) -> FloatArray:
    observed = np.asarray(y_true, dtype=np.float64)
    if observed.ndim != 1 or not observed.size:
        raise ValueError(f"y_true has shape {observed.shape}, expected (n_rows,)")
    bad = np.flatnonzero(~np.isfinite(observed))
    if bad.size:
        raise ValueError(
            f"y_true contains {observed[bad[0]]} in row {bad[0]}; expected finite numbers"
        )
    return observed


def _pair(y_true: ArrayLike, y_pred: Prediction) -> tuple[FloatArray, PredictiveDistribution]:
    observed = _observed(y_true)
    dist: PredictiveDistribution
    if isinstance(y_pred, PredictiveDistribution):
        dist = y_pred
    elif isinstance(y_pred, tuple) and len(y_pred) == 2:
        dist = GaussianMixture.from_normal(*y_pred)
    else:
        raise TypeError(
            "y_pred must be a PredictiveDistribution or a pair (mean, std), "
            f"found {type(y_pred).__name__}"
        )
    if len(dist) != len(observed):
        raise ValueError(
            f"y_true has {len(observed)} rows, y_pred has {len(dist)}; expected as many"
        )
    return observed, dist


def _pair_or_points(
    y_true: ArrayLike, y_pred: Prediction
) -> tuple[FloatArray, PredictiveDistribution, BoolArray]:
    """The same, and which Gaussians are points: what is returned for them has their mean alone."""
    is_point: BoolArray = np.zeros((), dtype=np.bool_)
    if isinstance(y_pred, tuple) and len(y_pred) == 2:
        std = np.asarray(y_pred[1], dtype=np.float64)
        # Squares of the smallest ones vanish, and those of the largest ones are refused later.
        with np.errstate(over="ignore"):
            is_point = (std >= 0.0) & (std * std == 0.0)
        y_pred = y_pred[0], np.where(is_point, 1.0, std)
    return *_pair(y_true, y_pred), is_point


def _average(scores: FloatArray, sample_weight: ArrayLike | None) -> float:
    """The mean over rows, in which each has its weight."""
    kept, weights = check_sample_weight(sample_weight, len(scores))
    # A row of weight 0 does not count even where its score is infinite.
    return float(np.average(scores if kept is None else scores[kept], weights=weights))


def _ends(name: str, given: ArrayLike, observed: FloatArray) -> FloatArray:
    """One end of an interval for each row."""
    ends = np.asarray(given, dtype=np.float64)
    if ends.shape not in ((), (1,), observed.shape):
        found = len(ends) if ends.ndim == 1 else f"the shape {ends.shape}"
        raise ValueError(
            f"y_true has {len(observed)} rows, {name} has {found}; expected as many, or a number"
        )
    return np.broadcast_to(ends, observed.shape)
