"""Acquisition functions: how much a trial at a place is worth, by what a forest predicts there.

All are written for minimisation. A forest predicts a mixture of Gaussians, for which they have
closed forms.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr, ndtri

from boscage._types import FloatArray, IntArray
from boscage.distributions import GaussianMixture

_SQRT_TAU = math.sqrt(2.0 * math.pi)


def confidence_bound(mean: FloatArray, std: FloatArray, kappa: float | FloatArray) -> FloatArray:
    """The lower confidence bound: how low the objective may well be. Less is better.

    The thesis maximises, and takes mean plus standard deviation (section 6.5.3), which is this with
    ``kappa=1`` and another sign.

    Parameters
    ----------
    mean, std : ndarray of shape (n,)
        Predicted means and standard deviations of the objective.
    kappa : float or ndarray of shape (m, 1)
        Number of standard deviations.

    Returns
    -------
    ndarray of shape (n,) or (m, n)
        In units of the objective.
    """
    return mean - kappa * std


def log_expected_improvement(mean: FloatArray, std: FloatArray, best: float) -> FloatArray:
    """The logarithm of the expected improvement over `best` of Gaussians (Mockus et al., 1978).

    Parameters
    ----------
    mean, std : ndarray of shape (n,)
        Means and standard deviations.
    best : float
        The value to improve on.

    Returns
    -------
    ndarray of shape (n,)
        Logarithms; also where the improvement itself is too small for a floating-point number.
    """
    z = (best - mean) / std
    return np.asarray(np.log(std) + _log_unit_improvement(z))


def mixture_log_expected_improvement(dist: GaussianMixture, best: float) -> FloatArray:
    """The logarithm of the expected improvement over `best` of Gaussian mixtures.

    The improvement is linear in the density, so that of a mixture is the weighted sum of those of
    its components.

    Parameters
    ----------
    dist : GaussianMixture
        Predicted distributions of the objective.
    best : float
        The value to improve on.

    Returns
    -------
    ndarray of shape (n,)
        Logarithms.
    """
    std = np.sqrt(dist.variances)
    with np.errstate(divide="ignore"):
        terms = np.log(dist.weights) + log_expected_improvement(dist.means, std, best)
    return _log_sums(terms, dist.offsets)


def _log_sums(terms: FloatArray, offsets: IntArray) -> FloatArray:
    """The logarithm of the sum of each row's terms, which are given by their logarithms."""
    starts = offsets[:-1]
    top = np.maximum.reduceat(terms, starts)
    shifted = np.exp(terms - np.repeat(top, np.diff(offsets)))
    return np.asarray(top + np.log(np.add.reduceat(shifted, starts)))


def _log_unit_improvement(z: FloatArray) -> FloatArray:
    """The logarithm of ``z * cdf(z) + pdf(z)`` of the standard Gaussian.

    Below zero the two terms cancel. The sum is then the density times ``1 + z * m`` with the Mills
    ratio ``m``, and far below ``1 + z * m`` is a series in ``1 / z**2``.
    """
    out = np.empty_like(z)
    high, far = z > -1.0, z < -50.0
    at = z[high]
    out[high] = np.log(at * ndtr(at) + np.exp(-0.5 * at * at) / _SQRT_TAU)
    low = ~(high | far)
    at = z[low]
    mills = math.sqrt(0.5 * math.pi) * erfcx(-at / math.sqrt(2.0))
    out[low] = -0.5 * at * at - math.log(_SQRT_TAU) + np.log1p(at * mills)
    at = z[far]
    inverse = 1.0 / (at * at)
    series = np.log(inverse) + np.log1p(-inverse * (3.0 - inverse * (15.0 - 105.0 * inverse)))
    out[far] = -0.5 * at * at - math.log(_SQRT_TAU) + series
    return out


def log_probability_below(dist: GaussianMixture, limit: float) -> FloatArray:
    """The logarithm of the probability that the target is at most `limit`.

    Parameters
    ----------
    dist : GaussianMixture
        Predicted distributions.
    limit : float
        The limit.

    Returns
    -------
    ndarray of shape (n,)
        Logarithms, also of probabilities too small for a floating-point number.
    """
    with np.errstate(divide="ignore"):
        terms = np.log(dist.weights) + log_ndtr((limit - dist.means) / np.sqrt(dist.variances))
    return _log_sums(terms, dist.offsets)


def tree_draw(dist: GaussianMixture, n_trees: int, seed: int) -> FloatArray:
    """A function drawn from one realised tree, at the rows of a mixture.

    A realised tree sends each row to one cell, where it predicts a Gaussian. The tree is drawn, and
    then for each cell a number of standard deviations that its value is away from the mean. Cells
    are told apart by their variance.

    Parameters
    ----------
    dist : GaussianMixture
        Predictions of a forest with ``predictive="realised"``.
    n_trees : int
        Number of trees of the forest.
    seed : int
        Determines the function: the same one, whatever rows it is asked at.

    Returns
    -------
    ndarray of shape (n,)
    """
    rng = np.random.default_rng(seed)
    tree, key = int(rng.integers(n_trees)), int(rng.integers(2**63))
    counts = np.diff(dist.offsets)
    # Components are those of the trees in order, each of which has the same weight in all.
    total = np.cumsum(dist.weights)
    before = np.concatenate(([0.0], total))[dist.offsets[:-1]]
    share = total - 0.5 * dist.weights - np.repeat(before, counts)
    own = np.minimum((share * n_trees).astype(np.int64), n_trees - 1) == tree
    row = np.repeat(np.arange(len(dist)), counts)[own]
    weights, means, variances = dist.weights[own], dist.means[own], dist.variances[own]
    n_rows = len(dist)
    mass = np.bincount(row, weights, n_rows)
    mean = np.bincount(row, weights * means, n_rows) / mass
    away = means - mean[row]
    variance = np.bincount(row, weights * (variances + away * away), n_rows) / mass
    first = np.flatnonzero(np.diff(row, prepend=-1))
    return np.asarray(mean + np.sqrt(variance) * _keyed_normals(variances[first], key))


def _keyed_normals(keys: FloatArray, seed: int) -> FloatArray:
    """Standard Gaussian numbers that are functions of keys and a seed (by SplitMix64)."""
    state = np.ascontiguousarray(keys).view(np.uint64) ^ np.uint64(seed)
    for multiplier in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
        state = (state ^ (state >> np.uint64(30))) * np.uint64(multiplier)
    state ^= state >> np.uint64(31)
    uniform = ((state >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return np.asarray(ndtri(uniform))
