"""Contributions to probabilities that are a function of what trees add up.

A forest's probabilities are ``softmax(power * log p + weight * f + (1 - h) * s + g)``, mixed with
noise, where ``p`` is the mean of the trees' probabilities, ``f`` the function that the trees
explain together, ``h`` the weight of the base measure in ``p``, ``s`` what draws to the shares of
the classes if the power is below 1, and ``g`` the trend, a linear function of the features. With
the logarithmic mean ``L(a, b) = (a - b) / (log a - log b)``, a difference of logarithms is a
difference over ``L``, and a difference of numbers that of their logarithms times ``L``. So what
features add to ``p``, ``f``, ``h`` and ``g`` becomes what they add to logarithms, these are added
up, and then become what they add to probabilities (the logarithmic mean Divisia index, Ang 2004).
No step leaves a remainder.
"""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from boscage._types import AnyArray, FloatArray
from boscage.explain._class_link import ClassTrend, Link

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
    one, and then of the weight of the base measure, if it counts, along the last axis; `predicted`
    are the probabilities of `rows`, of which no value is missing.
    """
    power, noise, weight = link.power, link.noise, link.weight
    n_classes = predicted.shape[1]
    beside, of_beside = np.zeros((len(base), n_classes)), np.zeros((*values.shape[:2], n_classes))
    if link.class_shares:
        beside = (1.0 - base[:, -1:]) * link.to_shares
        of_beside = -values[:, :, -1:] * link.to_shares
        base, values = base[:, :-1], values[:, :, :-1]
    if link.trend is not None:
        of_beside[:, link.trend.features] += _by_feature(link.trend, rows)
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
    after = np.maximum(softmax(logs + of_logs.sum(axis=1), axis=1), _MIN_PROBABILITY)
    means = log_mean(after, before)
    # What the normalising sum gains; the gains of all classes cancel.
    shares = means / means.sum(axis=1, keepdims=True)
    of_sum = np.einsum("nk,npk->np", shares, of_logs)
    found = (1.0 - noise) * means[:, np.newaxis] * (of_logs - of_sum[:, :, np.newaxis])
    return (1.0 - noise) * before + noise / n_classes, found


def _by_feature(trend: ClassTrend, rows: AnyArray) -> FloatArray:
    """What each feature of a trend adds to its values; on average over training rows it is 0.

    Of the product of a linear function and what is left of it beyond the ranges, a change in one
    factor counts with the mean of the other before and after.
    """
    values, exponents = trend.parts(rows)
    exponent = exponents.sum(axis=1, keepdims=True)
    left = np.exp(exponent)
    shares = np.divide(exponents, exponent, out=np.zeros_like(exponents), where=exponent < 0.0)
    of_left = (left - 1.0) * shares
    of_values = 0.5 * (1.0 + left[:, :, np.newaxis]) * values
    whole = values.sum(axis=1)[:, np.newaxis]
    found: FloatArray = of_values + 0.5 * of_left[:, :, np.newaxis] * whole
    return found


def close_gap(base: FloatArray, values: FloatArray, predicted: FloatArray) -> FloatArray:
    """Contributions with what they lack of the prediction, which features share by their sizes.

    A feature's size is that of its contributions to all classes, and so is its share. What one
    class gains, others then still lose.
    """
    gap = predicted - base - values.sum(axis=1)
    sizes = np.abs(values).sum(axis=2)
    total = sizes.sum(axis=1, keepdims=True)
    shares = np.divide(sizes, total, out=np.zeros_like(sizes), where=total > 0.0)
    closed: FloatArray = values + shares[:, :, np.newaxis] * gap[:, np.newaxis]
    return closed
