"""Scores of probabilistic predictions that scikit-learn lacks.

The functions for regression take the observed targets and a prediction: any
`PredictiveDistribution`, such as ``model.predict_dist(X)`` of every regressor, or a pair
``(mean, std)`` of Gaussians, such as ``model.predict(X, return_std=True)``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from boscage import _validation
from boscage._types import AnyArray, BoolArray, FloatArray, IntArray
from boscage.distributions import GaussianMixture, PredictiveDistribution

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

Prediction: TypeAlias = PredictiveDistribution | tuple[ArrayLike, ArrayLike]
"""What the functions for regression take as a prediction."""

TENTHS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def nlpd(y_true: ArrayLike, y_pred: Prediction) -> float:
    """Negative log predictive density, averaged over rows; smaller is better.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        What was observed.
    y_pred : PredictiveDistribution or (mean, std)
        What was predicted: what ``predict_dist`` returns, your own distribution, or the means and
        standard deviations of Gaussians.

    Returns
    -------
    float
        In natural logarithms.

    Raises
    ------
    ValueError
        If `y_true` holds values that are not finite numbers, or has another length than `y_pred`.
    TypeError
        If `y_pred` is neither a distribution nor a pair.

    Examples
    --------
    >>> round(nlpd([0.0], ([0.0], [1.0])), 6)
    0.918939
    """
    observed, dist = _pair(y_true, y_pred)
    return float(-np.mean(dist.logpdf(observed)))


def crps(y_true: ArrayLike, y_pred: Prediction) -> float:
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

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If `y_true` holds values that are not finite numbers, or has another length than `y_pred`,
        or a standard deviation is negative.
    TypeError
        If `y_pred` is neither a distribution nor a pair.

    Examples
    --------
    >>> round(crps([0.0], ([0.0], [1.0])), 6)
    0.233695
    """
    observed, dist, is_point = _pair_or_points(y_true, y_pred)
    return float(np.mean(np.where(is_point, np.abs(observed - dist.mean), dist.crps(observed))))


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


class ReliabilityBins(NamedTuple):
    """Confidence and accuracy of predicted classes by bins of confidence, without empty bins.

    Attributes
    ----------
    predicted : ndarray
        Mean predicted probability in each bin.
    observed : ndarray
        Share of predictions in the bin that were right.
    counts : ndarray
        Number of predictions in the bin.
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
    """Group predictions by confidence and compare it with the accuracy in each group.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        True labels.
    y_prob : array-like of shape (n_rows, n_classes) or (n_rows,)
        Predicted probabilities. The confidence of a row of a matrix is its greatest entry; the
        prediction is right if that entry's class is the true one. A vector holds the probabilities
        of the second of two labels.
    labels : array-like of shape (n_classes,), default=None
        Labels of the columns, such as ``model.classes_``. None takes those in `y_true`.
    n_bins : int, default=15
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Whether bins have equal widths in [0, 1], or about equal numbers of predictions.

    Returns
    -------
    ReliabilityBins

    Raises
    ------
    ValueError
        If the shapes do not match, `y_true` holds a label that is not among `labels`, `y_prob` does
        not hold probabilities, or `n_bins` or `strategy` is not valid.
    """
    _validation.check_choice("strategy", strategy, ("uniform", "quantile"))
    confidence, correct = _confidence(y_true, y_prob, labels)
    if not _validation.is_integer(n_bins) or n_bins < 1:
        raise ValueError(f"n_bins must be an integer >= 1, found {n_bins!r}")
    inner = np.arange(1, n_bins) / n_bins
    if strategy == "quantile":
        inner = np.quantile(confidence, inner)
    # A bin includes its upper end, as in the literature.
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
    """Expected calibration error: the mean absolute difference of confidence and accuracy.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        True labels.
    y_prob : array-like of shape (n_rows, n_classes) or (n_rows,)
        Predicted probabilities; see `reliability_bins`.
    labels : array-like of shape (n_classes,), default=None
        Labels of the columns. None takes those in `y_true`.
    n_bins : int, default=15
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Whether bins have equal widths, or about equal numbers of predictions.

    Returns
    -------
    float
        In [0, 1]; smaller is better.

    Raises
    ------
    ValueError
        If an argument is not valid; see `reliability_bins`.

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
    """The probability of the predicted class, and one if it is the true one, else zero."""
    truth = np.asarray(y_true)
    prob = np.asarray(y_prob, dtype=np.float64)
    if truth.ndim != 1 or prob.ndim not in (1, 2) or len(prob) != len(truth) or not len(truth):
        raise ValueError(
            f"y_true has shape {truth.shape} and y_prob {prob.shape}; "
            "expected (n_rows,) and (n_rows, n_classes) or (n_rows,)"
        )
    outside = np.argwhere(~((prob >= 0.0) & (prob <= 1.0 + 1e-9)))
    if len(outside):
        raise ValueError(
            f"y_prob holds {prob[tuple(outside[0])]} in row {outside[0][0]}; expected "
            "probabilities, from 0 to 1"
        )
    classes: AnyArray = np.unique(truth) if labels is None else np.asarray(labels)
    if labels is not None:
        _refuse_unknown(truth, classes.ravel().tolist())
    if prob.ndim == 1:
        if len(classes) != 2:
            raise ValueError(
                f"y_prob is one-dimensional, which takes two labels; found {_listed(classes)}"
            )
        return prob, (truth == classes[1]).astype(np.float64)
    if len(classes) != prob.shape[1]:
        raise ValueError(
            f"y_prob has {prob.shape[1]} columns but there are {len(classes)} labels "
            f"({_listed(classes)}); pass labels=model.classes_"
        )
    sums = prob.sum(axis=1)
    off = np.flatnonzero(np.abs(sums - 1.0) > 1e-4)
    if off.size:
        raise ValueError(f"row {off[0]} of y_prob sums to {sums[off[0]]:.6g}, expected 1")
    best = prob.argmax(axis=1)
    return prob[np.arange(len(prob)), best], (classes[best] == truth).astype(np.float64)


def _refuse_unknown(truth: AnyArray, classes: list[object]) -> None:
    """Refuse true labels that are not among the classes, as text is not among numbers."""
    known = set(classes)
    for label in dict.fromkeys(truth.tolist()):
        if label not in known:
            raise ValueError(
                f"y_true holds the label {label!r}, expected labels among "
                f"{_listed(map(repr, classes))}"
            )


def _listed(values: Iterable[object]) -> str:
    shown = [str(value) for value in values]
    return ", ".join(shown[:8] + ["..."] * (len(shown) > 8))


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


def _ends(name: str, given: ArrayLike, observed: FloatArray) -> FloatArray:
    """One end of an interval for each row."""
    ends = np.asarray(given, dtype=np.float64)
    if ends.shape not in ((), (1,), observed.shape):
        found = len(ends) if ends.ndim == 1 else f"the shape {ends.shape}"
        raise ValueError(
            f"y_true has {len(observed)} rows, {name} has {found}; expected as many, or a number"
        )
    return np.broadcast_to(ends, observed.shape)
