"""Contributions to probabilities that are a function of what trees add up.

A forest's probabilities are ``softmax(power * log p + weight * f + (1 - r)**4 * (s + g))``, mixed
with noise. ``p`` is the mean of the trees' probabilities, ``f`` the function that the trees explain
together, ``r`` the weight in ``p`` of what trees say of all their rows, ``s`` what draws to the
shares of the classes if the power is below 1, and ``g`` the trend, a linear function of the
features. With the logarithmic mean ``L(a, b) = (a - b) / (log a - log b)``, a difference of
logarithms is a difference over ``L``, and a difference of numbers that of their logarithms times
``L``. So what features add to ``p``, ``f``, ``r`` and ``g`` becomes what they add to logarithms,
these are added up, and then become what they add to probabilities (the logarithmic mean Divisia
index, Ang 2004). Of the product of ``(1 - r)**4`` and ``s + g``, a change in one factor counts with
the mean of the other before and after. No step leaves a remainder.

Weights of classes are a last such step: ``p_k * w_k``, normalised, whatever ``p`` comes from. The
logarithm of a weight is the same before and after, so that features add to the logarithms what they
added before.
"""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from boscage._types import AnyArray, BoolArray, FloatArray
from boscage.explain._link import Link

# A calibrated probability as small as its rounding is none.
_ROUNDING = 1e-17
# In place of 0, which has no logarithm.
_MIN_PROBABILITY = 1e-300


def log_mean(a: FloatArray, b: FloatArray) -> FloatArray:
    """The logarithmic mean of positive numbers: ``a`` where they are equal."""
    relative = (a - b) / b
    # Far apart, the logarithm of one plus this would round the smaller number off.
    logs = np.where(np.abs(relative) < 0.5, np.log1p(np.maximum(relative, -0.5)), np.log(a / b))
    with np.errstate(invalid="ignore"):
        return np.where(relative == 0.0, a, (a - b) / logs)


def through_link(
    base: FloatArray, values: FloatArray, link: Link, predicted: FloatArray, rows: AnyArray
) -> tuple[FloatArray, FloatArray]:
    """Base and contributions of probabilities.

    `base` and `values` are those of the mean probabilities, then of the function, if there is
    one, and then of the weight of what trees say of all their rows, if it counts, along the last
    axis; `predicted` are the probabilities of `rows`, of which no value is missing.
    """
    power, noise, weight = link.power, link.noise, link.weight
    n_classes = predicted.shape[1]
    beside, of_beside = np.zeros((len(base), n_classes)), np.zeros((*values.shape[:2], n_classes))
    if link.has_of_all:
        beside, of_beside = _near_rows(link, base[:, -1:], values[:, :, -1:], rows, n_classes)
        base, values = base[:, :-1], values[:, :, :-1]
    start, of_mean = np.maximum(base[:, :n_classes], _MIN_PROBABILITY), values[:, :, :n_classes]
    of_function = values[:, :, n_classes:]
    function = base[:, n_classes:]
    logs = power * np.log(start) + beside
    if power < 1.0:
        # Small mean probabilities are lost in the sums, but follow from what is predicted.
        sharpened = np.maximum((predicted - noise / n_classes) / (1.0 - noise), _ROUNDING)
        ends = np.log(sharpened) - beside - of_beside.sum(axis=1)
        if function.size:
            ends -= weight * (function + of_function.sum(axis=1))
        end = np.maximum(softmax(ends / power, axis=1), _MIN_PROBABILITY)
    else:
        end = np.maximum(start + of_mean.sum(axis=1), _ROUNDING)
    of_logs = power * of_mean / log_mean(end, start)[:, np.newaxis] + of_beside
    if function.size:
        of_logs += weight * of_function
        logs += weight * function
    before = np.maximum(softmax(logs, axis=1), _MIN_PROBABILITY)
    after = softmax(logs + of_logs.sum(axis=1), axis=1)
    found = (1.0 - noise) * _normalised(of_logs, before, after)
    return (1.0 - noise) * before + noise / n_classes, found


def through_weights(
    values: FloatArray, before: AnyArray, after: AnyArray, weighted: tuple[AnyArray, AnyArray]
) -> FloatArray:
    """Contributions of probabilities of weighted classes, given those of the classes without.

    `before` and `after` are the base and the predicted probabilities that `values` lead from and
    to, and `weighted` both with the weights; all are of shape (n_rows, n_classes).
    """
    ends = (np.maximum(proba, _MIN_PROBABILITY) for proba in (after, before))
    return _normalised(values / log_mean(*ends)[:, np.newaxis], *weighted)


def _normalised(of_logs: FloatArray, before: FloatArray, after: FloatArray) -> FloatArray:
    """Contributions of probabilities, given those of logarithms that lack a normalising sum."""
    means = log_mean(np.maximum(after, _MIN_PROBABILITY), np.maximum(before, _MIN_PROBABILITY))
    # What the sum gains; the gains of all classes cancel.
    shares = means / means.sum(axis=1, keepdims=True)
    of_sum = np.einsum("nk,npk->np", shares, of_logs)
    found: FloatArray = means[:, np.newaxis] * (of_logs - of_sum[:, :, np.newaxis])
    return found


def _near_rows(
    link: Link, of_all: FloatArray, by_feature: FloatArray, rows: AnyArray, n_classes: int
) -> tuple[FloatArray, FloatArray]:
    """What is added to logarithms near rows: at first, and by feature.

    `of_all` is the weight of what trees say of all their rows at first, and `by_feature` what
    features add to it.
    """
    to_shares = np.broadcast_to(link.to_shares, (len(of_all), n_classes))
    of_trend = np.zeros((*by_feature.shape[:2], n_classes))
    if link.trend is not None:
        of_trend[:, link.trend.features] = link.trend.by_feature(rows)
    before = 1.0 - of_all
    after = before - by_feature.sum(axis=1)
    # The change of the fourth power, over that of 1 - r.
    steepness = (before + after) * (before**2 + after**2)
    mean_near, mean_added = 0.5 * (before**4 + after**4), to_shares + 0.5 * of_trend.sum(axis=1)
    added = mean_near[:, np.newaxis] * of_trend
    added -= (by_feature * steepness[:, np.newaxis]) * mean_added[:, np.newaxis]
    return before**4 * to_shares, added


def close_gap(
    base: FloatArray, values: FloatArray, predicted: FloatArray, is_cut: BoolArray
) -> FloatArray:
    """Contributions with what they lack of the prediction, which features share by their sizes.

    A feature's size is that of its contributions to all classes, and so is its share. What one
    class gains, others then still lose. Where nothing is contributed, the features that trees cut
    have equal shares.
    """
    gap = predicted - base - values.sum(axis=1)
    sizes = np.abs(values).sum(axis=2)
    total = sizes.sum(axis=1, keepdims=True)
    shares = np.broadcast_to(is_cut / is_cut.sum(), sizes.shape).copy()
    np.divide(sizes, total, out=shares, where=total > 0.0)
    closed: FloatArray = values + shares[:, :, np.newaxis] * gap[:, np.newaxis]
    return closed
