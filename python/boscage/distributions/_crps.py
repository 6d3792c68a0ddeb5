r"""The continuous ranked probability score of any distribution, by numerical integration.

.. math:: CRPS(F, y) = \int_{-\infty}^y F(x)^2 dx + \int_y^\infty (1 - F(x))^2 dx

The substitution x = y ± s t / (1 - t), where s is a scale of the distribution, maps [0, 1) to each
half-line. Panels of [0, 1) are integrated by Gauss-Legendre quadrature and halved until a panel and
its two halves agree. Panels of all rows are evaluated together. Because F is monotone, its values
differ on the two sides of a step, however narrow, so no step is missed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boscage._types import FloatArray, IntArray

if TYPE_CHECKING:
    from boscage.distributions._base import PredictiveDistribution

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
# A panel is good if it differs from its halves by at most this share of the scale.
_TOLERANCE = 1e-9
_MAX_HALVINGS = 50
# Panels evaluated at a time, which bounds the memory for the components of mixtures.
_PANELS = 512


def integrated_crps(dist: PredictiveDistribution, y: FloatArray) -> FloatArray:
    """CRPS of each row."""
    n = len(dist)
    if n == 0:
        return np.empty(0)
    low, middle, high = dist.quantile([0.1, 0.5, 0.9])
    scale = np.maximum(high - low + np.abs(y - middle), np.finfo(np.float64).tiny)

    row = np.tile(np.arange(n), 2)
    side = np.repeat([-1.0, 1.0], n)
    begin, end = np.zeros(2 * n), np.ones(2 * n)

    def integrate(begin: FloatArray, end: FloatArray) -> FloatArray:
        parts = [
            _panels(dist, y, scale, row[at], side[at], begin[at], end[at])
            for at in (slice(i, i + _PANELS) for i in range(0, len(row), _PANELS))
        ]
        return np.concatenate(parts)

    total = np.zeros(n)
    coarse = integrate(begin, end)
    for halvings in range(_MAX_HALVINGS):
        middle = 0.5 * (begin + end)
        first, second = integrate(begin, middle), integrate(middle, end)
        good = np.abs(first + second - coarse) <= _TOLERANCE * scale[row]
        # Two agreeing halves of the whole may both have missed something: halve at least thrice.
        good &= halvings >= 3
        if halvings == _MAX_HALVINGS - 1:
            good[:] = True
        total += np.bincount(row[good], (first + second)[good], n)
        rest = ~good
        if not rest.any():
            break
        row, side = np.tile(row[rest], 2), np.tile(side[rest], 2)
        begin, end = (
            np.concatenate((begin[rest], middle[rest])),
            np.concatenate((middle[rest], end[rest])),
        )
        coarse = np.concatenate((first[rest], second[rest]))
    return total


def _panels(
    dist: PredictiveDistribution,
    y: FloatArray,
    scale: FloatArray,
    row: IntArray,
    side: FloatArray,
    begin: FloatArray,
    end: FloatArray,
) -> FloatArray:
    """The integral over some panels."""
    half = 0.5 * (end - begin)
    t = begin + half * (_NODES[:, None] + 1.0)
    below = dist[row].cdf(y[row] + side * scale[row] * t / (1.0 - t))
    tail = np.where(side < 0.0, below, 1.0 - below)
    integral: FloatArray = half * scale[row] * (_WEIGHTS @ (tail / (1.0 - t)) ** 2)
    return integral
