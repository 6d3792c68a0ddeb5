"""Scores of predicted probabilities of classes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from boscage import _validation
from boscage._types import AnyArray, FloatArray, IntArray


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
