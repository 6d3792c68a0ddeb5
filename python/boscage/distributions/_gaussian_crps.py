r"""The continuous ranked probability score of a Gaussian mixture.

.. math:: CRPS(F, y) = E|X - y| - \tfrac12 E|X - X'|

where X and X' are independent draws from F. For a Gaussian :math:`Z \sim N(m, s^2)`,
:math:`E|Z| = 2 s\,\phi(m/s) + m (2\Phi(m/s) - 1)`. The first term is therefore a sum over the
components, and the second one over all pairs of components (Grimit, Gneiting, Berrocal and
Johnson, 2006).

A forest's mixture has thousands of components per row, and so millions of pairs, which are too many
for the double sum. The second term does not depend on y, though, and equals :math:`\int F (1 - F)`.
This integrand is analytic and vanishes at both ends, so the trapezoidal rule converges faster than
any power of its step. The step must suit the narrowest component, but the distribution function of
a wide one is smooth: it is computed on a coarse grid and interpolated. Grids have half the step of
the one before, and each takes the components of one octave of standard deviations, so that a
component is computed at some thirty to a hundred nodes, however narrow others are. The code takes
the cheaper of the sum and the integral; they agree to about 1e-10.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from scipy.special import ndtr

from boscage._types import FloatArray, IntArray

_SQRT_TAU = math.sqrt(2.0 * math.pi)
# Beyond this many standard deviations the normal distribution function is 0 or 1 to double
# precision.
_REACH = 8.3
# Step of the finest grid in standard deviations of the narrowest component. F (1 - F) has a Fourier
# transform like exp(-(s w)^2 / 4); at w = 2 pi / step that is exp(-(pi / 0.6)^2) = 1e-12. The other
# grids, which are interpolated, have at most half of it in standard deviations of their components.
_STEP = 0.6
# Nodes on each side of a midpoint that it is interpolated from, by a polynomial.
_SIDE = 8
# The step does not resolve the narrowest components of this total weight; the error is below their
# weight times the step.
_NEGLIGIBLE = 1e-11
_PAIRS_AT_ONCE = 1 << 19
# Nodes of the finest grid, of which each takes some 30 bytes.
_MOST_NODES = 1 << 22


def mixture_crps(
    y: FloatArray,
    offsets: IntArray,
    weights: FloatArray,
    means: FloatArray,
    variances: FloatArray,
) -> FloatArray:
    """CRPS of each row of a ragged mixture."""
    if len(y) == 0:
        return np.empty(0)
    scales = np.sqrt(variances)
    counts = np.diff(offsets)
    away = mean_absolute(np.repeat(y, counts) - means, scales)
    first = np.add.reduceat(weights * away, offsets[:-1])
    if (counts == 1).all():
        return np.asarray(first - scales / math.sqrt(math.pi))
    second = [spread(weights[i:j], means[i:j], scales[i:j]) for i, j in pairwise(offsets)]
    # Rounding errors may make the score of a perfect forecast slightly negative.
    return np.maximum(first - 0.5 * np.asarray(second), 0.0)


def mean_absolute(mean: FloatArray, scale: FloatArray) -> FloatArray:
    """E|Z| for Z normal with these means and standard deviations."""
    with np.errstate(over="ignore"):
        z = mean / scale
        density = np.exp(-0.5 * z * z) / _SQRT_TAU
    return np.asarray(2.0 * scale * density + mean * (2.0 * ndtr(z) - 1.0))


def spread(weights: FloatArray, means: FloatArray, scales: FloatArray) -> float:
    """E|X - X'| of one mixture, by the cheaper of the two formulas."""
    finest = finest_scale(weights, scales)
    first, last = _ends(means, scales)
    nodes = (last - first) / (_STEP * finest)
    per_component = 4.0 * _REACH / _STEP
    if nodes > _MOST_NODES or len(means) ** 2 <= nodes + per_component * len(means):
        return spread_by_pairs(weights, means, scales)
    return spread_by_integral(weights, means, scales, finest)


def finest_scale(weights: FloatArray, scales: FloatArray) -> float:
    """The smallest standard deviation, apart from components of negligible weight."""
    order = np.argsort(scales)
    heavy = np.searchsorted(np.cumsum(weights[order]), _NEGLIGIBLE, side="right")
    return float(scales[order[min(int(heavy), len(order) - 1)]])


def spread_by_pairs(weights: FloatArray, means: FloatArray, scales: FloatArray) -> float:
    """E|X - X'| by the closed form, over all pairs."""
    total = 0.0
    variances = scales * scales
    lines = max(1, _PAIRS_AT_ONCE // len(means))
    for i in range(0, len(means), lines):
        part = slice(i, i + lines)
        between = mean_absolute(
            means[part, None] - means, np.sqrt(variances[part, None] + variances)
        )
        total += float(weights[part] @ between @ weights)
    return total


def spread_by_integral(
    weights: FloatArray, means: FloatArray, scales: FloatArray, finest: float
) -> float:
    """E|X - X'| as twice the integral of F (1 - F), by the trapezoidal rule.

    `finest` is the standard deviation that the step suits: `finest_scale`.
    """
    # The finest grid takes two octaves: what is on it is not interpolated.
    octaves = np.floor(np.log2(np.maximum(scales / finest, 2.0))).astype(np.int64) - 1
    widest = int(octaves.max())
    # So that no digits are lost far away from 0.
    means = means - means.mean()
    first, last = _ends(means, scales)
    step = _STEP * finest * 2.0**widest
    cdf = np.zeros(math.ceil((last - first) / step) + 1)
    for octave in range(widest, -1, -1):
        own = octaves == octave
        if own.any():
            cdf += _on_grid(weights[own], means[own], scales[own], (first, step, len(cdf)))
        if octave > 0:
            cdf, step = _refined(cdf), 0.5 * step
    cdf = np.minimum(cdf, 1.0)
    return float(2.0 * step * (cdf @ (1.0 - cdf)))


def _ends(means: FloatArray, scales: FloatArray) -> tuple[float, float]:
    """Where the distribution function is still 0, and where it is 1 already."""
    reach = _REACH * scales
    return float((means - reach).min()), float((means + reach).max())


def _on_grid(
    weights: FloatArray, means: FloatArray, scales: FloatArray, grid: tuple[float, float, int]
) -> FloatArray:
    """The weighted sum of components' distribution functions at nodes: the first, step, number."""
    origin, step, n_nodes = grid
    reach = _REACH * scales
    # A component is 0 at the nodes before its window, 1 at those after it.
    first = np.ceil((means - reach - origin) / step).astype(np.int64)
    after = np.floor((means + reach - origin) / step).astype(np.int64) + 1
    counts = after - first
    begins = np.cumsum(counts) - counts
    node = np.arange(counts.sum()) + np.repeat(first - begins, counts)
    z = (origin + node * step - np.repeat(means, counts)) / np.repeat(scales, counts)
    inside = np.bincount(node, np.repeat(weights, counts) * ndtr(z), n_nodes)
    complete = np.cumsum(np.bincount(after, weights, n_nodes + 1))[:n_nodes]
    return np.asarray(inside[:n_nodes] + complete)


def _midpoint_weights() -> FloatArray:
    """Of the nodes around a midpoint, for Lagrange's interpolation."""
    at = np.arange(-_SIDE, _SIDE) + 0.5
    others = [np.delete(at, i) for i in range(len(at))]
    return np.array([np.prod(-away / (x - away)) for x, away in zip(at, others, strict=True)])


_MIDPOINT = _midpoint_weights()


def _refined(values: FloatArray) -> FloatArray:
    """A function on a grid of half the step; beyond the ends it stays as it is."""
    ends = np.full(_SIDE - 1, values[0]), np.full(_SIDE - 1, values[-1])
    out = np.empty(2 * len(values) - 1)
    out[::2] = values
    out[1::2] = np.convolve(np.concatenate([ends[0], values, ends[1]]), _MIDPOINT, "valid")
    return out
